import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { Attempt } from "../../src/domain/attempt.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { type Identity, isAlive } from "../../src/lib/system/process-identity.ts";
import { processesMarked } from "../runner/leftovers.ts";
import { Relay } from "../runner/relay.ts";
import { soakSettings } from "../runner/soak.ts";
import { eventually } from "../runner/wait.ts";
import { Choice, chooseJob, type Kind, type SoakJob } from "./choice.ts";
import { type Excuses, jobFaults, NO_EXCUSE } from "./job-faults.ts";

const PROGRAM = path.join(import.meta.dir, "work-process.ts");

/** What a command printed that failed in a way that is not to be tried again. */
const FAILED = "";

/** Where inputs would lie, with none there. */
const isEmptyPlace = (spool: string, name: string): boolean => name === "inputs" && fs.readdirSync(path.join(spool, name)).length === 0;

/** What may lie in an attempt's directory when the attempt is over. */
const ATTEMPT_FILES =
  /^(?:spec\.json|script|env-setup|start\.json|process\.json|exit\.json|cancel\.json|(?:stdout|stderr)\.log|truncated-(?:stdout|stderr)\.json|shim\.log|events)$/;

export interface CampaignOptions {
  /** Further environment of everything. */
  readonly env?: Readonly<Record<string, string>>;
  /** Kinds of jobs; all of them where none are named. */
  readonly kinds?: readonly [Kind, ...(readonly Kind[])];
  /** Where the installation lies, when it is not a directory of its own. */
  readonly directory?: string;
  /** Failures after which users try again, besides those that say that it is worth it. */
  readonly again?: readonly ErrorCode[];
}

/** A job that the relay took. */
export interface Submitted {
  readonly job: SoakJob;
  readonly jobId: string;
}

/**
 * An installation under random faults: jobs of a printed seed's choice, submitted and cancelled by the commands of users, who try again
 * when they are told to; and at the end a look at everything that is left.
 */
export class Campaign implements AsyncDisposable {
  /** Where the worker is. */
  readonly relay: Relay;
  /** By what the users' commands go, when that is another installation, on another machine as it were. Its `local` is the campaign's. */
  users: Relay;
  /** For the faults; jobs are chosen from a sequence of their own, so that they do not depend on when faults happen. */
  readonly faults: Choice;
  readonly submitted: Submitted[] = [];
  worker: Bun.Subprocess | null = null;
  readonly #jobs: Choice;
  readonly #kinds: readonly [Kind, ...(readonly Kind[])] | undefined;
  readonly #scratch: string;
  #chosen = 0;
  readonly #again: readonly string[];
  readonly #cancels: Promise<void>[] = [];
  readonly #troubles: string[] = [];

  constructor(name: string, { env = {}, kinds, directory, again = [] }: CampaignOptions = {}) {
    const { seed } = soakSettings();
    const own = Number(Bun.hash(name) & 0xffffn);
    this.faults = new Choice(seed * 2 + own);
    this.#jobs = new Choice(seed * 2 + 1 + own);
    this.#kinds = kinds;
    this.#again = again;
    const limits = { CLIO_RELAY_CANCEL_GRACE_SECONDS: "1", CLIO_RELAY_SPARE_SHIMS: "2", CLIO_RELAY_MIN_FREE_BYTES: "0" };
    this.relay = new Relay({ env: { ...limits, ...env }, ...(directory === undefined ? {} : { directory }) });
    this.users = this.relay;
    this.#scratch = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "soak-"));
  }

