import { afterEach } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import type { ListenerStatus } from "../../../src/api/desktop/listener-views.ts";
import type { ListenerRequestInput } from "../../../src/config/api-listener.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";
import { startWorkerLike, type WorkerLike } from "./worker-like.ts";

/** Whatever is free. */
export const FREE: ListenerRequestInput = { port: 0 };

/** A daemon with a worker behind it, whose API is on TCP. */
interface Served {
  readonly daemon: TestDaemon;
  readonly worker: WorkerLike;
  readonly url: string;
  readonly status: ListenerStatus;
  token(): string;
  get(route: string, headers?: Record<string, string>, init?: RequestInit): Promise<Response>;
}

export const reasonOf = async (response: Response): Promise<string> => ((await response.json()) as { reason: string }).reason;

/** What comes back on a connection of its own, until it closes. */
export async function raw(port: number, text: string): Promise<string> {
  const chunks: Buffer[] = [];
  const socket = net.connect(port, "127.0.0.1");
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => undefined);
  socket.write(text);
  await new Promise((resolve) => socket.once("close", resolve));
  return Buffer.concat(chunks).toString("latin1");
}

/** Daemons that serve their API on TCP, for the tests of a file; what they need ends with the test. */
export function servedApis() {
  const directory = temporaryDirectories();
  const ending: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ending.splice(0).reverse()) await end();
  });

  async function served(request: ListenerRequestInput = FREE, base = directory()): Promise<Served> {
    const daemon = await startDaemon(base, { clusters: ["near"] });
    const worker = startWorkerLike(daemon.paths.workerSocket("near"));
    ending.push(async () => {
      await daemon.stop();
      await worker.stop();
    });
    const status = await daemon.client.startListener(request);
    const url = status.url!;
    const token = () => fs.readFileSync(daemon.paths.apiTokenFile, "utf8").trim();
    return {
      daemon,
      worker,
      url,
      status,
      token,
      get: (route, headers = { authorization: `Bearer ${token()}` }, init = {}) =>
        fetch(`${url}${route}`, { ...init, headers, redirect: "manual" }),
    };
  }

  return { served, directory, ending };
}
