import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../../../domain/errors.ts";
import type { Clock } from "../../../lib/waiting/clock.ts";
import type { ExecChannel, Session, SessionStats } from "../../session/session.ts";
import { untilAborted } from "../../until-aborted.ts";
import { type FarEnd, MAX_PACKET, MESSAGE, MuxChannel, type MuxWire, WINDOW } from "./mux-channel.ts";
import { type Field, Fields, type FrameSplitter, frame } from "./mux-frames.ts";
import { Refusals } from "./refusals.ts";

/** RFC 4254, section 5.1. */
const REFUSALS = ["administratively_prohibited", "connect_failed", "unknown_channel_type", "resource_shortage"] as const;
/** Less than this at a time the other side may not ask for. */
const MIN_PACKET = 256;
/** Some of a refusal's own words. */
const SHOWN = 200;

/** The process that holds the connection. */
export interface Holder {
  /** Resolves when it is over, with why. */
  readonly over: Promise<RelayError>;
  /** End it. */
  end(): void;
}

interface Opening {
  readonly cutIsError: boolean;
  readonly opened: (channel: MuxChannel) => void;
  readonly refused: (error: RelayError) => void;
}

/**
 * A session over the control socket of an ssh that holds the connection (OpenSSH PROTOCOL.mux, section 9): what goes over it is the connection protocol
 * of RFC 4254 itself, without encryption, which is ssh's part. Nothing here can open a connection. See Session.
 */
export class MuxSession implements Session, MuxWire {
  readonly closed: Promise<RelayError | null>;
  readonly #channels = new Map<number, MuxChannel>();
  readonly #openings = new Map<number, Opening>();
  #next = 0;
  #over: RelayError | null = null;
  #closing = false;
  /** Why it was closed without anybody wanting it. */
  #unwanted: RelayError | null = null;
  #bytesIn = 0;
  #bytesOut = 0;
  #room: PromiseWithResolvers<void> | null = null;
  readonly #refusals: Refusals;

  /** @param socket in proxy mode already; it belongs to the session from here on */
  constructor(
    private readonly socket: Duplex,
    splitter: FrameSplitter,
    private readonly holder: Holder,
    clock: Clock,
  ) {
    this.#refusals = new Refusals(clock);
    socket.on("data", (chunk: Buffer) => this.#receive(splitter, chunk));
    socket.on("drain", () => this.#drained());
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#end("the connection to ssh's control socket ended");
      holder.end();
    });
    this.closed = holder.over.then((why) => {
      this.#over ??= why;
      this.#end("ssh ended");
      socket.destroy();
      return this.#closing ? null : (this.#unwanted ?? why);
    });
  }

