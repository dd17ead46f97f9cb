import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ServerChannel } from "ssh2";
import { giveBack } from "../../lib/system/give-back.ts";
import type { Wire } from "./wire.ts";

/** Above this much that waits, a source is not read; the window of a channel alone would let 2 MiB wait for each. */
const HIGH = 256 * 1024;

/** Only the side of a channel that ssh2 does not declare. */
interface HalfClose {
  eof(): void;
  close(): void;
}

/**
 * Join a channel with a connection, both ways and with back-pressure, until both are over. End of data in one direction is passed on as that; a
 * connection that breaks closes the channel without it, and the other way round.
 */
export function joinChannel(channel: ServerChannel, connection: Duplex, wire: Wire): Promise<void> {
  // ssh2 would close a server's channel for both directions when one has ended.
  channel.removeAllListeners("prefinish");
  channel.removeAllListeners("finish");
  return new Promise((resolve) => {
    const left = new Set(["up", "down"]);
    const over = (...directions: string[]): void => {
      for (const direction of directions) left.delete(direction);
      if (left.size > 0) return;
      (channel as unknown as HalfClose).close();
      connection.destroy();
      resolve();
    };
    // A channel hands out what it has decrypted, and copies what it encrypts; a socket shares nothing either.
    const exclusive = connection instanceof Socket;
    carry(channel, connection, { exclusive, mayGoOn: () => true });
    carry(connection, channel, { exclusive, mayGoOn: () => wire.pending < HIGH, turn: wire });
    channel.on("end", () => connection.end(() => over("up")));
    connection.on("end", () => channel.end());
    channel.on("finish", () => {
      (channel as unknown as HalfClose).eof();
      over("down");
    });
    for (const end of ["error", "close"]) channel.on(end, () => over("up", "down"));
    connection.on("error", () => undefined);
    connection.on("close", () => {
      // A peer that has said everything and does not listen any more; what it said still goes out.
      if (connection.readableEnded) over("up");
      else channel.destroy();
    });
  });
}

interface Carriage {
  /** Whether the source may be read while nothing of it waits. */
  readonly mayGoOn: () => boolean;
  /** Emits `drain` when that may have changed. */
  readonly turn?: Wire;
  /** Whether nobody else knows the memory of what is carried. */
  readonly exclusive: boolean;
}

function carry(from: Duplex, to: Duplex, { mayGoOn, turn, exclusive }: Carriage): void {
  let waiting = 0;
  let paused = false;
  const goOn = (): void => {
    if (!paused || waiting > HIGH / 2 || !mayGoOn()) return;
    paused = false;
    from.resume();
  };
  turn?.on("drain", goOn);
  for (const end of ["end", "close", "error"]) from.on(end, () => turn?.removeListener("drain", goOn));
  from.on("data", (chunk: Buffer) => {
    // Nobody listens any more; what comes is dropped, so that the end is seen.
    if (!to.writable) return;
    const { length } = chunk;
    waiting += length;
    to.write(chunk, () => {
      waiting -= length;
      if (exclusive) giveBack(chunk);
      goOn();
    });
    if (waiting <= HIGH && mayGoOn()) return;
    paused = true;
    from.pause();
  });
}
