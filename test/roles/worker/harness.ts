import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { HttpPeer } from "../../../src/api/client/http-peer.ts";
import { ClusterClient } from "../../../src/api/client.ts";
import type { Event } from "../../../src/domain/event.ts";
import type { JobReceipt, JobSubmissionInput } from "../../../src/domain/job.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import type { JobStatus } from "../../../src/domain/views.ts";
import { attemptDirectory, jobDirectory } from "../../../src/execution/attempt-dir.ts";
import { processesMarked } from "../../runner/leftovers.ts";
import { removeTree } from "../../runner/remove.ts";
import { eventually } from "../../runner/wait.ts";

type CommandInput = Extract<JobSubmissionInput, { kind: "command" }>["spec"];

/** One worker after the other on one directory, each a process of its own. Whatever they started is gone at the end. */
export class WorkerHarness implements AsyncDisposable {
  readonly client: ClusterClient;
  #process: Bun.Subprocess<"ignore", "pipe", "pipe"> | null = null;
  #stderr = "";
  readonly #submitted: string[] = [];
  readonly #owned: boolean;

  constructor(
    private readonly options: Record<string, unknown> = {},
    readonly directory: string = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-worker-")),
    private readonly wrapper: readonly string[] = [],
  ) {
    this.#owned = directory.startsWith(path.join(os.tmpdir(), "clio-relay-worker-"));
    this.client = new ClusterClient("local", new HttpPeer({ kind: "unix", path: this.socket }));
  }

  get socket(): string {
    return path.join(this.directory, "run", "worker.sock");
  }

  get pid(): number {
    return this.#process!.pid;
  }

  get coreDir(): string {
    return (this.options["coreDir"] as string | undefined) ?? path.join(this.directory, "core");
  }

  get spoolDir(): string {
    return (this.options["spoolDir"] as string | undefined) ?? path.join(this.directory, "spool");
  }

  /** What the worker has said on standard error. */
  get messages(): string {
    return this.#stderr;
  }

  attemptDir(jobId: string, attempt = 1): string {
    return attemptDirectory(jobDirectory(this.spoolDir, jobId), attempt);
  }

  /** Start a worker and wait until it serves. */
  async start(): Promise<this> {
    const worker = this.spawn();
    const ready = worker.stdout.getReader().read();
    const outcome = await Promise.race([ready.then(() => "ready" as const), worker.exited]);
    if (outcome !== "ready" || (await ready).done) throw new Error(`the worker ended with ${await worker.exited}: ${this.#stderr}`);
    return this;
  }

