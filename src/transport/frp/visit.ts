import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { joinOwnPort } from "../dial.ts";
import { type FrpServer, type FrpType, type FrpVisitor, visitorConfiguration } from "./configuration.ts";
import { freePorts } from "./free-ports.ts";
import { type Frpc, startFrpc } from "./frpc.ts";

export interface FrpVisit {
  readonly server: FrpServer;
  /** Whose worker is met, by its name here. */
  readonly cluster: string;
  /** What both sides know of each other. */
  readonly room: { readonly name: string; readonly secret: string };
  /** Whether the direct way is wanted where there is one. */
  readonly direct: boolean;
  /** How long the other side may take to say something over the direct way, in milliseconds. */
  readonly directMs: number;
  readonly frpc: string;
  readonly directory: string;
  /** Of the frpc; two of one name end each other. */
  readonly name: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly onTrouble: (error: unknown) => void;
  /** Told when there is no direct way. */
  readonly onFallback?: (reason: RelayError) => void;
  /** How long to stay at frps for a worker that is not there, in milliseconds, and who is told that it is not; left out: not at all. */
  readonly wait?: { readonly forMs: number; readonly onAbsent: (reason: RelayError) => void };
}

export interface FrpArrival<T> {
  /** Over frps. */
  readonly opened: T;
  /** The same from peer to peer, as soon as that is found; null where it is not, or not wanted. Never rejects. */
  readonly direct: Promise<T | null>;
}

/**
 * Begins what the Duplex is for, and rejects with `link_bringup_failed` where nobody answers on it. It has to say something first: over the direct way the other side
 * does not learn of a connection on which nothing came.
 */
export type OpenOver<T> = (duplex: Duplex, signal: AbortSignal) => Promise<T>;

/** What a proxy of a room is called at frps. */
export const proxyName = (room: string, type: FrpType): string => `clio-relay-${room}${type === "xtcp" ? "-direct" : ""}`;

/** What a frpc has been told, and may not be repeated. */
export function secretsOf({ token, proxyUrl }: FrpServer, room: { readonly secret: string }): string[] {
  const credentials = /^[a-z]+:\/\/([^@/]*)@/.exec(proxyUrl ?? "")?.[1]?.split(":") ?? [];
  const password = credentials[1] ?? "";
  return [room.secret, token ?? "", password, decodeURIComponent(password)].filter((secret) => secret !== "");
}

/** How long frpc may take until it is logged in and listens, and the worker's side until it says something over frps; milliseconds. */
const LOGIN_MS = 20_000;
const ANSWER_MS = 15_000;
const LOOK_MS = 20;
/** How soon a worker that was not there is asked for again. */
const AGAIN_MS = 250;

/**
 * Come to a worker over frp: a frpc of this visit's own is started and logs in, and through its port the session is opened. The frpc ends with what was opened, and the
 * other way round. The direct way is looked for once the worker is known to be there, by the session over frps, which is of use meanwhile: a worker that is only just coming
 * back would else be taken for one that cannot be reached directly.
 *
 * @param signal ends the search for the direct way, too
 * @throws RelayError frp_unreachable with `layer` `login` where frpc does not come as far as frps, `proxy` where nobody answers behind it; local_file_unusable; what
 *   `open` throws besides; the signal's reason
 */
export async function visit<T>(options: FrpVisit, open: OpenOver<T>, signal: AbortSignal): Promise<FrpArrival<T>> {
  const { server, room, direct } = options;
  const ways: readonly FrpType[] = direct ? ["stcp", "xtcp"] : ["stcp"];
  // Each way has a port that is no other's: who is met there came that way.
  const ports = await freePorts(ways.length);
  const [stcp, xtcp] = ports as [number, number?];
  const visitors = ways.map((type, at): FrpVisitor => {
    return {
      name: `visitor-${type}`,
      type,
      secret: room.secret,
      server: proxyName(room.name, type),
      address: "127.0.0.1",
      port: ports[at]!,
    };
  });
  signal.throwIfAborted();
  const frpc = await startFrpc({ ...options, configuration: visitorConfiguration(server, visitors), secrets: secretsOf(server, room) });
  try {
    const relayed = await overFrps(options, frpc, stcp, open, signal);
    const search =
      xtcp === undefined ? Promise.resolve(null) : directWay(options, frpc, { port: xtcp, relayed: relayed.duplex }, open, signal);
    void endTogether(frpc, relayed.duplex, search);
    return { opened: relayed.opened, direct: search.then((found) => found?.opened ?? null) };
  } catch (error) {
    await frpc.stop();
    throw error;
  }
}

interface Answered<T> {
  readonly opened: T;
  readonly duplex: Duplex;
}

/** The frpc goes when nothing is left that it carries, and takes with it what it carries. */
async function endTogether(frpc: Frpc, relayed: Duplex, search: Promise<Answered<unknown> | null>): Promise<void> {
  void frpc.ended.then(() => relayed.destroy());
  const over = closing(relayed);
  const found = await search;
  if (found !== null) {
    void frpc.ended.then(() => found.duplex.destroy());
    await closing(found.duplex);
  }
  await over;
  await frpc.stop();
}

const closing = (duplex: Duplex): Promise<void> =>
  new Promise((resolve) => {
    if (duplex.destroyed) resolve();
    else duplex.once("close", () => resolve());
  });

