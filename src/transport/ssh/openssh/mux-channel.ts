import { Duplex, Readable } from "node:stream";
import { RelayError } from "../../../domain/errors.ts";
import type { ExecStatus } from "../../session/session.ts";
import type { Field, Fields } from "./mux-frames.ts";

/** Messages of the connection protocol (RFC 4254, section 9). */
export const MESSAGE = {
  open: 90,
  openConfirmation: 91,
  openFailure: 92,
  windowAdjust: 93,
  data: 94,
  extendedData: 95,
  eof: 96,
  close: 97,
  request: 98,
  success: 99,
  failure: 100,
} as const;

/** What may be on its way to us unread, on each channel; and the longest piece of it. */
export const WINDOW = 1024 * 1024;
export const MAX_PACKET = 32 * 1024;

/** What a channel has of the connection that it is on. */
export interface MuxWire {
  /** @returns false when the other side should be given time: see `drained` */
  send(type: number, ...fields: readonly Field[]): boolean;
  /** Resolves when there is room again, or the connection is over. */
  drained(): Promise<void>;
  /** Nothing more comes or goes on the channel of this number. */
  gone(id: number): void;
}

/** Where the other side takes what is for this channel, and how much of it at a time. */
export interface FarEnd {
  readonly id: number;
  readonly window: number;
  readonly maxPacket: number;
}

/** A piece of data on its way out. */
interface Waiting {
  readonly chunk: Buffer;
  sent: number;
  readonly done: () => void;
}

/** One open channel of RFC 4254, section 5. Destroying it closes it. */
export class MuxChannel extends Duplex {
  /** The command's standard error; empty on other channels. */
  readonly stderr: Readable;
  /** As ExecChannel has them. */
  readonly ended: Promise<ExecStatus>;
  readonly exited: Promise<ExecStatus>;
  #saidStatus!: (status: ExecStatus) => void;
  #exited!: (status: ExecStatus) => void;
  #status: ExecStatus = { code: null, signal: null };
  #window: number;
  /** What came and was not given back to the window. */
  #taken = 0;
  #waiting: Waiting | null = null;
  #sending = false;
  #ended = false;
  #closeSent = false;
  /** Who waits for answers to requests, in their order. */
  readonly #asked: ((granted: boolean | null) => void)[] = [];

