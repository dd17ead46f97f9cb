/** Carries bytes between its standard streams and a Unix socket, whose path is the argument. */
import net from "node:net";

const socket = net.connect(process.argv[2]!);
process.stdin.pipe(socket);
socket.pipe(process.stdout);
socket.on("error", () => process.exit(1));
socket.on("close", () => process.exit(0));
