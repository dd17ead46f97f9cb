import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { ChannelAnswer } from "../http/http-channel.ts";
import type { ChannelRequest } from "../http/request-head.ts";
import type { BulkGate } from "./bulk-gate.ts";
import { type ContentRange, digestOfTag, parseContentRange, parseRangeHeader, rangeHeader, strongTag } from "./byte-ranges.ts";

/** Makes one request. */
export type Fetch = (request: ChannelRequest, signal?: AbortSignal) => Promise<ChannelAnswer>;

/** How much is fetched at a time. A whole range is kept until it is its turn. */
export const RANGE_BYTES = 512 * 1024;
/** How often a range is fetched again. */
const RETRIES = 3;

/** Part of the content that was asked for, and the answer that told how long it is. */
interface Plan {
  readonly first: ContentRange;
  readonly firstBytes: Uint8Array;
  /** Where the transfer ends. */
  readonly end: number;
  readonly tag: string | null;
  /** To be found over everything; null where the tag is none, or only a part was asked for. */
  readonly sha256: string | null;
}

/**
 * GET content that may be long in ranges, a few at a time, so that it does not hold up the short answers of the link, and answer as if it had
 * been one: 200, or 206 where the request has a Range. Answers that are no such content (304, errors, content without ranges) come through as they are.
 *
 * Content with a strong entity tag has to keep it to the end; content without one has to be such that bytes that were there stay as they are.
 * A tag that is a SHA-256 is compared with what came, before the last bytes are handed on. The body fails with artifact_changed where either is not so, and with the
 * failure of a range that could not be had in four attempts.
 *
 * @param request a GET without a body
 */
export async function fetchInRanges(fetch: Fetch, gate: BulkGate, request: ChannelRequest, signal?: AbortSignal): Promise<ChannelAnswer> {
  const asked = request.headers.get("range");
  const wanted = asked === null ? { start: 0, end: null } : parseRangeHeader(asked);
  // Several ranges, or the last so many bytes: seldom, and as the other side has it.
  if (wanted === null) return fetch(request, signal);
  const stop = new AbortController();
  const ended = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  const end = Math.min(wanted.end ?? Number.POSITIVE_INFINITY, wanted.start + RANGE_BYTES);
  const answer = await timed(fetch, gate, { ...request, headers: withRange(request.headers, wanted.start, end) }, ended);
  // Nothing is a range of empty content; asked without one, it is an answer.
  if (answer.status === 416 && asked === null) return fetch(request, signal);
  if (answer.status !== 206) return answer;
  const first = parseContentRange(answer.headers.get("content-range"));
  const firstBytes = wholeBody(answer);
  if (first === null || firstBytes === null || first.start !== wanted.start || firstBytes.length !== first.end - first.start) {
    throw new RelayError("answer_malformed", "the answer is not the range that was asked for");
  }
  const tag = strongTag(answer.headers.get("etag"));
  const last = Math.min(wanted.end ?? first.total, first.total);
  const plan: Plan = { first, firstBytes, end: last, tag, sha256: wanted.start === 0 && last === first.total ? digestOfTag(tag) : null };
  return {
    status: asked === null ? 200 : 206,
    headers: headersOf(answer.headers, plan, asked !== null),
    body: new RangedBody(fetch, gate, request, plan, ended, stop).stream(),
    upgraded: null,
  };
}

function withRange(headers: Headers, start: number, end: number): Headers {
  const all = new Headers(headers);
  all.set("range", rangeHeader(start, end));
  return all;
}

function headersOf(first: Headers, { first: { start, total }, end }: Plan, partial: boolean): Headers {
  const headers = new Headers(first);
  headers.set("content-length", String(end - start));
  if (partial) headers.set("content-range", `bytes ${start}-${end - 1}/${total}`);
  else headers.delete("content-range");
  return headers;
}

/** One range, when it is its turn; how it came is told to the gate. */
async function timed(fetch: Fetch, gate: BulkGate, request: ChannelRequest, signal: AbortSignal): Promise<ChannelAnswer> {
  const leave = await gate.enter(signal);
  const began = performance.now();
  let firstByteMs = 0;
  try {
    const onHead = (): void => {
      firstByteMs = performance.now() - began;
    };
    const answer = await fetch({ ...request, wholeUpTo: RANGE_BYTES, onHead }, signal);
    leave(answer.status === 206 ? { firstByteMs, totalMs: performance.now() - began } : undefined);
    return answer;
  } catch (error) {
    leave();
    throw error;
  }
}

