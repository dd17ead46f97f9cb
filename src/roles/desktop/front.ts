import { LIMITS } from "../../domain/limits.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import type { SocketCarrier } from "../sockets/carrier.ts";
import { type ListenAddress, listen } from "../sockets/listener.ts";
import { addressKey, Rates } from "../sockets/quota.ts";
import type { RequestHead } from "../sockets/request-head.ts";
import { STRANGERS, type StrangerBounds, Strangers } from "../sockets/strangers.ts";
import { Comer, type Reception, type Refusal } from "./comer.ts";
import { answerBytes, showsToken, tooMany } from "./first-answer.ts";
import { ASIDE_DESCRIPTORS, JOINED_DESCRIPTORS, Owned, type Ownership } from "./owned.ts";

/** How much a front takes on. */
export interface FrontBounds {
  /** Connections that have not shown the token; one more ends the oldest. Each takes a descriptor. */
  readonly strangers: StrangerBounds;
  /** How long such a connection may last, answered or not, in milliseconds. */
  readonly strangerMs: number;
  /** Connections that have. Each takes three descriptors, or one while it is set aside. */
  readonly proven: number;
  /** Descriptors of all of these. From three quarters of them on, connections that are between two requests are set aside. */
  readonly descriptors: number;
  /** The one that was silent for longest, if for so long, ends where another one would be too many; milliseconds. */
  readonly idleMs: number;
  /** One that does not take what waits for it ends after so long, in milliseconds. */
  readonly stalledMs: number;
  /** How long what a client wants may take that has said that it was all, in milliseconds. */
  readonly halfClosedMs: number;
  /** How often somebody without the right token is told so in a minute, by address. */
  readonly failuresPerMinute: number;
}

export const FRONT_BOUNDS: FrontBounds = {
  strangers: { ...STRANGERS, atOnce: 8 },
  strangerMs: 10_000,
  proven: LIMITS.apiConnections,
  descriptors: Number.POSITIVE_INFINITY,
  idleMs: 60_000,
  stalledMs: 300_000,
  halfClosedMs: 2_000,
  failuresPerMinute: 60,
};

export interface FrontOptions {
  readonly address: ListenAddress;
  /** PEM; null: without TLS. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** The Unix socket of the server that gets every connection whose first request carries the token. */
  readonly socket: string;
  /** The token as it is now; null: nobody has it. */
  readonly token: () => string | null;
  /** Answers a request that does not carry it. Its body is not read, and its connection ends with the answer. */
  readonly answer: (request: Request) => Response | Promise<Response>;
  /** Whether every connection comes from a proxy, so that its address says nothing. */
  readonly behindProxy?: boolean;
  readonly clock: Clock;
  readonly bounds?: Partial<FrontBounds>;
  readonly onRefused?: (why: Refusal, address: string) => void;
  /** Something of ours went wrong on a connection, which is broken off. */
  readonly onFault: (error: Error) => void;
}

const AS_MANY = "there are as many connections as there may be";
const DRAIN_LOOK_MS = 5;
/** Of the descriptors that there may be: connections that are about to end still have theirs. */
const ASIDE_FROM = 0.75;
/** How long who cannot be served now may take to read that, in milliseconds. */
const FAREWELL_MS = 2_000;
/** How often is looked for those who do not take what waits for them, in milliseconds. */
const LOOK_MS = 15_000;

/**
 * Listens on TCP before a server that only the owner may hold up. A connection is nobody's until its first request's head has come whole and carries the
 * token; there are few of those, for a short time, and the newest takes the place of the oldest, so that the owner, who proves itself with its first bytes, always
 * gets through. From then on the connection belongs to the server, which may be as patient as it likes.
 */
export class Front {
  readonly address: ListenAddress;
  readonly #bounds: FrontBounds;
  readonly #strangers: Strangers;
  readonly #failures: Rates;
  readonly #proven = new Set<Owned>();
  /** Of these, those between two requests, the one that has been so for longest first. */
  readonly #resting = new Set<Owned>();
  readonly #ownership: Ownership;
  #descriptors = 0;
  readonly #stop: () => void;
  #look: ReturnType<typeof setInterval> | null = null;

  /** @throws RelayError configuration_error where the address cannot be listened on */
  constructor(private readonly options: FrontOptions) {
    this.#bounds = { ...FRONT_BOUNDS, ...options.bounds };
    this.#strangers = new Strangers(this.#bounds.strangers);
    this.#failures = new Rates(this.#bounds.failuresPerMinute, () => options.clock.monotonic());
    this.#ownership = {
      socket: options.socket,
      now: () => options.clock.monotonic(),
      halfClosedMs: this.#bounds.halfClosedMs,
      onFault: options.onFault,
      onResting: (one, resting) => (resting ? this.#resting.add(one) : this.#resting.delete(one)),
      mayWake: (one) => this.#mayWake(one),
      onOver: (one) => this.#removed(one),
    };
    const { address, stop } = listen({
      address: options.address,
      tls: options.tls,
      onConnection: (carrier, peer) => this.#take(carrier, peer),
      onFault: options.onFault,
    });
    this.address = address;
    this.#stop = stop;
  }

