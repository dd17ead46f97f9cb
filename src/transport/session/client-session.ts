import type { Duplex, Readable } from "node:stream";
import { type AuthenticationType, Client, type ConnectConfig, type NextAuthHandler } from "ssh2";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { ALGORITHMS, type Algorithms, nothingInCommon } from "./algorithms.ts";
import type { Authenticate, AuthenticationState, VerifyHostKey } from "./authentication.ts";
import { methodOf } from "./client-authentication.ts";
import { ClientSession } from "./client-channels.ts";
import { watchFailures } from "./failure-watch.ts";
import { FirstOffer } from "./first-offer.ts";
import { ownPackets } from "./packets.ts";
import { Patience } from "./patience.ts";
import { IDENTIFICATION, Wire } from "./wire.ts";

/** How much of a server's banner is passed on. */
const MAX_BANNER = 16 * 1024;
const DEADLINE_MS = 20_000;

export interface ClientSessionOptions {
  readonly user: string;
  readonly verifyHostKey: VerifyHostKey;
  readonly authenticate: Authenticate;
  /** `own` with a server of ours, `site` with any sshd. */
  readonly algorithms: "own" | "site";
  /** What a configuration leaves of the algorithms; others than those of `algorithms` are left out. */
  readonly left?: Partial<Algorithms>;
  /** Host key algorithms in the order in which they are wanted: those of which a key is known first. Others than those of `algorithms` are left out. */
  readonly hostKeyAlgorithms?: readonly string[];
  /** Gets what the server says to everybody before it knows who is there (RFC 4252, section 5.4); 16 KiB of it at most. */
  readonly onBanner?: (text: string) => void;
  /** How long the other side may take all in all until the session is open, in milliseconds; time in which a person is waited for does not count. */
  readonly deadlineMs?: number;
  /** Gives up and destroys the Duplex. */
  readonly signal?: AbortSignal;
}

/**
 * Open an SSH-protocol session (RFC 4251 to 4254) as a client. The Duplex belongs to it from here on and is destroyed with it, also when
 * this rejects.
 *
 * @throws RelayError algorithms_refused with `kind` and `offered`; host_key_refused, or the RelayError that the verifier gave as its reason;
 *   authentication_failed with `methods`; link_bringup_failed when the other side ends, does not speak the protocol, or takes too long;
 *   what `authenticate` threw; the signal's reason
 */
export function openClientSession(duplex: Duplex, options: ClientSessionOptions): Promise<ClientSession> {
  return new Promise((resolve, reject) => {
    const bringUp = new BringUp(duplex, options, resolve, reject);
    bringUp.start();
  });
}

