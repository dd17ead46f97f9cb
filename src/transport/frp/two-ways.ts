import type { Duplex } from "node:stream";
import type { RelayError } from "../../domain/errors.ts";
import type { ExecChannel, Session, SessionStats } from "../session/session.ts";
import type { FrpType } from "./configuration.ts";

/**
 * The session with a worker over frps, and the one from peer to peer once that is found: from then on what begins goes over it, and what is under way ends where it
 * began. The first one is closed with the last of its channels. It is over when the one on which something new would begin is over.
 */
export class TwoWays implements Session {
  readonly closed: Promise<RelayError | null>;
  /** Resolves when new channels go over the direct way. */
  readonly moved: Promise<void>;
  readonly #moved = Promise.withResolvers<void>();
  #now: Session;
  /** Channels of the first one, and those that are being opened on it. */
  #channels = 0;
  #over = false;

  constructor(
    private readonly relayed: Session,
    direct: Promise<Session | null>,
  ) {
    this.#now = relayed;
    this.moved = this.#moved.promise;
    const found = direct.then((session) => this.#move(session));
    const first = relayed.closed.then((reason) => (this.#now === relayed ? reason : found));
    this.closed = Promise.race([first, found]).then((reason) => {
      this.#over = true;
      relayed.close();
      return reason;
    });
  }

  get way(): FrpType {
    return this.#now === this.relayed ? "stcp" : "xtcp";
  }

  /** @returns the end of the direct one; never where there is none */
  #move(session: Session | null): Promise<RelayError | null> {
    if (session === null) return new Promise(() => undefined);
    if (this.#over) session.close();
    else {
      this.#now = session;
      this.#moved.resolve();
      this.#leave();
    }
    return session.closed;
  }

  #leave(): void {
    if (this.#now !== this.relayed && this.#channels === 0) this.relayed.close();
  }

  async #opened<T>(open: (session: Session) => Promise<T>, ended: (channel: T, done: () => void) => void): Promise<T> {
    if (this.#now !== this.relayed) return open(this.#now);
    this.#channels++;
    let counted = true;
    const done = (): void => {
      if (counted) this.#channels--;
      counted = false;
      this.#leave();
    };
    try {
      const channel = await open(this.relayed);
      ended(channel, done);
      return channel;
    } catch (error) {
      done();
      throw error;
    }
  }

  openSocket(path: string, signal?: AbortSignal): Promise<Duplex> {
    return this.#opened((session) => session.openSocket(path, signal), whenClosed);
  }

  openTcp(host: string, port: number, signal?: AbortSignal): Promise<Duplex> {
    return this.#opened((session) => session.openTcp(host, port, signal), whenClosed);
  }

  exec(command: string, signal?: AbortSignal): Promise<ExecChannel> {
    return this.#opened(
      (session) => session.exec(command, signal),
      ({ exited }, done) => void exited.then(done),
    );
  }

  stats(): SessionStats {
    const [first, now] = [this.relayed.stats(), this.#now.stats()];
    return this.#now === this.relayed ? now : { bytesIn: first.bytesIn + now.bytesIn, bytesOut: first.bytesOut + now.bytesOut };
  }

  roundTrip(signal?: AbortSignal): Promise<number> {
    return this.#now.roundTrip(signal);
  }

  close(why?: RelayError): void {
    this.#over = true;
    if (this.#now !== this.relayed) this.relayed.close();
    this.#now.close(why);
  }
}

const whenClosed = (channel: Duplex, done: () => void): void => {
  if (channel.destroyed) done();
  else channel.once("close", done);
};
