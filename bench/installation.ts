import fs from "node:fs";
import path from "node:path";
import { DesktopClient } from "../src/api/client/desktop-client.ts";
import { type Address, HttpPeer } from "../src/api/client/http-peer.ts";
import { ClusterClient } from "../src/api/client.ts";
import { readEnvironment } from "../src/config/environment.ts";
import { type Paths, resolvePaths } from "../src/config/paths.ts";
import { PLAIN_COPIES } from "../src/lib/system/plain-copies.ts";
import { eventually } from "../test/runner/wait.ts";
import type { BenchContext } from "./row.ts";

/** A running worker and desktop of their own for one row. */
export interface Installation extends AsyncDisposable {
  readonly paths: Paths;
  readonly workerPid: number;
  /** Straight to the worker's socket. */
  readonly worker: ClusterClient;
  /** Through the desktop daemon. */
  readonly desktop: ClusterClient;
  readonly desktopPid: () => Promise<number>;
  readonly environment: Record<string, string>;
  run(...args: string[]): Promise<string>;
}

/**
 * Start the built executable's worker in `context.directory`, with settings given as variables.
 *
 * @param configure runs before the worker does
 */
export async function install(
  context: BenchContext,
  settings: Record<string, string> = {},
  configure: (run: (args: readonly string[], stdin: string) => Promise<string>) => Promise<void> = async () => undefined,
): Promise<Installation> {
  const home = path.join(context.directory, "home");
  const environment = {
    PATH: process.env.PATH ?? "",
    HOME: process.env.HOME ?? "/",
    CLIO_RELAY_HOME: home,
    CLIO_RELAY_MIN_FREE_BYTES: "0",
    ...settings,
  };
  const runWith = async (args: readonly string[], stdin: string): Promise<string> => {
    const child = Bun.spawn([context.executable, ...args], { env: environment, stdin: Buffer.from(stdin), stdout: "pipe", stderr: "pipe" });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`clio-relay ${args.join(" ")} ended with ${code}: ${err}`);
    return out;
  };
  const run = (...args: string[]): Promise<string> => runWith(args, "");
  await run("init");
  await configure(runWith);
  const paths = resolvePaths(readEnvironment(environment));
  const worker = Bun.spawn([context.executable, "worker", "run", "--cluster", "local"], {
    // As `worker start` and a service do.
    env: { ...PLAIN_COPIES, ...environment },
    stdin: "ignore",
    stdout: Bun.file(path.join(context.directory, "worker.out")),
    stderr: Bun.file(path.join(context.directory, "worker.err")),
  });
  const unix = (socket: string): Address => ({ kind: "unix", path: socket });
  const direct = new ClusterClient("local", new HttpPeer(unix(paths.workerSocket("local"))));
  await eventually(() => direct.workers(), { timeoutMs: 30_000 });
  await run("queue", "list");
  const client = new DesktopClient(unix(paths.desktopSocket));
  return {
    paths,
    workerPid: worker.pid,
    worker: direct,
    desktop: client.cluster("local"),
    desktopPid: async () => (await client.status()).process.pid,
    environment,
    run,
    async [Symbol.asyncDispose]() {
      await run("desktop", "stop").catch(() => undefined);
      worker.kill("SIGTERM");
      await worker.exited;
      fs.rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Resident set of a process in bytes (proc_pid_status(5), VmRSS). */
export function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"));
  if (match === null) throw new Error(`process ${pid} has no resident set`);
  return Number(match[1]) * 1024;
}
