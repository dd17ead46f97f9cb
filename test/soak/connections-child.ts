/**
 * Holds connections to a port of this machine: `connections-child.ts PORT COUNT WHAT`. What each says first comes as one line on standard input, with \r\n for line ends;
 * WHAT is `kept` (says it, reads the answer, and goes on being there), `dripping` (says it a byte at a time, for ever), or `deaf` (says it, and reads nothing). Then a line on standard input asks for a
 * line of JSON: how many are open, how many were answered, how often with which status. The end of standard input ends it.
 */
import net from "node:net";
import { createInterface } from "node:readline";

const [port, count, what] = process.argv.slice(2) as [string, string, "kept" | "dripping" | "deaf"];
const AT_ONCE = 200;
const DRIP_MS = 500;

const open = new Set<net.Socket>();
const statuses: Record<string, number> = {};
let failed = 0;

function connect(first: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = net.connect(Number(port), "127.0.0.1");
    open.add(socket);
    socket.once("connect", () => {
      if (what === "dripping") drip(socket, first);
      else socket.write(first);
      if (what === "deaf") socket.pause();
      resolve();
    });
    socket.on("error", () => undefined);
    if (what !== "deaf") {
      socket.once("data", (chunk: Buffer) => {
        const status = chunk.toString("latin1", 9, 12);
        statuses[status] = (statuses[status] ?? 0) + 1;
      });
      socket.on("data", () => undefined);
    }
    socket.once("close", () => {
      if (socket.bytesWritten === 0 && first !== "") failed++;
      open.delete(socket);
      resolve();
    });
  });
}

function drip(socket: net.Socket, first: string): void {
  let at = 0;
  const timer = setInterval(() => socket.write(at < first.length ? first[at++]! : "x"), DRIP_MS);
  socket.once("close", () => clearInterval(timer));
}

const lines = createInterface({ input: process.stdin });
const asked = lines[Symbol.asyncIterator]();
const first = ((await asked.next()).value as string).replaceAll("\\r\\n", "\r\n");
for (let left = Number(count); left > 0; left -= AT_ONCE) {
  await Promise.all(Array.from({ length: Math.min(left, AT_ONCE) }, () => connect(first)));
}
const report = (): void => console.log(JSON.stringify({ open: open.size, statuses, failed }));
report();
for await (const _ of lines) report();
process.exit(0);
