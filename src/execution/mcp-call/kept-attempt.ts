import fs from "node:fs";
import path from "node:path";
import { LOG_STREAMS, type LogStream } from "../../domain/log.ts";
import type { JsonObject } from "../../domain/primitives.ts";
import { self } from "../../lib/system/process-identity.ts";
import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import { endProcesses } from "../end-processes.ts";
import { type AttemptOptions, isCancel, unstarted } from "../shim/attempt.ts";
import { JobProcesses } from "../shim/job-processes.ts";
import { type Cause, notStarted, outcomeOf } from "../shim/outcome.ts";
import { OutputBudget } from "../shim/output-budget.ts";
import type { Provision } from "../shim/provision.ts";
import { readSpecFile } from "../shim/spec-file.ts";
import { noteTruncation, openLog, writeEnvSetup } from "../shim/start-job.ts";
import { type AttemptSpec, type ExitRecord, FILES, type ProcessRecord, RECORD_VERSION } from "../spool-records.ts";
import { CallFailed } from "./call-failed.ts";
import { DirectLog } from "./direct-log.ts";
import type { HeldServer } from "./held-server.ts";
import { callOn } from "./one-call.ts";
import { record, succeeded } from "./record.ts";
import { CALL_FILES, readRequest } from "./request-file.ts";
import { SetupFailed, setupEnvironment } from "./setup-environment.ts";

/** The longest that one timer may run (setTimeout takes 2^31 - 1 ms). */
const TIMER_MAX_MS = 2_147_483_647;

/** What one attempt of a kept server is given besides. */
export interface KeptAround {
  readonly server: HeldServer;
  readonly clientInfo: JsonObject;
}

/**
 * One call as an attempt of its own, on a server that goes on after it. It has no process of its own: its shim is its first one. What is
 * canceled, out of time or failed ends the server, which might go on with it.
 */
export async function runKept(options: AttemptOptions, provision: Provision, around: KeptAround): Promise<ExitRecord> {
  const { directory, place, clock, term } = options;
  if (isCancel(place)) return unstarted(notStarted("canceled", "canceled before it started"), clock);
  let spec: AttemptSpec;
  try {
    spec = readSpecFile(place.path);
  } catch (error) {
    return unstarted(notStarted("spawn_failed", messageOf(error)), clock);
  }
  const ending = new Ending(spec, term.promise, () => isCancel(place));
  try {
    const made = () => setupEnvironment(spec, writeEnvSetup(spec, { directory, place: place.path }), ending.signal);
    // One that runs has its own; it may have to be replaced all the same.
    const environment = around.server.runs ? made : always(await made());
    return await called(spec, environment, ending, { options, provision, around });
  } catch (error) {
    const residual = await endEverything(spec, clock);
    if (ending.signal.aborted) return unstarted(outcomeOf(ending.cause, NO_CODE, spec, residual), clock);
    const failed = notStarted("spawn_failed", messageOf(error));
    return unstarted(error instanceof SetupFailed ? { ...failed, reason: "env_setup_failed", exit_code: error.code } : failed, clock);
  } finally {
    ending.close();
  }
}

const always =
  <T>(value: T) =>
  async (): Promise<T> =>
    value;

const NO_CODE = { code: null, signal: null };

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

interface Kept {
  readonly options: AttemptOptions;
  readonly provision: Provision;
  readonly around: KeptAround;
}

