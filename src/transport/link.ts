import { type ErrorData, isRelayError, type RelayError } from "../domain/errors.ts";
import type { LinkInfo, LinkState } from "../domain/link.ts";
import { PROTOCOL } from "../domain/link.ts";
import { type Clock, systemClock, timestamp } from "../lib/waiting/clock.ts";
import { systemTimers, type Timers } from "../lib/waiting/timers.ts";
import { fetchResumed } from "./bulk/resumed-transfer.ts";
import { TransferWindows } from "./bulk/transfer-windows.ts";
import { ChannelPool } from "./http/channel-pool.ts";
import type { ChannelAnswer } from "./http/http-channel.ts";
import { type ChannelRequest, isSafe } from "./http/request-head.ts";
import { linkDown, NOT_SENT, needsPerson, unansweredRequest, workerHangs, workerNotRunning } from "./link-failures.ts";
import { PULSE, Pulse, type PulseTimes } from "./link-pulse.ts";
import type { BringUp, LinkTransport, Regain } from "./link-transport.ts";
import { checkWorker, type ExpectedWorker, readLinkInfo, versionRefusal } from "./link-version.ts";
import { Regaining, within } from "./regain.ts";
import { settled } from "./settled.ts";
import { untilAborted } from "./until-aborted.ts";

export interface LinkOptions {
  readonly cluster: string;
  /** This program's version. */
  readonly version: string;
  /** Where a link that was there and is lost goes: `authorization_required` where nobody may dial unattended. */
  readonly afterDrop: "authorization_required" | "down";
  /** Asked when a link is lost: how it may be had again without anybody; null: not at all. */
  readonly regain?: (lost: LinkTransport) => Regain | null;
  /** Where it begins; `down` when left out. */
  readonly initial?: "authorization_required" | "down";
  readonly clock?: Clock;
  readonly timers?: Timers;
  readonly times?: PulseTimes;
  /** Told after each change of state. */
  readonly onChange?: (snapshot: LinkSnapshot) => void;
  /** Says more than the link can know of a worker that nobody finds at its other end; null: nothing. */
  readonly whyAbsent?: () => RelayError | null;
  /** Told when the worker of a link that is there says something else of itself than before. */
  readonly onWorker?: (worker: LinkInfo) => void;
}

/** A link as it is now. */
export interface LinkSnapshot {
  readonly state: LinkState;
  readonly since: string;
  /** Of the last ping, in milliseconds. */
  readonly round_trip_ms: number | null;
  readonly last_answer_at: string | null;
  readonly worker: LinkInfo | null;
  /** Why it is not up. */
  readonly reason: RelayError | null;
  /** Why nobody serves at the other end of a link that is up, as far as the last request or ping has shown. */
  readonly absent: RelayError | null;
  readonly bytes_in: number;
  readonly bytes_out: number;
}

/** An open session with what is made of it. */
interface Live {
  readonly transport: LinkTransport;
  readonly pool: ChannelPool;
  readonly windows: TransferWindows;
  pulse: Pulse | null;
}

/** How long an answer may stop in its middle while the worker answers others, in milliseconds: more than two signs of life of a stream of events. */
const STALLED_MS = 45_000;
/** How long a worker may take to answer whether it is there, where a link is, and where one is brought up; milliseconds. */
const GREETED_MS = 10_000;
const MET_MS = 20_000;
/** How long a request waits for a bring-up that may wait for a person. */
const BROUGHT_UP_MS = 25_000;
/** How long the end of a session is waited for that was closed from here. */
const CLOSED_MS = 2_000;
const PING: ChannelRequest = { method: "GET", target: "/link", headers: new Headers(), body: null };

/** The one link of a desktop to a cluster's worker: its states, and the requests that ride it. See docs/connection-model.md. */
export class Link {
  #state: LinkState = "down";
  #since: string;
  #live: Live | null = null;
  #worker: LinkInfo | null = null;
  #refusal: RelayError | null = null;
  #reason: RelayError | null = null;
  #absent: RelayError | null = null;
  #roundTripMs: number | null = null;
  /** Milliseconds since the epoch. */
  #lastAnswerAt: number | null = null;
  #connecting: { readonly done: Promise<void>; readonly stop: AbortController; readonly wanted: boolean } | null = null;
  #regaining: Regaining | null = null;
  readonly #clock: Clock;
  readonly #timers: Timers;
  /** Nothing of the token of this desktop's own listener goes on. */
  readonly #instead: Readonly<Record<string, string>>;

