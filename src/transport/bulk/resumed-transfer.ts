import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { ChannelAnswer } from "../http/http-channel.ts";
import type { ChannelRequest } from "../http/request-head.ts";
import { digestOfTag, parseContentRange, rangeFrom, strongTag } from "./byte-ranges.ts";
import type { Transfer, TransferWindows } from "./transfer-windows.ts";

/** Makes one request. */
export type Fetch = (request: ChannelRequest, signal?: AbortSignal) => Promise<ChannelAnswer>;

/** How often a transfer goes on after its channel failed without this many bytes between. */
const RETRIES = 3;
const PROGRESS_BYTES = 1024 * 1024;

/** What an answer holds: bytes [start, end), known by its tag. */
interface Content {
  readonly start: number;
  readonly end: number;
  readonly tag: string | null;
  /** Of the whole content, where the answer holds all of it and its tag says so. */
  readonly sha256: string | null;
}

/**
 * GET content that may be long, with its share of the link's windows so that it does not hold up short answers. Where its channel fails while
 * the link is up, the transfer goes on where it was, over another. Answers that are no content of a known length come through as they are.
 *
 * Content with a strong entity tag has to keep it to the end; content without one has to be such that bytes that were there stay as they are.
 * The other side verifies what it sends in one answer. Of a whole content that came in several, whose tag is a SHA-256, the other side is asked for its digest before the last bytes are
 * handed on. The body fails with artifact_changed where any of that is not so, and with the failure of its channel when that failed four times in a row.
 *
 * @param request a GET without a body
 */
export async function fetchResumed(
  fetch: Fetch,
  windows: TransferWindows,
  request: ChannelRequest,
  signal?: AbortSignal,
): Promise<ChannelAnswer> {
  const stop = new AbortController();
  const ended = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  const flow = windows.enter();
  try {
    const isWhole = !request.headers.has("range");
    const answer = await fetch({ ...request, headers: isWhole ? withRange(request.headers, "bytes=0-") : request.headers, flow }, ended);
    const range = answer.status === 206 ? parseContentRange(answer.headers.get("content-range")) : null;
    // Several ranges at once, 304, errors; all of it, where the condition of a range does not hold.
    if (range === null && !(isWhole && answer.status === 416)) return passed(answer, flow);
    // Nothing is a range of empty content; asked without one, it is an answer.
    if (range === null) return passed(await fetch(request, ended), flow);
    const tag = strongTag(answer.headers.get("etag"));
    const content: Content = { ...range, tag, sha256: range.start === 0 && range.end === range.total ? digestOfTag(tag) : null };
    const source = answer.body instanceof ReadableStream ? answer.body : null;
    const body = source === null ? answer.body : new ResumedBody(fetch, flow, request, content, source, ended, stop).stream();
    if (source === null) flow.leave();
    return { status: isWhole ? 200 : 206, headers: headersOf(answer.headers, content, isWhole), body, upgraded: null };
  } catch (error) {
    flow.leave();
    throw error;
  }
}

function passed(answer: ChannelAnswer, flow: Transfer): ChannelAnswer {
  flow.leave();
  return answer;
}

function withRange(headers: Headers, range: string): Headers {
  const all = new Headers(headers);
  all.set("range", range);
  return all;
}

function headersOf(answered: Headers, { start, end }: Content, isWhole: boolean): Headers {
  const headers = new Headers(answered);
  headers.set("content-length", String(end - start));
  if (isWhole) headers.delete("content-range");
  return headers;
}

/** Reads a body. */
interface Reader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
  cancel(reason: unknown): Promise<void>;
}

class ResumedBody {
  #reader: Reader;
  /** Where the next byte belongs. */
  #at: number;
  #failures = 0;
  /** Where the last failure was. */
  #failedAt = 0;
  #resumed = false;

