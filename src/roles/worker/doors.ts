import net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import type { Hono } from "hono";
import { keepServing, type SocketServer, serveOnSocket } from "../../api/socket-server.ts";
import { systemTimers } from "../../lib/waiting/timers.ts";
import { Ledger } from "../../transport/ledger.ts";
import type { WorkerContext } from "./context.ts";
import type { FrpKeeper } from "./frp-keeper.ts";
import { LinkSessions } from "./link-sessions.ts";
import { serveLinkSocket } from "./link-socket.ts";
import type { WorkerOptions } from "./options.ts";
import type { RelayJoiner } from "./relay-joiner.ts";

type Server = Pick<SocketServer, "stop">;

/** The comment of a worker's host key. */
export const keyComment = (cluster: string): string => `clio-relay ${cluster}`;

/** The ways to a worker: its own socket, the one for sessions with its identity, its relay-host and its frps. */
export class Doors {
  /** Sessions with the worker's identity, whichever way they come. */
  readonly sessions: LinkSessions;
  #server: Server | null = null;
  #links: Server | null = null;
  #relay: RelayJoiner | null = null;
  #frp: FrpKeeper | null = null;

  constructor(
    private readonly context: WorkerContext,
    private readonly options: WorkerOptions,
  ) {
    const { coreDir, cluster, socketPath } = options;
    this.sessions = new LinkSessions({
      coreDir,
      comment: keyComment(cluster),
      clock: context.clock,
      connect: () => connectTo(socketPath),
      onTrouble: (error) => context.laneFailed("link session", error),
    });
  }

  /** Answer on its own socket. @throws RelayError already_running */
  answer(app: Hono): void {
    const { context } = this;
    const { socketPath } = this.options;
    this.#server = keepServing(() => serveOnSocket(app, socketPath), {
      onRenewed: () => context.log.warn(`the socket was gone; serving again on ${socketPath}`),
      onTrouble: (error) => context.laneFailed("socket", error),
    });
  }

  /** Be found by desktops that are elsewhere, as far as it is to be. */
  async meet(): Promise<void> {
    this.#links = this.#listen();
    this.#relay = await this.#meetAt();
    this.#frp = await this.#offerAt();
  }

  /** Where it is to be met, and whether it is; it answers before it goes there. */
  get presence() {
    const { relay, frp } = this.options;
    return {
      metAt: this.#relay?.presence ?? (relay === undefined ? null : { place: relay.url.text, registered: false, reason: null }),
      frp: this.#frp?.presence ?? (frp === undefined ? null : { server: frp.place, reached: false, reason: null }),
    };
  }

  /** Stop answering on its own socket; answers in flight have so many milliseconds. */
  async stopAnswers(graceMs: number): Promise<void> {
    await this.#server?.stop(graceMs);
  }

  /** Be found no more. */
  async stopLinks(): Promise<void> {
    await Promise.all([this.#links?.stop(0), this.#relay?.stop(), this.#frp?.stop()]);
  }

  #listen(): Server | null {
    const { context, sessions } = this;
    const { linkSocketPath } = this.options;
    if (linkSocketPath === undefined) return null;
    const onTrouble = (error: unknown): void => context.laneFailed("link socket", error);
    return keepServing(() => serveLinkSocket({ socketPath: linkSocketPath, sessions, onTrouble }), {
      onRenewed: () => context.log.warn(`the link socket was gone; listening again on ${linkSocketPath}`),
      onTrouble,
    });
  }

  /** The worker at its relay-host; null where it has none. */
  async #meetAt(): Promise<RelayJoiner | null> {
    const { relay, coreDir, cluster } = this.options;
    if (relay === undefined) return null;
    const [{ RelayJoiner: Joiner }, { hostKey }] = await Promise.all([import("./relay-joiner.ts"), import("./host-key.ts")]);
    const { clock, log } = this.context;
    return new Joiner({
      ...relay,
      cluster,
      hostKey: () => hostKey(coreDir, keyComment(cluster), clock),
      sessions: this.sessions,
      clock,
      log,
      ledger: new Ledger(path.join(coreDir, "connections.jsonl"), clock),
      timers: systemTimers,
    });
  }

  /** The worker at its frps; null where it has none. */
  async #offerAt(): Promise<FrpKeeper | null> {
    const { frp, linkSocketPath, cluster } = this.options;
    if (frp === undefined || linkSocketPath === undefined) return null;
    const { FrpKeeper: Keeper } = await import("./frp-keeper.ts");
    const { clock, log } = this.context;
    return new Keeper({ ...frp, cluster, linkSocket: linkSocketPath, clock, log, timers: systemTimers });
  }
}

/** A connection to the worker's own socket. */
function connectTo(socketPath: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const connection = net.connect({ path: socketPath, allowHalfOpen: true } as net.NetConnectOpts);
    connection.once("connect", () => resolve(connection));
    connection.once("error", reject);
  });
}
