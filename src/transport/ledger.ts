import path from "node:path";
import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import { Count, Sequence, Timestamp } from "../domain/primitives.ts";
import { makePrivateDirectory, writeFileAtomic } from "../lib/files/atomic-file.ts";
import { readRegular } from "../lib/files/regular-file.ts";
import { type Clock, timestamp } from "../lib/waiting/clock.ts";

const Text = v.pipe(v.string(), v.maxLength(2_048));

/** One connection that was dialed, or tried. */
export const LedgerEntry = v.strictObject({
  seq: Sequence,
  at: Timestamp,
  cluster: Text,
  purpose: v.picklist(["connect", "bootstrap"]),
  /** `user@host:port` of where it leads in the end. */
  target: Text,
  /** Hops on the way, from here to there: they ride the connection to the first. */
  via: v.array(Text),
  /** The command that asked for it. */
  requested_by: Text,
  /** Whether a person was there. SSH is never dialed without one; what goes to a meeting point nobody is asked by may be. */
  attended: v.boolean(),
  client: v.picklist(["builtin", "openssh", "relay", "frp"]),
  /** Null while it is being made. `refused`: the other side did not take us, or we did not take it. */
  outcome: v.nullable(v.picklist(["open", "refused", "failed", "cancelled"])),
  ended_at: v.nullable(Timestamp),
  reason: v.nullable(Text),
  /** How many dials it stands for: one that fails again in the same way, without anybody, is the same entry. `at` is the last one's. */
  tries: v.optional(Count),
});
export type LedgerEntry = v.InferOutput<typeof LedgerEntry>;

/** What is known of a connection before it is dialed. */
export type Dialing = Omit<LedgerEntry, "seq" | "at" | "outcome" | "ended_at" | "reason" | "attended" | "tries">;

/** Clients whose connections a site's sshd sees. */
export const isSsh = ({ client }: Pick<LedgerEntry, "client">): boolean => client === "builtin" || client === "openssh";

/** The line of a connection, for whoever dials it. */
export interface LedgerLine {
  readonly seq: number;
  /** It is made, or is not: once. */
  settle(outcome: NonNullable<LedgerEntry["outcome"]>, reason?: string): void;
  /** It is over; harmless when it never was open, or twice. */
  ended(reason: string | null): void;
}

const MAX_ENTRIES = 1_000;
/** Of those at most so many that nobody asked for: a link that comes and goes by itself leaves room for the others. */
const MAX_UNATTENDED = 500;
const MAX_BYTES = 16 * 1024 * 1024;
/** How long the count of dials that fail again may be in memory only, in milliseconds. */
const COUNT_MS = 60_000;

/**
 * Every connection that was dialed, oldest first: JSON lines in a file of mode 0600, the last 1,000, and of those 500 at most that nobody asked for. One
 * process writes it. An entry is on disk before its connection is dialed.
 */
export class Ledger {
  #entries: LedgerEntry[];
  #next: number;
  #writtenAt = Number.NEGATIVE_INFINITY;
  readonly #dials = new Map<string, number>();

  /**
   * Read what is there. Connections that an earlier process did not see the end of ended with it.
   *
   * @throws RelayError local_file_unusable when the file is damaged or cannot be read: a count that starts anew would be false
   */
  constructor(
    private readonly file: string,
    private readonly clock: Clock,
  ) {
    const before = read(file);
    this.#next = (before.at(-1)?.seq ?? 0) + 1;
    this.#entries = before.map((entry) => closed(entry, timestamp(clock)));
  }

  /** @param since only entries with this or a higher seq */
  entries(since = 0): readonly LedgerEntry[] {
    return this.#entries.filter(({ seq }) => seq >= since);
  }

  /** Connections that were dialed since this was made, by cluster. */
  get dials(): ReadonlyMap<string, number> {
    return this.#dials;
  }

