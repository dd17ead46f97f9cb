import fs from "node:fs";
import net from "node:net";

/** Ports below this are those of services, and above LAST of connections that go out (tcp(7), ip_local_port_range). */
const FIRST = 10_000;
const LAST = lastOf("/proc/sys/net/ipv4/ip_local_port_range");
const given = new Set<number>();

function lastOf(range: string): number {
  if (!fs.existsSync(range)) return 32_767;
  const [from] = fs.readFileSync(range, "utf8").split(/\s+/);
  return Math.max(FIRST + 10_000, Number(from) - 1);
}

/**
 * A port that nobody listens on, for a program that has to be told one: none that the system gives to a connection meanwhile, and no one twice.
 *
 * @throws Error where a hundred are taken
 */
export async function freePort(address = "127.0.0.1"): Promise<number> {
  for (let tried = 0; tried < 100; tried++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if (given.has(port) || !(await canBeListenedOn(port, address))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no free port on ${address}`);
}

const canBeListenedOn = (port: number, address: string): Promise<boolean> =>
  new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", () => resolve(false));
    server.listen(port, address, () => server.close(() => resolve(true)));
  });
