import type { FrpEntry } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import { desktopKey } from "../../roles/desktop/desktop-key.ts";
import { overFrp, ownFrpc } from "../../roles/desktop/frp-way.ts";
import { ChannelPool } from "../../transport/http/channel-pool.ts";
import type { LedgerLine } from "../../transport/ledger.ts";
import { caFiles } from "../../transport/outbound/certificates.ts";
import { publicKeyFromLine } from "../../transport/session/keys.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { frpCluster } from "./frp-secrets.ts";
import type { Measured, Trial } from "./transport-test.ts";

/** A test is shown to the person who wants it, and is no link: nothing counts it. */
const UNCOUNTED = {
  beginUnattended: (): LedgerLine => ({ seq: 0, settle: () => undefined, ended: () => undefined }),
};

/**
 * Try the way through the cluster's frps with a frpc of the test's own, beside the link: the program, what is secret, the login, the worker behind it, and how fast it is.
 *
 * @param mode the ways that are tried: `frp-xtcp` tries the direct one, too
 * @param accept throws where the way that was found will not do
 */
export async function tryFrp(
  { io, relay }: { readonly io: CliIo; readonly relay: Installation },
  {
    cluster,
    mode,
    accept,
  }: { readonly cluster: string; readonly mode: FrpEntry["mode"]; readonly accept?: (carrier: FrpEntry["mode"]) => void },
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
  const { session, open, carrier } = await trial.step(
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
          onFallback: (reason) => trial.gaveUp("direct", reason),
          name: `test-${crypto.randomUUID().slice(0, 8)}`,
        },
        signal,
      ),
    (transport) => transport.carrier,
  );
  const pool = new ChannelPool({ open });
  try {
    if (accept !== undefined) await trial.step("direct", () => accept(carrier));
    await trial.measure(measuredBy(pool));
  } finally {
    pool.close(new Error("measured"));
    session.close();
    await session.closed;
  }
}

const get = { method: "GET", headers: new Headers(), body: null } as const;

function measuredBy(pool: ChannelPool): Measured {
  const size = async (target: string, signal: AbortSignal): Promise<number> => {
    const { body } = await pool.request({ ...get, target }, signal);
    return (body instanceof Uint8Array ? body : await new Response(body).bytes()).length;
  };
  return { roundTrip: async (signal) => void (await size("/healthz", signal)), fetch: (signal) => size("/openapi.json", signal) };
}
