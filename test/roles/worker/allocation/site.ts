import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { Slurm } from "../../../rigs/slurm.ts";
import { removeTree } from "../../../runner/remove.ts";
import { WorkerHarness } from "../harness.ts";
import type { Death } from "../mortal.ts";
import { FakeScheduler } from "./fake-scheduler.ts";

/** What a worker waits for here, as short as the steps of a test need. */
export const TIMES = {
  refusedAgain: 100,
  unfencedAgain: 100,
  refusedPatience: 500,
  doubtFirst: 50,
  doubtMost: 100,
  lag: 300,
  vanished: 600,
  why: 2_000,
  cancelMargin: 100,
  cancelFirst: 50,
  cancelMost: 1_000,
};

/** At a real scheduler: it and the shim take their time on a machine that does other work. */
export const REAL_TIMES = { ...TIMES, lag: 3_000, vanished: 60_000, why: 20_000 };

/** A worker, one after the other, at a scheduler that outlives them. */
export class Site implements AsyncDisposable {
  readonly directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-site-"));
  readonly scheduler = new FakeScheduler(path.join(this.directory, "scheduler"));
  worker: WorkerHarness;

  constructor(private readonly options: Record<string, unknown> = {}) {
    this.worker = this.#worker(null);
  }

  #worker(death: Death | null, options: Record<string, unknown> = {}): WorkerHarness {
    const scheduling = { choice: "slurm", fake: this.scheduler.directory, times: TIMES };
    return new WorkerHarness({ scheduling, death, ...this.options, ...options }, this.directory);
  }

  /** The next worker, with other settings. */
  beside(options: Record<string, unknown>): WorkerHarness {
    this.worker = this.#worker(null, options);
    return this.worker;
  }

  async start(): Promise<this> {
    await this.worker.start();
    return this;
  }

  /** The next worker, which may be one that is to die. */
  next(death: Death | null = null): WorkerHarness {
    this.worker = this.#worker(death);
    return this.worker;
  }

  /** Submit a shell command line to the scheduler. */
  submit(line: string, spec: Record<string, unknown> = {}, more: Record<string, unknown> = {}) {
    return this.worker.submit({ argv: ["/bin/sh", "-c", line], workdir: this.directory, scheduler: {}, ...spec }, more);
  }

  async events(jobId: string, type: string) {
    return (await this.worker.events(jobId)).filter(({ event_type }) => event_type === type);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.scheduler.end();
    await this.worker[Symbol.asyncDispose]();
    removeTree(this.directory);
  }
}

/** A worker on a SLURM of the test's own, as one finds it there: with its variables. */
export function workerOn(slurm: Slurm): Promise<WorkerHarness> {
  const variables = Object.entries(slurm.variables).map(([name, value]) => `${name}=${value}`);
  return new WorkerHarness({ scheduling: { choice: "slurm", faster: 20, times: REAL_TIMES } }, undefined, ["env", ...variables]).start();
}
