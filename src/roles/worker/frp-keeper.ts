import path from "node:path";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { FrpPresence } from "../../domain/views.ts";
import { sha256Hex } from "../../lib/digest.ts";
import { makePrivateDirectory } from "../../lib/files/atomic-file.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { Pace } from "../../lib/waiting/pace.ts";
import type { Timers } from "../../lib/waiting/timers.ts";
import { type FrpProxy, type FrpServer, type FrpType, frpcConfiguration } from "../../transport/frp/configuration.ts";
import { Echo } from "../../transport/frp/echo.ts";
import { freePorts } from "../../transport/frp/free-ports.ts";
import { type Frpc, startFrpc } from "../../transport/frp/frpc.ts";
import { lastWords, proxyName, secretsOf, serverText } from "../../transport/frp/visit.ts";
import type { Log } from "./context.ts";

/** How often the whole way is asked for, how long it may take, and how soon it is asked for again where nothing came back; milliseconds. */
export interface FrpTimes {
  readonly askMs: number;
  readonly answerMs: number;
  readonly againMs: number;
}
const TIMES: FrpTimes = { askMs: 15_000, answerMs: 10_000, againMs: 250 };
/** How often in a row there may be no answer. */
const SILENT = 2;

/** What the worker offers at a frps. */
export interface FrpOffer {
  /** Anew for each frpc: files and variables change. @throws RelayError configuration_error */
  readonly server: () => FrpServer;
  /** Where that is, as it may be shown. */
  readonly place: string;
  readonly room: { readonly name: string; readonly secret: string };
  readonly types: readonly FrpType[];
  readonly frpc: string;
  /** Private, on this machine. */
  readonly directory: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
}

export interface FrpKeeperOptions extends FrpOffer {
  readonly cluster: string;
  /** Where what comes in is led to. */
  readonly linkSocket: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
  readonly times?: FrpTimes;
}

/**
 * Keeps a frpc that offers the worker at a frps, for ever: one that ends is started again, and one that lives but does not answer for the whole way is replaced by a new one, which has
 * a new run id. See docs/connection-model.md, Modes frp-stcp and frp-xtcp.
 */
export class FrpKeeper {
  readonly #stop = new AbortController();
  readonly #pace: Pace;
  readonly #done: Promise<void>;
  #frpc: Frpc | null = null;
  #presence: FrpPresence;
  #said: string | null = null;

  constructor(private readonly options: FrpKeeperOptions) {
    this.#pace = new Pace(options.clock, options.timers);
    this.#presence = { server: options.place, reached: false, reason: null };
    this.#done = this.#run();
  }

  get presence(): FrpPresence {
    return this.#presence;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#pace.hurry();
    await this.#frpc?.stop();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { clock, directory, cluster } = this.options;
    while (!this.#stop.signal.aborted) {
      const began = clock.monotonic();
      let end: unknown;
      let echo: Echo | null = null;
      try {
        makePrivateDirectory(directory);
        echo = await Echo.listen(path.join(directory, `${sha256Hex(cluster).slice(0, 12)}.echo`));
        end = await this.#once(echo);
      } catch (error) {
        end = error;
      }
      echo?.close();
      this.#pace.lasted(clock.monotonic() - began);
      if (this.#stop.signal.aborted) return;
      this.#say(end);
      await this.#pace.pause();
    }
  }

  /** One frpc, until it ends or has to be replaced. @returns why */
  async #once(echo: Echo): Promise<RelayError> {
    const { room, cluster, frpc: program, directory, variables, log } = this.options;
    const server = this.options.server();
    const port = (await freePorts(1))[0]!;
    const alive: FrpProxy = {
      name: `${proxyName(room.name, "stcp")}-alive`,
      type: "stcp",
      secret: room.secret,
      target: { socket: echo.socket },
    };
    const frpc = await startFrpc({
      frpc: program,
      configuration: frpcConfiguration(
        server,
        [...this.#proxies(), alive],
        [{ name: "alive", type: "stcp", secret: room.secret, server: alive.name, address: "127.0.0.1", port }],
      ),
      direct: this.options.types.includes("xtcp"),
      directory,
      name: `worker-${cluster}`,
      variables,
      secrets: secretsOf(server, room),
      onTrouble: (error) => log.error("frpc", error),
    });
    this.#frpc = frpc;
    const over = new AbortController();
    const stop = AbortSignal.any([this.#stop.signal, over.signal]);
    const ended = frpc.ended.then(() => "ended" as const);
    const why = await Promise.race([ended, this.#watched(echo, port, serverText(server), stop)]);
    over.abort();
    await frpc.stop();
    this.#frpc = null;
    const said = lastWords(frpc.said());
    const at = serverText(server);
    return why === "ended"
      ? new RelayError("frp_unreachable", `frpc ended${said === "" ? "" : `: ${said}`}`, { layer: "login", server: at, said })
      : new RelayError("frp_unreachable", `nothing comes back through ${at}; frpc is replaced`, { layer: "proxy", server: at, said });
  }

  #proxies(): FrpProxy[] {
    const { types, room, linkSocket } = this.options;
    return types.map((type) => ({ name: proxyName(room.name, type), type, secret: room.secret, target: { socket: linkSocket } }));
  }

  /** Resolves when the way has been silent too often. */
  async #watched(echo: Echo, port: number, server: string, stop: AbortSignal): Promise<"silent"> {
    const { log, times = TIMES } = this.options;
    const begun = this.options.clock.monotonic();
    for (let silent = 0; silent < SILENT && !stop.aborted; ) {
      const way = await echo.heard(port, times.answerMs, stop);
      if (way !== null) {
        silent = 0;
        if (!this.#presence.reached) log.info(`reached through frps at ${server}`);
        this.#said = null;
        this.#presence = { ...this.#presence, reached: true, reason: null };
        // It goes with frps, and with frpc's connection to it.
        const gone = new AbortController();
        way.once("close", () => gone.abort());
        if (!way.destroyed) await pause(this.options.timers, times.askMs, AbortSignal.any([stop, gone.signal]));
        way.destroy();
      } else {
        // It takes a moment to log in.
        const starting = !this.#presence.reached && this.options.clock.monotonic() - begun < times.askMs;
        if (!starting) silent++;
        await pause(this.options.timers, times.againMs, stop);
      }
    }
    return "silent";
  }

  /** Each reason once: it may be the same one for days. */
  #say(end: unknown): void {
    const reason = end instanceof Error ? end.message : String(end);
    this.#presence = { ...this.#presence, reached: false, reason: reason.slice(0, 1_000) };
    const key = isRelayError(end) ? `${end.code} ${String(end.data["layer"])}` : reason;
    if (key !== this.#said) {
      if (isRelayError(end)) this.options.log.warn(`not at frps: ${reason}`, { reason: end.code });
      else this.options.log.error("frp", end);
    }
    this.#said = key;
  }
}

const pause = (timers: Timers, ms: number, stop: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (stop.aborted) return resolve();
    const done = (): void => {
      cancel();
      stop.removeEventListener("abort", done);
      resolve();
    };
    const cancel = timers.after(ms, done);
    stop.addEventListener("abort", done, { once: true });
  });
