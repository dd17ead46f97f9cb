import { RelayError } from "../../domain/errors.ts";

/** What a frame may hold; a script of ours stays far below. */
export const FRAME_LIMITS = { lineBytes: 256 * 1024, records: 4_096, totalBytes: 8 * 1024 * 1024, noiseBytes: 64 * 1024 } as const;

const NAME = /^[a-z][a-z0-9_]{0,63}$/;
const MARK = "clio-relay ";
const NEWLINE = 0x0a;

/** What a script answered: named values in their order. */
export class Answer {
  constructor(
    readonly records: readonly (readonly [name: string, value: string])[],
    /** The script's own exit status. */
    readonly status: number,
  ) {}

  /** Every value of a name. */
  all(name: string): string[] {
    return this.records.filter(([one]) => one === name).map(([, value]) => value);
  }

  /** The last value of a name; null where there is none. */
  last(name: string): string | null {
    return this.all(name).at(-1) ?? null;
  }

  /** @throws RelayError answer_malformed where there is none */
  one(name: string): string {
    const value = this.last(name);
    if (value === null) throw malformed(`does not say ${name}`);
    return value;
  }

  /** A value that is a whole number; null where there is none. @throws RelayError answer_malformed for anything else */
  count(name: string): number | null {
    const value = this.last(name);
    if (value === null || value === "") return null;
    if (!/^\d{1,15}$/.test(value)) throw malformed(`says ${JSON.stringify(value.slice(0, 40))} for ${name}`);
    return Number(value);
  }
}

/**
 * Reads the framed answer of a script out of its standard output, in whatever pieces it comes (docs/wire.md, "Scripts on a login node"). What profiles
 * and banners print around it is kept for error texts, up to a bound.
 */
export class FrameReader {
  readonly #records: [string, string][] = [];
  readonly #mark: Buffer;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #total = 0;
  #noise = "";
  readonly #aside: Buffer[] = [];
  #asideBytes = 0;
  #ready = false;
  #state: "before" | "inside" | "over" = "before";
  #status = 0;

  constructor(
    nonce: string,
    private readonly onRecord: (name: string, value: string) => void = () => undefined,
  ) {
    this.#mark = Buffer.from(`${MARK}${nonce} `, "latin1");
  }

  /** @throws RelayError answer_malformed */
  push(chunk: Uint8Array): void {
    if (this.#state === "over") return;
    this.#count(chunk.length);
    let start = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, at));
      this.#line(Buffer.concat(this.#pending));
      this.#pending = [];
      this.#pendingBytes = 0;
      if (this.end() !== null) return;
      start = at + 1;
    }
    this.#keep(chunk.subarray(start));
  }

  /** The whole answer; null when it did not come to its end. */
  end(): Answer | null {
    return this.#state === "over" ? new Answer(this.#records, this.#status) : null;
  }

  /** What came on standard error; it counts for the same bound. @throws RelayError answer_malformed */
  pushAside(chunk: Uint8Array): void {
    this.#count(chunk.length);
    const kept = chunk.subarray(0, FRAME_LIMITS.noiseBytes - this.#asideBytes);
    if (kept.length > 0) this.#aside.push(Buffer.from(kept));
    this.#asideBytes += kept.length;
  }

  #count(bytes: number): void {
    this.#total += bytes;
    if (this.#total > FRAME_LIMITS.totalBytes) throw malformed(`goes on for more than ${FRAME_LIMITS.totalBytes} bytes`);
  }

  /** Whether it is the command of ours that runs, and not something else that reads its input. */
  get isReady(): boolean {
    return this.#ready;
  }

  /** What came besides the frame, a line that has not ended and standard error included. */
  get noise(): string {
    const unfinished = this.#state === "before" ? Buffer.concat(this.#pending).toString("utf8") : "";
    return `${this.#noise}${unfinished === "" ? "" : `${unfinished}\n`}${Buffer.concat(this.#aside).toString("utf8")}`;
  }

  #keep(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#pendingBytes += part.length;
    if (this.#pendingBytes <= FRAME_LIMITS.lineBytes) this.#pending.push(Buffer.from(part));
    else if (this.#state === "inside") throw malformed(`has a line of more than ${FRAME_LIMITS.lineBytes} bytes`);
  }

  #line(line: Buffer): void {
    if (!line.subarray(0, this.#mark.length).equals(this.#mark)) {
      if (line.length > 0 && this.#noise.length < FRAME_LIMITS.noiseBytes) {
        this.#noise += `${line.toString("utf8", 0, FRAME_LIMITS.noiseBytes - this.#noise.length)}\n`;
      }
      return;
    }
    const text = line.toString("latin1", this.#mark.length);
    const space = text.indexOf(" ");
    const [name, value] = space < 0 ? [text, null] : [text.slice(0, space), text.slice(space + 1)];
    if (name === "ready" && value === null && this.#state === "before") this.#ready = true;
    else if (name === "begin" && value === null && this.#state === "before") this.#state = "inside";
    else if (this.#state !== "inside" || value === null || !NAME.test(name)) throw malformed("has a line of no known form");
    else if (name === "end") {
      if (!/^\d{1,3}$/.test(value)) throw malformed("has no exit status at its end");
      this.#status = Number(value);
      this.#state = "over";
    } else this.#record(name, decode(value));
  }

  #record(name: string, value: string): void {
    if (this.#records.length >= FRAME_LIMITS.records) throw malformed(`has more than ${FRAME_LIMITS.records} records`);
    this.#records.push([name, value]);
    this.onRecord(name, value);
  }
}

/** Bytes 0x21-0x7e but % as they are, others as %HH. What is not UTF-8 shows as the replacement character. */
function decode(value: string): string {
  if (!/^(?:[!-$&-~]|%[0-9A-Fa-f]{2})*$/.test(value)) throw malformed("has a value that is not in its coding");
  if (!value.includes("%")) return value;
  return Buffer.from(
    value.replace(/%(..)/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    "latin1",
  ).toString("utf8");
}

const malformed = (what: string): RelayError => new RelayError("answer_malformed", `the answer of a program on the cluster's host ${what}`);