  constructor(
    private readonly fetch: Fetch,
    private readonly flow: Transfer,
    private readonly request: ChannelRequest,
    private readonly content: Content,
    body: ReadableStream<Uint8Array>,
    private readonly signal: AbortSignal,
    private readonly stop: AbortController,
  ) {
    this.#reader = body.getReader();
    this.#at = content.start;
  }

  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const bytes = await this.#next();
            if (bytes === null) {
              this.flow.leave();
              controller.close();
            } else controller.enqueue(bytes);
          } catch (error) {
            this.#give(error);
            throw error;
          }
        },
        cancel: () => this.#give(new RelayError("link_down", "nobody reads the answer any more")),
      },
      { highWaterMark: 0 },
    );
  }

  #give(why: unknown): void {
    this.flow.leave();
    this.stop.abort(why);
    this.#reader.cancel(why).catch(() => undefined);
  }

  /** The next bytes; null behind the last. */
  async #next(): Promise<Uint8Array | null> {
    for (;;) {
      try {
        const { done, value } = await this.#reader.read();
        if (!done && value !== undefined) return await this.#taken(value);
        if (this.#at === this.content.end) return null;
        throw new RelayError("link_down", "the answer ended before its end");
      } catch (error) {
        await this.#goOn(error);
      }
    }
  }

  async #taken(bytes: Uint8Array): Promise<Uint8Array> {
    this.#at += bytes.length;
    if (this.#at > this.content.end) throw new RelayError("answer_malformed", "the answer is longer than it said");
    if (this.#at === this.content.end && this.#resumed) await this.#verify();
    return bytes;
  }

  /** Ask for what is left over another channel, unless the failure is one that would come again. */
  async #goOn(error: unknown): Promise<void> {
    const passing = isRelayError(error, "link_down") || isRelayError(error, "channel_refused");
    if (!passing || this.signal.aborted) throw this.signal.aborted ? this.signal.reason : error;
    if (this.#at - this.#failedAt >= PROGRESS_BYTES) this.#failures = 0;
    this.#failedAt = this.#at;
    if (++this.#failures > RETRIES) throw error;
    try {
      this.#reader = await this.#rest();
      this.#resumed = true;
    } catch (again) {
      await this.#goOn(again);
    }
  }

  async #rest(): Promise<Reader> {
    const { end, tag } = this.content;
    const headers = this.#conditions();
    headers.set("range", rangeFrom(this.#at, end));
    const answer = await this.fetch({ ...this.request, headers, flow: this.flow }, this.signal);
    const { status } = answer;
    if (status === 409 || status === 412 || status === 416 || (status === 206 && tag !== null && answer.headers.get("etag") !== tag)) {
      throw changed({ etag: tag });
    }
    if (status !== 206) throw new RelayError("link_down", `the rest of the content could not be had: ${status}`, { status });
    const range = parseContentRange(answer.headers.get("content-range"));
    if (range?.start !== this.#at || range.end !== end || answer.body === null) {
      throw new RelayError("answer_malformed", "the answer is not the range that was asked for");
    }
    return (answer.body instanceof ReadableStream ? answer.body : new Response(answer.body as Uint8Array<ArrayBuffer>).body!).getReader();
  }

  /** The condition on which the content is the one that was begun. */
  #conditions(): Headers {
    const headers = new Headers(this.request.headers);
    for (const name of ["if-range", "if-none-match", "if-match", "range"]) headers.delete(name);
    if (this.content.tag !== null) headers.set("if-match", this.content.tag);
    return headers;
  }

  /** No answer held all of the content, so that nobody has verified it as a whole (RFC 9530, section 4). */
  async #verify(): Promise<void> {
    const { sha256 } = this.content;
    if (sha256 === null) return;
    const headers = this.#conditions();
    headers.set("want-repr-digest", "sha-256=10");
    const answer = await this.fetch({ ...this.request, method: "HEAD", headers }, this.signal);
    const digest = /(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):/.exec(answer.headers.get("repr-digest") ?? "")?.[1];
    const found = digest === undefined ? null : Buffer.from(digest, "base64").toString("hex");
    if (answer.status === 200 && found === sha256) return;
    if (answer.status === 200 && found === null)
      throw new RelayError("answer_malformed", "the other side does not say the content's digest");
    throw changed({ sha256, found_sha256: found });
  }
}

const changed = (data: Record<string, unknown>): RelayError =>
  new RelayError("artifact_changed", "the content is no longer what it was when its transfer began", data);
