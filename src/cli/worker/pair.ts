import path from "node:path";
import type { ClusterClient } from "../../api/client.ts";
import type { ClusterEntry, LocalEntry } from "../../config/cluster-entry.ts";
import { clusterEntry, updateClusters } from "../../config/clusters.ts";
import { variable } from "../../config/environment.ts";
import { relayToken } from "../../config/relay-token.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { mayYetBeMet, notMet, notMetText } from "../../domain/met.ts";
import { parseRelayUrl } from "../../domain/relay-url.ts";
import type { WorkerStatus } from "../../domain/views.ts";
import { makePrivateDirectory, writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { quoted } from "../arguments.ts";
import { keptCa } from "../cluster/relay-token.ts";
import { CLUSTER } from "../cluster-option.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { printJson } from "../print/table.ts";
import { keyTtl, relayUrl, text } from "../values.ts";
import { type Call, defineVerb, option, optionOr } from "../verb.ts";
import { ensureWorker } from "./ensure-worker.ts";
import { clusterElsewhere, localCluster, localWorker, runningWorker } from "./local-worker.ts";

/** How long a worker may take to be at its relay-host, and how often it is asked; milliseconds. */
const MET_MS = 15_000;
const ASK_MS = 100;

export const verb = defineVerb({
  summary: "Print a code that lets one desktop in",
  details:
    "The code is a secret: it is valid for ten minutes, once, and until five wrong ones were tried. A new one ends the one before, and so does the worker's end. On the desktop, clio-relay cluster add --name NAME --pair asks for it. " +
    "A worker is started where none runs, and is at that relay-host from then on.",
  positionals: {},
  flags: {
    cluster: CLUSTER,
    "relay-host": option(relayUrl, "Where the two meet; the relay-host where the worker is when left out"),
    "relay-token-file": option(text("FILE"), "Private file with the relay-host's token; CLIO_RELAY_HOST_TOKEN has it where none is named"),
    "relay-ca-file": option(text("FILE"), "Certification authorities in PEM that vouch for the relay-host, besides those of the system"),
    "key-ttl": optionOr(keyTtl, null, "How long the desktop's key is let in, such as 12h or 30d; until it is revoked when left out"),
  },
  examples: [
    ["worker pair --relay-host wss://relay.example.edu", "on the cluster"],
    ["worker pair --key-ttl 12h --json", "a key for half a day; code and expires_at for a program"],
  ],
  async run(call) {
    const { flags, io, json } = call;
    const relayHost = flags["relay-host"] ?? null;
    const meeting: Meeting = {
      relayHost,
      tokenFile: flags["relay-token-file"] && path.resolve(io.env.cwd, flags["relay-token-file"]),
      ca: keptCa(io, flags["relay-ca-file"]),
      keyTtl: flags["key-ttl"],
    };
    const worker = await workerOf(call, flags.cluster, meeting);
    await waitUntilMet(worker, meeting);
    const made = await worker.makePairingCode(relayHost, meeting.keyTtl);
    if (json) await printJson(io.stdout, made);
    else {
      await io.stdout.write(`${made.code}\n`);
      await io.stderr.write(
        `valid until ${made.expires_at}, once; on the desktop: clio-relay cluster add --name NAME --pair, which asks for it\n`,
      );
    }
    return EXIT.ok;
  },
});

/** The worker that makes the code; one of this machine is started where none runs. @throws RelayError usage, state_conflict, configuration_error */
async function workerOf({ io, relay }: Pick<Call, "io" | "relay">, named: string | undefined, meeting: Meeting): Promise<ClusterClient> {
  const elsewhere = await clusterElsewhere(io, relay, named);
  const option = meeting.tokenFile !== undefined ? "--relay-token-file" : meeting.ca !== undefined ? "--relay-ca-file" : null;
  if (elsewhere !== null) {
    if (option !== null) throw new RelayError("usage", `${option} is for a worker of this machine; the one of ${elsewhere} runs elsewhere`);
    return relay.desktop.cluster(elsewhere);
  }
  const { name, registry } = await localCluster(io, relay, named);
  const entry = clusterEntry(registry, name);
  const known = entry.mode === "local" ? (entry.relay_host ?? null) : null;
  const relayHost = meeting.relayHost ?? (option === null ? null : known);
  if (option !== null && relayHost === null) throw new RelayError("usage", `${option} needs --relay-host`);
  prepareRunDirectory(relay.paths, io.env);
  const worker = localWorker(io, relay, name);
  const running = await runningWorker(worker);
  if (running !== null) refuseMove(io, entry, running, { ...meeting, relayHost });
  else {
    if (relayHost !== null) await keepMeeting(io, relay, name, { ...meeting, relayHost });
    await ensureWorker(io, relay, name, []);
  }
  return worker;
}

/**
 * A worker that runs is not moved behind the back of those who meet it where it is. The hint is a command that does it, and it is only given where that would not end between stop and start.
 *
 * @throws RelayError state_conflict; configuration_error where there is no token, before anything is stopped
 */
function refuseMove(io: CliIo, entry: ClusterEntry, running: WorkerStatus, meeting: Meeting): void {
  const { relayHost, tokenFile, ca } = meeting;
  const { name: cluster } = entry;
  const present = running.met_at?.place ?? null;
  if (relayHost === null) return;
  const at: Pick<LocalEntry, "relay_token_file" | "relay_ca_file"> = entry.mode === "local" ? entry : {};
  const known = at.relay_token_file ?? null;
  const same = present !== null && parseRelayUrl(present).text === parseRelayUrl(relayHost).text;
  // One that is kept away takes another token, or what vouches for the relay-host, only when it is started anew.
  const helps = running.met_at?.registered === false && ((tokenFile ?? known) !== known || (ca ?? at.relay_ca_file) !== at.relay_ca_file);
  if (same && !helps) return;
  const file = tokenFile ?? (variable(io.env, "CLIO_RELAY_HOST_TOKEN") === undefined ? known : null);
  relayToken(io.env, file);
  throw new RelayError(
    "state_conflict",
    same
      ? `the worker of ${cluster} runs with another token or other authorities than are named now, and is not met; its jobs go on while it is started anew`
      : `the worker of ${cluster} is at ${present ?? "no relay-host"}, not at ${relayHost}; its jobs go on while it is moved`,
    { cluster, relay_host: present },
    anew(cluster, { ...meeting, tokenFile: file ?? undefined }),
  );
}

/** The command that pairs so. A worker that runs takes another token, or other authorities, only when it is started anew. */
function anew(cluster: string, { relayHost, tokenFile, ca, keyTtl: seconds }: Meeting): string {
  const options = {
    "relay-host": relayHost,
    "relay-token-file": tokenFile,
    "relay-ca-file": ca,
    "key-ttl": seconds === null ? null : `${seconds}s`,
  };
  const words = Object.entries(options).flatMap(([name, value]) => (value == null ? [] : [`--${name}`, quoted(value)]));
  return `clio-relay worker stop --cluster ${cluster} && clio-relay worker pair --cluster ${cluster} ${words.join(" ")}`;
}

/** What has to be another one where a worker is kept away, by the code of what keeps it. */
const WRONG: Readonly<Partial<Record<string, "tokenFile" | "ca">>> = { certificate_refused: "ca", relay_token_refused: "tokenFile" };

/** Whoever has a code of a worker that is not at its relay-host can do nothing with it. @throws RelayError worker_absent */
async function waitUntilMet(worker: ClusterClient, meeting: Meeting): Promise<void> {
  for (const deadline = performance.now() + MET_MS; ; ) {
    const { workers } = await worker.workers();
    const met = workers[0]?.met_at;
    const missing = met == null ? null : notMet({ met_at: met });
    if (missing === null) return;
    if (!mayYetBeMet(missing) || performance.now() > deadline) {
      const wrong = WRONG[missing.reason ?? ""];
      const fix =
        wrong === undefined
          ? `clio-relay worker status --cluster ${worker.name}, and the worker's log; then the same again`
          : anew(worker.name, { ...meeting, relayHost: missing.place, [wrong]: "FILE" });
      throw new RelayError("worker_absent", `there is no code: ${notMetText(missing)}`, { ...missing }, fix);
    }
    await Bun.sleep(ASK_MS);
  }
}

interface Meeting {
  /** The one spelling of its address; null: where the worker is by its entry. */
  readonly relayHost: string | null;
  /** Absolute, as is the next. */
  readonly tokenFile: string | undefined;
  readonly ca: string | undefined;
  /** Seconds that the desktop's key is let in; null: until it is revoked. */
  readonly keyTtl: number | null;
}

/** Have the worker of a cluster of this machine be at a relay-host, now and whenever it starts. @throws RelayError configuration_error where there is no token */
async function keepMeeting(
  io: CliIo,
  relay: Installation,
  name: string,
  { relayHost, tokenFile, ca }: Meeting & { readonly relayHost: string },
): Promise<void> {
  const { paths } = relay;
  const file = tokenFile ?? null;
  const own = path.join(paths.coreDir(name), "relay-token");
  await updateClusters(paths, io.env, (clusters) => {
    const entry = clusters.find((one) => one.name === name);
    if (entry?.mode !== "local") return clusters;
    const { relay_ca_file: known, ...others } = entry;
    const same = entry.relay_host === relayHost;
    const kept = same ? (entry.relay_token_file ?? null) : null;
    const vouching = ca ?? (same ? known : undefined);
    const withCa = vouching === undefined ? {} : { relay_ca_file: vouching };
    if (file === null && kept !== null && variable(io.env, "CLIO_RELAY_HOST_TOKEN") === undefined) {
      return clusters.map((one) => (one === entry ? { ...others, ...withCa } : one));
    }
    const token = relayToken(io.env, file);
    makePrivateDirectory(path.dirname(own));
    // The variable is this shell's; the worker starts from others, too.
    if (file === null) writeFileAtomic(own, `${token}\n`);
    const met: ClusterEntry = { ...others, ...withCa, relay_host: relayHost, relay_token_file: file ?? own };
    return clusters.map((one) => (one === entry ? met : one));
  });
}
