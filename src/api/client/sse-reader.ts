import { LIMITS } from "../../domain/limits.ts";

/** One message of a server-sent event stream (HTML standard, section 9.2). */
export interface SseMessage {
  readonly event: string;
  readonly data: string;
  readonly id: string | null;
}

const END = /[\r\n]/;

const tooLong = (max: number): RangeError => new RangeError(`it has a message of more than ${max} characters`);

/** Text in pieces, as lines. What has not ended is kept as it came: joining it with every piece would cost the square of its length. */
class Lines {
  readonly #pieces: string[] = [];
  #length = 0;

  constructor(private readonly max: number) {}

  /** The lines that end with this piece. @throws RangeError */
  push(piece: string): string[] {
    const before = this.#pieces.at(-1)?.endsWith("\r") === true;
    this.#pieces.push(piece);
    this.#length += piece.length;
    if (!before && !END.test(piece)) return this.#bounded([]);
    // A carriage return at the end may be the first half of a line's end.
    const lines = this.#pieces.join("").split(/\r\n|\n|\r(?!$)/);
    const rest = lines.pop()!;
    this.#pieces.splice(0, this.#pieces.length, rest);
    this.#length = rest.length;
    return this.#bounded(lines);
  }

  #bounded(lines: string[]): string[] {
    if (this.#length > this.max) throw tooLong(this.max);
    return lines;
  }
}

/**
 * Parse an SSE body. Comments are skipped; a message cut off by the end of the body is dropped, as the standard says.
 *
 * @throws RangeError for a line, or a message, of more than `max` characters
 */
export async function* readSse(body: ReadableStream<Uint8Array>, max: number = LIMITS.answerBytes): AsyncGenerator<SseMessage> {
  const decoder = new TextDecoder();
  const lines = new Lines(max);
  let event = "message";
  let data: string[] = [];
  let length = 0;
  let id: string | null = null;
  for await (const bytes of body as unknown as AsyncIterable<Uint8Array>) {
    for (const line of lines.push(decoder.decode(bytes, { stream: true }))) {
      if (line === "") {
        if (data.length > 0) yield { event, data: data.join("\n"), id };
        event = "message";
        data = [];
        length = 0;
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") event = value;
      else if (field === "data") {
        length += value.length + 1;
        if (length > max) throw tooLong(max);
        data.push(value);
      } else if (field === "id") id = value;
    }
  }
}
