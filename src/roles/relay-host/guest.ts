import { randomBytes } from "node:crypto";
import { RelayError } from "../../domain/errors.ts";
import type { CloseCode, Refusal } from "../../transport/meeting/codes.ts";
import { codeOf } from "../../transport/meeting/control-stream.ts";
import { encode, FrameParser } from "../../transport/meeting/frames.ts";
import { FLOODED_MS } from "../../transport/meeting/intake.ts";
import { type FromClient, type FromRelay, NEWEST_VERSION, OLDEST_VERSION, WORD_BYTES } from "../../transport/meeting/messages.ts";
import { type Carrier, type CarrierSink, DEAF } from "../sockets/carrier.ts";

/** Times of a meeting in milliseconds (docs/wire.md); tests have shorter ones. */
export interface MeetingTimes {
  readonly opening: number;
  /** What was said last has so long to be read. */
  readonly farewell: number;
  /** Silence of our own after which a parked connection is pinged. */
  readonly ping: number;
  /** Silence of the other side after which it is given up. */
  readonly silence: number;
  /** What was heard of within this is there. */
  readonly fresh: number;
  /** How long the answer to a ping before use may take. */
  readonly answer: number;
  readonly ticket: number;
  /** After which a pair on which nothing moves is ended. */
  readonly idle: number;
  /** The same where bytes wait for a side that does not take them. */
  readonly stuck: number;
}

export const MEETING_TIMES: MeetingTimes = {
  opening: 10_000,
  farewell: 10_000,
  ping: 20_000,
  silence: 50_000,
  fresh: 2_000,
  answer: 5_000,
  ticket: 15_000,
  idle: 120_000,
  stuck: 900_000,
};

/** A parked connection that does not take what it is sent is given up above this many bytes. */
const UNREAD_MAX = 64 * 1024;
/** More than this at once is no control message. */
const CHUNK_MAX = 64 * 1024;
const NOTHING = Buffer.alloc(0);

/** Anything but pings and pongs. */
export type GuestMessage = Exclude<FromClient, { type: "ping" | "pong" }>;

/** What a guest says, and what becomes of it. */
export interface GuestEvents {
  message(message: GuestMessage): void;
  /** It is gone, or was dismissed; told once. */
  gone(): void;
}

/** Whose guest it is. */
export interface GuestHost {
  /** It is closed with a code. */
  dismissed(guest: Guest, code: CloseCode): void;
  /** Nothing more is expected of its carrier; what waits there may still go out. @param addressKey by what its address is counted; null: not at all */
  leaves(carrier: Carrier, addressKey: string | null): void;
}

interface Probe {
  readonly id: number;
  readonly answered: Promise<boolean>;
  readonly settle: (there: boolean) => void;
}

/** A connection with control frames on it. There are thousands that only wait, so that each is made of few parts. */
export class Guest implements CarrierSink {
  #nonce: Buffer | null = randomBytes(WORD_BYTES);
  /** Who is told. Another one once it is known what it came for. */
  events: GuestEvents;
  /** On the monotonic clock. */
  heardAt: number;
  sentAt: number;
  /** Whether nothing more is expected of it, or to be said to it. */
  over = false;
  readonly #parser: FrameParser<"client">;
  #probe: Probe | null = null;
  #pings = 0;

  /**
   * @param address whence it came, for the log
   * @param addressKey by what that is counted; null: not at all
   * @param now the monotonic clock
   */
  constructor(
    private readonly carrier: Carrier,
    readonly address: string,
    private readonly addressKey: string | null,
    private readonly times: MeetingTimes,
    private readonly now: () => number,
    private readonly host: GuestHost,
    events: (guest: Guest) => GuestEvents,
  ) {
    this.#parser = new FrameParser("client", now);
    this.heardAt = now();
    this.sentAt = this.heardAt;
    this.events = events(this);
    carrier.sink = this;
  }

  greet(): void {
    this.send({ type: "hello", oldest: OLDEST_VERSION, newest: NEWEST_VERSION, nonce: this.#nonce ?? NOTHING });
  }

  /** What `hello` said, made new for each connection; used for one opening, and empty after it. */
  takeNonce(): Buffer {
    const nonce = this.#nonce ?? NOTHING;
    this.#nonce = null;
    return nonce;
  }

  data(chunk: Buffer): void {
    this.heardAt = this.now();
    try {
      if (chunk.length > CHUNK_MAX) throw new RelayError("meeting_malformed", "more at once than any message has");
      this.#parser.push(Buffer.from(chunk));
      for (let message = this.#next(); message !== null; message = this.#next()) this.#take(message);
    } catch (error) {
      const code = codeOf(error);
      if (code === "done") throw error;
      this.dismiss(code, code === "flooding" ? FLOODED_MS : 0);
    }
  }

  #next(): FromClient | null {
    return this.over ? null : this.#parser.take();
  }

  #take(message: FromClient): void {
    if (message.type === "ping") this.send({ type: "pong", id: message.id });
    else if (message.type !== "pong") this.events.message(message);
    else if (message.id === this.#probe?.id) {
      this.wasAnswer();
      this.#probe.settle(true);
    }
  }

  /** The message that is being taken was asked for, and is none of those that it may say by itself. */
  wasAnswer(): void {
    this.#parser.wasAnswer();
  }

  drain(): void {}

  end(): void {
    this.#leaveBehind();
  }

  close(): void {
    this.#gone();
  }

  #gone(): void {
    if (this.over) return;
    this.over = true;
    this.#probe?.settle(false);
    this.events.gone();
  }

  send(message: FromRelay): void {
    if (this.over) return;
    this.sentAt = this.now();
    if (this.carrier.waiting > UNREAD_MAX) this.destroy();
    else this.carrier.write(encode(message));
  }

  /** Close it with a code. Twice is harmless. */
  dismiss(code: CloseCode, retry = 0, reason?: Refusal): void {
    if (this.over) return;
    this.host.dismissed(this, code);
    this.send({ type: "close", code, retry, ...(reason === undefined ? {} : { reason }) });
    this.#leaveBehind();
  }

  /** What comes all the same is dropped, so that ours is not lost with it. */
  #leaveBehind(): void {
    this.host.leaves(this.carrier, this.addressKey);
    this.#gone();
  }

  destroy(): void {
    this.carrier.destroy();
    this.#gone();
  }

  /** Whether it is there: heard of just now, or it answers a ping. No ping is open when this is true. */
  alive(): Promise<boolean> {
    if (this.#probe === null && !this.over && this.now() - this.heardAt < this.times.fresh) return Promise.resolve(true);
    return this.probe();
  }

  /** Ping it, and see whether it answers in time. */
  probe(): Promise<boolean> {
    if (this.over) return Promise.resolve(false);
    if (this.#probe !== null) return this.#probe.answered;
    let settle: (there: boolean) => void = () => undefined;
    const answered = new Promise<boolean>((resolve) => {
      settle = resolve;
    });
    const timer = setTimeout(() => settle(false), this.times.answer);
    const probe = {
      id: this.#pings++,
      answered,
      settle: (there: boolean) => {
        clearTimeout(timer);
        settle(there);
      },
    };
    this.#probe = probe;
    this.send({ type: "ping", id: probe.id });
    return answered.finally(() => {
      this.#probe = null;
    });
  }

  /** Take the carrier out of it, after its last message; null where something came behind that, which should not be. */
  leave(): Carrier | null {
    if (this.over || this.#parser.held > 0) return null;
    this.over = true;
    this.carrier.sink = DEAF;
    return this.carrier;
  }
}
