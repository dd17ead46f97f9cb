import fs from "node:fs";
import path from "node:path";
import type { SchedulerPhase, SchedulerStatus } from "../../../../src/domain/scheduler.ts";
import type {
  BatchJob,
  CancelOutcome,
  Capabilities,
  MarkerFinding,
  NativeJob,
  Observation,
  SchedulerProvider,
  SubmitOutcome,
} from "../../../../src/scheduler/provider.ts";
import { blankStatus } from "../../../../src/scheduler/status.ts";

/** One of its jobs, as it is kept: what the job itself has come to is in files beside it. */
interface Kept {
  readonly id: string;
  readonly marker: string;
  readonly script: string;
  readonly output: string;
  readonly submitted: string;
  /** Said in place of what can be seen of the process; null for that. */
  said: { readonly phase: SchedulerPhase; readonly raw_state: string; readonly exit_code?: number } | null;
  started: boolean;
  /** Its end is told once, and then it is forgotten. */
  readonly briefly?: boolean;
}

/** How it behaves; a file, so that it changes under a running worker. */
export interface Manner {
  /** `lost`: accepted, and the answer is lost. `dies`: accepted, and the worker is killed before it reads the answer. */
  readonly submit: "accepts" | "refuses" | "lost" | "dies" | "refuses-though-accepted" | "vanishes";
  /** Accepted jobs wait. */
  readonly holds: boolean;
  /** A submission takes as long as this, in milliseconds. */
  readonly slow: number;
  /** Nothing that asks it is answered. */
  readonly silent: boolean;
  /** Its accounts do not answer, and they alone. */
  readonly unaccounted: boolean;
}

const MANNER: Manner = { submit: "accepts", holds: false, slow: 0, silent: false, unaccounted: false };

/** A scheduler in a directory, which outlives the workers that use it. It runs batch scripts as processes of this machine. */
export class FakeScheduler implements SchedulerProvider {
  readonly name = "slurm";

  constructor(readonly directory: string) {
    fs.mkdirSync(directory, { recursive: true });
  }

  // What tests do with it.

  get manner(): Manner {
    const file = path.join(this.directory, "manner.json");
    return fs.existsSync(file) ? { ...MANNER, ...(JSON.parse(fs.readFileSync(file, "utf8")) as Partial<Manner>) } : MANNER;
  }

  behave(manner: Partial<Manner>): void {
    const file = path.join(this.directory, "manner.json");
    fs.writeFileSync(`${file}.tmp`, JSON.stringify({ ...this.manner, ...manner }));
    fs.renameSync(`${file}.tmp`, file);
  }

  jobs(): Kept[] {
    const files = fs.readdirSync(this.directory).filter((name) => /^\d+\.json$/.test(name));
    return files
      .map((name) => JSON.parse(fs.readFileSync(path.join(this.directory, name), "utf8")) as Kept)
      .sort((a, b) => Number(a.id) - Number(b.id));
  }

  /** What it was asked, one line each. */
  asked(): string[] {
    const file = path.join(this.directory, "asked");
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8").trimEnd().split("\n") : [];
  }

  /** Begin a job that waits, or run its script once more, as a requeue does. */
  run(id: string): void {
    const job = this.#job(id);
    this.#keep({ ...job, started: true });
    this.#start(job);
  }

  /** Say this of a job from now on; null: what is seen of its process. */
  say(id: string, said: Kept["said"]): void {
    this.#keep({ ...this.#job(id), said });
  }

  /** Have another job of the same name. */
  double(id: string): void {
    this.#keep({ ...this.#job(id), id: String(this.jobs().length + 100), said: { phase: "pending", raw_state: "PENDING" } });
  }

  /** Forget a job, as a scheduler does that keeps no accounts. */
  forget(id: string): void {
    fs.rmSync(path.join(this.directory, `${id}.json`));
  }

  /** Forget a job once it has told its end. */
  forgetsEnded(id: string): void {
    this.#keep({ ...this.#job(id), briefly: true });
  }

  /** Give the number of a job to somebody else's, as one does that has lost its state. */
  giveAway(id: string): void {
    const submitted = new Date(Date.now() + 1_000).toISOString();
    this.#keep({ ...this.#job(id), marker: "theirs", submitted, said: { phase: "running", raw_state: "RUNNING" } });
  }

  signal(id: string, signal: NodeJS.Signals): void {
    try {
      process.kill(Number(fs.readFileSync(path.join(this.directory, `${id}.pid`), "utf8")), signal);
    } catch {
      // It has ended.
    }
  }

  /** End everything of it. */
  end(): void {
    for (const { id, started } of this.jobs()) if (started) this.signal(id, "SIGKILL");
  }

  // What a worker does with it.

  async probe(): Promise<Capabilities> {
    return { version: "0", submits: true, clusterName: null, accounting: true, sources: ["all"] };
  }

  script(_request: unknown, _text: string | null, lines: readonly string[]) {
    return { text: `#!/bin/sh\n${lines.join("\n")}\n`, name: null, removed: [], variables: {} };
  }

  native = (text: string): NativeJob | null => (/^\d+$/.test(text) ? { id: text, cluster: null } : null);

  clusters = (): readonly string[] => [];

  async submit({ marker, script, output }: BatchJob): Promise<SubmitOutcome> {
    this.#note(`submit ${marker}`);
    const { submit, holds, slow } = this.manner;
    if (slow > 0) await Bun.sleep(slow);
    const answer = this.#accept({ marker, script, output }, submit, holds);
    if (slow > 0) this.#note(`submitted ${marker}`);
    return answer;
  }

