import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { DeltaPayload, type Event } from "../../domain/event.ts";
import type { LogStream } from "../../domain/log.ts";
import { Count, Timestamp } from "../../domain/primitives.ts";
import { LinearPattern } from "../../lib/text/linear-pattern.ts";
import { PatternError } from "../../lib/text/pattern-syntax.ts";
import { asked } from "../asked.ts";
import type { Place } from "../clusters.ts";

export const SCOPES = ["stdout", "stderr", "progress", "events"] as const;
export type Scope = (typeof SCOPES)[number];

/** Bytes of a pattern; matches of one answer; characters of an excerpt. */
const PATTERN_BYTES = 512;
const MATCHES = 100;
const EXCERPT = 1_024;
/** Bytes before what is new that are looked at for the beginning of its first line, and the most of one line that is looked at at once. */
const BEFORE_BYTES = 4_096;
/** Bytes of logs that one request reads, and one search looks at. */
const PIECE_BYTES = 256 * 1024;
const SEARCH_BYTES = 4 * 1024 * 1024;

export const MatchView = v.object({
  stream: v.picklist(SCOPES),
  excerpt: v.string(),
  position: v.pipe(Count, v.description("byte at which its line begins; of progress and events: their seq")),
  timestamp: Timestamp,
});
export type MatchView = v.InferOutput<typeof MatchView>;

/** A pattern of somebody. Both may throw RelayError observation_pattern_unsafe, and the first one observation_pattern_invalid, too. */
export interface Pattern {
  isIn(line: string): boolean;
}

export function patternOf(source: string): Pattern {
  const size = Buffer.byteLength(source);
  if (size > PATTERN_BYTES) {
    throw new RelayError("observation_pattern_invalid", `a pattern has at most ${PATTERN_BYTES} bytes, and this one has ${size}`, {
      max_bytes: PATTERN_BYTES,
    });
  }
  const pattern = orRefused(() => new LinearPattern(source));
  return { isIn: (line) => orRefused(() => pattern.isIn(line)) };
}

function orRefused<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new RelayError(error.fault === "unsafe" ? "observation_pattern_unsafe" : "observation_pattern_invalid", error.message);
  }
}

/** A line that matches, and the event that tells of it. */
export interface Found {
  readonly seq: number;
  readonly match: MatchView;
}

/** One line in which a pattern may be, and where it is from. */
interface Line {
  readonly stream: Scope;
  readonly text: string;
  readonly position: number;
  /** The event that tells of it. */
  readonly seq: number;
  readonly timestamp: string;
}

/**
 * Looks for patterns in what events tell of: the lines of logs that have become longer, progress, and the events themselves. A line that goes on later is looked at again, as a
 * whole.
 */
export class Search {
  #left = SEARCH_BYTES;

  constructor(
    private readonly place: Place,
    private readonly jobId: string,
    private readonly scopes: ReadonlySet<Scope>,
    private readonly signal: AbortSignal,
  ) {}

  /** The first of some events, as many as are looked through for one answer; one at least. */
  within(events: readonly Event[]): readonly Event[] {
    let room = this.#left;
    const end = events.findIndex((event, index) => {
      const delta = this.#deltaOf(event);
      room -= delta === null ? 0 : delta.next_offset - delta.offset;
      return room < 0 && index > 0;
    });
    this.#left = Math.max(0, room);
    return end < 0 ? events : events.slice(0, end);
  }

  /** Whether as much was looked through as one answer may. */
  get isOver(): boolean {
    return this.#left === 0;
  }

