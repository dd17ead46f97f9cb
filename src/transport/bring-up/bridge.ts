import type { Duplex } from "node:stream";
import { RelayError } from "../../domain/errors.ts";
import { shellWord } from "../script/shell-word.ts";
import { PROFILE_HINT } from "../script/unanswered.ts";
import { openWorkerSession, type WorkerSession, type WorkerSessionKeys } from "../session/worker-session.ts";
import { serverText } from "../ssh/prompt.ts";

/** How much may come before the bridge's line, and how long it may take (docs/wire.md, Bridge). */
const MAX_PREAMBLE = 64 * 1024;
const LINE_MS = 20_000;
/** How much of what came instead is shown. */
const SHOWN_BYTES = 1_024;

export interface BridgePlace {
  readonly cluster: string;
  /** The installation's directory on the host: absolute, or below `~/`; null for the usual place. */
  readonly home: string | null;
  /** 32 hexadecimal digits, new for each bridge. */
  readonly nonce: string;
}

export const newNonce = (): string => crypto.randomUUID().replaceAll("-", "");

/** The command that runs the bridge, as every login shell reads it alike. */
export function bridgeCommand({ cluster, home, nonce }: BridgePlace): string {
  const root =
    home === null ? '"$HOME"/.local/share/clio-relay' : home.startsWith("~/") ? `"$HOME"/${shellWord(home.slice(2))}` : shellWord(home);
  const place = home === null ? "" : 'CLIO_RELAY_HOME="$root"; export CLIO_RELAY_HOME; ';
  return `exec /bin/sh -c ${shellWord(`root=${root}; ${place}exec "$root"/current/clio-relay worker bridge --cluster ${cluster} --nonce ${nonce}`)}`;
}

export interface BridgePatience {
  /** How long the line may take, in milliseconds; null where a person may be asked meanwhile. */
  readonly lineMs?: number | null;
}

/**
 * The worker's own session over a command's standard output and input, once the bridge's line has come. The Duplex belongs to it from here on.
 *
 * @throws RelayError link_bringup_failed with what came instead; as openWorkerSession
 */
export async function openBridge(
  duplex: Duplex,
  { cluster, nonce }: Pick<BridgePlace, "cluster" | "nonce">,
  keys: WorkerSessionKeys,
  signal: AbortSignal,
  { lineMs = LINE_MS }: BridgePatience = {},
): Promise<WorkerSession> {
  await passPreamble(duplex, `clio-relay-bridge 1 ${nonce}`, signal, lineMs);
  return openWorkerSession(duplex, keys, { cluster, signal });
}

/** Read up to the line; what comes behind it stays to be read. */
function passPreamble(duplex: Duplex, line: string, signal: AbortSignal, lineMs: number | null): Promise<void> {
  return new Promise((resolve, reject) => {
    let read = Buffer.alloc(0);
    const done = (error: unknown): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", aborted);
      duplex.off("data", onData);
      for (const end of ["end", "close", "error"]) duplex.off(end, ended);
      duplex.pause();
      if (error === null) resolve();
      else {
        duplex.on("error", () => undefined);
        duplex.destroy();
        reject(error);
      }
    };
    const instead = (why: string): void => {
      const said = serverText(read.subarray(0, SHOWN_BYTES).toString("utf8")).trim();
      done(
        new RelayError("link_bringup_failed", `the bridge to the worker ${why}${said === "" ? "" : `: ${said}`}`, { said }, PROFILE_HINT),
      );
    };
    const onData = (chunk: Buffer): void => {
      read = Buffer.concat([read, chunk]);
      for (let start = 0; ; ) {
        const end = read.indexOf(0x0a, start);
        if (end < 0) break;
        // A profile may end in the middle of a line.
        if (read.subarray(start, end).toString("latin1").replace(/\r$/, "").endsWith(line)) {
          const rest = read.subarray(end + 1);
          done(null);
          if (rest.length > 0) duplex.unshift(rest);
          return;
        }
        start = end + 1;
      }
      if (read.length > MAX_PREAMBLE) instead(`did not begin within ${MAX_PREAMBLE} bytes`);
    };
    const ended = (): void => instead("ended before it began");
    const aborted = (): void => done(signal.reason);
    const timer = lineMs === null ? undefined : setTimeout(() => instead(`did not begin within ${lineMs / 1_000} s`), lineMs);
    if (signal.aborted) return aborted();
    signal.addEventListener("abort", aborted, { once: true });
    for (const end of ["end", "close", "error"]) duplex.on(end, ended);
    duplex.on("data", onData);
  });
}