  /** @param cutIsError false where a close without end of data is usual: a command's outputs */
  constructor(
    private readonly wire: MuxWire,
    readonly id: number,
    private readonly far: FarEnd,
    private readonly cutIsError: boolean,
  ) {
    // That both directions have ended is not the end of it: a command's status follows.
    super({ allowHalfOpen: true, autoDestroy: false });
    this.#window = far.window;
    this.stderr = new Readable({ read: () => this.#giveBack() });
    this.exited = new Promise((resolve) => {
      this.#exited = resolve;
    });
    this.ended = new Promise((resolve) => {
      this.#saidStatus = resolve;
    });
    // Whoever reads sees the error; it must not end the process when nobody does.
    this.on("error", () => undefined);
  }

  /** A message for this channel. @throws RelayError answer_malformed */
  receive(type: number, fields: Fields): void {
    if (type === MESSAGE.data) this.#data(this, fields.string());
    else if (type === MESSAGE.extendedData) this.#extended(fields);
    else if (type === MESSAGE.windowAdjust) this.#widen(fields.uint32());
    else if (type === MESSAGE.eof) this.#end();
    else if (type === MESSAGE.request) this.#request(fields);
    else if (type === MESSAGE.success || type === MESSAGE.failure) this.#asked.shift()?.(type === MESSAGE.success);
    else if (type === MESSAGE.close) this.#closed();
  }

  #data(to: Readable, data: Buffer): void {
    if (this.destroyed || this.#ended) return;
    this.#taken += data.length;
    if (this.#taken > WINDOW) this.destroy(new RelayError("link_down", "the other side sent more than it was allowed to"));
    // It is a part of what was read from the socket, and may wait long.
    else if (!to.destroyed) to.push(Buffer.from(data));
    this.#giveBack();
  }

  #extended(fields: Fields): void {
    // SSH_EXTENDED_DATA_STDERR, the only kind that there is
    fields.uint32();
    this.#data(this.stderr, fields.string());
  }

  /** Let the other side send again as much as was read. */
  #giveBack(): void {
    const free = this.#taken - this.readableLength - this.stderr.readableLength;
    if (free < WINDOW / 2 || this.#closeSent || this.#ended) return;
    this.#taken -= free;
    this.wire.send(MESSAGE.windowAdjust, this.far.id, free);
  }

  #widen(by: number): void {
    this.#window += by;
    void this.#flush();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.push(null);
    this.stderr.push(null);
  }

  #request(fields: Fields): void {
    const name = fields.string().toString("latin1");
    const wantsReply = fields.byte() !== 0;
    if (name === "exit-status") this.#status = { code: fields.uint32(), signal: null };
    else if (name === "exit-signal") this.#status = { code: null, signal: `SIG${fields.string().toString("latin1")}` };
    if (name.startsWith("exit-")) this.#saidStatus(this.#status);
    // sshd asks so whether we are still there (ClientAliveInterval); any answer will do.
    if (wantsReply && !this.#closeSent) this.wire.send(MESSAGE.failure, this.far.id);
  }

  #closed(): void {
    const cut = this.cutIsError && !this.#ended;
    this.#sendClose();
    this.#over();
    this.wire.gone(this.id);
    if (cut) {
      this.destroy(new RelayError("link_down", "the channel was closed in the middle of its data"));
      return;
    }
    this.#end();
    // What was said before is there to be read.
    if (this.readableEnded) this.destroy();
    else this.once("end", () => this.destroy());
  }

  /** Ask the other side for something on this channel. @returns whether it does it; null when the channel is over without an answer */
  ask(name: string, ...fields: readonly Field[]): Promise<boolean | null> {
    if (this.#closeSent) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#asked.push(resolve);
      this.wire.send(MESSAGE.request, this.far.id, name, { byte: 1 }, ...fields);
    });
  }

  /** The connection is over: nothing more can be sent. */
  cut(error: Error): void {
    this.#closeSent = true;
    this.#over();
    this.destroy(error);
  }

  #over(): void {
    for (const answer of this.#asked.splice(0)) answer(null);
    this.#saidStatus(this.#status);
    this.#exited(this.#status);
  }

  /** Nothing more is sent; what waits is dropped. */
  #sendClose(): void {
    if (!this.#closeSent) this.wire.send(MESSAGE.close, this.far.id);
    this.#closeSent = true;
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.done();
  }

  override _read(): void {
    this.#giveBack();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#closeSent) done();
    else {
      this.#waiting = { chunk, sent: 0, done };
      void this.#flush();
    }
  }

  /** Send what waits, as far as the window and the socket take it. */
  async #flush(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    while (this.#waiting !== null && this.#window > 0) {
      const waiting = this.#waiting;
      const size = Math.min(waiting.chunk.length - waiting.sent, this.#window, this.far.maxPacket);
      const room = this.wire.send(MESSAGE.data, this.far.id, waiting.chunk.subarray(waiting.sent, waiting.sent + size));
      waiting.sent += size;
      this.#window -= size;
      if (!room) await this.wire.drained();
      if (this.#waiting !== waiting || waiting.sent < waiting.chunk.length) continue;
      this.#waiting = null;
      waiting.done();
    }
    this.#sending = false;
  }

  override _final(done: () => void): void {
    if (!this.#closeSent) this.wire.send(MESSAGE.eof, this.far.id);
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#sendClose();
    // The other side may never close it.
    this.#over();
    // One that has ended is there to be read.
    if (!this.#ended) this.stderr.destroy();
    done(error);
  }
}
