import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import type { SchedulerRequest, SchedulerStatus } from "../../domain/scheduler.ts";
import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import { cancelOutcome, notOurs, submitOutcome } from "../outcomes.ts";
import { Places } from "../position.ts";
import {
  type BatchJob,
  type CancelOutcome,
  type Capabilities,
  type Look,
  type MarkerFinding,
  type NativeJob,
  nativeKey,
  type Observation,
  type SchedulerProvider,
  type SubmitOutcome,
} from "../provider.ts";
import { type Row, Rows } from "../rows.ts";
import { lastWords, type RunSiteCommand, type SiteCommandEnd } from "../site-command.ts";
import { blankStatus, withAnswers } from "../status.ts";
import { readNative, rowId, terseId } from "./ids.ts";
import { qacctCommand, readQacct } from "./qacct.ts";
import { qstatCommand, readQstat } from "./qstat.ts";
import { batchScript, submitCommand } from "./submission.ts";

const QUERY_MS = 30_000;
const SUBMIT_MS = 60_000;
/** qacct reads the whole of the accounts for each id: so many in one look, and the others in the next ones. */
const ACCOUNTS_MAX = 10;
/** How long the list of all jobs is not asked for where it was too long. */
const CROWDED_MS = 600_000;

export interface GridEngineOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly run: RunSiteCommand;
  readonly clock: Clock;
}

type Heard = { readonly rows: readonly Row[] } | { readonly failure: string };

/** Grid Engine (Open Grid Scheduler, Son of Grid Engine, Univa), through its commands (docs/schedulers.md). */
export class GridEngineProvider implements SchedulerProvider {
  readonly name = "gridengine";
  #crowdedAt = Number.NEGATIVE_INFINITY;
  /** Where in the list of those that have ended the accounts were asked last. */
  #asked = 0;

  constructor(private readonly options: GridEngineOptions) {}

