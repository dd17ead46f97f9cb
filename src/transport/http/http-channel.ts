import type { Duplex } from "node:stream";
import { RelayError } from "../../domain/errors.ts";
import { giveBack } from "../../lib/system/give-back.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { windowOf } from "../receive-window.ts";
import { AnswerParser, type AnswerSink } from "./answer-parser.ts";
import { headersOf } from "./end-to-end.ts";
import { type AnswerHead, closesAfter } from "./head.ts";
import { bodyLength, type ChannelRequest, requestHead } from "./request-head.ts";

/** An answer. What is small, or there at once, comes as bytes; everything else as a stream. */
export interface ChannelAnswer {
  readonly status: number;
  /** End-to-end fields only. */
  readonly headers: Headers;
  /** Null where the answer has none. The stream errors with a RelayError when the answer does not come to its end; cancelling it closes the channel. */
  readonly body: Uint8Array | ReadableStream<Uint8Array> | null;
  /** The connection itself, paused, after `101 Switching Protocols`. */
  readonly upgraded: Duplex | null;
}

/** A request got no answer. */
export class NoAnswer extends Error {
  /** @param untouched whether not a byte of an answer had come */
  constructor(
    readonly untouched: boolean,
    readonly failure: Error,
  ) {
    super(failure.message, { cause: failure });
  }
}

/** How many bytes of a stream wait for their reader before the channel is paused. */
const AHEAD_BYTES = 256 * 1024;
/** Packets of a transfer are put together up to this, as far as they come at once: what is handed on costs by the piece. */
const PIECE_BYTES = 128 * 1024;
/** Answers of up to this come as bytes, where the head says the length. */
const WHOLE_UP_TO = 64 * 1024;
const CRLF = Buffer.from("\r\n");

/** One connection, on which one request after the other is made. */
export class HttpChannel {
  #current: Exchange | null = null;
  #over = false;