  constructor(private readonly options: LinkOptions) {
    this.#instead = { authorization: "", "clio-relay-client": `${options.version}; protocol=${PROTOCOL}; cluster=${options.cluster}` };
    this.#clock = options.clock ?? systemClock;
    this.#timers = options.timers ?? systemTimers;
    this.#state = options.initial ?? "down";
    this.#since = timestamp(this.#clock);
  }

  snapshot(): LinkSnapshot {
    const { bytesIn, bytesOut } = this.#live?.transport.session.stats() ?? { bytesIn: 0, bytesOut: 0 };
    return {
      state: this.#state,
      since: this.#since,
      round_trip_ms: this.#roundTripMs,
      last_answer_at: this.#lastAnswerAt === null ? null : new Date(this.#lastAnswerAt).toISOString(),
      worker: this.#worker,
      reason: this.#reason,
      absent: this.#live === null ? null : this.#absent,
      bytes_in: bytesIn,
      bytes_out: bytesOut,
    };
  }

  #become(state: LinkState, reason: RelayError | null = null): void {
    this.#state = state;
    this.#since = timestamp(this.#clock);
    this.#reason = reason;
    this.options.onChange?.(this.snapshot());
  }

  /**
   * Bring the link up, or wait for a bring-up that is under way, or find it up and its worker there. A failure puts the state back to where it was, or to
   * `authorization_required` where it says so.
   *
   * @param expected what the cluster's entry has pinned
   * @param given by whoever is there for it: aborted, a bring-up that it began is given up
   * @throws what `bringUp` throws; RelayError link_bringup_failed where another worker answers; link_down when it is disconnected meanwhile, or the worker of a
   *   link that is up does not answer; worker_not_running where that link has none, and is left as it is
   */
  async connect(bringUp: BringUp, expected: ExpectedWorker, given?: AbortSignal): Promise<void> {
    // What is tried without anybody may lead somewhere else, and fails for reasons of its own.
    while (this.#connecting?.wanted === false) await settled(this.#connecting.done, given);
    if (this.#live !== null) return this.#greet(this.#live, given);
    await this.#connect(bringUp, expected, given ?? null);
  }

  async #greet(live: Live, given: AbortSignal | undefined): Promise<void> {
    try {
      await this.#pingWithin(live.pool, GREETED_MS, given);
    } catch (error) {
      throw this.#failure(error);
    }
    this.#answered(live);
  }

  /** @param given null: nobody wants it, it is tried */
  async #connect(bringUp: BringUp, expected: ExpectedWorker, given: AbortSignal | null): Promise<void> {
    if (this.#live !== null) return;
    if (this.#connecting === null) {
      const stop = new AbortController();
      const signal = given === null ? stop.signal : AbortSignal.any([stop.signal, given]);
      this.#connecting = {
        stop,
        wanted: given !== null,
        done: this.#bringUp(bringUp, expected, { signal, stop: stop.signal }, this.#state),
      };
    }
    await this.#connecting.done;
  }

  async #bringUp(
    bringUp: BringUp,
    expected: ExpectedWorker,
    { signal, stop }: { readonly signal: AbortSignal; readonly stop: AbortSignal },
    before: LinkState,
  ): Promise<void> {
    if (this.#regaining === null) this.#become("connecting");
    let live: Live | null = null;
    try {
      const transport = await untilAborted(bringUp(signal), signal, giveBack);
      live = {
        transport,
        pool: new ChannelPool({ open: transport.open, clock: this.#clock }),
        windows: new TransferWindows(),
        pulse: null,
      };
      signal.throwIfAborted();
      await this.#exchangeVersions(live, expected, signal);
      signal.throwIfAborted();
      this.#connecting = null;
      this.#up(live);
    } catch (error) {
      this.#connecting = null;
      if (live !== null) {
        live.pool.close(this.#down("the link was not brought up"));
        giveBack(live.transport);
      }
      const needsPerson = isRelayError(error, "authorization_required");
      const reason = isRelayError(error) ? error : null;
      if (stop.aborted) this.#become("down");
      else if (this.#regaining !== null) this.#reason = reason;
      else this.#become(needsPerson ? "authorization_required" : before, reason);
      throw error;
    }
  }

  async #exchangeVersions({ pool }: Live, expected: ExpectedWorker, signal: AbortSignal): Promise<void> {
    await this.#pingWithin(pool, MET_MS, signal);
    if (this.#worker !== null) checkWorker(this.#worker, expected);
  }

  async #pingWithin(pool: ChannelPool, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const limit = new AbortController();
    const cancel = this.#timers.after(ms, () => limit.abort(workerHangs(this.options.cluster)));
    await this.#ping(pool, AbortSignal.any(signal === undefined ? [limit.signal] : [signal, limit.signal])).finally(cancel);
  }

  /** Ask who the worker is and what it speaks: another version may serve there by now. */
  async #ping(pool: ChannelPool, signal?: AbortSignal): Promise<void> {
    const began = this.#clock.monotonic();
    const info = readLinkInfo(await pool.request({ ...PING, instead: this.#instead }, signal));
    this.#roundTripMs = this.#clock.monotonic() - began;
    this.#lastAnswerAt = this.#clock.now();
    const news = this.#live !== null && info !== null && !Bun.deepEquals(info, this.#worker);
    this.#worker = info;
    this.#absent = null;
    this.#refusal = versionRefusal(info);
    if (news) this.options.onWorker?.(info);
  }

  #up(live: Live): void {
    this.#live = live;
    const { clock, timers, times } = {
      clock: this.#clock,
      timers: this.#timers,
      times: this.options.times ?? PULSE,
    };
    live.pulse = new Pulse(
      clock,
      timers,
      {
        ping: async () => {
          try {
            await this.#ping(live.pool);
          } catch (error) {
            this.#failure(error);
            // The other side has said something, if only that it has no worker to offer.
            if (!isRelayError(error, "channel_refused") && !isRelayError(error, "answer_malformed")) throw error;
          }
          this.#answered(live);
        },
        probe: () => live.transport.session.roundTrip(),
        silent: (pathAnswers) => live.pool.giveUpSilent(times.silentMs, (one) => unansweredRequest(this.options.cluster, one, pathAnswers)),
        degraded: () => this.#become("degraded", this.#down(`the worker has not answered for ${times.degradedMs / 1_000} s`)),
        dropped: () => this.#drop(live, this.#down(`the worker has not answered for ${times.droppedMs / 1_000} s`)),
      },
      times,
    );
    this.#become("up");
    void live.transport.rerouted?.then(() => live.pool.retire());
    void live.transport.session.closed.then((reason) => this.#drop(live, reason ?? this.#down("the session was closed")));
  }

  #answered(live: Live): void {
    if (this.#live !== live) return;
    live.pulse?.answered();
    live.pool.giveUpStalled(STALLED_MS);
    this.#lastAnswerAt = this.#clock.now();
    if (this.#state === "degraded") this.#become("up");
  }

  #drop(live: Live, reason: RelayError): void {
    if (this.#live !== live) return;
    this.#live = null;
    closeLive(live, reason);
    this.#become("dropped", reason);
    const again = this.options.regain?.(live.transport) ?? null;
    if (again === null) this.#become(this.options.afterDrop, reason);
    else void this.#regain(again, reason);
  }

  async #regain(regain: Regain, lost: RelayError | null): Promise<void> {
    const { bringUp, expected, until, report } = regain;
    const regaining = new Regaining(this.#clock, this.#timers, regain);
    this.#regaining = regaining;
    this.#become("connecting", lost);
    const hurry = (): void => regaining.hurry();
    until.addEventListener("abort", hurry);
    const goesOn = (): boolean => this.#regaining === regaining && this.#live === null && !until.aborted;
    await regaining.run(goesOn, () => this.#connect(bringUp, expected(), null), report);
    until.removeEventListener("abort", hurry);
    if (this.#regaining !== regaining) return;
    this.#regaining = null;
    if (this.#live === null) this.#become(this.options.afterDrop, isRelayError(until.reason) ? until.reason : lost);
  }

  /** Have the link, and have it again whenever it is lost and `regain` of the options says how, until it is disconnected. */
  keep(regain: Regain): void {
    if (this.#live === null && this.#connecting === null && this.#regaining === null) void this.#regain(regain, null);
  }

  /**
   * Where the link is being had again: try now, and wait for that.
   *
   * @throws what the attempt ended with, or what keeps it from its end for so long; the signal's reason
   */
  async tryNow(signal: AbortSignal, patienceMs: number): Promise<void> {
    await this.#regaining?.now(signal, patienceMs);
  }

  /** The worker may be another now, or gone: a link that is down no longer tells what kept its last bring-up, one that is up asks. */
  async lookAgain(given: AbortSignal): Promise<void> {
    if (this.#state === "down") this.#reason = null;
    if (this.#live !== null) await this.#greet(this.#live, given).catch(() => undefined);
  }

  /** Say what keeps an attempt to have the link again from its end, while it goes on. */
  hindered(why: RelayError): void {
    if (this.#regaining === null) return;
    this.#regaining.hindered(why);
    this.#reason = why;
  }

  /** End the link, or a bring-up. Requests that are under way fail. */
  async disconnect(): Promise<void> {
    const connecting = this.#connecting;
    const live = this.#live;
    const reason = this.#down("the link was disconnected");
    const regaining = this.#regaining;
    this.#regaining = null;
    regaining?.hurry();
    connecting?.stop.abort(reason);
    this.#live = null;
    if (live !== null) closeLive(live, reason);
    if (connecting === null) this.#become("down");
    await connecting?.done.catch(() => undefined);
    if (live !== null) await Promise.race([live.transport.session.closed, Bun.sleep(CLOSED_MS)]);
  }

  #down(what: string, data: ErrorData = {}): RelayError {
    return linkDown(this.options.cluster, what, data);
  }

  /**
   * Make a request of the worker. While the link is being brought up it waits for that. Its failure is its own: the link and other requests go on.
   *
   * @param bulk whether the answer is content that may be long: see fetchResumed for what must hold of it
   * @throws RelayError link_down, authorization_required; version_mismatch for methods that are not safe; worker_not_running where nobody serves at
   *   the other end; link_down or answer_malformed when its channel fails; the signal's reason
   */
  async request(request: ChannelRequest, { signal, bulk = false }: { signal?: AbortSignal; bulk?: boolean } = {}): Promise<ChannelAnswer> {
    const live = await this.#liveNow(signal);
    if (this.#refusal !== null && !isSafe(request.method)) await this.#refuse(live, signal);
    const outgoing = { ...request, instead: this.#instead };
    const send = async (one: ChannelRequest, signalOfOne?: AbortSignal): Promise<ChannelAnswer> => {
      const answer = await live.pool.request(one, signalOfOne);
      this.#absent = null;
      this.#answered(live);
      return answer;
    };
    try {
      const isTransfer = bulk && request.method === "GET" && request.body === null;
      return await (isTransfer ? fetchResumed(send, live.windows, outgoing, signal) : send(outgoing, signal));
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /** What a request failed with, by what it says of the worker. */
  #failure(error: unknown): unknown {
    if (!isRelayError(error, "channel_refused") || error.data["reason"] !== "connect_failed") return error;
    this.#absent = this.options.whyAbsent?.() ?? workerNotRunning(this.options.cluster, error);
    return this.#absent;
  }

  /** The worker may have been upgraded under the link, so that it is asked before the refusal is told. */
  async #refuse({ pool }: Live, signal: AbortSignal | undefined): Promise<void> {
    const refusal = this.#refusal;
    await this.#ping(pool, signal).catch(() => {
      throw signal?.aborted ? signal.reason : refusal;
    });
    if (this.#refusal !== null) throw this.#refusal;
  }

  async #liveNow(signal: AbortSignal | undefined): Promise<Live> {
    if (this.#regaining !== null) await this.#regaining.wait(signal);
    else if (this.#connecting !== null) {
      await within(settled(this.#connecting.done, signal), BROUGHT_UP_MS, this.#timers);
      if (this.#connecting !== null) throw this.#down(`the link to ${this.options.cluster} is still being brought up`, NOT_SENT);
    }
    if (this.#live !== null) return this.#live;
    const { cluster } = this.options;
    if (this.#state !== "authorization_required") throw this.#down(this.#reason?.message ?? `there is no link to ${cluster}`, NOT_SENT);
    throw needsPerson(cluster, this.#reason);
  }
}

/** No link comes of it. */
function giveBack({ session, held }: LinkTransport): void {
  if (held !== true) session.close();
}

function closeLive({ pulse, pool, transport }: Live, reason: RelayError): void {
  pulse?.stop();
  pool.close(reason);
  transport.session.close();
}