  async init(): Promise<this> {
    try {
      const { code, stderr } = await this.relay.run(["init"]);
      if (code !== 0) throw new Error(`init ended with ${code}: ${stderr}`);
      await this.startWorker();
      return this;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  async startWorker(): Promise<void> {
    this.worker = await this.relay.worker(["--concurrency", "13"]);
  }

  async killWorker(): Promise<void> {
    this.worker?.kill("SIGKILL");
    await this.worker?.exited;
  }

  /** Submit so many jobs, one after the other, each as often as it takes under one key. */
  async submit(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const key = `job${this.#chosen++}`;
      const job = chooseJob(this.#jobs, key, path.join(this.#scratch, "effects"), this.#kinds);
      const workdir = path.join(this.#scratch, "work", key);
      fs.mkdirSync(workdir, { recursive: true });
      const own = ["--cluster", "local", "--idempotency-key", key, "--workdir", workdir];
      const command = ["--", process.execPath, PROGRAM, JSON.stringify(job.work)];
      const receipt = await this.persist(["job", "submit", ...own, ...job.options, "--json", ...command]);
      if (receipt === FAILED) continue;
      const { job_id: jobId } = JSON.parse(receipt) as { job_id: string };
      this.submitted.push({ job, jobId });
      if (job.cancelAfterMs !== null) this.#cancels.push(this.#cancel(jobId, job.cancelAfterMs));
    }
  }

  async #cancel(jobId: string, afterMs: number): Promise<void> {
    await Bun.sleep(afterMs);
    await this.persist(["job", "cancel", jobId, "--json"]);
  }

  /** Do as a user does whose command says that it is worth trying again. Returns what it printed. */
  async persist(args: readonly string[]): Promise<string> {
    return await eventually(
      async () => {
        const { code, stdout, stderr } = await this.users.run(args);
        if (code === 0) return stdout;
        const problem = stderr.split("\n").find((line) => line.startsWith("{"));
        const { retryable, reason = "" } = JSON.parse(problem ?? "{}") as { retryable?: boolean; reason?: string };
        const again = retryable === true || this.#again.includes(reason);
        if (!again) this.#troubles.push(`${args.slice(0, 3).join(" ")} ended with ${code}: ${stderr}`);
        return again ? false : FAILED;
      },
      { everyMs: 100, what: `the success of ${args.slice(0, 3).join(" ")}` },
    );
  }

  /** Attempts whose job runs now, as the worker says; none while it does not answer. */
  async running(): Promise<Attempt[]> {
    const { code, stdout } = await this.relay.run(["queue", "list", "--json", "--limit", "200"]);
    if (code !== 0) return [];
    const { jobs } = JSON.parse(stdout) as { jobs: { job_id: string; state: string }[] };
    const attempts: Attempt[] = [];
    for (const { job_id, state } of jobs) {
      if (state !== "running") continue;
      const status = await this.relay.run(["job", "status", job_id, "--json"]);
      const { attempt } = JSON.parse(status.code === 0 ? status.stdout : "{}") as { attempt?: Attempt | null };
      if (attempt?.process != null) attempts.push(attempt);
    }
    return attempts;
  }

  /** Send a signal to exactly this process; false when it is gone. */
  kill(process: Identity, signal: NodeJS.Signals = "SIGKILL"): boolean {
    if (!isAlive(process)) return false;
    try {
      globalThis.process.kill(process.pid, signal);
      return true;
    } catch {
      return false; // gone meanwhile
    }
  }

  /** Wait until every job has ended and every cancel was said. */
  async ended(): Promise<void> {
    await Promise.all(this.#cancels);
    for (const { jobId } of this.submitted) {
      const { code, stderr } = await this.users.run(["job", "wait", jobId, "--timeout-seconds", "180"]);
      if (code !== 0 && code !== 10) this.#troubles.push(`job wait ${jobId} ended with ${code}: ${stderr}`);
    }
  }

  /** Everything that is wrong with what is left. Drains the worker, and looks at its files when it is gone. */
  async verify(excuses: (attempt: Attempt) => Excuses = () => NO_EXCUSE): Promise<string[]> {
    await this.ended();
    const faults = [...this.#troubles];
    const rest = [...this.submitted];
    const lane = async (): Promise<void> => {
      for (let one = rest.shift(); one !== undefined; one = rest.shift()) {
        const { job, jobId } = one;
        const found = await jobFaults(this.users, job, jobId, excuses);
        faults.push(...found.map((fault) => `${jobId} (${job.kind} ${job.work.key}): ${fault}`));
      }
    };
    await Promise.all([lane(), lane(), lane()]);
    const { source_total } = await this.users.json<{ source_total: number }>("queue", "list", "--include-terminal");
    if (source_total !== this.submitted.length) faults.push(`${source_total} jobs of ${this.submitted.length} keys`);
    return [...faults, ...this.#spoolFaults(await this.#recordedArtifacts()), ...(await this.#closingFaults())];
  }

  async #recordedArtifacts(): Promise<Set<string>> {
    const ids = new Set<string>();
    for (const { jobId } of this.submitted) {
      const { artifacts } = await this.users.json<{ artifacts: { artifact_id: string }[] }>(
        "job",
        "list-artifacts",
        jobId,
        "--limit",
        "500",
      );
      for (const { artifact_id } of artifacts) ids.add(artifact_id);
    }
    return ids;
  }

  /** No file in the spool that nobody will ever need. */
  #spoolFaults(artifacts: ReadonlySet<string>): string[] {
    const faults: string[] = [];
    for (const { jobId } of this.submitted) {
      const directory = path.dirname(this.relay.attemptDirectory(jobId));
      for (const file of fs.existsSync(directory) ? fs.readdirSync(directory, { recursive: true, encoding: "utf8" }) : []) {
        const [place, name] = file.split(path.sep);
        if (name === undefined ? place === "artifacts" || place!.startsWith("attempt-") : false) continue;
        if (place === "artifacts" ? artifacts.has(name!) : ATTEMPT_FILES.test(name ?? "")) continue;
        faults.push(`left in the spool: ${path.join(jobId, file)}`);
      }
    }
    return faults;
  }

  async #closingFaults(): Promise<string[]> {
    const faults: string[] = [];
    this.worker?.kill("SIGTERM");
    const code = await this.worker?.exited;
    if (code !== 0) faults.push(`the worker ended with ${code} when it was drained`);
    // With no worker there the check is the deep one.
    const audit = await this.relay.run(["queue", "audit", "--json"]);
    const report = JSON.parse(audit.stdout) as { ok: boolean; findings: object[]; checked: { leases: number } };
    if (audit.code !== 0 || !report.ok) faults.push(`queue audit: ${JSON.stringify(report.findings.slice(0, 5))}`);
    if (report.checked.leases !== 0) faults.push(`${report.checked.leases} leases are left`);
    const spool = path.join(this.relay.home, "spool", "local");
    const strays = fs
      .readdirSync(spool)
      .filter((name) => !this.submitted.some(({ jobId }) => jobId === name) && !isEmptyPlace(spool, name));
    if (strays.length > 0) faults.push(`left in the spool: ${strays.slice(0, 5)}`);
    return [...faults, ...(await this.#processFaults())];
  }

  /** Nothing of jobs, shims and workers runs; the daemon may. */
  async #processFaults(): Promise<string[]> {
    const own = new Set(this.submitted.map(({ jobId }) => jobId));
    const left = (): string[] => [
      ...processesMarked("CLIO_RELAY_ATTEMPT", null)
        .filter(({ value }) => own.has(value.split("/")[0]!))
        .map(({ pid, command }) => `left running: ${pid} ${command}`),
      ...processesMarked("CLIO_RELAY_HOME", this.relay.home)
        .filter(({ command }) => !command.includes("desktop run"))
        .map(({ pid, command }) => `left running: ${pid} ${command}`),
      ...this.#daemons()
        .filter(isAlive)
        .map(({ pid }) => `left running: ${pid}, a job's daemon`),
    ];
    try {
      await eventually(() => left().length === 0);
      return [];
    } catch {
      return left();
    }
  }

  #daemons(): Identity[] {
    const directory = path.join(this.#scratch, "effects");
    if (!fs.existsSync(directory)) return [];
    return [...new Bun.Glob("*/daemon-*").scanSync(directory)].map(
      (file) => JSON.parse(fs.readFileSync(path.join(directory, file), "utf8")) as Identity,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.relay[Symbol.asyncDispose]();
    for (const daemon of this.#daemons()) if (isAlive(daemon)) process.kill(daemon.pid, "SIGKILL");
    fs.rmSync(this.#scratch, { recursive: true, force: true });
  }
}