  /** Start a worker without waiting for it. */
  spawn(): Bun.Subprocess<"ignore", "pipe", "pipe"> {
    const worker = Bun.spawn([...this.wrapper, process.execPath, path.join(import.meta.dir, "worker-entry.ts"), this.directory], {
      env: { ...(process.env as Record<string, string>), WORKER_OPTIONS: JSON.stringify(this.options) },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    void (async () => {
      for await (const bytes of worker.stderr as unknown as AsyncIterable<Uint8Array>) this.#stderr += Buffer.from(bytes).toString();
    })();
    this.#process = worker;
    return worker;
  }

  async kill(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#process?.exited;
  }

  /** Drain; resolves to the exit code. */
  async drain(): Promise<number> {
    this.#process!.kill("SIGTERM");
    return this.#process!.exited;
  }

  /** A request as it is, and its answer's JSON. */
  async call<T = Record<string, unknown>>(
    method: string,
    target: string,
    body?: string | Uint8Array,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; headers: Headers; body: T }> {
    const type: Record<string, string> = body instanceof Uint8Array ? {} : { "content-type": "application/json" };
    const sent = body === undefined ? {} : { body };
    const response = await fetch(`http://worker${target}`, { unix: this.socket, method, headers: { ...type, ...headers }, ...sent });
    return { status: response.status, headers: response.headers, body: (await response.json()) as T };
  }

  async submit(spec: CommandInput, more: Partial<JobSubmissionInput> = {}): Promise<JobReceipt> {
    const job = await this.client.submit({ cluster: "local", kind: "command", spec, ...more } as JobSubmissionInput);
    this.#submitted.push(job.job_id);
    return job;
  }

  /** Submit a shell command line. */
  shell(line: string, spec: Partial<CommandInput> = {}): Promise<JobReceipt> {
    return this.submit({ argv: ["/bin/sh", "-c", line], ...spec });
  }

  /** The status once the job has ended. Survives restarts of the worker in between. */
  ended(jobId: string, timeoutMs = 240_000): Promise<JobStatus> {
    return eventually(
      async () => {
        const status = await this.client.status(jobId);
        return status.terminal && status;
      },
      { timeoutMs, what: `the end of ${jobId}` },
    );
  }

  /** The status once the job's first process runs. */
  async running(jobId: string): Promise<JobStatus> {
    const status = await eventually(
      async () => {
        const seen = await this.client.status(jobId);
        return (seen.terminal || (seen.job.state === "running" && seen.attempt?.process !== null)) && seen;
      },
      { what: `the start of ${jobId}` },
    );
    if (status.terminal) throw new Error(`the job has ended: ${JSON.stringify(status.job.outcome)}`);
    return status;
  }

  async events(jobId: string): Promise<Event[]> {
    const all: Event[] = [];
    for (let cursor = 1; ; ) {
      const page = await this.client.events(jobId, { cursor, limit: LIMITS.pageMax });
      all.push(...page.events);
      if (page.events.length === 0) return all;
      cursor = page.next_cursor;
    }
  }

  async stdout(jobId: string): Promise<string> {
    return (await this.client.logContent(jobId, "stdout")).text();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    if (fs.existsSync(this.spoolDir)) {
      for (const found of new Bun.Glob("*/attempt-*/start.json").scanSync(this.spoolDir)) endAttempt(this.spoolDir, found);
    }
    // A test may have taken the spool away that would name them.
    for (const jobId of this.#submitted) {
      if (fs.existsSync(path.join(this.attemptDir(jobId), "start.json"))) continue;
      for (const { pid } of processesMarked("CLIO_RELAY_ATTEMPT", `${jobId}/1`)) endProcess(pid);
    }
    if (this.#owned) removeTree(this.directory);
  }
}

function endAttempt(spoolDir: string, found: string): void {
  const [job, attempt] = found.split("/");
  const start = JSON.parse(fs.readFileSync(path.join(spoolDir, found), "utf8")) as { shim?: { pid: number } };
  const pids = processesMarked("CLIO_RELAY_ATTEMPT", `${job}/${attempt!.replace("attempt-", "")}`).map(({ pid }) => pid);
  const shim = start.shim?.pid;
  const isShim =
    shim !== undefined && fs.existsSync(`/proc/${shim}`) && fs.readFileSync(`/proc/${shim}/cmdline`, "utf8").includes("__shim");
  for (const pid of [...(isShim ? [shim] : []), ...pids]) endProcess(pid);
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // gone meanwhile
  }
}

/** What has to hold for every job that ended, whatever happened on the way. */
export function historyFaults(events: readonly Event[]): string[] {
  const faults: string[] = [];
  events.forEach((event, i) => {
    if (event.seq !== i + 1) faults.push(`seq ${event.seq} at place ${i + 1}`);
  });
  const ends = events.filter((e) => ["job.succeeded", "job.failed", "job.canceled"].includes(e.event_type));
  if (ends.length !== 1) faults.push(`${ends.length} ends`);
  for (const stream of ["stdout", "stderr"]) {
    let at = 0;
    for (const event of events.filter((e) => e.event_type === `${stream}.delta`)) {
      const { offset, next_offset } = event.payload as { offset: number; next_offset: number };
      if (offset !== at) faults.push(`${stream} goes on at ${offset} after ${at}`);
      at = next_offset;
    }
  }
  const started = events.findIndex((e) => e.event_type === "execution.started");
  const output = events.findIndex((e) => e.event_type.endsWith(".delta"));
  if (output >= 0 && output < started) faults.push(`output at place ${output + 1}, its job's start at ${started + 1}`);
  return faults;
}
