import type { Duplex } from "node:stream";
import { RelayError } from "../../domain/errors.ts";
import { type Clock, systemClock } from "../../lib/waiting/clock.ts";
import { type ChannelAnswer, HttpChannel, NoAnswer } from "./http-channel.ts";
import { type ChannelRequest, doubtOf, isSafe } from "./request-head.ts";

export interface ChannelPoolOptions {
  /** A new connection to the other side's HTTP server. The memory of what it gives is nobody else's. */
  readonly open: (signal?: AbortSignal) => Promise<Duplex>;
  readonly clock?: Clock;
  /** How many idle connections are kept. */
  readonly maxIdle?: number;
  /** How long one is kept, in milliseconds. */
  readonly maxIdleMs?: number;
}

const MAX_IDLE = 8;
const MAX_IDLE_MS = 20_000;

interface Idle {
  readonly channel: HttpChannel;
  /** By performance.now(). */
  readonly until: number;
}

/** HTTP/1.1 requests over connections that are kept for the next request; the one that was used last is the next one used. */
export class ChannelPool {
  /** In the order of their ends. */
  readonly #idle: Idle[] = [];
  /** One for all that are idle: a timer for each request costs it two calls. */
  #sweep: ReturnType<typeof setTimeout> | null = null;
  readonly #all = new Set<HttpChannel>();
  /** Those that are not kept when they are free. */
  readonly #leaving = new WeakSet<HttpChannel>();
  #closed: Error | null = null;

  readonly #clock: Clock;

  constructor(private readonly options: ChannelPoolOptions) {
    this.#clock = options.clock ?? systemClock;
  }

  /** Connections that are open, busy ones included. */
  get size(): number {
    return this.#all.size;
  }

  /**
   * Make a request. One of a safe method without a body whose kept connection turns out to be gone, before a byte of an answer, is made again on
   * a new one, once; nothing else is ever sent twice.
   *
   * @throws RelayError link_down when the connection breaks before the answer's head, answer_malformed, http_request_malformed; what `open`
   *   throws; the signal's reason
   */
  async request(request: ChannelRequest, signal?: AbortSignal): Promise<ChannelAnswer> {
    const kept = this.#take();
    try {
      return await this.#exchange(kept ?? (await this.#open(signal)), request, signal);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      const again = kept !== null && error.untouched && isSafe(request.method) && request.body === null && this.#closed === null;
      if (!again) throw unanswered(error.failure, request);
    }
    try {
      return await this.#exchange(await this.#open(signal), request, signal);
    } catch (error) {
      throw error instanceof NoAnswer ? unanswered(error.failure, request) : error;
    }
  }

  #take(): HttpChannel | null {
    return this.#idle.pop()?.channel ?? null;
  }

  async #open(signal: AbortSignal | undefined): Promise<HttpChannel> {
    if (this.#closed !== null) throw this.#closed;
    const duplex = await this.options.open(signal);
    const channel = new HttpChannel(duplex, this.#clock, (gone) => this.#forget(gone));
    this.#all.add(channel);
    if (this.#closed !== null) channel.destroy();
    return channel;
  }

  #exchange(channel: HttpChannel, request: ChannelRequest, signal: AbortSignal | undefined): Promise<ChannelAnswer> {
    return channel.exchange(request, signal, () => this.#keep(channel));
  }

  #keep(channel: HttpChannel): void {
    if (this.#closed !== null || this.#leaving.has(channel) || this.#idle.length >= (this.options.maxIdle ?? MAX_IDLE)) {
      channel.destroy();
      return;
    }
    const ms = this.options.maxIdleMs ?? MAX_IDLE_MS;
    this.#idle.push({ channel, until: performance.now() + ms });
    this.#sweep ??= setTimeout(() => this.#sweepIdle(), ms);
  }

  #sweepIdle(): void {
    this.#sweep = null;
    const now = performance.now();
    // A timer may fire within the millisecond before.
    for (const { channel } of this.#idle.filter(({ until }) => until <= now + 1)) channel.destroy();
    const next = this.#idle[0];
    if (next !== undefined) this.#sweep = setTimeout(() => this.#sweepIdle(), next.until - now);
  }

  #forget(channel: HttpChannel): void {
    this.#all.delete(channel);
    const at = this.#idle.findIndex((idle) => idle.channel === channel);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  /** Give up answers that owe bytes for so long; to be called when the other side has just shown that it is there. */
  giveUpStalled(ms: number): void {
    for (const channel of this.#all) {
      if (channel.owingForMs() >= ms)
        channel.destroy(new RelayError("link_down", `the answer stopped in the middle, and nothing more came for ${ms / 1_000} s`));
    }
  }

  /** Give up requests that have waited for so long; to be called when the other side has shown that it does not answer. */
  giveUpSilent(ms: number, failureOf: (request: ChannelRequest) => Error): void {
    for (const channel of [...this.#all]) if (channel.silentForMs() >= ms) channel.giveUp(failureOf);
  }

  /** Have no request begin on a connection that is open now: what is under way goes on to its end. */
  retire(): void {
    for (const { channel } of [...this.#idle]) channel.destroy();
    for (const channel of this.#all) this.#leaving.add(channel);
  }

  /** Destroy every connection, busy ones too; later requests fail with this error. */
  close(error: Error): void {
    this.#closed ??= error;
    if (this.#sweep !== null) clearTimeout(this.#sweep);
    for (const channel of [...this.#all]) channel.destroy(error);
  }
}

const unanswered = (cause: Error, request: ChannelRequest): RelayError =>
  new RelayError("link_down", `the connection broke before it answered${doubtOf(request)}`, {}, undefined, { cause });
