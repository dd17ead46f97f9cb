import { createHash } from "node:crypto";
import fs from "node:fs";
import type { Duplex } from "node:stream";
import type { Clock } from "../../lib/waiting/clock.ts";
import type { SessionServer } from "../../transport/session/session-server.ts";
import { hostKeyPrint, nextHostKeyFile } from "./host-key-print.ts";
import type { Pairings } from "./pairings.ts";

/** How often the keys of those who are there are looked at: their time may be over, or another process may have changed the file. Milliseconds. */
const LOOK_MS = 1_000;

export interface LinkSessionsOptions {
  /** Where the worker's host key and the keys of its desktops are. */
  readonly coreDir: string;
  /** For people who look at the key. */
  readonly comment: string;
  readonly clock: Clock;
  /** What every channel is joined with. */
  readonly connect: () => Promise<Duplex>;
  readonly onTrouble: (error: unknown) => void;
}

/** Who is let in, and the sessions of those who were. */
interface Open {
  readonly server: SessionServer;
  readonly pairings: Pairings;
  /** Now, and for a join. @throws RelayError configuration_error */
  readonly allowed: () => readonly Buffer[];
}

/**
 * The SSH-protocol sessions that a worker answers with its own identity, whatever brings their Duplexes. They end as soon as their key is revoked or has
 * expired. The protocol is loaded when somebody speaks it.
 */
export class LinkSessions {
  #open: Promise<Open> | null = null;
  #ready: Open | null = null;
  #identity: string | null = null;
  /** What was wrong when the keys were looked at last. */
  #trouble: string | null = null;
  readonly #identityChanged = new Set<() => void>();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(private readonly options: LinkSessionsOptions) {
    this.#identity = hostKeyPrint(options.coreDir);
    this.#timer = setInterval(() => void this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  /** Answer a session on a Duplex, which belongs to it from here on. */
  async serve(duplex: Duplex): Promise<void> {
    duplex.on("error", () => undefined);
    try {
      const { server } = await this.#loaded();
      this.#noteUse(server.serve(duplex));
    } catch (error) {
      duplex.destroy();
      this.options.onTrouble(error);
    }
  }

  /**
   * Whether a join at a relay-host is worth a connection: with a key that is let in, one that is told why it is not, or that of a pairing code.
   *
   * @param key in the format of RFC 4253, section 6.6
   * @param pairing whether the join says that it is for a pairing
   */
  async admits(key: Buffer, pairing: boolean): Promise<boolean> {
    const [{ allowed, pairings }, { expiredClients }] = await Promise.all([this.#loaded(), import("./link-keys.ts")]);
    if (pairing) {
      const known = pairings.fate(key) !== null;
      if (!known) pairings.failed();
      return known;
    }
    return [...allowed(), ...expiredClients(this.options.coreDir, this.options.clock)].some((one) => one.equals(key));
  }

  /** The codes by which desktops are paired. */
  async pairings(): Promise<Pairings> {
    return (await this.#loaded()).pairings;
  }

  /** How many sessions there are now with each key, by its fingerprint. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { key } of this.#ready?.server.sessions ?? []) {
      const name = key === null ? "" : `SHA256:${createHash("sha256").update(key).digest("base64").replace(/=+$/, "")}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return counts;
  }

  /** End the sessions whose keys are no longer let in. @returns how many they were @throws RelayError configuration_error */
  enforce(): number {
    return this.#ready?.server.revoke() ?? 0;
  }

  /** Be told when the worker's own key has become another one. Returns the way back. */
  onIdentity(changed: () => void): () => void {
    this.#identityChanged.add(changed);
    return () => this.#identityChanged.delete(changed);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await (await this.#open?.catch(() => null))?.server.close();
  }

  #loaded(): Promise<Open> {
    this.#open ??= this.#load().catch((error: unknown) => {
      this.#open = null;
      throw error;
    });
    return this.#open;
  }

  async #load(): Promise<Open> {
    const [{ SessionServer: Server }, keys, { hostKey }, { Pairings: Codes }, { lineOfPublicKey }] = await Promise.all([
      import("../../transport/session/session-server.ts"),
      import("./link-keys.ts"),
      import("./host-key.ts"),
      import("./pairings.ts"),
      import("../../transport/session/keys.ts"),
    ]);
    const { coreDir, comment, clock, connect } = this.options;
    const pairings = new Codes(clock, (client, name, ttlSeconds) =>
      keys.allowClients(coreDir, [`${lineOfPublicKey(client)} ${name}`], { by: "pairing", ttlSeconds, clock }),
    );
    const allowed = (): readonly Buffer[] => keys.allowedClients(coreDir, clock);
    const server = new Server({
      // For each session anew: it may have become another one.
      get hostKey() {
        return hostKey(coreDir, comment, clock);
      },
      allowedKeys: allowed,
      expiredKeys: () => keys.expiredClients(coreDir, clock),
      pairing: pairings,
      connect,
    });
    this.#ready = { server, pairings, allowed };
    return this.#ready;
  }

  #noteUse(session: ReturnType<SessionServer["serve"]>): void {
    const { coreDir, clock } = this.options;
    session.authenticated
      .then(async (key) => {
        if (key !== null) (await import("./link-keys.ts")).recordUse(coreDir, key, clock);
      })
      // A full disk keeps nobody out.
      .catch(() => undefined);
  }

  async #look(): Promise<void> {
    try {
      if ((this.#ready?.server.sessions.length ?? 0) > 0) this.enforce();
      await this.identityMayHaveChanged();
      this.#trouble = null;
    } catch (error) {
      // Once, and not each second: sessions that are there go on, and nobody new comes in.
      const text = String(error);
      if (text !== this.#trouble) this.options.onTrouble(error);
      this.#trouble = text;
    }
  }

  /** Let an announced key take its place when its time has come, and tell whoever wants to know. @throws RelayError configuration_error, state_conflict */
  async identityMayHaveChanged(): Promise<void> {
    const { coreDir, clock } = this.options;
    if (fs.existsSync(nextHostKeyFile(coreDir))) await (await import("./host-key.ts")).settleHostKey(coreDir, clock);
    const identity = hostKeyPrint(coreDir);
    const changed = this.#identity !== null && identity !== this.#identity;
    this.#identity = identity;
    if (changed) for (const tell of this.#identityChanged) tell();
  }
}
