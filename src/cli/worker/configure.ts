import os from "node:os";
import * as v from "valibot";
import type { ClusterEntry } from "../../config/cluster-entry.ts";
import { updateClusters } from "../../config/clusters.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import { VERSION } from "../../config/version.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { CONFIGURATION_MAX_BYTES, WorkerConfiguration, type WorkerConfigured } from "../../domain/worker-configuration.ts";
import { makePrivateDirectory } from "../../lib/atomic-file.ts";
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
    const { cluster, env_setup, worker_capacity } = wanted;
    const [coreDir, spoolDir] = [paths.coreDir(cluster), paths.spoolDir(cluster)];
    for (const directory of [coreDir, spoolDir]) makePrivateDirectory(directory);
    prepareRunDirectory(paths, io.env);
    let changed = false;
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
      const entry: ClusterEntry = { name: cluster, mode: "local", env_setup, worker_capacity };
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
      changed: changed || allowed,
      host_key: lineOfPublicKey(key),
      host_key_sha256: fingerprintOf(key),
      next_host_key: nextHostKey(coreDir)?.line ?? null,
      paths: { core_dir: coreDir, spool_dir: spoolDir, socket: paths.workerSocket(cluster), log: paths.workerLog(cluster) },
    } satisfies WorkerConfigured);
    return EXIT.ok;
  },
});

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