class BringUp {
  readonly #client = new Client();
  readonly #wire: Wire;
  readonly #offer = new FirstOffer();
  readonly #patience: Patience;
  /** The key that was accepted; a later key exchange must bring the same one. */
  #hostKey: Buffer | null = null;
  /** What the server has said since the last step. */
  #said: AuthenticationState | null = null;
  #settled = false;
  /** What the server would take, once it has refused something. */
  #refused: readonly string[] | null = null;
  #tried = false;
  #banner = 0;
  #aborted = (): void => {
    this.#fail(this.options.signal?.reason);
    this.#wire.destroy();
  };

  constructor(
    duplex: Duplex,
    private readonly options: ClientSessionOptions,
    private readonly resolve: (session: ClientSession) => void,
    private readonly reject: (error: unknown) => void,
  ) {
    this.#wire = new Wire(duplex, (chunk) => this.#offer.push(chunk));
    const ms = options.deadlineMs ?? DEADLINE_MS;
    this.#patience = new Patience(ms, () => {
      this.#failBringUp(`the other side did not come to an end within ${ms} ms`);
      this.#wire.destroy();
    });
  }

  start(): void {
    const { signal, onBanner } = this.options;
    if (signal?.aborted) {
      this.#aborted();
      return;
    }
    signal?.addEventListener("abort", this.#aborted, { once: true });
    const client = this.#client;
    client.on("ready", () => this.#ready());
    client.on("banner", (text: string) => {
      const left = MAX_BANNER - this.#banner;
      this.#banner += text.length;
      if (left > 0) onBanner?.(text.slice(0, left));
    });
    client.on("change password", () => {
      this.#fail(new RelayError("authentication_failed", "the password has to be changed first", { methods: ["password"] }));
    });
    client.on("error", (error: Error & { level?: string }) => {
      // An agent that is gone, a key that does not sign: the next step is asked for by itself.
      if (error.level !== "agent" && error.level !== "client-authentication") this.#protocolFailed(error);
    });
    // Also those that come after the session is open.
    this.#wire.on("error", (error: Error) => this.#failBringUp(`the connection broke: ${error.message}`, error));
    this.#wire.on("close", () => this.#closed());
    try {
      client.connect(this.#configuration());
      ownPackets(client, (prepare) => this.#wire.on("drain", prepare));
      watchFailures(client, (methods, partialSuccess) => {
        this.#said = { methods, partialSuccess: partialSuccess || (this.#said?.partialSuccess ?? false) };
      });
    } catch (error) {
      this.#fail(error);
    }
  }

  #configuration(): ConnectConfig {
    const { user, hostKeyAlgorithms } = this.options;
    const { kex, serverHostKey, cipher } = this.#ours;
    const wanted = (hostKeyAlgorithms ?? []).filter((name) => serverHostKey.includes(name));
    const algorithms = {
      kex: [...kex],
      serverHostKey: [...new Set([...wanted, ...serverHostKey])],
      cipher: [...cipher],
      compress: ["none"],
    };
    return {
      sock: this.#wire as unknown as Readable,
      username: user,
      ident: IDENTIFICATION,
      algorithms: algorithms as NonNullable<ConnectConfig["algorithms"]>,
      // The channels of OpenSSH are asked for whatever the server is called; one that has none refuses them.
      strictVendor: false,
      readyTimeout: 0,
      hostVerifier: (key: Buffer, decide: (accepted: boolean) => void): void => this.#verify(key, decide),
      authHandler: (methods: AuthenticationType[] | null, partial: boolean | null, next: NextAuthHandler) => {
        this.#authenticate(methods, partial === true, next);
      },
    };
  }

  get #ours(): Algorithms {
    const { algorithms, left = {} } = this.options;
    const { kex, serverHostKey, cipher } = ALGORITHMS[algorithms];
    const kept = (have: readonly string[], some = have): readonly string[] => have.filter((name) => some.includes(name));
    return { kex: kept(kex, left.kex), serverHostKey: kept(serverHostKey, left.serverHostKey), cipher: kept(cipher, left.cipher) };
  }

  #verify(key: Buffer, decide: (accepted: boolean) => void): void {
    if (this.#hostKey !== null) {
      decide(this.#hostKey.equals(key));
      return;
    }
    // ssh2 goes on with parsing, and its buffer is its own.
    const own = Buffer.from(key);
    let decided = false;
    const answer = (accepted: unknown, reason?: unknown): void => {
      if (decided) return;
      decided = true;
      this.#patience.resume();
      // Given up meanwhile: there is nobody left to tell.
      if (this.#settled) return;
      if (accepted === true) {
        this.#hostKey = own;
        decide(true);
        return;
      }
      this.#fail(
        isRelayError(reason)
          ? reason
          : new RelayError("host_key_refused", "the host's key is not one that is trusted", {}, undefined, { cause: reason }),
      );
      decide(false);
    };
    this.#patience.pause();
    try {
      const verdict: unknown = this.options.verifyHostKey(own, (accepted, reason) => answer(accepted, reason));
      if (verdict !== undefined) answer(verdict);
    } catch (error) {
      answer(false, error);
    }
  }

  #authenticate(methods: readonly string[] | null, partialSuccess: boolean, next: NextAuthHandler): void {
    this.#patience.pause();
    const said = this.#said ?? { methods, partialSuccess };
    this.#said = null;
    if (this.#tried && !said.partialSuccess) this.#refused = said.methods;
    Promise.resolve(said)
      .then(this.options.authenticate)
      .then((step) => {
        if (this.#settled) return;
        // The first question, `none`, is refused by nearly everybody.
        this.#tried = step !== null && step.method !== "none";
        if (step !== null) next(methodOf(this.options.user, step, { patience: this.#patience, fail: (error) => this.#fail(error) }));
        else this.#fail(new RelayError("authentication_failed", "nothing that was tried let the user in", { methods: said.methods ?? [] }));
      })
      .catch((error: unknown) => this.#fail(error))
      .finally(() => this.#patience.resume());
  }

  #ready(): void {
    if (this.#settled) return;
    this.#settle();
    this.#wire.established();
    this.resolve(new ClientSession(this.#client, this.#wire));
  }

  #protocolFailed(error: Error & { code?: unknown }): void {
    const { offer } = this.#offer;
    const missing = offer === null ? null : nothingInCommon(this.#ours, offer);
    // Only the reason of a SSH_MSG_DISCONNECT is a number.
    if (typeof error.code === "number") this.#sentAway(`the other side ended the session: ${error.message}`, error);
    else if (missing === null) this.#failBringUp(error.message, error);
    else {
      const what = `the other side has no ${missing.kind} algorithm that is ours; it offers ${missing.offered.join(", ")}`;
      this.#fail(new RelayError("algorithms_refused", what.slice(0, 2_000), { kind: missing.kind, offered: missing.offered.slice(0, 50) }));
    }
  }

  /** A server of ours just goes when it has had enough; a site's says so, and a connection that is cut is no refusal. */
  #closed(): void {
    const what = "the other side ended the connection";
    if (this.options.algorithms === "own") this.#sentAway(what);
    else this.#failBringUp(what);
  }

  /** The other side has ended the session. When it had refused something, that is why. */
  #sentAway(what: string, cause?: unknown): void {
    const methods = this.#refused;
    if (methods === null) this.#failBringUp(what, cause);
    else
      this.#fail(new RelayError("authentication_failed", `${what} after it had refused what was tried`, { methods }, undefined, { cause }));
  }

  #failBringUp(what: string, cause?: unknown): void {
    this.#fail(new RelayError("link_bringup_failed", what, {}, undefined, { cause }));
  }

  #fail(error: unknown): void {
    if (this.#settled) return;
    this.#settle();
    this.reject(error);
    // What ssh2 has said to the other side goes out first.
    this.#wire.end();
  }

  #settle(): void {
    this.#settled = true;
    this.#patience.stop();
    this.options.signal?.removeEventListener("abort", this.#aborted);
  }
}
