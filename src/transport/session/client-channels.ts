import type { Duplex } from "node:stream";
import type { Client, ClientChannel } from "ssh2";
import { RelayError } from "../../domain/errors.ts";
import { FIRST_WINDOW } from "../receive-window.ts";
import { Channels } from "./channels.ts";
import type { ExecChannel, ExecStatus, Session, SessionStats } from "./session.ts";
import type { Wire } from "./wire.ts";

/** RFC 4254, section 5.1. */
const REFUSALS = ["administratively_prohibited", "connect_failed", "unknown_channel_type", "resource_shortage"] as const;

type Opened = (error: Error | undefined, channel: ClientChannel) => void;

/** What ssh2 keeps in a client and does not declare. */
interface Inside {
  /** Who waits for answers to global requests, in their order. */
  readonly _callbacks: ((error?: unknown) => void)[];
  readonly _protocol: Protocol;
}

/** Messages that ssh2 writes. */
interface Protocol {
  ping(): void;
  channelWindowAdjust(id: number, bytes: number): void;
  /** Opens a channel (OpenSSH PROTOCOL, section 2.4) with a window of its own choice. */
  openssh_directStreamLocal(id: number, window: number, maxPacket: number, to: unknown): void;
}

/** An open session with a server. See Session. */
export class ClientSession implements Session {
  readonly closed: Promise<RelayError | null>;
  readonly #channels = new Channels();
  readonly #adjust: (id: number, bytes: number) => void;
  /** Why the session is over; null while it is not. */
  #over: RelayError | null = null;
  #closing = false;

  constructor(
    private readonly client: Client,
    private readonly wire: Wire,
  ) {
    const protocol = (client as unknown as Inside)._protocol;
    const open = protocol.openssh_directStreamLocal.bind(protocol);
    protocol.openssh_directStreamLocal = (id, _window, maxPacket, to) => open(id, FIRST_WINDOW, maxPacket, to);
    this.#adjust = (id, bytes) => protocol.channelWindowAdjust(id, bytes);
    let trouble: Error | undefined;
    client.on("error", (error: Error) => {
      trouble ??= error;
    });
    this.closed = new Promise((resolve) => {
      // Before ssh2 hears of it, for it would end the channels as if nothing had happened.
      wire.prependListener("close", () => {
        this.#end(trouble);
        resolve(this.#closing ? null : this.#over);
      });
      wire.prependListener("end", () => this.#end(trouble));
    });
  }

  #end(cause: Error | undefined, why?: RelayError): void {
    if (this.#over !== null) return;
    const what = this.#closing ? "the session was closed" : `the session ended${cause === undefined ? "" : `: ${cause.message}`}`;
    this.#over = why ?? new RelayError("link_down", what, {}, undefined, { cause });
    this.#channels.destroyAll(this.#over);
  }

  async openSocket(path: string, signal?: AbortSignal): Promise<Duplex> {
    const channel = await this.#open((opened) => this.client.openssh_forwardOutStreamLocal(path, opened), signal);
    return this.#channels.adoptWindowed(channel, this.#adjust);
  }

  async openTcp(host: string, port: number, signal?: AbortSignal): Promise<Duplex> {
    return this.#channels.adopt(await this.#open((opened) => this.client.forwardOut("127.0.0.1", 0, host, port, opened), signal));
  }

  async exec(command: string, signal?: AbortSignal): Promise<ExecChannel> {
    const channel = this.#channels.adopt(await this.#open((opened) => this.client.exec(command, opened), signal), false);
    let status: ExecStatus = { code: null, signal: null };
    const closed = new Promise<void>((resolve) => {
      for (const end of ["close", "error"]) channel.on(end, () => resolve());
    });
    const said = new Promise<void>((resolve) => {
      channel.on("exit", (code: number | null, name?: string) => {
        status = { code: code ?? null, signal: name ?? null };
        resolve();
      });
    });
    return {
      stream: channel,
      stderr: channel.stderr,
      ended: Promise.race([said, closed]).then(() => status),
      exited: closed.then(() => status),
      close: () => void channel.destroy(),
    };
  }

  #open(start: (opened: Opened) => void, signal: AbortSignal | undefined): Promise<ClientChannel> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (this.#over !== null) return reject(this.#over);
      const aborted = (): void => reject(signal?.reason);
      signal?.addEventListener("abort", aborted, { once: true });
      try {
        start((error, channel) => {
          signal?.removeEventListener("abort", aborted);
          if (error) reject(this.#over ?? refusalOf(error));
          else if (signal?.aborted) channel.close();
          else resolve(channel);
        });
      } catch (error) {
        signal?.removeEventListener("abort", aborted);
        // Nothing can be said any more, and its end has not come yet: the other side has taken its leave, or the stream failed.
        reject(new RelayError("link_down", "the session ends", {}, undefined, { cause: error }));
      }
    });
  }

  roundTrip(signal?: AbortSignal): Promise<number> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (this.#over !== null) return reject(this.#over);
      const inside = this.client as unknown as Inside;
      const began = performance.now();
      const aborted = (): void => reject(signal?.reason);
      signal?.addEventListener("abort", aborted, { once: true });
      // A refusal is an answer; ssh2 passes an Error when the session is over.
      inside._callbacks.push((error) => {
        signal?.removeEventListener("abort", aborted);
        if (error instanceof Error) reject(this.#over ?? error);
        else resolve(performance.now() - began);
      });
      inside._protocol.ping();
    });
  }

  stats(): SessionStats {
    return { bytesIn: this.wire.bytesIn, bytesOut: this.wire.bytesOut };
  }

  close(why?: RelayError): void {
    if (this.#closing || this.#over !== null) return;
    this.#closing = why === undefined;
    this.#end(undefined, why);
    this.client.end();
  }
}

function refusalOf(error: Error & { reason?: unknown }): RelayError {
  const reason = typeof error.reason === "number" ? (REFUSALS[error.reason - 1] ?? "unknown") : "exec_refused";
  return new RelayError("channel_refused", `the other side refused a channel: ${reason}`, { reason }, undefined, { cause: error });
}
