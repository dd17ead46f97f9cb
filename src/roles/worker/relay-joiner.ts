import type { Duplex } from "node:stream";
import { isRelayError } from "../../domain/errors.ts";
import type { RelayUrl } from "../../domain/relay-url.ts";
import type { WorkerStatus } from "../../domain/views.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { Pace } from "../../lib/waiting/pace.ts";
import type { Timers } from "../../lib/waiting/timers.ts";
import type { Ledger } from "../../transport/ledger.ts";
import { acceptDesktop, type Dials, type MeetingPlace, registerWorker } from "../../transport/meet.ts";
import { growsTo, retryAfter } from "../../transport/meeting/codes.ts";
import type { Joining, Registration } from "../../transport/meeting/register.ts";
import { layerOf } from "../../transport/outbound/failure.ts";
import type { Log } from "./context.ts";

/** How many desktops may be come for at a time. */
const MAX_COMING = 16;
/** Characters of what is shown of the last failure. */
const DETAIL_MAX = 1_000;

/** Who is let in, and what answers them: the worker's own sessions. */
export interface Door {
  /** @param key in the format of RFC 4253, section 6.6 */
  admits(key: Buffer, pairing: boolean): Promise<boolean>;
  serve(duplex: Duplex): Promise<void>;
  /** Be told when the worker's own key has become another one. Returns the way back. */
  onIdentity(changed: () => void): () => void;
}

/** A relay-host, and how it is reached from here. */
export interface RelayMeeting {
  readonly url: RelayUrl;
  /** The rest of the way there, anew for each dial: files of tokens and authorities change. @throws RelayError configuration_error */
  readonly place: () => Omit<MeetingPlace, "url">;
}

export interface RelayJoinerOptions extends RelayMeeting {
  readonly cluster: string;
  /** The worker's host key, in the format of OpenSSH. @throws RelayError configuration_error */
  readonly hostKey: () => string;
  readonly sessions: Door;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
}

/**
 * A worker at a relay-host: keeps one control connection there, for ever and by itself, and comes once for each desktop that it lets in. See
 * docs/connection-model.md, Mode relay.
 */
export class RelayJoiner {
  readonly #stop = new AbortController();
  readonly #pace: Pace;
  readonly #done: Promise<void>;
  #registration: Registration | null = null;
  #reason: string | null = null;
  #detail: string | null = null;
  #coming = 0;

  constructor(private readonly options: RelayJoinerOptions) {
    const { clock, timers, sessions } = options;
    this.#pace = new Pace(clock, timers);
    // A room belongs to a key.
    const off = sessions.onIdentity(() => {
      this.#registration?.close();
      this.#pace.hurry();
    });
    this.#done = this.#run().finally(off);
  }

  /** Where it is met, and whether it is there. */
  get presence(): NonNullable<WorkerStatus["met_at"]> {
    return { place: this.options.url.text, registered: this.#registration !== null, reason: this.#reason, detail: this.#detail };
  }

  /** Leave. Sessions that were met there go on. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#pace.hurry();
    await this.#done;
  }

  get #dials(): Dials {
    const { cluster, ledger } = this.options;
    return { cluster, ledger, requestedBy: `the worker of ${cluster}`, signal: this.#stop.signal };
  }

  get #place(): MeetingPlace {
    return { ...this.options.place(), url: this.options.url };
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const began = this.options.clock.monotonic();
      let end: unknown;
      let tookMs = 0;
      try {
        end = await this.#register();
        this.#pace.lasted(this.options.clock.monotonic() - began);
      } catch (error) {
        end = error;
        tookMs = this.options.clock.monotonic() - began;
      }
      if (this.#stop.signal.aborted) return;
      this.#say(end);
      await this.#pace.pause(retryAfter(end), growsTo(end), tookMs);
    }
  }

  /** Be registered for as long as it lasts. @returns why it is over */
  async #register(): Promise<unknown> {
    const { hostKey, log, url } = this.options;
    const registration = await registerWorker(this.#place, this.#dials, hostKey(), (joining) => void this.#come(joining));
    this.#registration = registration;
    this.#reason = null;
    this.#detail = null;
    log.info(`registered at ${url.text}`);
    const end = await registration.closed;
    this.#registration = null;
    return end;
  }

  /** Each reason once: it may be the same one for days. */
  #say(end: unknown): void {
    const { log, url } = this.options;
    const reason = isRelayError(end) ? end.code : end === null ? null : "internal_error";
    if (reason !== null && reason !== this.#reason) {
      if (isRelayError(end))
        log.warn(`not at ${url.text}: ${end.message}`, {
          reason,
          layer: layerOf(end),
          ...(end.hint === undefined ? {} : { hint: end.hint }),
        });
      else log.error(`not at ${url.text}`, end);
    }
    this.#reason = reason;
    this.#detail = isRelayError(end) ? `${end.message}${end.hint === undefined ? "" : `; ${end.hint}`}`.slice(0, DETAIL_MAX) : null;
  }

  async #come({ key, ticket, address, pairing, refuse }: Joining): Promise<void> {
    const { sessions, hostKey, log } = this.options;
    if (this.#coming >= MAX_COMING) return refuse("busy");
    this.#coming++;
    try {
      if (!(await sessions.admits(key, pairing))) {
        log.warn(`a desktop at ${address} is not let in`);
        return refuse("key");
      }
      const duplex = await acceptDesktop(this.#place, this.#dials, hostKey(), ticket);
      await sessions.serve(duplex);
    } catch (error) {
      if (!this.#stop.signal.aborted)
        log.warn(`a desktop at ${address} was not met: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.#coming--;
    }
  }
}
