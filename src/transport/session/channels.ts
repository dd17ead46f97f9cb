import { EventEmitter } from "node:events";
import { Duplex } from "node:stream";
import type { Channel } from "ssh2";
import { RelayError } from "../../domain/errors.ts";
import { ReceiveWindow, setWindow } from "../receive-window.ts";

/** What ssh2 keeps in a channel and does not declare. */
interface Inside {
  readonly incoming: { readonly state: "open" | "eof" | "closed"; window: number };
  readonly outgoing: { readonly id: number; state: "open" | "eof" | "closing" | "closed"; readonly packetSize: number };
  eof(): void;
  close(): void;
}

/** Less than this the other side may not ask us to send at a time: each packet costs as much again, and ssh2 sends 0 bytes for ever. */
const MIN_PACKET = 256;
/** What may wait to be read where ssh2 sizes the window: that, twice. Whoever sends more breaks the rules. */
const MAX_UNREAD = 4 * 2 ** 20;

/**
 * The open channels of one session, each with the manners of an ordinary Duplex:
 *
 * - a channel that closes before it has said that its data end, and one whose session ends, is destroyed with an error; ssh2 would let both look
 *   like an ordinary end;
 * - `destroy` closes the channel and destroys the stream, and `close` follows whatever the other side does; ssh2 would leave it half alive, and wait for
 *   the other side's close, which may never come.
 */
export class Channels {
  readonly #open = new Set<Duplex>();

  get size(): number {
    return this.#open.size;
  }

  /**
   * Take over the receiving window, of which the other side was told FIRST_WINDOW.
   *
   * @param adjust sends SSH_MSG_CHANNEL_WINDOW_ADJUST
   */
  adoptWindowed<T extends Channel>(channel: T, adjust: (id: number, bytes: number) => void): T {
    const inside = channel as unknown as Inside;
    // So that ssh2 never finds it used up.
    inside.incoming.window = Number.POSITIVE_INFINITY;
    const window = new ReceiveWindow((bytes) => {
      if (inside.outgoing.state !== "closed") adjust(inside.outgoing.id, bytes);
    });
    setWindow(channel, window);
    // Every way to read says so; a listener like any other would make the data flow before somebody reads.
    EventEmitter.prototype.on.call(channel, "data", (chunk: Uint8Array) => window.read(chunk.length));
    return this.adopt(channel, true, (bytes) => window.came(bytes));
  }

  /**
   * @param cutIsError false where a close without end of data is usual: a command's outputs
   * @param mayCome whether so many bytes more are within what the other side may send
   */
  adopt<T extends Channel>(
    channel: T,
    cutIsError = true,
    mayCome: (bytes: number) => boolean = () => channel.readableLength <= MAX_UNREAD,
  ): T {
    const inside = channel as unknown as Inside;
    let closed = false;
    const cut = (error?: Error): T => {
      inside.close();
      Duplex.prototype.destroy.call(channel, error);
      this.#open.delete(channel);
      // What has ended both ways is carried to its end first.
      if (channel.readableEnded && channel.writableFinished) return channel;
      process.nextTick(() => {
        if (!closed) channel.emit("close");
      });
      return channel;
    };
    channel.destroy = cut;
    const push = channel.push.bind(channel);
    channel.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (chunk === null && cutIsError && inside.incoming.state === "closed" && !channel.readableEnded && !endIsIn(channel)) {
        cut(new RelayError("link_down", "the channel was closed in the middle of its data"));
        return false;
      }
      if (chunk instanceof Uint8Array && !mayCome(chunk.length)) {
        cut(new RelayError("link_down", "the other side sent more than it was allowed to"));
        return false;
      }
      return push(chunk, encoding);
    };
    // Whoever reads sees the error; it must not end the process when nobody does.
    channel.on("error", () => undefined);
    channel.on("close", () => {
      closed = true;
      this.#open.delete(channel);
    });
    this.#open.add(channel);
    if (inside.outgoing.packetSize < MIN_PACKET) cut(new RelayError("link_down", "the other side takes no packets of a sensible size"));
    return channel;
  }

  /** The session is over: nothing more can be sent, and whoever still reads or writes is told why. */
  destroyAll(error: Error): void {
    for (const channel of this.#open) {
      (channel as unknown as Inside).outgoing.state = "closed";
      Duplex.prototype.destroy.call(channel, error);
    }
    this.#open.clear();
  }
}

/** Whether the end of data has come, perhaps behind bytes that nobody has read yet. */
const endIsIn = (stream: Duplex): boolean => (stream as unknown as { _readableState: { ended: boolean } })._readableState.ended;