/** The body, where it came as a whole; a longer one is not read. */
function wholeBody({ body }: ChannelAnswer): Uint8Array | null {
  if (body instanceof ReadableStream) body.cancel().catch(() => undefined);
  return body instanceof Uint8Array ? body : null;
}

class RangedBody {
  /** Ranges under way, in order. */
  readonly #queue: Promise<Uint8Array>[];
  readonly #hash: Bun.CryptoHasher | null;
  /** Where the next range begins. */
  #next: number;
  #left: number;

  constructor(
    private readonly fetch: Fetch,
    private readonly gate: BulkGate,
    private readonly request: ChannelRequest,
    private readonly plan: Plan,
    private readonly signal: AbortSignal,
    private readonly stop: AbortController,
  ) {
    this.#queue = [Promise.resolve(plan.firstBytes)];
    this.#next = plan.first.end;
    this.#left = plan.end - plan.first.start;
    this.#hash = plan.sha256 === null ? null : new Bun.CryptoHasher("sha256");
  }

  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            this.#fill();
            const bytes = await this.#queue.shift()!;
            this.#fill();
            this.#left -= bytes.length;
            this.#hash?.update(bytes);
            if (this.#left === 0) this.#verify();
            controller.enqueue(bytes);
            if (this.#left === 0) controller.close();
          } catch (error) {
            this.stop.abort(error);
            throw error;
          }
        },
        cancel: () => this.stop.abort(new RelayError("link_down", "nobody reads the answer any more")),
      },
      { highWaterMark: 0 },
    );
  }

  /** Ask ahead, but for no more than may be under way at once. */
  #fill(): void {
    while (this.#queue.length < this.gate.limit && this.#next < this.plan.end) {
      const [start, end] = [this.#next, Math.min(this.#next + RANGE_BYTES, this.plan.end)];
      this.#next = end;
      const range = this.#range(start, end);
      // It fails where it is awaited; the ones behind it may never be.
      range.catch(() => undefined);
      this.#queue.push(range);
    }
  }

  #verify(): void {
    const found = this.#hash?.digest("hex") ?? null;
    if (found !== this.plan.sha256) throw changed({ sha256: this.plan.sha256, found_sha256: found });
  }

  async #range(start: number, end: number): Promise<Uint8Array> {
    for (let left = RETRIES; ; left--) {
      try {
        return await this.#attempt(start, end);
      } catch (error) {
        const again = isRelayError(error, "link_down") || isRelayError(error, "channel_refused");
        if (!again || left === 0 || this.signal.aborted) throw error;
      }
    }
  }

  async #attempt(start: number, end: number): Promise<Uint8Array> {
    const headers = withRange(this.request.headers, start, end);
    for (const name of ["if-range", "if-none-match", "if-match"]) headers.delete(name);
    if (this.plan.tag !== null) headers.set("if-match", this.plan.tag);
    const answer = await timed(this.fetch, this.gate, { ...this.request, headers }, this.signal);
    const bytes = wholeBody(answer);
    const { status } = answer;
    if (status === 409 || status === 412 || status === 416 || (status === 206 && !this.#isTagged(answer)))
      throw changed({ etag: this.plan.tag });
    if (status !== 206) throw new RelayError("link_down", `a part of the content could not be had: ${status}`, { status });
    const range = parseContentRange(answer.headers.get("content-range"));
    if (range?.start !== start || range.end !== end || bytes?.length !== end - start) {
      throw new RelayError("answer_malformed", "the answer is not the range that was asked for");
    }
    return bytes;
  }

  #isTagged({ headers }: ChannelAnswer): boolean {
    return this.plan.tag === null || headers.get("etag") === this.plan.tag;
  }
}

const changed = (data: Record<string, unknown>): RelayError =>
  new RelayError("artifact_changed", "the content is no longer what it was when its transfer began", data);
