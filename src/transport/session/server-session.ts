import { timingSafeEqual } from "node:crypto";
import type { Duplex } from "node:stream";
import { type AuthContext, type Connection, Server, type ServerChannel, type ServerConfig } from "ssh2";
import { RelayError } from "../../domain/errors.ts";
import { ALGORITHMS } from "./algorithms.ts";
import { Channels } from "./channels.ts";
import { joinChannel } from "./join.ts";
import { verifiesEd25519 } from "./keys.ts";
import type { SessionStats } from "./session.ts";
import { IDENTIFICATION, Wire } from "./wire.ts";

/** The one user that a server of ours knows. */
export const SESSION_USER = "clio-relay";

export interface ServerSessionOptions {
  /** The ed25519 private key, as OpenSSH writes it. */
  readonly hostKey: string;
  /** Public keys that may come in, in the format of RFC 4253, section 6.6. Asked at every attempt. */
  readonly allowedKeys: () => readonly Buffer[];
  /** The connection that a channel is joined with, whatever path it names. A rejection refuses the channel. */
  readonly connect: () => Promise<Duplex>;
  /** Milliseconds until a client must have shown who it is. */
  readonly authenticationMs?: number;
  /** Milliseconds without a byte from the client after which the session ends. */
  readonly silenceMs?: number;
  /** Bytes after which the server asks for new keys (RFC 4253, section 9). */
  readonly rekeyBytes?: number;
}

const AUTHENTICATION_MS = 15_000;
const SILENCE_MS = 90_000;
const REKEY_BYTES = 16 * 2 ** 30;
const MAX_FAILURES = 3;
const MAX_CHANNELS = 256;

/** A session that is served. */
export interface ServerSession {
  /** The client's public key once it has proven it; null before. */
  readonly key: Buffer | null;
  /** Resolves with that key, or with null when the session ends before. */
  readonly authenticated: Promise<Buffer | null>;
  /** Resolves when the session is over: null after `close`, else why. Never rejects. */
  readonly closed: Promise<RelayError | null>;
  stats(): SessionStats;
  close(): void;
}

/**
 * Answer an SSH-protocol session on a Duplex, which belongs to it from here on. It lets in the user `clio-relay` with one of the allowed
 * keys, proven by a signature, and joins each `direct-streamlocal@openssh.com` channel with a connection of its own. Everything else is refused.
 */
export function serveSession(duplex: Duplex, options: ServerSessionOptions): ServerSession {
  return new Served(duplex, options);
}

/** `sign`: this key would do, and now a signature is wanted. */
type Verdict = "no" | "sign" | "in";

class Served implements ServerSession {
  key: Buffer | null = null;
  readonly authenticated: Promise<Buffer | null>;
  readonly closed: Promise<RelayError | null>;
  readonly #wire: Wire;
  readonly #channels = new Channels();
  readonly #timers: ReturnType<typeof setTimeout>[] = [];
  #connection: Connection | null = null;
  #failures = 0;
  /** Counts channels that wait for their connection, too. */
  #channelCount = 0;
  #over: RelayError | null = null;
  #trouble: Error | undefined;
  #closing = false;
  #rekeyAt: number;
  #admitted: (key: Buffer | null) => void = () => undefined;

