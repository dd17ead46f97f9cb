import type { ClusterClient } from "../../api/client.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import { EXIT } from "../../domain/errors.ts";
import { parseRelayUrl } from "../../domain/relay-url.ts";
import { CLUSTER } from "../cluster-option.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { printJson } from "../print/table.ts";
import { keyTtl, text } from "../values.ts";
import { defineVerb, option, optionOr } from "../verb.ts";
import { ensureWorker } from "./ensure-worker.ts";
import { clusterElsewhere, localCluster, localWorker, runningWorker } from "./local-worker.ts";

export const verb = defineVerb({
  summary: "Print a code that lets one desktop in",
  details:
    "The code is a secret: it is valid for ten minutes, once, and until five wrong ones were tried. A new one ends the one before, and so does the worker's end. On the desktop, clio-relay cluster add --name NAME --pair asks for it. " +
    "A worker is started where none runs.",
  positionals: {},
  flags: {
    cluster: CLUSTER,
    "relay-host": option(text("URL"), "Where the two meet; the relay-host where the worker is when left out"),
    "key-ttl": optionOr(keyTtl, null, "How long the desktop's key is let in, such as 12h or 30d; until it is revoked when left out"),
  },
  examples: [
    ["worker pair --relay-host wss://relay.example.edu", "on the cluster"],
    ["worker pair --key-ttl 12h --json", "a key for half a day; code and expires_at for a program"],
  ],
  async run({ flags, io, json, relay }) {
    const relayHost = flags["relay-host"] === undefined ? null : parseRelayUrl(flags["relay-host"]).text;
    const worker = await workerOf(io, relay, flags.cluster, relayHost);
    const made = await worker.makePairingCode(relayHost, flags["key-ttl"]);
    if (json) await printJson(io.stdout, made);
    else {
      await io.stdout.write(`${made.code}\n`);
      await io.stderr.write(
        `valid until ${made.expires_at}, once; on the desktop: clio-relay cluster add --name ${made.cluster} --pair, which asks for it\n`,
      );
    }
    return EXIT.ok;
  },
});

async function workerOf(io: CliIo, relay: Installation, named: string | undefined, relayHost: string | null): Promise<ClusterClient> {
  const elsewhere = await clusterElsewhere(io, relay, named);
  if (elsewhere !== null) return relay.desktop.cluster(elsewhere);
  const { name } = await localCluster(io, relay, named);
  prepareRunDirectory(relay.paths, io.env);
  const worker = localWorker(io, relay, name);
  if ((await runningWorker(worker)) === null) await ensureWorker(io, relay, name, relayHost === null ? [] : ["--relay-host", relayHost]);
  return worker;
}
