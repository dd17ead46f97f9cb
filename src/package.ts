/** What other programs get by `import { connect } from "clio-relay"`; see docs/use-the-api.md. It runs in Bun and in Node. */
import { execFile } from "node:child_process";
import { DesktopClient } from "./api/client/desktop-client.ts";
import { type Address, type Door, failureOf } from "./api/client/http-peer.ts";
import { nodeFetch } from "./api/client/node-fetch.ts";
import type { ClusterClient } from "./api/client.ts";
import { RelayError } from "./domain/errors.ts";
import { nobodyListens } from "./roles/probe.ts";

export type { JobListOptions, PageOptions, QueueOptions } from "./api/client.ts";
export type { Artifact } from "./domain/artifact.ts";
export { type ErrorCode, isRelayError, RelayError } from "./domain/errors.ts";
export type { Event } from "./domain/event.ts";
export type { Job, JobReceipt, JobState, JobSubmissionInput as JobSubmission } from "./domain/job.ts";
export type { LogChunk, LogStream } from "./domain/log.ts";
export type { Progress } from "./domain/progress.ts";
export type { SchedulerRequest, SchedulerStatus } from "./domain/scheduler.ts";
export type { Task, TaskEvent } from "./domain/task.ts";
export type { JobStatus, JobSummary, JobWaitResult, SchedulerCanceled, SchedulerObserved } from "./domain/views.ts";
export type { ClusterClient, DesktopClient };

/** Where the desktop daemon is. Without any of it, it is the user's own, and is started where it does not run. */
export interface ConnectOptions {
  /** The path of its Unix socket. */
  readonly socket?: string;
  /** Where it listens on TCP (`clio-relay api start`), with the token for it. */
  readonly url?: string;
  readonly token?: string;
  /** The program that finds and starts it; `clio-relay` on PATH when left out. */
  readonly executable?: string;
}

/**
 * The desktop daemon, through which every cluster is reached: `(await connect()).cluster("name").submit(…)`.
 *
 * @throws RelayError desktop_unavailable, and whatever keeps the daemon from starting; usage for a URL without a token
 */
export async function connect(options: ConnectOptions = {}): Promise<DesktopClient> {
  const fixed = fixedAddress(options);
  const executable = options.executable ?? "clio-relay";
  let address = fixed ?? (await start(executable));
  const door: Door = {
    address: () => address,
    ...("Bun" in globalThis ? {} : { fetch: nodeFetch }),
    async reopen(failure, repeatable) {
      if (fixed !== null || failure instanceof RelayError || !(nobodyListens(failure) || repeatable)) return false;
      address = await start(executable);
      return true;
    },
  };
  return new DesktopClient(door);
}

function fixedAddress({ socket, url, token }: ConnectOptions): Address | null {
  if (socket !== undefined) return { kind: "unix", path: socket };
  if (url === undefined) return null;
  if (token === undefined) throw new RelayError("usage", "a URL needs the token of the listener there");
  return { kind: "url", url: new URL(url).origin, token };
}

/** Have the daemon run, and learn where. Its program knows by the same variables as in a shell. */
function start(executable: string): Promise<Address> {
  return new Promise((resolve, reject) => {
    execFile(executable, ["desktop", "start", "--json"], { maxBuffer: 1024 * 1024 }, (error, stdout, stderr) => {
      if (error !== null) return reject(startFailure(executable, error, stderr));
      const { socket } = JSON.parse(stdout) as { socket: string };
      if (!/^https?:/.test(socket)) return resolve({ kind: "unix", path: socket });
      reject(new RelayError("usage", `the daemon listens on ${socket}: say so, with its token, by url and token`));
    });
  });
}

function startFailure(executable: string, error: Error, stderr: string): RelayError {
  const last = stderr.trim().split("\n").at(-1) ?? "";
  const what = `${executable} desktop start: ${last === "" ? error.message : last}`;
  return problemIn(last) ?? new RelayError("desktop_unavailable", what, {}, undefined, { cause: error });
}

function problemIn(line: string): RelayError | null {
  try {
    return failureOf(JSON.parse(line));
  } catch {
    return null;
  }
}