  /** Connections by whether they have shown the token. */
  get connections(): { readonly unproven: number; readonly proven: number } {
    return { unproven: this.#strangers.size, proven: this.#proven.size };
  }

  /** Take no more connections. */
  close(): void {
    this.#stop();
  }

  /** End every connection that has shown the token, whatever is under way on it. */
  endProven(): void {
    for (const one of [...this.#proven]) one.destroy();
  }

  /** Let the bytes on their way arrive for at most `graceMs`, then cut what is left. */
  async drain(graceMs: number): Promise<void> {
    this.#strangers.endBefore(Number.POSITIVE_INFINITY);
    for (const one of [...this.#proven]) one.endAside();
    const deadline = performance.now() + graceMs;
    while (this.connections.proven > 0 && performance.now() < deadline) await Bun.sleep(DRAIN_LOOK_MS);
    this.endProven();
  }

  #take(carrier: SocketCarrier, address: string): () => void {
    const key = this.options.behindProxy === true ? null : addressKey(address);
    const reception: Reception = {
      strangers: this.#strangers,
      strangerMs: this.#bounds.strangerMs,
      proves: (head: RequestHead) => {
        const token = this.options.token();
        return token !== null && showsToken(head, token);
      },
      answer: this.options.answer,
      failed: (by) => this.#failed(by ?? ""),
      onRefused: (why) => this.options.onRefused?.(why, address),
      onProven: (comer, bytes) => this.#admit(comer, bytes, address),
    };
    const comer = new Comer(carrier, key, this.options.clock.monotonic(), reception);
    return () => comer.known();
  }

  #added(one: Owned): void {
    this.#proven.add(one);
    this.#descriptors += one.descriptors;
    const every = Math.min(LOOK_MS, this.#bounds.stalledMs / 4);
    this.#look ??= setInterval(() => this.#endStalled(), every);
  }

  #removed(one: Owned): void {
    if (this.#proven.delete(one)) this.#descriptors -= one.descriptors;
    this.#resting.delete(one);
    if (this.#proven.size > 0 || this.#look === null) return;
    clearInterval(this.#look);
    this.#look = null;
  }

  #endStalled(): void {
    for (const one of this.#proven) {
      const quiet = one.quietFor();
      if (one.held > 0 && quiet >= this.#bounds.stalledMs) one.destroy();
    }
  }

  #failed(key: string): number | null {
    return this.#failures.take(key) ? null : Math.ceil(this.#failures.wait(key) / 1_000);
  }

  #admit(comer: Comer, bytes: Buffer, address: string): void {
    while (this.#proven.size >= this.#bounds.proven || !this.#room(JOINED_DESCRIPTORS)) {
      if (this.#endSilent()) continue;
      void comer.end(tooMany(AS_MANY, 5), "connections");
      return;
    }
    const one = new Owned(comer.carrier, address, this.#ownership);
    this.#added(one);
    void one.join(bytes);
  }

  /** Whether there are so many descriptors more; where they run short, connections that rest give back theirs. */
  #room(more: number): boolean {
    const { descriptors } = this.#bounds;
    for (const one of this.#resting) {
      if (this.#descriptors + more <= descriptors * ASIDE_FROM) break;
      this.#resting.delete(one);
      if (one.setAside()) this.#descriptors -= JOINED_DESCRIPTORS - ASIDE_DESCRIPTORS;
    }
    return this.#descriptors + more <= descriptors;
  }

  #mayWake(one: Owned): boolean {
    const more = JOINED_DESCRIPTORS - ASIDE_DESCRIPTORS;
    if (this.#room(more)) {
      this.#descriptors += more;
      return true;
    }
    void this.#sendAway(one);
    return false;
  }

  async #sendAway({ carrier, address }: Owned): Promise<void> {
    this.options.onRefused?.("connections", address);
    carrier.sink = { ...carrier.sink, data: () => undefined };
    carrier.write(await answerBytes(tooMany(AS_MANY, 5), null));
    carrier.end();
    setTimeout(() => carrier.destroy(), FAREWELL_MS);
  }

  /** Make room by ending the connection on which nothing has moved for longest. */
  #endSilent(): boolean {
    let longest: Owned | null = null;
    let silence = this.#bounds.idleMs;
    for (const one of this.#proven) {
      const quiet = one.quietFor();
      if (quiet < silence) continue;
      longest = one;
      silence = quiet;
    }
    if (longest === null) return false;
    this.#removed(longest);
    longest.destroy();
    return true;
  }
}
