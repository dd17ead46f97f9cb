import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import * as v from "valibot";
import { type ClusterEntry, type LocalEntry, sharedOf } from "../../config/cluster-entry.ts";
import { updateClusters } from "../../config/clusters.ts";
import { keepFrpOffering } from "../../config/frp-offer.ts";
import { parseRelayToken } from "../../config/relay-token.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import { VERSION } from "../../config/version.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { parseRelayUrl } from "../../domain/relay-url.ts";
import { CONFIGURATION_MAX_BYTES, WorkerConfiguration, type WorkerConfigured } from "../../domain/worker-configuration.ts";
import { programsOf, WORKER_PROGRAMS } from "../../domain/worker-programs.ts";
import { makePrivateDirectory, writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { hostPublicKey, nextHostKey } from "../../roles/worker/host-key.ts";
import { allowClients } from "../../roles/worker/link-keys.ts";
import { fingerprintOf, lineOfPublicKey } from "../../transport/session/keys.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "Take the configuration that a desktop sends",
  details:
    "Runs on the cluster, as a part of cluster bootstrap. Reads a document clio-relay.worker-configuration.v1 on standard input, registers the cluster on this " +
    "machine, makes the worker's key, and prints what the desktop has to know. A worker that runs takes a change when it is restarted.",
  positionals: {},
  flags: {},
  examples: [["worker configure < configuration.json", "what cluster bootstrap does"]],
  async run({ io, relay }) {
    const { paths } = relay;
    const wanted = parse(new TextDecoder().decode(await io.stdin.read(CONFIGURATION_MAX_BYTES)));
    const { cluster, env_setup, worker_capacity, scheduler_provider } = wanted;
    const [coreDir, spoolDir] = [paths.coreDir(cluster), paths.spoolDir(cluster)];
    for (const directory of [coreDir, spoolDir]) makePrivateDirectory(directory);
    prepareRunDirectory(paths, io.env);
    let changed = false;
    let restart = false;
    const relay_host = wanted.relay === undefined || wanted.relay === null ? null : parseRelayUrl(wanted.relay.relay_host).text;
    const tokenFile = path.join(coreDir, "relay-token");
    const token = keepToken(tokenFile, wanted.relay);
    const caFile = path.join(coreDir, "relay-ca.pem");
    const ca = wanted.relay === undefined ? false : keepText(caFile, wanted.relay?.ca ?? null);
    const offering = wanted.frp === undefined ? false : keepFrpOffering(coreDir, wanted.frp);
    await updateClusters(paths, io.env, (clusters) => {
      const before = clusters.find(({ name }) => name === cluster);
      if (before !== undefined && before.mode !== "local") {
        throw new RelayError(
          "state_conflict",
          `${cluster} is registered on this host as a cluster that is reached by ${before.mode}`,
          { cluster },
          `clio-relay cluster remove ${cluster}, on ${os.hostname()}`,
        );
      }
      const strict = wanted.env_setup_strict ? { env_setup_strict: true } : {};
      const scheduler = scheduler_provider === undefined ? {} : { scheduler_provider };
      const programs = programsOf(wanted);
      const said = { name: cluster, mode: "local" as const, env_setup, ...strict, worker_capacity, ...scheduler, ...programs };
      const others = unconfigured(before ?? said);
      const plain = { ...sharedOf(others), ...said };
      const kept = { ...others, ...said };
      const entry: ClusterEntry =
        wanted.relay === undefined
          ? kept
          : relay_host === null
            ? plain
            : { ...plain, relay_host, relay_token_file: tokenFile, ...(wanted.relay?.ca === undefined ? {} : { relay_ca_file: caFile }) };
      restart =
        token || ca || offering || relayHostOf(before) !== relayHostOf(entry) || !Bun.deepEquals(programsOf(before ?? plain), programs);
      changed = before === undefined || !Bun.deepEquals(before, entry);
      return changed ? [...clusters.filter(({ name }) => name !== cluster), entry] : clusters;
    });
    const { client_keys, renew_keys, key_ttl_seconds } = wanted;
    const allowed = await allowClients(coreDir, client_keys, {
      by: "bootstrap",
      renew: renew_keys === true,
      ...(key_ttl_seconds === undefined ? {} : { ttlSeconds: key_ttl_seconds }),
    });
    const key = hostPublicKey(coreDir, `clio-relay ${cluster}`);
    await printJson(io.stdout, {
      schema_version: "clio-relay.worker-configured.v1",
      cluster,
      version: VERSION,
      changed: changed || allowed || token || ca || offering,
      restart,
      host_key: lineOfPublicKey(key),
      host_key_sha256: fingerprintOf(key),
      next_host_key: nextHostKey(coreDir)?.line ?? null,
      paths: { core_dir: coreDir, spool_dir: spoolDir, socket: paths.workerSocket(cluster), log: paths.workerLog(cluster) },
    } satisfies WorkerConfigured);
    return EXIT.ok;
  },
});

/** An entry without what a configuration says by leaving it out, too. */
function unconfigured(entry: LocalEntry): LocalEntry {
  const left: Record<string, unknown> = { ...entry };
  for (const name of ["env_setup_strict", "scheduler_provider", ...Object.keys(WORKER_PROGRAMS)]) delete left[name];
  return left as LocalEntry;
}

const relayHostOf = (entry: ClusterEntry | undefined): string | null => (entry?.mode === "local" ? (entry.relay_host ?? null) : null);

/** @returns whether there is another one now @throws RelayError configuration_error */
function keepToken(file: string, relay: WorkerConfiguration["relay"]): boolean {
  if (relay === undefined) return false;
  return keepText(file, relay === null ? null : `${parseRelayToken(relay.token, "the configuration")}\n`);
}

/** @param text null: no file @returns whether there is another one now */
function keepText(file: string, text: string | null): boolean {
  if (text === null) {
    const there = fs.existsSync(file);
    fs.rmSync(file, { force: true });
    return there;
  }
  if (fs.existsSync(file) && fs.readFileSync(file, "utf8") === text) return false;
  writeFileAtomic(file, text);
  return true;
}

/** @throws RelayError request_validation_failed */
function parse(text: string): WorkerConfiguration {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new RelayError("request_validation_failed", "standard input is no JSON document");
  }
  const result = v.safeParse(WorkerConfiguration, data);
  if (result.success) return result.output;
  const issue = result.issues[0];
  throw new RelayError("request_validation_failed", `${v.getDotPath(issue) ?? "the document"}: ${issue.message}`);
}