  /** Lines that match, in the order of the events that tell of them; the first ones. */
  async matching(events: readonly Event[], pattern: Pattern, most = MATCHES): Promise<{ readonly found: Found[]; readonly cut: boolean }> {
    const found: Found[] = [];
    let cut = false;
    for (const stream of SCOPES) {
      if (!this.scopes.has(stream)) continue;
      let count = 0;
      const lines = stream === "stdout" || stream === "stderr" ? this.#ofLog(stream, events) : linesOf(stream, events);
      for await (const line of lines) {
        if (!pattern.isIn(line.text)) continue;
        if (++count > most) {
          cut = true;
          break;
        }
        found.push({ seq: line.seq, match: viewOf(line) });
      }
    }
    found.sort((a, b) => a.seq - b.seq);
    return { found: found.slice(0, most), cut: cut || found.length > most };
  }

  #deltaOf(event: Event): DeltaPayload | null {
    const delta = deltaOf(event);
    return delta !== null && this.scopes.has(delta.stream) ? delta : null;
  }

  /** Lines of a log of which something is in what events tell of; these follow one another in the log, too. */
  async *#ofLog(stream: LogStream, events: readonly Event[]): AsyncGenerator<Line> {
    const deltas = events.flatMap(({ seq, created_at: timestamp, ...event }) => {
      const delta = deltaOf(event);
      return delta === null || delta.stream !== stream ? [] : [{ seq, timestamp, ...delta }];
    });
    const [from, to] = [deltas[0]?.offset ?? 0, deltas.at(-1)?.next_offset ?? 0];
    let begins = Math.max(0, from - BEFORE_BYTES);
    let held: Buffer = Buffer.alloc(0);
    for (let at = begins; at < to; ) {
      const piece = await this.#read(stream, at, Math.min(PIECE_BYTES, to - at));
      if (piece.length === 0) return;
      at += piece.length;
      held = Buffer.concat([held, piece]);
      for (let end = lineEnd(held, at >= to); end >= 0; end = lineEnd(held, at >= to)) {
        const upTo = begins + end;
        const of = deltas.find(({ next_offset }) => upTo <= next_offset);
        // Those that ended before were looked at with what told of them.
        if (upTo > from && of !== undefined) {
          yield { stream, text: held.toString("utf8", 0, end), position: begins, seq: of.seq, timestamp: of.timestamp };
        }
        const next = isLineEnd(held[end]) ? end + 1 : end;
        held = held.subarray(next);
        begins += next;
      }
    }
  }

  #read(stream: LogStream, offset: number, limit: number): Promise<Uint8Array> {
    const read = (signal: AbortSignal) => this.place.client.logPiece(this.jobId, stream, offset, limit, signal);
    return asked(`the worker of ${this.place.entry.name}`, this.signal, read);
  }
}

function* linesOf(stream: "progress" | "events", events: readonly Event[]): Generator<Line> {
  for (const { seq, created_at: timestamp, event_type, message } of events) {
    if (event_type.endsWith(".delta") || (event_type === "progress.updated") !== (stream === "progress")) continue;
    const text = stream === "progress" ? message : `${event_type}: ${message}`;
    for (const line of text.split(/\r\n|\n|\r/)) yield { stream, text: line, position: seq, seq, timestamp };
  }
}

const isLineEnd = (byte: number | undefined): boolean => byte === 0x0a || byte === 0x0d;

/** Where the first line ends: at a line end, where it is too long, or with the text, where nothing follows; -1: it goes on. */
function lineEnd(held: Buffer, last: boolean): number {
  for (let at = 0; at < held.length && at < PIECE_BYTES; at++) if (isLineEnd(held[at])) return at;
  if (held.length >= PIECE_BYTES) return PIECE_BYTES;
  return last && held.length > 0 ? held.length : -1;
}

function deltaOf({ event_type, payload }: Pick<Event, "event_type" | "payload">): DeltaPayload | null {
  if (event_type !== "stdout.delta" && event_type !== "stderr.delta") return null;
  const delta = v.safeParse(DeltaPayload, payload);
  return delta.success ? delta.output : null;
}

const viewOf = ({ stream, text, position, timestamp }: Line): MatchView => ({
  stream,
  excerpt: text.slice(0, EXCERPT).toWellFormed(),
  position,
  timestamp,
});
