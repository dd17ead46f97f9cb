import { LIMITS } from "../../domain/limits.ts";
import type { Clock } from "../../lib/clock.ts";
import { DEAF, type SocketCarrier } from "../sockets/carrier.ts";
import { connectUnix } from "../sockets/handlers.ts";
import { type ListenAddress, listen } from "../sockets/listener.ts";
import { addressKey, Rates } from "../sockets/quota.ts";
import type { RequestHead } from "../sockets/request-head.ts";
import { Splice } from "../sockets/splice.ts";
import { STRANGERS, type StrangerBounds, Strangers } from "../sockets/strangers.ts";
import { Comer, type Reception, type Refusal } from "./comer.ts";
import { showsToken, tooMany } from "./first-answer.ts";

/** How much a front takes on. */
export interface FrontBounds {
  /** Connections that have not shown the token; one more ends the oldest. Each takes a descriptor. */
  readonly strangers: StrangerBounds;
  /** How long such a connection may last, answered or not, in milliseconds. */
  readonly strangerMs: number;
  /** Connections that have. Each takes three descriptors. */
  readonly proven: number;
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

const DRAIN_LOOK_MS = 5;
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
  readonly #proven = new Set<Splice>();
  /** Connections that have shown the token and are not joined yet. */
  readonly #joining = new Set<SocketCarrier>();
  readonly #stop: () => void;
  #look: ReturnType<typeof setInterval> | null = null;

  /** @throws RelayError configuration_error where the address cannot be listened on */
  constructor(private readonly options: FrontOptions) {
    this.#bounds = { ...FRONT_BOUNDS, ...options.bounds };
    this.#strangers = new Strangers(this.#bounds.strangers);
    this.#failures = new Rates(this.#bounds.failuresPerMinute, () => options.clock.monotonic());
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
    return { unproven: this.#strangers.size, proven: this.#proven.size + this.#joining.size };
  }

  /** Take no more connections. */
  close(): void {
    this.#stop();
  }

  /** End every connection that has shown the token, whatever is under way on it. */
  endProven(): void {
    for (const carrier of this.#joining) carrier.destroy();
    for (const splice of this.#proven) splice.destroy();
  }

  /** Let the bytes on their way arrive for at most `graceMs`, then cut what is left. */
  async drain(graceMs: number): Promise<void> {
    this.#strangers.endBefore(Number.POSITIVE_INFINITY);
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
      onProven: (comer, bytes) => this.#admit(comer, bytes),
    };
    const comer = new Comer(carrier, key, this.options.clock.monotonic(), reception);
    return () => {
      comer.known();
      this.#joining.delete(carrier);
    };
  }

  #added(splice: Splice): void {
    this.#proven.add(splice);
    const every = Math.min(LOOK_MS, this.#bounds.stalledMs / 4);
    this.#look ??= setInterval(() => this.#endStalled(), every);
  }

  #removed(splice: Splice): void {
    this.#proven.delete(splice);
    if (this.#proven.size > 0 || this.#look === null) return;
    clearInterval(this.#look);
    this.#look = null;
  }

  #endStalled(): void {
    for (const splice of this.#proven) {
      const quiet = splice.quietFor();
      if (splice.held > 0 && quiet >= this.#bounds.stalledMs) splice.destroy();
    }
  }

  #failed(key: string): number | null {
    return this.#failures.take(key) ? null : Math.ceil(this.#failures.wait(key) / 1_000);
  }

  #admit(comer: Comer, bytes: Buffer): void {
    if (this.connections.proven >= this.#bounds.proven && !this.#endSilent()) {
      void comer.end(tooMany("there are as many connections as there may be", 5), "connections");
      return;
    }
    void this.#join(comer.carrier, bytes);
  }

  /** Make room by ending the connection on which nothing has moved for longest. */
  #endSilent(): boolean {
    let longest: Splice | null = null;
    let silence = this.#bounds.idleMs;
    for (const splice of this.#proven) {
      const quiet = splice.quietFor();
      if (quiet < silence) continue;
      longest = splice;
      silence = quiet;
    }
    if (longest === null) return false;
    this.#removed(longest);
    longest.destroy();
    return true;
  }

  /** Make one connection of two, with back-pressure; the end of either is the end of both. */
  async #join(carrier: SocketCarrier, bytes: Buffer): Promise<void> {
    let over = false;
    let ended = false;
    this.#joining.add(carrier);
    carrier.pause();
    let held = bytes;
    // A socket that is paused may have had something to tell before.
    carrier.sink = {
      ...DEAF,
      data: (chunk) => {
        held = Buffer.concat([held, chunk]);
      },
      end: () => {
        ended = true;
      },
      close: () => {
        over = true;
      },
    };
    try {
      const inner = await connectUnix(this.options.socket, this.options.onFault);
      this.#joining.delete(carrier);
      if (over) return inner.destroy();
      const splice = new Splice(
        [carrier, inner],
        () => this.options.clock.monotonic(),
        (done) => this.#removed(done),
        { keepsEndMs: this.#bounds.halfClosedMs },
      );
      this.#added(splice);
      inner.write(held);
      if (ended) carrier.sink.end();
      carrier.resume();
    } catch {
      this.#joining.delete(carrier);
      carrier.destroy();
    }
  }
}
