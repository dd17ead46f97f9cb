import { RelayError } from "../../domain/errors.ts";
import type { SchedulerRequest, SchedulerStatus } from "../../domain/scheduler.ts";
import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import { cancelOutcome, notOurs, submitOutcome } from "../outcomes.ts";
import {
  type BatchJob,
  type CancelOutcome,
  type Capabilities,
  type Look,
  type Lookup,
  type MarkerFinding,
  type NativeJob,
  nativeKey,
  type Observation,
  type SchedulerProvider,
  type SubmitOutcome,
} from "../provider.ts";
import type { Row } from "../rows.ts";
import type { RunSiteCommand } from "../site-command.ts";
import { newDelimiter } from "./fields.ts";
import { readNative } from "./ids.ts";
import { lookAt } from "./look.ts";
import { readSacct, sacctCommand } from "./sacct.ts";
import { readScontrol, scontrolCommand } from "./scontrol.ts";
import { batchScript, requestedClusters } from "./script.ts";
import { Site } from "./site.ts";
import { readSqueue, squeueCommand } from "./squeue.ts";
import { submitCommand, submittedIn } from "./submission.ts";

const DAY_MS = 86_400_000;
/** How far back a marker is looked for in the accounts, where nobody says. */
const SINCE_MS = 30 * DAY_MS;

export interface SlurmOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly run: RunSiteCommand;
  readonly clock: Clock;
}

/** SLURM, through its commands (docs/schedulers.md). */
export class SlurmProvider implements SchedulerProvider {
  readonly name = "slurm";
  readonly #site: Site;

  constructor(private readonly options: SlurmOptions) {
    const { environment, run, clock } = options;
    this.#site = new Site({ environment, run, monotonic: () => clock.monotonic() });
  }

  async probe(): Promise<Capabilities> {
    if (this.#site.sources().length > 0) return await this.#site.capabilities();
    throw new RelayError(
      "scheduler_unavailable",
      "this host has none of SLURM's commands: squeue, sacct, scontrol are not on the worker's PATH",
    );
  }

  script(request: SchedulerRequest, userScript: string | null, lines: readonly string[]): ReturnType<SchedulerProvider["script"]> {
    return batchScript(request, userScript, lines);
  }

  native(text: string): NativeJob | null {
    return readNative(text);
  }

  clusters(request: SchedulerRequest, userScript: string | null): readonly string[] {
    return requestedClusters(request, userScript);
  }

  async submit(job: BatchJob): Promise<SubmitOutcome> {
    return submitOutcome(await this.#site.order(submitCommand(job, await this.#site.ways())), submittedIn);
  }

  async find(marker: string, { since, clusters = [] }: Lookup = {}): Promise<MarkerFinding> {
    const accounting = (await this.#site.accounting()) !== false;
    // The accounts have another host's clock.
    const from = since === undefined ? this.options.clock.now() - SINCE_MS : since - DAY_MS;
    const found = new Map<string, NativeJob>();
    const missing: string[] = [];
    let reached = true;
    for (const cluster of clusters.length === 0 ? [null] : clusters) {
      const active = await this.#active(marker, cluster);
      if ("failure" in active && (this.#site.has("squeue") || this.#site.has("scontrol"))) reached = false;
      for (const answer of [active, ...(accounting ? [await this.#ended(marker, from, cluster)] : [])]) {
        if ("failure" in answer) missing.push(answer.failure);
        else for (const { raw } of answer.rows) found.set(`${cluster}\0${raw}`, { id: raw, cluster });
      }
    }
    return { found: [...found.values()], complete: missing.length === 0, reached, said: missing.length === 0 ? null : missing.join("; ") };
  }

  /** What the controller has of a name. */
  async #active(marker: string, cluster: string | null): Promise<{ readonly rows: readonly Row[] } | { readonly failure: string }> {
    const delimiter = newDelimiter();
    const byQueue = this.#site.has("squeue") || !this.#site.has("scontrol");
    const answer = await this.#site.ask(byQueue ? squeueCommand({ name: marker }, cluster, delimiter) : scontrolCommand(cluster));
    if ("failure" in answer) return answer;
    return named(marker, byQueue ? readSqueue(answer.text, delimiter) : readScontrol(answer.text), byQueue ? "squeue" : "scontrol");
  }

  async #ended(
    name: string,
    since: number,
    cluster: string | null,
  ): Promise<{ readonly rows: readonly Row[] } | { readonly failure: string }> {
    const delimiter = newDelimiter();
    const answer = await this.#site.ask(sacctCommand({ name, since }, cluster, delimiter));
    return "failure" in answer ? answer : named(name, readSacct(answer.text, delimiter), "sacct");
  }

  async observe(jobs: readonly NativeJob[], look: Look = {}): Promise<Observation> {
    const statuses = new Map<string, SchedulerStatus>();
    const failures = new Map<string, string>();
    const observedAt = timestamp(this.options.clock);
    for (const [cluster, of] of Map.groupBy(jobs, (job) => job.cluster)) {
      const ids = of.map(({ id }) => id);
      const seen = await lookAt(this.#site, ids, { cluster, observedAt, ...look });
      for (const [id, status] of seen.statuses) statuses.set(nativeKey({ id, cluster }), status);
      for (const [source, said] of seen.failures) failures.set(source, said);
    }
    return { statuses, failures };
  }

  terminate(job: NativeJob, marker: string): Promise<CancelOutcome> {
    return this.#end(job, marker, ["--batch", "--signal=TERM"]);
  }

  cancel(job: NativeJob, marker: string): Promise<CancelOutcome> {
    return this.#end(job, marker, []);
  }

  /** scancel looks at the name once more. */
  async #end({ id, cluster }: NativeJob, marker: string, options: readonly string[]): Promise<CancelOutcome> {
    const refusal = notOurs(id, marker, await this.#active(marker, cluster));
    if (refusal !== null) return refusal;
    const where = cluster === null ? [] : [`--clusters=${cluster}`];
    return cancelOutcome(await this.#site.order(["scancel", ...where, `--name=${marker}`, ...options, id]));
  }
}

/** Rows of exactly that name. */
function named(
  marker: string,
  rows: readonly Row[] | null,
  source: string,
): { readonly rows: readonly Row[] } | { readonly failure: string } {
  return rows === null ? { failure: `${source} answered in an unknown form` } : { rows: rows.filter(({ name }) => name === marker) };
}