  /** @param onOver told once when the connection can have no further request */
  constructor(
    private readonly duplex: Duplex,
    private readonly clock: Clock,
    private readonly onOver: (channel: HttpChannel) => void,
  ) {
    duplex.on("data", this.#data);
    duplex.on("end", this.#ended);
    duplex.on("error", this.#ended);
    duplex.on("close", this.#ended);
  }

  readonly #data = (chunk: Buffer): void => {
    // Nobody asked: whoever comes next would take it for an answer.
    if (this.#current === null) this.destroy();
    else this.#current.push(chunk);
  };

  readonly #ended = (error?: Error): void => {
    this.destroy(error ?? new RelayError("link_down", "the channel was closed before the answer was complete"));
  };

  /**
   * Make a request and get the answer's head. One at a time.
   *
   * @param onFree told when the connection is free for the next request
   * @throws NoAnswer; RelayError answer_malformed, http_request_malformed; the signal's reason
   */
  exchange(request: ChannelRequest, signal: AbortSignal | undefined, onFree: () => void): Promise<ChannelAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#over) throw new NoAnswer(true, new RelayError("link_down", "the channel was closed before the request was made"));
      let head: Buffer;
      try {
        signal?.throwIfAborted();
        head = requestHead(request);
      } catch (error) {
        onFree();
        throw error;
      }
      const exchange = new Exchange(this.duplex, this.clock, request, {
        resolve,
        reject,
        finished: (reusable) => {
          this.#current = null;
          if (reusable && !this.#over) onFree();
          else this.destroy();
        },
        upgraded: () => this.#release(),
      });
      this.#current = exchange;
      windowOf(this.duplex)?.follow(request.flow ?? null);
      exchange.start(head, signal);
    });
  }

  /** For how long the answer owes bytes, in milliseconds; 0 where it owes none. */
  owingForMs(): number {
    return this.#current?.owingForMs() ?? 0;
  }

  /** For how long it has been waited for the answer, or for more of it, in milliseconds; 0 for what may be quiet while its job is. */
  silentForMs(): number {
    return this.#current?.silentForMs() ?? 0;
  }

  /** End a request that waits, and the connection; it is not made again. */
  giveUp(failureOf: (request: ChannelRequest) => Error): void {
    if (this.#current !== null) this.#current.fail(failureOf(this.#current.request));
  }

  /** Let go of the connection: it is somebody else's now. */
  #release(): Duplex {
    this.duplex.pause();
    this.duplex.removeListener("data", this.#data);
    for (const end of ["end", "error", "close"]) this.duplex.removeListener(end, this.#ended);
    this.#current = null;
    this.#over = true;
    this.onOver(this);
    return this.duplex;
  }

  /** @param error what becomes of a request that is under way */
  destroy(error: Error = new RelayError("link_down", "the channel was closed")): void {
    if (this.#over) return;
    this.#over = true;
    const current = this.#current;
    this.#current = null;
    this.duplex.destroy();
    this.onOver(this);
    current?.lost(error);
  }
}

interface Outcome {
  resolve(answer: ChannelAnswer): void;
  reject(error: unknown): void;
  /** @param reusable whether the connection may have another request */
  finished(reusable: boolean): void;
  upgraded(): Duplex;
}

/** One request and its answer. */
class Exchange implements AnswerSink {
  readonly #parser: AnswerParser;
  #head: AnswerHead | null = null;
  #touched = false;
  #over = false;
  /** The body's stream, once somebody has to wait for more of it. */
  #stream: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** What came of the body before somebody had to wait for more of it. */
  #early: Buffer[] = [];
  /** Room for a body that comes as a whole, and how much of it is there. */
  #room: Buffer | null = null;
  #roomBytes = 0;
  #filled = 0;
  /** The answer comes as a whole, unless it turns out to be longer than this. */
  #whole = false;
  /** What was put together of a transfer and not handed on. */
  #piece: Buffer | null = null;
  #pieceFilled = 0;
  #sent = false;
  #signal: AbortSignal | undefined;
  #uploading: { cancel(): Promise<void> } | null = null;
  /** Whether more has to come before long: of a body whose length is known, or of events, which have signs of life. */
  #owes = false;
  /** Whether the answer may be quiet for as long as what it tells of. */
  #mayBeQuiet = false;
  /** When something last came, or somebody began to wait for it. */
  #waitingSince = 0;
  readonly #aborted = (): void => this.fail(this.#signal?.reason);

  constructor(
    private readonly duplex: Duplex,
    private readonly clock: Clock,
    readonly request: ChannelRequest,
    private readonly outcome: Outcome,
  ) {
    this.#parser = new AnswerParser(request.method, request.upgrade !== undefined, this);
  }

  start(head: Buffer, signal: AbortSignal | undefined): void {
    this.#signal = signal;
    this.#waitingSince = this.clock.monotonic();
    signal?.addEventListener("abort", this.#aborted, { once: true });
    const { body } = this.request;
    if (body === null || body instanceof Uint8Array) {
      this.duplex.write(body === null || body.length === 0 ? head : Buffer.concat([head, body]));
      this.#sent = true;
    } else {
      this.duplex.write(head);
      this.#upload(body).catch((error: unknown) => this.fail(error));
    }
  }

  /** As the source gives it, and no faster than the channel takes it. */
  async #upload(body: ReadableStream<Uint8Array>): Promise<void> {
    const length = bodyLength(this.request);
    const reader = body.getReader();
    this.#uploading = reader;
    let left = length ?? Number.POSITIVE_INFINITY;
    for (;;) {
      const { done, value } = await reader.read();
      if (this.#over) return;
      if (done) break;
      left -= value.length;
      if (left < 0) break;
      if (value.length === 0) continue;
      const framed = length === null ? Buffer.concat([Buffer.from(`${value.length.toString(16)}\r\n`), value, CRLF]) : value;
      if (!this.duplex.write(framed)) await this.#drained();
      this.#waitingSince = this.clock.monotonic();
    }
    if (length === null) this.duplex.write("0\r\n\r\n");
    else if (left !== 0) throw new RelayError("http_request_malformed", "the request's body is not as long as its head says");
    this.#sent = true;
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const ready = (): void => {
        for (const event of ["drain", "close", "error"]) this.duplex.removeListener(event, ready);
        resolve();
      };
      for (const event of ["drain", "close", "error"]) this.duplex.on(event, ready);
    });
  }

  push(chunk: Buffer): void {
    this.#touched = true;
    this.#waitingSince = this.clock.monotonic();
    const isCollected = this.#stream !== null;
    try {
      this.#parser.push(chunk);
    } catch (error) {
      this.fail(error);
      return;
    }
    // Copied, and nothing but it was in the packet.
    if ((isCollected || this.#room !== null) && !this.#parser.keeps) giveBack(chunk);
    if (this.#head !== null && !this.#whole && !this.#over) this.#answerWith(this.#head);
  }

  head(head: AnswerHead): void {
    this.#head = head;
    const length = head.said["content-length"][0];
    const events = head.said["content-type"].some((value) => value.startsWith("text/event-stream"));
    this.#owes = length !== undefined || events || this.request.flow !== undefined;
    this.#mayBeQuiet = events || !this.#owes;
    // Without a length it may be one that goes on for ever.
    this.#whole = length !== undefined && Number(length) <= WHOLE_UP_TO;
    this.#roomBytes = Number(length);
  }

  data(chunk: Buffer): void {
    if (this.#whole) this.#gather(chunk);
    else if (this.#stream === null) this.#early.push(chunk);
    else this.#collect(this.#stream, chunk);
  }

  /** Into pieces that are nobody else's. */
  #collect(stream: ReadableStreamDefaultController<Uint8Array>, chunk: Buffer): void {
    if (this.request.flow === undefined) {
      const piece = Buffer.allocUnsafeSlow(chunk.length);
      chunk.copy(piece);
      this.#enqueue(stream, piece);
      return;
    }
    for (let from = 0; from < chunk.length; ) {
      if (this.#piece === null) {
        this.#piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
        // What else has come at once follows before that.
        queueMicrotask(() => this.#handOn());
      }
      const count = chunk.copy(this.#piece, this.#pieceFilled, from);
      from += count;
      this.#pieceFilled += count;
      if (this.#pieceFilled === PIECE_BYTES) this.#handOn();
    }
  }

  #handOn(): void {
    const piece = this.#piece?.subarray(0, this.#pieceFilled);
    this.#piece = null;
    this.#pieceFilled = 0;
    if (piece !== undefined && this.#stream !== null && !this.#over) this.#enqueue(this.#stream, piece);
  }

  #enqueue(stream: ReadableStreamDefaultController<Uint8Array>, bytes: Buffer): void {
    stream.enqueue(bytes);
    if ((stream.desiredSize ?? 0) > 0) return;
    this.duplex.pause();
    windowOf(this.duplex)?.paused();
  }

  end(rest: Buffer): void {
    const head = this.#head!;
    if (head.status === 101) {
      const upgraded = this.outcome.upgraded();
      if (rest.length > 0) upgraded.unshift(rest);
      this.#settle();
      this.outcome.resolve({ status: 101, headers: headersOf(head), body: null, upgraded });
      return;
    }
    if (this.#stream === null) this.#resolve(head, this.#wholeBody(head));
    else {
      this.#handOn();
      this.#stream.close();
    }
    // Bytes behind the answer are nobody's, and an answer that came before the whole request is the last one.
    this.#finish(rest.length === 0 && this.#sent && !closesAfter(head));
  }

  #gather(chunk: Buffer): void {
    this.#room ??= Buffer.allocUnsafe(this.#roomBytes);
    if (this.#filled + chunk.length <= this.#room.length) {
      this.#room.set(chunk, this.#filled);
      this.#filled += chunk.length;
      return;
    }
    this.#whole = false;
    this.#early = [this.#room.subarray(0, this.#filled), chunk];
    this.#room = null;
  }

  #wholeBody(head: AnswerHead): Uint8Array | null {
    if (this.#room !== null) return this.#room.subarray(0, this.#filled);
    return this.#early.length === 0 ? emptyBody(head, this.request.method) : joined(this.#early);
  }

  /** The head is there and the body is not complete: it goes on as a stream. */
  #answerWith(head: AnswerHead): void {
    if (this.#stream !== null) return;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#stream = controller;
          for (const chunk of this.#early) this.data(chunk);
          this.#early = [];
        },
        pull: () => {
          if (this.duplex.isPaused()) this.#waitingSince = this.clock.monotonic();
          this.duplex.resume();
        },
        cancel: () => this.#finish(false),
      },
      { highWaterMark: AHEAD_BYTES, size: (bytes) => bytes?.length ?? 0 },
    );
    this.#resolve(head, body);
  }

  #resolve(head: AnswerHead, body: ChannelAnswer["body"]): void {
    this.outcome.resolve({ status: head.status, headers: headersOf(head), body, upgraded: null });
  }

  owingForMs(): number {
    return this.#owes && !this.duplex.isPaused() ? this.clock.monotonic() - this.#waitingSince : 0;
  }

  silentForMs(): number {
    const isWaited = !this.#mayBeQuiet && (this.#head === null || !this.duplex.isPaused());
    return isWaited ? this.clock.monotonic() - this.#waitingSince : 0;
  }

  /** The connection is gone. */
  lost(error: Error): void {
    this.fail(error, true);
  }

  fail(error: unknown, lost = false): void {
    if (this.#over) return;
    const stream = this.#stream;
    this.#finish(false);
    if (stream !== null) stream.error(error);
    else this.outcome.reject(lost ? new NoAnswer(!this.#touched, error as Error) : error);
  }

  #finish(reusable: boolean): void {
    if (this.#over) return;
    this.#settle();
    this.duplex.resume();
    this.outcome.finished(reusable);
  }

  #settle(): void {
    this.#over = true;
    this.#signal?.removeEventListener("abort", this.#aborted);
    this.#uploading?.cancel().catch(() => undefined);
  }
}

const joined = (chunks: readonly Buffer[]): Buffer => (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));

const emptyBody = (head: AnswerHead, method: string): Uint8Array | null =>
  method === "HEAD" || head.status === 204 || head.status === 304 ? null : new Uint8Array();
