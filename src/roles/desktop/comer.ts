import { problemResponse } from "../../api/problem.ts";
import { RelayError } from "../../domain/errors.ts";
import { DEAF, type SocketCarrier } from "../sockets/carrier.ts";
import { HEAD_MAX, isFramed, type RequestHead, requestHead } from "../sockets/request-head.ts";
import type { Stranger, Strangers } from "../sockets/strangers.ts";
import { answerBytes, notWellFormed, requestOf, tooMany } from "./first-answer.ts";

/** Why a connection came to nothing. */
export const REFUSALS = ["authentication", "forbidden", "rate", "connections", "head", "time"] as const;
export type Refusal = (typeof REFUSALS)[number];

/** What decides on those who come. */
export interface Reception {
  readonly strangers: Strangers;
  /** How long somebody may take to prove itself, answered or not, in milliseconds. */
  readonly strangerMs: number;
  readonly proves: (head: RequestHead) => boolean;
  readonly answer: (request: Request) => Response | Promise<Response>;
  /** Seconds until somebody who failed may fail again; null: that was not too often. */
  readonly failed: (addressKey: string | null) => number | null;
  readonly onRefused: (why: Refusal) => void;
  /** The connection, read up to here, is the owner's from now on. */
  readonly onProven: (comer: Comer, bytes: Buffer) => void;
}

/** How long an answer may take to go out once the time is over, in milliseconds. */
const FAREWELL_MS = 500;

/** Somebody who has connected: what it says first decides what becomes of it. */
export class Comer implements Stranger {
  #held: Buffer = Buffer.alloc(0);
  #deadline: ReturnType<typeof setTimeout>;
  #answering = false;

  /** @param addressKey by what its address is counted; null: not at all */
  constructor(
    readonly carrier: SocketCarrier,
    readonly addressKey: string | null,
    readonly since: number,
    private readonly reception: Reception,
  ) {
    reception.strangers.add(this);
    this.#deadline = setTimeout(() => this.#late(), reception.strangerMs);
    carrier.sink = { ...DEAF, data: (chunk) => this.#read(chunk), end: () => carrier.destroy() };
  }

  destroy(): void {
    this.carrier.destroy();
  }

  /** It has proven itself, or is gone. Twice is harmless. */
  known(): void {
    clearTimeout(this.#deadline);
    this.reception.strangers.remove(this);
  }

  #late(): void {
    if (this.#answering) {
      this.carrier.destroy();
      return;
    }
    this.#deadline = setTimeout(() => this.carrier.destroy(), FAREWELL_MS);
    void this.end(problemResponse(new RelayError("request_timeout", "the request did not come in time")), "time");
  }

  #read(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk]);
    const head = requestHead(this.#held);
    if (head === null) return;
    if (head === "malformed" && this.#held.length > HEAD_MAX) void this.end(tooLong(), "head");
    else if (head === "malformed" || !isFramed(head)) void this.end(notWellFormed(), "head");
    else if (!this.reception.proves(head)) void this.#refuse(head);
    else {
      const bytes = this.#held;
      this.#held = Buffer.alloc(0);
      this.known();
      this.reception.onProven(this, bytes);
    }
  }

  async #refuse(head: RequestHead): Promise<void> {
    this.#listenNoMore();
    let response: Response;
    try {
      response = await this.reception.answer(requestOf(head));
    } catch {
      return this.end(notWellFormed(), "head");
    }
    const wait = response.status === 401 ? this.reception.failed(this.addressKey) : null;
    if (wait === null)
      await this.end(response, response.status === 401 ? "authentication" : response.status === 403 ? "forbidden" : null, head);
    else await this.end(tooMany("too many requests without the right token", wait), "rate", head);
  }

  /**
   * Answer, and read over what still comes until the other side has the answer or the time is over: a reset would take it away again.
   *
   * @param why null: it is no refusal
   */
  async end(response: Response, why: Refusal | null, head: RequestHead | null = null): Promise<void> {
    this.#listenNoMore();
    if (why !== null) this.reception.onRefused(why);
    this.carrier.write(await answerBytes(response, head).catch(() => Buffer.alloc(0)));
    this.carrier.end();
  }

  #listenNoMore(): void {
    this.#answering = true;
    this.#held = Buffer.alloc(0);
    this.carrier.sink = DEAF;
  }
}

const tooLong = (): Response =>
  problemResponse(new RelayError("request_head_too_large", `the head of a request may take ${HEAD_MAX} bytes`, { max_bytes: HEAD_MAX }));
