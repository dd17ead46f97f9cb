import { expect } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { JarvisStandIn } from "../../rigs/jarvis/stand-in.ts";
import { removeTree } from "../../runner/remove.ts";
import { eventually } from "../../runner/wait.ts";
import { FakeScheduler } from "./allocation/fake-scheduler.ts";
import { TIMES } from "./allocation/site.ts";
import type { WorkerHarness } from "./harness.ts";
import { JarvisRuns } from "./jarvis-runs.ts";
import type { Death } from "./mortal.ts";

/** On a machine that does much else, too. */
const DEATH_MS = 120_000;
const SBATCH = [process.execPath, path.join(import.meta.dir, "allocation/fake-sbatch-entry.ts")];

/** A JARVIS-CD that submits to a scheduler, and one worker after the other. */
export class JarvisCluster implements AsyncDisposable {
  readonly directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-jarvis-deaths-"));
  readonly scheduler = new FakeScheduler(path.join(this.directory, "scheduler"));
  readonly jarvis = new JarvisStandIn(path.join(this.directory, "jarvis")).initialize([...SBATCH, this.scheduler.directory]);
  #worker: WorkerHarness | null = null;
  /** Begins what was accepted, as a slurmd does: nothing that runs is below the command that has submitted it. */
  readonly #node = setInterval(() => {
    for (const { id, started } of this.scheduler.jobs()) if (!started) this.#begin(id);
  }, 50);

  constructor() {
    this.scheduler.behave({ holds: true });
  }

  #begin(id: string): void {
    this.scheduler.say(id, null);
    this.scheduler.run(id);
  }

  next(death: Death | null, options: Record<string, unknown> = {}): JarvisRuns {
    const scheduling = { choice: "slurm", fake: this.scheduler.directory, times: { ...TIMES, lag: 2_000 } };
    const runs = new JarvisRuns(this.jarvis, { scheduling, death, ...options }, path.join(this.directory, "worker"));
    this.#worker = runs.worker;
    return runs;
  }

  async dies(text: string, death: Death): Promise<void> {
    const { worker } = this.next(death);
    const child = worker.spawn();
    const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
    try {
      await eventually(async () => ended() || (await this.submit(worker, text)), { timeoutMs: DEATH_MS, what: "a worker to submit to" });
      await eventually(ended, { timeoutMs: DEATH_MS, what: `death ${death.when} ${death.call}` });
      expect(child.signalCode).toBe("SIGKILL");
    } finally {
      await worker.kill();
    }
  }

  submit(worker: WorkerHarness, text: string) {
    return worker.client.submit({ cluster: "local", kind: "jarvis", spec: { pipeline_yaml: text }, idempotency_key: "once" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#node);
    this.scheduler.end();
    await this.#worker?.[Symbol.asyncDispose]();
    removeTree(this.directory);
  }
}
