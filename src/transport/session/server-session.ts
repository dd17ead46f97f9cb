import type { Duplex } from "node:stream";
import { type AuthContext, type AuthenticationType, type Connection, Server, type ServerChannel, type ServerConfig } from "ssh2";
import { RelayError } from "../../domain/errors.ts";
import { Admission, type KeyDoor, type Verdict } from "./admission.ts";
import { ALGORITHMS } from "./algorithms.ts";
import { Channels } from "./channels.ts";
import { joinChannel } from "./join.ts";
import { ownPackets } from "./packets.ts";
import type { SessionStats } from "./session.ts";
import { IDENTIFICATION, Wire } from "./wire.ts";

export interface ServerSessionOptions extends KeyDoor {
  /** The ed25519 private key, as OpenSSH writes it. Read when a session begins. */
  readonly hostKey: string;
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
/** Of all kinds: a question is no failure, and is answered all the same. */
const MAX_REQUESTS = 20;
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
  /** Say good-bye, and end. */
  close(): void;
  /** The same, without time for anything that is under way. */
  cut(): void;
}

/**
 * Answer an SSH-protocol session on a Duplex, which belongs to it from here on. It lets in the user `clio-relay` with one of the allowed
 * keys, proven by a signature, and who is paired by a code, and joins each `direct-streamlocal@openssh.com` channel with a connection of its own. Everything else is refused.
 */
export function serveSession(duplex: Duplex, options: ServerSessionOptions): ServerSession {
  return new Served(duplex, options);
}

class Served implements ServerSession {
  key: Buffer | null = null;
  readonly authenticated: Promise<Buffer | null>;
  readonly closed: Promise<RelayError | null>;
  readonly #wire: Wire;
  readonly #channels = new Channels();
  readonly #admission: Admission;
  readonly #timers: ReturnType<typeof setTimeout>[] = [];
  #connection: Connection | null = null;
  #failures = 0;
  #requests = 0;
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
    this.#admission = new Admission(options);
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
    ownPackets(connection, (prepare) => this.#wire.on("drain", prepare));
    connection.on("error", (error: Error) => {
      this.#trouble ??= error;
    });
    connection.on("authentication", (context) => this.#decide(context));
    connection.on("ready", () => this.#ready());
    connection.on("openssh.streamlocal", (accept, reject) => void this.#channel(accept as () => ServerChannel, reject));
  }

  #decide(context: AuthContext): void {
    const failed = (error: unknown): void => {
      this.#trouble ??= error as Error;
      this.#answer(context, { verdict: "no" });
    };
    if (++this.#requests > MAX_REQUESTS) {
      this.#giveUp(`it took more than ${MAX_REQUESTS} requests to come in`);
      return;
    }
    try {
      const verdict = this.#admission.judge(context);
      // ssh2 takes no further attempt before this one is answered.
      if (verdict instanceof Promise) verdict.then((late) => this.#answer(context, late), failed);
      else this.#answer(context, verdict);
    } catch (error) {
      failed(error);
    }
  }

  #answer(context: AuthContext, verdict: Verdict): void {
    if (this.#over !== null) return;
    if (verdict.verdict === "partial") context.reject(["publickey"], true);
    else if (verdict.verdict === "no") this.#refuse(context, verdict.word);
    else {
      if (verdict.verdict === "in") this.key = verdict.key;
      context.accept();
    }
  }

  #refuse(context: AuthContext, word: string | undefined): void {
    // Asking which methods there are is no failure.
    if (context.method !== "none") this.#failures++;
    // ssh2 writes any name; its types know those of RFC 4252.
    context.reject(["publickey", ...(word === undefined ? [] : [word as AuthenticationType])]);
    if (this.#failures >= MAX_FAILURES) this.#giveUp(`${MAX_FAILURES} attempts to come in failed`);
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
  cut(): void {
    this.close();
    setImmediate(() => this.#wire.destroy());
  }
}