  #receive(splitter: FrameSplitter, chunk: Buffer): void {
    this.#bytesIn += chunk.length;
    try {
      for (const message of splitter.push(chunk)) this.#message(new Fields(message));
    } catch (error) {
      this.#end(error instanceof Error ? error.message : String(error));
      this.holder.end();
    }
  }

  #message(fields: Fields): void {
    // the length of the padding
    fields.byte();
    const type = fields.byte();
    // No channel is opened by the other side, and global requests are between ssh and the server.
    if (type < MESSAGE.openConfirmation || type > MESSAGE.failure) return;
    const id = fields.uint32();
    const opening = this.#openings.get(id);
    if (opening === undefined) this.#channels.get(id)?.receive(type, fields);
    else if (type === MESSAGE.openConfirmation) this.#confirmed(id, opening, fields);
    else if (type === MESSAGE.openFailure) {
      const error = refusalOf(REFUSALS[fields.uint32() - 1] ?? "unknown", fields.string().toString("utf8").slice(0, SHOWN));
      this.#openings.delete(id);
      opening.refused(error);
    }
  }

  #confirmed(id: number, { cutIsError, opened }: Opening, fields: Fields): void {
    const far: FarEnd = { id: fields.uint32(), window: fields.uint32(), maxPacket: Math.min(fields.uint32(), MAX_PACKET) };
    this.#openings.delete(id);
    const channel = new MuxChannel(this, id, far, cutIsError);
    this.#channels.set(id, channel);
    if (far.maxPacket < MIN_PACKET) channel.destroy(new RelayError("link_down", "the other side takes no packets of a sensible size"));
    opened(channel);
  }

  send(type: number, ...fields: readonly Field[]): boolean {
    if (this.#over !== null) return true;
    const message = frame({ byte: 0 }, { byte: type }, ...fields);
    this.#bytesOut += message.length;
    return this.socket.write(message);
  }

  drained(): Promise<void> {
    if (this.#over !== null || !this.socket.writableNeedDrain) return Promise.resolve();
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  #drained(): void {
    this.#room?.resolve();
    this.#room = null;
  }

  gone(id: number): void {
    this.#channels.delete(id);
  }

  #end(what: string): void {
    this.#over ??= new RelayError("link_down", this.#closing ? "the session was closed" : `the session ended: ${what}`);
    const error = this.#over;
    this.#drained();
    for (const { refused } of this.#openings.values()) refused(error);
    this.#openings.clear();
    for (const channel of this.#channels.values()) channel.cut(error);
    this.#channels.clear();
  }

  openSocket(path: string, signal?: AbortSignal): Promise<Duplex> {
    return this.#openTo(`socket ${path}`, "direct-streamlocal@openssh.com", [path, "", 0], signal);
  }

  openTcp(host: string, port: number, signal?: AbortSignal): Promise<Duplex> {
    return this.#openTo(`tcp ${host} ${port}`, "direct-tcpip", [host, port, "127.0.0.1", 0], signal);
  }

  async #openTo(
    target: string | null,
    type: string,
    fields: readonly Field[],
    signal?: AbortSignal,
    cutIsError = true,
  ): Promise<MuxChannel> {
    this.#refusals.check(target);
    const channel = await this.#open(type, fields, signal, cutIsError).catch((error: unknown) => {
      if (isRelayError(error, "channel_refused")) this.#refusals.refused(target, error);
      throw error;
    });
    this.#refusals.opened(target);
    return channel;
  }

  async exec(command: string, signal?: AbortSignal): Promise<ExecChannel> {
    const channel = await this.#openTo(null, "session", [], signal, false);
    this.#refusals.askAgain();
    const granted = await untilAborted(channel.ask("exec", command), signal).catch(() => null);
    if (signal?.aborted || granted !== true) {
      channel.destroy();
      signal?.throwIfAborted();
      throw this.#over ?? refusalOf("exec_refused");
    }
    const { stderr, ended, exited } = channel;
    return { stream: channel, stderr, ended, exited, close: () => void channel.destroy() };
  }

  #open(type: string, fields: readonly Field[], signal: AbortSignal | undefined, cutIsError = true): Promise<MuxChannel> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (this.#over !== null) return reject(this.#over);
      const aborted = (): void => reject(signal?.reason);
      signal?.addEventListener("abort", aborted, { once: true });
      const id = this.#next++;
      this.#openings.set(id, {
        cutIsError,
        opened(channel) {
          signal?.removeEventListener("abort", aborted);
          if (signal?.aborted) channel.destroy();
          else resolve(channel);
        },
        refused(error) {
          signal?.removeEventListener("abort", aborted);
          reject(error);
        },
      });
      this.send(MESSAGE.open, type, id, WINDOW, MAX_PACKET, ...fields);
    });
  }

  /** A global request would not leave ssh, so a channel is asked for what no server knows. */
  async roundTrip(signal?: AbortSignal): Promise<number> {
    const began = performance.now();
    await untilAborted(this.#asked(), signal);
    return performance.now() - began;
  }

  async #asked(): Promise<void> {
    for (const channel of this.#channels.values()) {
      if (!channel.destroyed && (await channel.ask("round-trip@clio-relay")) !== null) return;
    }
    if (this.#over !== null) throw this.#over;
    // There is none that could be asked. A refusal is an answer, too.
    const made = await this.#openTo(null, "session", [], undefined, false).catch(() => null);
    if (this.#over !== null) throw this.#over;
    made?.destroy();
  }

  /** Of the control socket: what ssh makes of it for the network is not known. */
  stats(): SessionStats {
    return { bytesIn: this.#bytesIn, bytesOut: this.#bytesOut };
  }

  close(why?: RelayError): void {
    if (this.#closing || this.#over !== null) return;
    this.#closing = why === undefined;
    this.#over = this.#unwanted = why ?? null;
    this.#end("");
    this.holder.end();
  }
}

function refusalOf(reason: string, said = ""): RelayError {
  return new RelayError(
    "channel_refused",
    `the other side refused a channel: ${reason}${said === "" ? "" : ` (${JSON.stringify(said)})`}`,
    {
      reason,
    },
  );
}
