import type { SchedulerStatus } from "../../domain/scheduler.ts";
import { Places } from "../position.ts";
import type { Look, Observation } from "../provider.ts";
import { isActive, type Row, Rows } from "../rows.ts";
import { blankStatus, withAnswers } from "../status.ts";
import { newDelimiter } from "./fields.ts";
import { listed } from "./ids.ts";
import { readSacct, sacctCommand } from "./sacct.ts";
import { readScontrol, scontrolCommand } from "./scontrol.ts";
import type { Answer, Site, Source } from "./site.ts";
import { readSqueue, squeueCommand } from "./squeue.ts";

/** Ids in one call. */
export const IDS_MAX = 1_000;

export interface LookOptions extends Look {
  readonly cluster: string | null;
  readonly observedAt: string;
}

/** What a source said: rows as far as it answered, and why not for the rest. */
interface Heard {
  readonly rows: Rows;
  readonly failure: string | null;
}

const SILENT: Heard = { rows: new Rows([]), failure: "was not asked" };

/** One look at some jobs of one cluster: what is active, then what has ended, then what the controller still remembers of it. */
export async function lookAt(site: Site, ids: readonly string[], options: LookOptions): Promise<Observation> {
  const look = new OneLook(site, options);
  return await look.at(ids);
}

class OneLook {
  readonly #failures = new Map<string, string>();

  constructor(
    private readonly site: Site,
    private readonly options: LookOptions,
  ) {}

  async at(ids: readonly string[]): Promise<Observation> {
    const accounting = await this.site.accounting();
    const queue = this.site.has("squeue") ? await this.#source("squeue", () => this.#queue(ids)) : SILENT;
    const gone = ids.filter((id) => !activeIn(queue, id));
    const accounts = accounting !== false && gone.length > 0 ? await this.#source("sacct", () => this.#accounts(gone)) : SILENT;
    // Of the controller squeue has asked already: where that did not answer, it is not asked again.
    const rest = queue.failure === null ? gone.filter((id) => queue.rows.of(id) !== null && accounts.rows.of(id) === null) : gone;
    const asksController =
      rest.length > 0 &&
      this.site.has("scontrol") &&
      (this.site.has("squeue") ? queue.failure === null && accounts.failure !== null : true);
    const controller = asksController ? await this.#source("scontrol", () => this.#controller()) : SILENT;
    const places = this.options.positions === true && !this.site.crowded ? new Places(queue.rows) : null;
    const complete =
      (queue.failure === null || controller.failure === null) && (accounting === false || accounts.failure === null || gone.length === 0);
    const statuses = new Map<string, SchedulerStatus>();
    for (const id of ids) {
      const status = this.#status(id, queue, accounts, controller, complete);
      const row = queue.rows.of(id);
      if (status !== null) statuses.set(id, withAnswers(status, (row === null ? null : places?.of(row)) ?? {}));
    }
    return { statuses, failures: this.#failures };
  }

  async #source(source: Source, ask: () => Promise<Heard>): Promise<Heard> {
    const { cluster, without } = this.options;
    const key = cluster === null ? source : `${source}@${cluster}`;
    if (without?.has(key) === true) return SILENT;
    const heard = await ask();
    if (heard.failure !== null) this.#failures.set(key, heard.failure);
    return heard;
  }

  async #queue(ids: readonly string[]): Promise<Heard> {
    const { cluster, positions } = this.options;
    const call = async (choice: "all" | { ids: readonly string[] }): Promise<Row[] | string> => {
      const delimiter = newDelimiter();
      const answer = await this.site.ask(squeueCommand(choice, cluster, delimiter));
      if ("failure" in answer && answer.cut === true && choice === "all") this.site.tooMany();
      return rowsOf("squeue", answer, (text) => readSqueue(text, delimiter));
    };
    if (positions === true && !this.site.crowded) {
      const everybodys = await gathered([() => call("all")]);
      if (!this.site.crowded) return everybodys;
    }
    return await gathered(lists(ids).map((part) => () => call({ ids: part })));
  }

  async #accounts(ids: readonly string[]): Promise<Heard> {
    return await gathered(
      lists(ids).map((part) => async () => {
        const delimiter = newDelimiter();
        const answer = await this.site.ask(sacctCommand({ ids: part }, this.options.cluster, delimiter));
        return rowsOf("sacct", answer, (text) => readSacct(text, delimiter));
      }),
    );
  }

  async #controller(): Promise<Heard> {
    return await gathered([async () => rowsOf("scontrol", await this.site.ask(scontrolCommand(this.options.cluster)), readScontrol)]);
  }

  /** Null where nothing is known yet: a source did not answer, and no other one knows it. */
  #status(id: string, queue: Heard, accounts: Heard, controller: Heard, complete: boolean): SchedulerStatus | null {
    const blank = blankStatus("slurm", id, this.options.cluster, this.options.observedAt);
    const answered = queue.failure === null || controller.failure === null;
    const now = queue.rows.of(id) ?? controller.rows.of(id);
    const then = accounts.rows.of(id);
    if (now !== null && (now.phase !== "unknown" || then === null)) {
      // The accounts' first row of a job is a sketch (named "allocation"): they only add to what the controller says of an end.
      const more = isActive(now) ? [] : [then, controller.rows.of(id)];
      const status = [...more, now].reduce((so, row) => withAnswers(so, row?.answers ?? {}), blank);
      return { ...status, record_found: true, active_record_found: isActive(now) };
    }
    if (then !== null) {
      // They may be late, or never have heard of the end; what the controller does not have is not active.
      const phase = isActive(then) && answered ? "unknown" : then.phase;
      return { ...withAnswers(blank, then.answers), phase, record_found: true, active_record_found: answered ? false : null };
    }
    return complete ? { ...blank, record_found: false, active_record_found: false } : null;
  }
}

const activeIn = ({ rows }: Heard, id: string): boolean => {
  const row = rows.of(id);
  return row !== null && isActive(row);
};

const lists = (ids: readonly string[]): string[][] => {
  const all = [...new Set(ids.map(listed))];
  return Array.from({ length: Math.ceil(all.length / IDS_MAX) }, (_, index) => all.slice(index * IDS_MAX, (index + 1) * IDS_MAX));
};

function rowsOf(source: Source, answer: Answer, read: (text: string) => Row[] | null): Row[] | string {
  if ("failure" in answer) return answer.failure;
  return read(answer.text) ?? `${source} answered in an unknown form`;
}

/** Calls one after another; after one that fails no further one is made. */
async function gathered(calls: readonly (() => Promise<Row[] | string>)[]): Promise<Heard> {
  const all: Row[] = [];
  for (const call of calls) {
    const rows = await call();
    if (typeof rows === "string") return { rows: new Rows(all), failure: rows };
    all.push(...rows);
  }
  return { rows: new Rows(all), failure: null };
}