/** What answers from peer to peer; null where nothing does, or the way over frps has ended before. */
async function directWay<T>(
  options: FrpVisit,
  frpc: Frpc,
  { port, relayed }: { readonly port: number; readonly relayed: Duplex },
  open: OpenOver<T>,
  signal: AbortSignal,
): Promise<Answered<T> | null> {
  const over = new AbortController();
  void closing(relayed).then(() => over.abort());
  try {
    return await answered(options, frpc, { port, way: "xtcp" }, open, AbortSignal.any([signal, over.signal]));
  } catch (error) {
    if (signal.aborted || over.signal.aborted) return null;
    if (isRelayError(error)) options.onFallback?.(error);
    else options.onTrouble(error);
    return null;
  }
}

/** What answers over frps, be it after a while: whoever comes back with the server, as its worker does, need not be there before us. */
async function overFrps<T>(options: FrpVisit, frpc: Frpc, port: number, open: OpenOver<T>, signal: AbortSignal): Promise<Answered<T>> {
  const until = performance.now() + (options.wait?.forMs ?? 0);
  for (;;) {
    try {
      return await answered(options, frpc, { port, way: "stcp" }, open, signal);
    } catch (error) {
      const absent = isRelayError(error, "frp_unreachable") && error.data["layer"] === "proxy";
      if (!absent || performance.now() >= until) throw error;
      options.wait?.onAbsent(error);
      await Bun.sleep(AGAIN_MS);
    }
  }
}

/** What is opened through the port, where somebody answers. */
async function answered<T>(
  options: FrpVisit,
  frpc: Frpc,
  { port, way }: { readonly port: number; readonly way: FrpType },
  open: OpenOver<T>,
  signal: AbortSignal,
): Promise<Answered<T>> {
  const duplex = await listening(options, frpc, port, signal);
  const withinMs = way === "xtcp" ? options.directMs : ANSWER_MS;
  const limit = AbortSignal.timeout(withinMs);
  try {
    return { opened: await open(duplex, AbortSignal.any([signal, limit])), duplex };
  } catch (error) {
    duplex.destroy();
    signal.throwIfAborted();
    if (limit.aborted) throw unreachable(options, "proxy", frpc, way, `nobody answered within ${withinMs / 1_000} s`, error);
    if (isRelayError(error, "link_bringup_failed")) throw unreachable(options, "proxy", frpc, way, error.message, error);
    throw error;
  }
}

/** Connect as soon as frpc listens: it does when it has logged in. */
async function listening(options: FrpVisit, frpc: Frpc, port: number, signal: AbortSignal): Promise<Duplex> {
  let over = false;
  void frpc.ended.then(() => {
    over = true;
  });
  for (const deadline = performance.now() + LOGIN_MS; ; ) {
    signal.throwIfAborted();
    try {
      const duplex = await joinOwnPort(port, LOGIN_MS, signal);
      duplex.on("error", () => undefined);
      return duplex;
    } catch (error) {
      signal.throwIfAborted();
      if (!isRelayError(error, "host_unreachable")) throw error;
    }
    if (over) throw unreachable(options, "login", frpc, "stcp", "frpc ended");
    if (performance.now() > deadline)
      throw unreachable(options, "login", frpc, "stcp", `frpc was not logged in within ${LOGIN_MS / 1_000} s`);
    await Bun.sleep(LOOK_MS);
  }
}

/** Where frps is, as it may be shown. */
export const serverText = ({ protocol, address, port }: Pick<FrpServer, "protocol" | "address" | "port">): string =>
  `${protocol}://${address.includes(":") ? `[${address}]` : address}:${port}`;

/** What there is to do, by the layer that failed. What frpc says is for people. */
const FIX = {
  login: (cluster: string) =>
    `clio-relay cluster add ${cluster} with what frpc finds wrong: --frp-server-addr, --frp-server-port and --frp-protocol are those of the server or its edge, ` +
    `--frp-ca-file says who vouches for its certificate, --frp-token-file has the token; then clio-relay cluster bootstrap ${cluster}, for the worker`,
  proxy: (cluster: string) =>
    `on the cluster, clio-relay worker status says how the worker is at its frps; clio-relay cluster bootstrap ${cluster} brings it the secrets anew`,
} as const;

function unreachable(
  { server, cluster }: FrpVisit,
  layer: "login" | "proxy",
  frpc: Frpc,
  way: FrpType,
  why: string,
  cause?: unknown,
): RelayError {
  const said = lastWords(frpc.said());
  const at = serverText(server);
  const what =
    layer === "login"
      ? `frpc does not come to frps at ${at}: ${why}`
      : way === "xtcp"
        ? `no direct way to the worker was found: ${why}`
        : `no worker answers behind frps at ${at}: ${why}`;
  const data = { layer, way, server: at, said };
  return new RelayError(
    "frp_unreachable",
    `${what}${said === "" ? "" : ` (frpc: ${said})`}`,
    data,
    way === "xtcp" ? undefined : FIX[layer](cluster),
    {
      cause,
    },
  );
}

/** The last line of what frpc said, without its time; for people. */
export const lastWords = (said: string): string =>
  (
    said
      .trim()
      .split("\n")
      .findLast((line) => line.trim() !== "") ?? ""
  )
    .replace(/[\p{Cc}]/gu, "")
    .replace(/^\d{4}-\d\d-\d\d [\d:.]+ /, "")
    .slice(0, 500);