  #count({ cluster }: Dialing): void {
    this.#dials.set(cluster, (this.#dials.get(cluster) ?? 0) + 1);
  }

  /** The seq that the next entry will have. */
  get nextSeq(): number {
    return this.#next;
  }

  /** Write a connection down before it is dialed. @throws RelayError local_file_unusable: what cannot be counted is not dialed */
  begin(dialing: Dialing): LedgerLine {
    this.#count(dialing);
    const entry = this.#entry(dialing, true);
    this.#write(kept([...this.#entries, entry]));
    this.#next++;
    return this.#line(entry.seq);
  }

  /**
   * The same for a dial that belongs to no person. One that follows a failure of the same kind is counted in its entry, which is written once a
   * minute: a meeting point that is down is dialed every few seconds, for ever.
   *
   * @throws RelayError local_file_unusable
   */
  beginUnattended(dialing: Dialing & { readonly client: "relay" | "frp" }): LedgerLine {
    this.#count(dialing);
    const before = this.#entries.findLast(({ cluster, client }) => cluster === dialing.cluster && client === dialing.client);
    const same = before?.outcome === "failed" && !before.attended && before.target === dialing.target && before.purpose === dialing.purpose;
    if (!same) {
      const entry = this.#entry(dialing, false);
      this.#write(kept([...this.#entries, entry]));
      this.#next++;
      return this.#line(entry.seq);
    }
    const { seq, tries = 1 } = before;
    const at = timestamp(this.clock);
    this.#entries = this.#entries.map((one) =>
      one.seq === seq ? { ...one, ...bounded(dialing), at, tries: tries + 1, outcome: null, ended_at: null, reason: null } : one,
    );
    return this.#line(seq, before.reason);
  }

  #entry(dialing: Dialing, attended: boolean): LedgerEntry {
    return { ...bounded(dialing), seq: this.#next, at: timestamp(this.clock), attended, outcome: null, ended_at: null, reason: null };
  }

  /** @param again the reason of the failure that it follows; the same once more is written when its time has come */
  #line(seq: number, again?: string | null): LedgerLine {
    return {
      seq,
      settle: (outcome, reason) => {
        const ended = outcome === "open" ? null : timestamp(this.clock);
        const repeated = outcome === "failed" && again !== undefined && again === cut(reason ?? null);
        this.#change(
          seq,
          (one) => (one.outcome === null ? { ...one, outcome, ended_at: ended, reason: cut(reason ?? null) } : one),
          repeated && this.clock.monotonic() - this.#writtenAt < COUNT_MS,
        );
      },
      ended: (reason) => {
        this.#change(seq, (one) =>
          one.outcome === "open" && one.ended_at === null ? { ...one, ended_at: timestamp(this.clock), reason: cut(reason) } : one,
        );
      },
    };
  }

  #change(seq: number, change: (entry: LedgerEntry) => LedgerEntry, later = false): void {
    this.#entries = this.#entries.map((entry) => (entry.seq === seq ? change(entry) : entry));
    if (later) return;
    try {
      this.#write(this.#entries);
    } catch {
      // The dial itself is written; its outcome is kept in memory, and goes out with the next change.
    }
  }

  #write(entries: LedgerEntry[]): void {
    try {
      makePrivateDirectory(path.dirname(this.file));
      writeFileAtomic(this.file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    } catch (error) {
      throw new RelayError(
        "local_file_unusable",
        `${this.file} cannot be written, and no connection is dialed that is not counted`,
        { path: this.file },
        undefined,
        {
          cause: error,
        },
      );
    }
    this.#entries = entries;
    this.#writtenAt = this.clock.monotonic();
  }
}

function kept(entries: LedgerEntry[]): LedgerEntry[] {
  const unattended = entries.filter(({ attended }) => !attended);
  const surplus = new Set(unattended.slice(0, Math.max(0, unattended.length - MAX_UNATTENDED)));
  return entries.filter((entry) => !surplus.has(entry)).slice(-MAX_ENTRIES);
}

const cut = (text: string | null): string | null => (text === null ? null : text.slice(0, 2_048));
const bounded = (dialing: Dialing): Dialing => ({
  ...dialing,
  cluster: dialing.cluster.slice(0, 2_048),
  target: dialing.target.slice(0, 2_048),
  via: dialing.via.slice(0, 16).map((hop) => hop.slice(0, 2_048)),
  requested_by: dialing.requested_by.slice(0, 2_048),
});

function closed(entry: LedgerEntry, now: string): LedgerEntry {
  if (entry.outcome === null)
    return { ...entry, outcome: "failed", ended_at: now, reason: "the daemon ended before the outcome was known" };
  if (entry.outcome === "open" && entry.ended_at === null) return { ...entry, ended_at: now, reason: "the daemon ended" };
  return entry;
}

function read(file: string): LedgerEntry[] {
  const unusable = (why: string, cause?: unknown): RelayError =>
    new RelayError("local_file_unusable", `${file} ${why}`, { path: file }, `look at it, then move it away: mv ${file} ${file}.damaged`, {
      cause,
    });
  let found: ReturnType<typeof readRegular>;
  try {
    found = readRegular(file, MAX_BYTES);
  } catch (error) {
    throw unusable("cannot be read", error);
  }
  if (found === "absent") return [];
  if (typeof found === "string") throw unusable(found === "too_large" ? `has more than ${MAX_BYTES} bytes` : "is not a regular file");
  const entries = found.text.split("\n").filter((line) => line !== "");
  return entries.map((line, index) => {
    try {
      return v.parse(LedgerEntry, JSON.parse(line));
    } catch (error) {
      throw unusable(`is damaged in line ${index + 1}`, error);
    }
  });
}
