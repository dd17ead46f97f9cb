import type { FrpEntry } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import { desktopKey } from "../../roles/desktop/desktop-key.ts";
import { overFrp, ownFrpc } from "../../roles/desktop/frp-way.ts";
import { TransferWindows } from "../../transport/bulk/transfer-windows.ts";
import { ChannelPool } from "../../transport/http/channel-pool.ts";
import type { LedgerLine } from "../../transport/ledger.ts";
import { caFiles } from "../../transport/outbound/certificates.ts";
import { publicKeyFromLine } from "../../transport/session/keys.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { frpCluster } from "./frp-secrets.ts";
import { CONTENT_PATH, type Measured, type Trial } from "./transport-test.ts";

/** A test is shown to the person who wants it, and is no link: nothing counts it. */
const UNCOUNTED = {
  beginUnattended: (): LedgerLine => ({ seq: 0, settle: () => undefined, ended: () => undefined }),
};

/**
 * Try the way through the cluster's frps with a frpc of the test's own, beside the link: the program, what is secret, the login, the worker behind it, and how fast it is.
 *
 * @param mode the ways that are tried: `frp-xtcp` tries the direct one, too
 * @param mayFallBack whether a direct way that is not found is only noted
 */
export async function tryFrp(
  { io, relay }: { readonly io: CliIo; readonly relay: Installation },
  { cluster, mode, mayFallBack = false }: { readonly cluster: string; readonly mode: FrpEntry["mode"]; readonly mayFallBack?: boolean },
  trial: Trial,
  signal: AbortSignal,
): Promise<void> {
  const { entry } = await trial.step("configuration", () => frpCluster(io, relay, cluster));
  await trial.step(
    "program",
    () => ownFrpc(io.env, relay.paths),
    (file) => file,
  );
  const key = entry.worker_key;
  if (key === null) {
    throw await trial
      .step("worker_key", () => {
        throw new RelayError("link_bringup_failed", "it is not known who has to answer", {}, `clio-relay cluster bootstrap ${cluster}`);
      })
      .catch((error: unknown) => error);
  }
  let fallback: RelayError | null = null;
  const { session, open, carrier, looked } = await trial.step(
    "connection",
    () =>
      overFrp(
        {
          entry: { ...entry, mode },
          keys: { workerKeys: [publicKeyFromLine(key)], privateKey: desktopKey(relay.paths.configDir) },
          ledger: UNCOUNTED,
          paths: relay.paths,
          env: io.env,
          variables: io.env.variables,
          caFiles: caFiles(relay.settings.ca_file, io.env.variables),
          requestedBy: "relay-host test",
          report: () => undefined,
          onFallback: (reason) => {
            fallback = reason;
          },
          name: `test-${crypto.randomUUID().slice(0, 8)}`,
        },
        signal,
      ),
    (transport) => transport.carrier(),
  );
  const pool = new ChannelPool({ open });
  try {
    if (mode === "frp-xtcp")
      await trial.stepOrNote("direct", mayFallBack, () => looked.then(() => lookedFor(cluster, carrier(), fallback)));
    await trial.measure(measuredBy(pool));
  } finally {
    pool.close(new Error("measured"));
    session.close();
    await session.closed;
  }
}

/** @throws RelayError frp_unreachable where the direct way was not found */
function lookedFor(cluster: string, carrier: FrpEntry["mode"], fallback: RelayError | null): void {
  if (carrier === "frp-xtcp") return;
  throw new RelayError("frp_unreachable", fallback?.message ?? "there is no direct way", { layer: "direct" }, noDirectWay(cluster));
}

const noDirectWay = (cluster: string): string =>
  `UDP has to get out of both sites, to each other and to a STUN server, which clio-relay cluster add ${cluster} --frp-stun-server HOST:PORT names; ` +
  `clio-relay cluster add ${cluster} --no-direct-transport goes over frps without the try`;

const get = { method: "GET", headers: new Headers(), body: null } as const;

/** As a link does it: with windows that grow with the path. */
function measuredBy(pool: ChannelPool): Measured {
  const windows = new TransferWindows();
  return {
    async roundTrip(signal) {
      const { body } = await pool.request({ ...get, target: "/healthz" }, signal);
      if (body instanceof ReadableStream) await new Response(body).bytes();
    },
    async content(signal) {
      const flow = windows.enter();
      const { status, body } = await pool.request({ ...get, target: CONTENT_PATH, flow }, signal);
      if (status === 200 && body instanceof ReadableStream) return body;
      if (body instanceof ReadableStream) await body.cancel();
      return null;
    },
  };
}