  #accept(
    { marker, script, output }: Pick<BatchJob, "marker" | "script" | "output">,
    submit: Manner["submit"],
    holds: boolean,
  ): SubmitOutcome {
    if (submit === "refuses") return { kind: "refused", said: "no such partition" };
    if (submit === "vanishes") return { kind: "doubt", said: "it was killed" };
    const id = this.#freshId();
    const said = holds ? ({ phase: "pending", raw_state: "PENDING" } as const) : null;
    const job: Kept = { id, marker, script, output, submitted: new Date().toISOString(), said, started: !holds };
    this.#keep(job);
    if (!holds) this.#start(job);
    if (submit === "dies") process.kill(process.pid, "SIGKILL");
    if (submit === "lost") return { kind: "doubt", said: "it did not end within its time" };
    if (submit === "refuses-though-accepted") return { kind: "refused", said: "Socket timed out on send/recv operation" };
    return { kind: "accepted", native: { id, cluster: null }, said: "" };
  }

  async find(marker: string): Promise<MarkerFinding> {
    this.#note(`find ${marker}`);
    if (this.manner.silent) return { found: [], complete: false, reached: false, said: "all: no answer" };
    const found = this.jobs().filter((job) => job.marker === marker);
    const said = this.manner.unaccounted ? "accounts: no answer" : null;
    return { found: found.map(({ id }) => ({ id, cluster: null })), complete: said === null, reached: true, said };
  }

  async observe(jobs: readonly NativeJob[]): Promise<Observation> {
    this.#note(`observe ${jobs.map(({ id }) => id).join(" ")}`);
    if (this.manner.silent) return { statuses: new Map(), failures: new Map([["all", "no answer"]]) };
    const known = new Map(this.jobs().map((job) => [job.id, job]));
    const statuses = new Map(jobs.map(({ id }) => [id, this.#status(id, known.get(id))]));
    for (const [id, { active_record_found }] of statuses) if (known.get(id)?.briefly === true && !active_record_found) this.forget(id);
    return { statuses, failures: new Map() };
  }

  async terminate({ id }: NativeJob, marker: string): Promise<CancelOutcome> {
    this.#note(`terminate ${id}`);
    return this.#end(id, marker, "SIGTERM");
  }

  async cancel({ id }: NativeJob, marker: string): Promise<CancelOutcome> {
    this.#note(`cancel ${id}`);
    const outcome = this.#end(id, marker, "SIGKILL");
    if (outcome.kind === "asked") this.say(id, { phase: "canceled", raw_state: "CANCELLED by 1000" });
    return outcome;
  }

  #end(id: string, marker: string, signal: NodeJS.Signals): CancelOutcome {
    if (this.manner.silent) return { kind: "doubt", said: "no answer" };
    const job = this.jobs().find((one) => one.id === id);
    if (job === undefined || job.marker !== marker) return { kind: "refused", said: `there is no job ${id} of that name` };
    if (job.started) this.signal(id, signal);
    return { kind: "asked", said: "" };
  }

  #status(id: string, job: Kept | undefined): SchedulerStatus {
    const blank = blankStatus("slurm", id, null, new Date().toISOString());
    if (job === undefined) return { ...blank, record_found: false, active_record_found: false };
    const { phase, raw_state, exit_code = null } = { ...(job.said ?? this.#seen(id)) };
    const ended = ["completed", "failed", "canceled"].includes(phase);
    const { marker: name, submitted: submit_time } = job;
    return { ...blank, phase, raw_state, exit_code, record_found: true, active_record_found: !ended, name, submit_time, nodes: "n1" };
  }

  #seen(id: string): NonNullable<Kept["said"]> {
    const code = path.join(this.directory, `${id}.code`);
    if (!fs.existsSync(code)) return { phase: "running", raw_state: "RUNNING" };
    return fs.readFileSync(code, "utf8").trim() === "0"
      ? { phase: "completed", raw_state: "COMPLETED" }
      : { phase: "failed", raw_state: "FAILED" };
  }

  #start({ id, script, output }: Kept): void {
    const here = path.join(this.directory, id);
    // The batch script is a process of its own below the one that waits for it, as below a slurmstepd.
    const line = `sh "$1" >> "$2" 2>&1 & echo $! > "$3.pid"; wait $!; echo $? > "$3.code.tmp"; mv "$3.code.tmp" "$3.code"`;
    Bun.spawn(["/bin/sh", "-c", line, "step", script, output, here], {
      env: { PATH: "/usr/bin:/bin", SLURM_JOB_ID: id, SLURM_NTASKS: "1", CLIO_RELAY_TEST_RUN: process.env["CLIO_RELAY_TEST_RUN"] ?? "" },
      cwd: "/",
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
      detached: true,
    }).unref();
  }

  /** Not that of a job which was forgotten. */
  #freshId(): string {
    const file = path.join(this.directory, "last-id");
    const id = String(1 + (fs.existsSync(file) ? Number(fs.readFileSync(file, "utf8")) : 0));
    fs.writeFileSync(file, id);
    return id;
  }

  #job(id: string): Kept {
    const job = this.jobs().find((one) => one.id === id);
    if (job === undefined) throw new Error(`there is no job ${id}`);
    return job;
  }

  #keep(job: Kept): void {
    const file = path.join(this.directory, `${job.id}.json`);
    fs.writeFileSync(`${file}.tmp`, JSON.stringify(job));
    fs.renameSync(`${file}.tmp`, file);
  }

  #note(line: string): void {
    fs.appendFileSync(path.join(this.directory, "asked"), `${line}\n`);
  }
}