  constructor(
    duplex: Duplex,
    private readonly options: ServerSessionOptions,
  ) {
    this.#rekeyAt = options.rekeyBytes ?? REKEY_BYTES;
    this.#wire = new Wire(duplex, () => this.#rekeyWhenDue());
    this.authenticated = new Promise((resolve) => {
      this.#admitted = resolve;
    });
    this.closed = new Promise((resolve) => {
      this.#wire.on("close", () => {
        this.#end();
        resolve(this.#closing ? null : this.#over);
      });
    });
    this.#wire.on("end", () => this.#end());
    this.#wire.on("error", (error: Error) => {
      this.#trouble ??= error;
    });
    const server = new Server(this.#configuration(), (connection) => this.#greet(connection));
    server.injectSocket(this.#wire as never);
    const ms = options.authenticationMs ?? AUTHENTICATION_MS;
    this.#timers.push(setTimeout(() => this.#giveUp(`nobody was let in within ${ms} ms`), ms));
  }

  #configuration(): ServerConfig {
    const { kex, serverHostKey, cipher } = ALGORITHMS.own;
    return {
      hostKeys: [this.options.hostKey],
      ident: IDENTIFICATION,
      algorithms: { kex: [...kex], serverHostKey: [...serverHostKey], cipher: [...cipher], compress: ["none"] } as NonNullable<
        ServerConfig["algorithms"]
      >,
      // Silence is measured here; ssh2 would ask the client every 15 s.
      keepaliveInterval: 2 ** 31 - 1,
    };
  }

  #greet(connection: Connection): void {
    this.#connection = connection;
    connection.on("error", (error: Error) => {
      this.#trouble ??= error;
    });
    connection.on("authentication", (context) => this.#decide(context));
    connection.on("ready", () => this.#ready());
    connection.on("openssh.streamlocal", (accept, reject) => void this.#channel(accept as () => ServerChannel, reject));
  }

  #decide(context: AuthContext): void {
    let verdict: Verdict = "no";
    try {
      verdict = this.#judge(context);
    } catch (error) {
      this.#trouble ??= error as Error;
    }
    if (verdict !== "no") {
      context.accept();
      return;
    }
    // Asking which methods there are is no failure.
    if (context.method !== "none") this.#failures++;
    context.reject(["publickey"]);
    if (this.#failures >= MAX_FAILURES) this.#giveUp(`${MAX_FAILURES} attempts to come in failed`);
  }

  /** The key first, the signature second (RFC 4252, section 7). */
  #judge(context: AuthContext): Verdict {
    if (context.username !== SESSION_USER || context.method !== "publickey" || context.key.algo !== "ssh-ed25519") return "no";
    const { data } = context.key;
    if (!this.options.allowedKeys().some((allowed) => allowed.length === data.length && timingSafeEqual(allowed, data))) return "no";
    if (context.signature === undefined) return "sign";
    if (context.blob === undefined || verifiesEd25519(data, context.blob, context.signature) !== true) return "no";
    this.key = Buffer.from(data);
    return "in";
  }

  #ready(): void {
    this.#wire.established();
    this.#stopTimers();
    const ms = this.options.silenceMs ?? SILENCE_MS;
    let heard = -1;
    let since = performance.now();
    const look = (): void => {
      if (this.#wire.bytesIn !== heard) {
        heard = this.#wire.bytesIn;
        since = performance.now();
      } else if (performance.now() - since >= ms) this.#giveUp(`nothing came for ${ms} ms`);
    };
    this.#timers.push(setInterval(look, ms / 6));
    this.#admitted(this.key);
  }

  async #channel(accept: () => ServerChannel, reject: () => void): Promise<void> {
    if (this.#channelCount >= MAX_CHANNELS) return reject();
    this.#channelCount++;
    try {
      const connection = await this.options.connect();
      if (this.#over !== null) connection.destroy();
      else await joinChannel(this.#channels.adopt(accept()), connection, this.#wire);
    } catch {
      if (this.#over === null) reject();
    } finally {
      this.#channelCount--;
    }
  }

  #rekeyWhenDue(): void {
    if (this.key === null || this.#wire.bytesIn + this.#wire.bytesOut < this.#rekeyAt) return;
    this.#rekeyAt = this.#wire.bytesIn + this.#wire.bytesOut + (this.options.rekeyBytes ?? REKEY_BYTES);
    this.#connection?.rekey();
  }

  #giveUp(what: string): void {
    this.#trouble = new Error(what);
    if (this.#connection === null) this.#wire.end();
    else this.#connection.end();
  }

  #stopTimers(): void {
    for (const timer of this.#timers.splice(0)) clearTimeout(timer);
  }

  #end(): void {
    if (this.#over !== null) return;
    const what = this.#trouble === undefined ? "" : `: ${this.#trouble.message}`;
    this.#over = new RelayError("link_down", `the session ended${what}`, {}, undefined, { cause: this.#trouble });
    this.#stopTimers();
    this.#channels.destroyAll(this.#over);
    this.#admitted(null);
  }

  stats(): SessionStats {
    return { bytesIn: this.#wire.bytesIn, bytesOut: this.#wire.bytesOut };
  }

  close(): void {
    if (this.#closing || this.#over !== null) return;
    this.#closing = true;
    this.#giveUp("closed");
  }
}
