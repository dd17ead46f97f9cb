import type { ClusterClient } from "../../api/client.ts";
import type { LogStream } from "../../domain/log.ts";
import type { Reconnect } from "./reconnect.ts";

/** How much of a log is held at a time. */
const PIECE_BYTES = 128 * 1024;
/** A line that does not end is shown in pieces of this size. */
const LINE_MAX = 16 * 1024;

/** Payload of stdout.delta and stderr.delta. */
export interface Delta {
  readonly offset: number;
  readonly next_offset: number;
  readonly text?: string;
}

/** One output stream of a job as text, read along with the events that announce its bytes. */
export class LogText {
  #offset: number | null = null;

  constructor(
    private readonly cluster: ClusterClient,
    private readonly jobId: string,
    private readonly stream: LogStream,
    private readonly reconnect: Reconnect,
  ) {}

  /** How far the log is shown; 0 before anything is. */
  get offset(): number {
    return this.#offset ?? 0;
  }

  /** Text up to where an event says that there are bytes. The event's own text where it has all of it, else the log's. */
  async *upTo(delta: Delta): AsyncGenerator<string> {
    const from = this.#offset ?? delta.offset;
    if (delta.text !== undefined && delta.offset === from) {
      this.#offset = delta.next_offset;
      yield delta.text;
      return;
    }
    this.#offset = from;
    yield* this.#read(delta.next_offset);
  }

  /** What is left when the job has ended: bytes that did not make a whole character. */
  async *rest(): AsyncGenerator<string> {
    if (this.#offset !== null) yield* this.#read(Number.MAX_SAFE_INTEGER);
  }

  async *#read(end: number): AsyncGenerator<string> {
    while (this.#offset !== null && this.#offset < end) {
      const offset = this.#offset;
      const limit = Math.min(PIECE_BYTES, end - offset);
      const chunk = await this.reconnect.persist(() => this.cluster.log(this.jobId, this.stream, { offset, limit }));
      // The bytes so far do not make a whole character; the next event brings the rest.
      if (chunk.next_offset === offset) return;
      // Events beyond `end` may carry the text of what the log has lost.
      this.#offset = chunk.missing_bytes > 0 ? Math.min(chunk.next_offset, end) : chunk.next_offset;
      if (chunk.missing_bytes > 0) await this.reconnect.passedOver(this.stream, offset, this.#offset);
      yield chunk.text;
    }
  }
}

/**
 * Cuts text into lines. A line may overwrite itself with carriage returns, as progress bars do: where somebody looks on, its last
 * state is the line; elsewhere each state is a line of its own, so that nothing is lost.
 */
export class Lines {
  #rest = "";
  /** Whether the line that has begun was shown in an earlier state. */
  #shown = false;

  constructor(private readonly returns: "overwrite" | "end-lines") {}

  /** Lines that are complete now. */
  push(text: string): string[] {
    const parts = (this.#rest + text).split("\n");
    this.#rest = parts.pop()!;
    const lines = parts.flatMap((part) => this.#states(part.endsWith("\r") ? part.slice(0, -1) : part));
    // A return at the very end may be half of a line's end.
    const bar = this.#rest.lastIndexOf("\r", this.#rest.length - 2);
    if (bar >= 0) {
      const before = this.returns === "overwrite" ? [] : notEmpty(this.#rest.slice(0, bar).split("\r"));
      lines.push(...before);
      this.#shown ||= before.length > 0;
      this.#rest = this.#rest.slice(bar + 1);
    }
    while (this.#rest.length > LINE_MAX) {
      lines.push(this.#rest.slice(0, LINE_MAX));
      this.#rest = this.#rest.slice(LINE_MAX);
    }
    return lines;
  }

  /** The line that has begun, as it looks now; empty when there is none. */
  get open(): string {
    const shown = this.#rest.endsWith("\r") ? this.#rest.slice(0, -1) : this.#rest;
    return shown.slice(shown.lastIndexOf("\r") + 1);
  }

  /** The line that never ended; null when there is none. */
  end(): string | null {
    const last = this.open;
    this.#rest = "";
    return last === "" ? null : last;
  }

  /** What a complete line was, one after the other, or in the end. A state without text is none, unless there is no other. */
  #states(line: string): string[] {
    const states = line.split("\r");
    const last = states.pop()!;
    if (this.returns === "overwrite") return [last];
    const before = notEmpty(states);
    const shown = this.#shown || before.length > 0;
    this.#shown = false;
    return last === "" && shown ? before : [...before, last];
  }
}

const notEmpty = (states: readonly string[]): string[] => states.filter((state) => state !== "");
