import { type AnswerHead, checkBeginning, framingOf, malformed, parseHead } from "./head.ts";

/** Gets the parts of an answer as they come. */
export interface AnswerSink {
  /** The final answer's head; informational ones are passed over. */
  head(head: AnswerHead): void;
  data(chunk: Buffer): void;
  /** The answer is complete. `rest` came behind it. */
  end(rest: Buffer): void;
}

const HEAD_MAX = 64 * 1024;
/** A chunk's size with its extensions. */
const SIZE_LINE_MAX = 1_024;
const TRAILERS_MAX = 16 * 1024;
const NOTHING = Buffer.alloc(0);
const EMPTY_LINE = "\r\n\r\n";

type State = "head" | "length" | "size" | "chunk" | "chunk-end" | "trailers" | "done";

/**
 * Reads one answer (RFC 9112) from a byte stream, cut wherever it may be. Each part is handed on when it comes; nothing but heads and lines is kept.
 */
export class AnswerParser {
  #state: State = "head";
  /** Bytes that are not yet a whole line or head. */
  #kept: Buffer = NOTHING;
  /** Bytes of the body, or of the chunk, that are still to come. */
  #left = 0;
  /** Bytes of informational answers. */
  #passed = 0;

  /** @param upgradable whether the request asked for another protocol, so that 101 is an answer to it */
  constructor(
    private readonly method: string,
    private readonly upgradable: boolean,
    private readonly sink: AnswerSink,
  ) {}

  get done(): boolean {
    return this.#state === "done";
  }

  /** Whether a part of what was pushed is kept for what comes next. */
  get keeps(): boolean {
    return this.#kept.length > 0;
  }

  /** @throws RelayError answer_malformed */
  push(chunk: Buffer): void {
    let rest = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    this.#kept = NOTHING;
    while (rest.length > 0 && this.#state !== "done") {
      const next = this.#step(rest);
      if (next === null) {
        // What lies in the chunk is its owner's again.
        this.#kept = Buffer.from(rest);
        return;
      }
      rest = next;
    }
  }

  /** What remains after one step; null when the step needs more bytes. */
  #step(bytes: Buffer): Buffer | null {
    switch (this.#state) {
      case "head":
        return this.#head(bytes);
      case "size":
        return this.#size(bytes);
      case "chunk-end":
        if (bytes.length < 2) return null;
        if (bytes[0] !== 0x0d || bytes[1] !== 0x0a) throw malformed("a chunk of the answer is longer than it says");
        this.#state = "size";
        return bytes.subarray(2);
      case "trailers":
        return this.#trailers(bytes);
      default:
        return this.#body(bytes);
    }
  }

  #head(bytes: Buffer): Buffer | null {
    checkBeginning(bytes);
    const end = bytes.indexOf(EMPTY_LINE);
    if ((end < 0 ? bytes.length : end) + this.#passed > HEAD_MAX) throw malformed(`the answer's head has more than ${HEAD_MAX} bytes`);
    if (end < 0) return null;
    const head = parseHead(bytes.toString("latin1", 0, end));
    const rest = bytes.subarray(end + EMPTY_LINE.length);
    if (head.status < 200 && !(head.status === 101 && this.upgradable)) {
      if (head.status === 101) throw malformed("the other side changes the protocol, which nobody asked for");
      this.#passed += end + EMPTY_LINE.length;
      return rest;
    }
    const framing = framingOf(head, this.method);
    this.sink.head(head);
    if (framing.kind === "chunked") this.#state = "size";
    else {
      this.#state = "length";
      this.#left = framing.kind === "length" ? framing.bytes : 0;
      if (this.#left === 0) return this.#end(rest);
    }
    return rest;
  }

  #body(bytes: Buffer): Buffer {
    const part = bytes.length <= this.#left ? bytes : bytes.subarray(0, this.#left);
    const rest = bytes.subarray(part.length);
    this.#left -= part.length;
    this.sink.data(part);
    if (this.#left > 0) return rest;
    if (this.#state === "length") return this.#end(rest);
    this.#state = "chunk-end";
    return rest;
  }

  #size(bytes: Buffer): Buffer | null {
    const end = bytes.indexOf("\r\n");
    if ((end < 0 ? bytes.length : end) > SIZE_LINE_MAX) throw malformed("a chunk of the answer says too much about itself");
    if (end < 0) return null;
    const size = /^([0-9A-Fa-f]{1,12})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/.exec(bytes.toString("latin1", 0, end));
    if (size === null) throw malformed("a chunk of the answer has no size");
    this.#left = Number.parseInt(size[1]!, 16);
    this.#state = this.#left === 0 ? "trailers" : "chunk";
    return bytes.subarray(end + 2);
  }

  /** Fields behind the last chunk are read over (RFC 9112, section 7.1.2). */
  #trailers(bytes: Buffer): Buffer | null {
    const empty = bytes[0] === 0x0d && bytes[1] === 0x0a;
    const end = empty ? 0 : bytes.indexOf(EMPTY_LINE);
    if ((end < 0 ? bytes.length : end) > TRAILERS_MAX) throw malformed("too much follows the answer's last chunk");
    if (end < 0) return null;
    // As a head whose first line does not count.
    if (!empty) parseHead(`HTTP/1.1 200 \r\n${bytes.toString("latin1", 0, end)}`);
    return this.#end(bytes.subarray(end + (empty ? 2 : EMPTY_LINE.length)));
  }

  #end(rest: Buffer): Buffer {
    this.#state = "done";
    this.sink.end(rest);
    return NOTHING;
  }
}