  async probe(): Promise<Capabilities> {
    const { environment } = this.options;
    if (!this.#has("qstat"))
      throw new RelayError("scheduler_unavailable", "this host has none of Grid Engine's commands: qstat is not on the worker's PATH");
    const help = await this.#run(["qstat", "-help"], QUERY_MS);
    const version = help.kind === "ended" ? (/\d+\.\d+(?:\.\d+)?\S*/.exec(help.stdout.split("\n", 1)[0]!)?.[0] ?? null) : null;
    return {
      version,
      submits: this.#has("qsub"),
      clusterName: environment["SGE_CLUSTER_NAME"] ?? null,
      accounting: this.#accounts() ? true : null,
      sources: this.#has("qacct") ? ["qstat", "qacct"] : ["qstat"],
    };
  }

  script(request: SchedulerRequest, userScript: string | null, lines: readonly string[]): ReturnType<SchedulerProvider["script"]> {
    return batchScript(request, userScript, lines);
  }

  native(text: string): NativeJob | null {
    return readNative(text);
  }

  clusters(): readonly string[] {
    return [];
  }

  async submit(job: BatchJob): Promise<SubmitOutcome> {
    const end = await this.#run(submitCommand(job), SUBMIT_MS);
    return submitOutcome(end, (line) => {
      const id = terseId(line);
      return id === null ? null : { id, cluster: null };
    });
  }

  async find(marker: string): Promise<MarkerFinding> {
    const active = await this.#active();
    const answers = [active, ...(this.#accounts() ? [await this.#ended(marker)] : [])];
    const failures = answers.flatMap((answer) => ("failure" in answer ? [answer.failure] : []));
    const rows = answers.flatMap((answer) => ("failure" in answer ? [] : answer.rows.filter(({ name }) => name === marker)));
    const ids = [...new Set(rows.map(({ raw }) => raw))];
    return {
      found: ids.map((id) => ({ id, cluster: null })),
      complete: failures.length === 0,
      reached: !("failure" in active) || !this.#has("qstat"),
      said: failures.length === 0 ? null : failures.join("; "),
    };
  }

  async observe(jobs: readonly NativeJob[], { without, positions }: Look = {}): Promise<Observation> {
    const failures = new Map<string, string>();
    const statuses = new Map<string, SchedulerStatus>();
    const blank = ({ id, cluster }: NativeJob): SchedulerStatus => blankStatus("gridengine", id, cluster, timestamp(this.options.clock));
    const active = without?.has("qstat") === true ? { failure: "", everybodys: false } : await this.#active();
    if ("failure" in active && active.failure !== "") failures.set("qstat", active.failure);
    const rows = new Rows("failure" in active ? [] : active.rows);
    const places = positions === true && active.everybodys ? new Places(rows) : null;
    const gone: NativeJob[] = [];
    for (const job of new Map(jobs.map((one) => [nativeKey(one), one])).values()) {
      const row = rows.of(rowId(job.id));
      if (row === null) gone.push(job);
      else {
        const status = withAnswers(withAnswers(blank(job), row.answers), places?.of(row) ?? {});
        statuses.set(nativeKey(job), { ...status, record_found: true, active_record_found: true });
      }
    }
    // Of somebody else's job the list of one user says nothing.
    const answered = !("failure" in active) && active.everybodys;
    const asks = this.#accounts() && without?.has("qacct") !== true;
    for (const job of asks ? this.#turn(gone) : gone) {
      const ended = asks ? await this.#ended(job.id.split(".", 1)[0]!) : null;
      if (ended !== null && "failure" in ended) {
        failures.set("qacct", ended.failure);
        break;
      }
      const status = this.#endedStatus(blank(job), job, ended, answered);
      if (status !== null) statuses.set(nativeKey(job), status);
    }
    return { statuses, failures };
  }

  /** Those that the accounts are asked about this time: everybody in turn. */
  #turn(gone: readonly NativeJob[]): readonly NativeJob[] {
    if (gone.length <= ACCOUNTS_MAX) return gone;
    const from = this.#asked % gone.length;
    this.#asked = from + ACCOUNTS_MAX;
    return [...gone.slice(from), ...gone.slice(0, from)].slice(0, ACCOUNTS_MAX);
  }

  /** What the accounts say of a job that qstat has not; null where nothing is known yet. */
  #endedStatus(
    blank: SchedulerStatus,
    { id }: NativeJob,
    ended: { readonly rows: readonly Row[] } | null,
    answered: boolean,
  ): SchedulerStatus | null {
    // Numbers are used again: the last record of one is its newest job.
    const row = ended === null ? null : (new Rows(ended.rows.slice(-1)).of(rowId(id)) ?? new Rows(ended.rows).of(rowId(id)));
    if (row !== null) return { ...withAnswers(blank, row.answers), record_found: true, active_record_found: answered ? false : null };
    const complete = answered && (ended !== null || !this.#accounts());
    return complete ? { ...blank, record_found: false, active_record_found: false } : null;
  }

  terminate(job: NativeJob, marker: string): Promise<CancelOutcome> {
    return this.#checked(job, marker, async () => ({ kind: "refused", said: "Grid Engine sends a batch script no signal but by its end" }));
  }

  cancel(job: NativeJob, marker: string): Promise<CancelOutcome> {
    return this.#checked(job, marker, async () => cancelOutcome(await this.#run(["qdel", job.id], QUERY_MS)));
  }

  async #checked({ id }: NativeJob, marker: string, then: () => Promise<CancelOutcome>): Promise<CancelOutcome> {
    return notOurs(rowId(id), marker, await this.#active()) ?? (await then());
  }

  /** Everybody's jobs; where they are more than can be read, a while ago too, those of the worker's user. */
  async #active(): Promise<Heard & { readonly everybodys: boolean }> {
    const { environment, clock } = this.options;
    const user = environment["USER"] ?? environment["LOGNAME"];
    const crowded = user !== undefined && clock.monotonic() - this.#crowdedAt < CROWDED_MS;
    const end = await this.#run(qstatCommand(crowded ? user : "*"), QUERY_MS, { TZ: "UTC" });
    if (end.kind !== "ended" || end.code !== 0) return { failure: `qstat ${lastWords(end)}`, everybodys: !crowded };
    if (end.cut && !crowded && user !== undefined) {
      this.#crowdedAt = clock.monotonic();
      return await this.#active();
    }
    const rows = end.cut ? null : readQstat(end.stdout);
    const answer = rows === null ? { failure: "qstat answered in an unknown form, or with more than is read" } : { rows };
    return { ...answer, everybodys: !crowded };
  }

  /** qacct fails where it finds nothing as it does for other reasons; what it reads is there, and so it has found nothing. */
  async #ended(idOrName: string): Promise<Heard> {
    const end = await this.#run(qacctCommand(idOrName), QUERY_MS, { TZ: "UTC" });
    if (end.kind !== "ended" || end.cut || (end.code !== 0 && !this.#accounts())) return { failure: `qacct ${lastWords(end)}` };
    return { rows: end.code === 0 ? readQacct(end.stdout) : [] };
  }

  /** Whether the accounts can be read here: a file of the cell that has no entry before a first job has ended, and that some sites keep for their masters. */
  #accounts(): boolean {
    const { SGE_ROOT: root, SGE_CELL: cell = "default" } = this.options.environment;
    if (!this.#has("qacct") || root === undefined) return false;
    try {
      fs.accessSync(path.join(root, cell, "common", "accounting"), fs.constants.R_OK);
      return true;
    } catch {
      return false;
    }
  }

  #has(program: string): boolean {
    return Bun.which(program, { PATH: this.options.environment["PATH"] ?? "" }) !== null;
  }

  #run(
    argv: readonly [string, ...string[]],
    deadlineMs: number,
    variables: Readonly<Record<string, string>> = {},
  ): Promise<SiteCommandEnd> {
    return this.options.run({ argv, environment: { ...this.options.environment, ...variables }, deadlineMs });
  }
}