/** The call itself, and what is recorded of it. */
async function called(
  spec: AttemptSpec,
  environment: () => Promise<Readonly<Record<string, string>>>,
  ending: Ending,
  { options: { place, clock, log, ...rest }, provision, around: { server, clientInfo } }: Kept,
): Promise<ExitRecord> {
  const startedAt = timestamp(clock);
  const first: ProcessRecord = { record_version: RECORD_VERSION, process: self(), started_at: startedAt };
  const request = readRequest(path.join(place.path, CALL_FILES.request));
  provision.process.commit(place.path, JSON.stringify(first), false);
  using streams = new Streams(spec, { ...rest, place, clock, log }, provision);
  provision.exit.moveTo(place.path);
  const around = { request, environment: async () => unmarked(await environment()), workdir: spec.workdir, clientInfo };
  const callPlace = {
    directory: place.path,
    eventsDir: path.join(place.path, FILES.events),
    sinks: streams.sinks,
    signal: ending.signal,
  };
  let residual: readonly number[] = [];
  const end = await callOn(server, around, callPlace, async ({ answer }) => {
    if (answer.kind !== "failure") return server.rest();
    await server.end(ending.signal.aborted);
    residual = await endEverything(spec, clock);
  });
  ending.close();
  const isRecorded = noted(log, "its result is not written", () => record(place.path, end));
  const exit = ending.cause === "ended" ? { code: isRecorded && succeeded(end) ? 0 : 1, signal: null } : NO_CODE;
  return {
    record_version: RECORD_VERSION,
    outcome: outcomeOf(ending.cause, exit, spec, residual),
    started_at: startedAt,
    ended_at: timestamp(clock),
    streams: streams.conclude(log),
    usage: null,
    leftover: 0,
  };
}

/** Whether something was done; the shim's own log has why not. */
function noted(log: AttemptOptions["log"], what: string, work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    log.note(`${what}: ${String(error)}`);
    return false;
  }
}

/** A kept server is no attempt's alone, so that it has none's mark. */
const unmarked = ({ CLIO_RELAY_ATTEMPT: _mark, ...environment }: Readonly<Record<string, string>>): Record<string, string> => environment;

/** End the server and all that it started. */
export async function endEverything(spec: Pick<AttemptSpec, "cancel_grace_seconds">, clock: Clock): Promise<readonly number[]> {
  const processes = new JobProcesses(0);
  return (await endProcesses({ find: () => processes.running(), graceMs: spec.cancel_grace_seconds * 1_000, clock })).residual;
}

/** What may end a call besides its answer. */
class Ending {
  readonly #over = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  cause: Cause = "ended";

  constructor({ timeout_seconds }: Pick<AttemptSpec, "timeout_seconds">, term: Promise<void>, isCanceled: () => boolean) {
    void term.then(() => this.#end(isCanceled() ? "canceled" : "terminated"));
    if (timeout_seconds !== null) this.#timer = setTimeout(() => this.#end("timeout"), Math.min(timeout_seconds * 1_000, TIMER_MAX_MS));
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#closed = true;
  }

  #closed = false;

  #end(cause: Cause): void {
    if (this.#closed || this.cause !== "ended") return;
    this.cause = cause;
    this.#over.abort(new CallFailed("interrupted", cause === "timeout" ? "it was out of time" : "it was asked to end"));
  }
}

/** The attempt's own logs. */
class Streams implements Disposable {
  readonly #opened: number[] = [];
  readonly #logs: Readonly<Record<LogStream, DirectLog>>;

  constructor(spec: AttemptSpec, { place, clock, log }: AttemptOptions, provision: Provision) {
    const budget = new OutputBudget(spec.quota);
    const open = (stream: LogStream): DirectLog =>
      new DirectLog({
        stream,
        fd: openLog(place.path, stream, provision, this.#opened),
        budget,
        onTruncated: (capture) => noteTruncation(stream, capture, { place: place.path, clock, log }),
      });
    this.#logs = { stdout: open("stdout"), stderr: open("stderr") };
  }

  get sinks() {
    const into = (stream: LogStream) => async (bytes: Uint8Array) => this.#logs[stream].take(bytes);
    return { stdout: into("stdout"), stderr: into("stderr") };
  }

  conclude(log: AttemptOptions["log"]): ExitRecord["streams"] {
    const ends = LOG_STREAMS.map((stream) => [stream, this.#logs[stream].conclude()] as const);
    for (const [at, [, { kept }]] of ends.entries())
      if (kept > 0) noted(log, "a log is not flushed", () => fs.fsyncSync(this.#opened[at]!));
    return Object.fromEntries(ends) as ExitRecord["streams"];
  }

  [Symbol.dispose](): void {
    for (const fd of this.#opened) fs.closeSync(fd);
  }
}
