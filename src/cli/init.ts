import { parse } from "valibot";
import { ClusterEntry } from "../config/cluster-entry.ts";
import { updateClusters } from "../config/clusters.ts";
import { mayHaveWorkers } from "../config/environment.ts";
import { prepareRunDirectory } from "../config/run-directory.ts";
import { EXIT } from "../domain/errors.ts";
import { makePrivateDirectory } from "../lib/atomic-file.ts";
import { printJson } from "./print/table.ts";
import { defineVerb, refused } from "./verb.ts";

export const verb = defineVerb({
  summary: "Make the directories and the cluster `local`",
  details:
    "Can be repeated: what is there stays as it is. CLIO_RELAY_HOME=DIR puts everything below DIR. Where no worker can run, there is no cluster `local`.",
  positionals: {},
  flags: { "migrate-legacy-output": refused("there is no older layout of this program", false) },
  examples: [
    ["init", "once after installation"],
    ["worker start --cluster local", "then a worker"],
  ],
  async run({ io, json, relay }) {
    const { paths, settings } = relay;
    for (const directory of [paths.configDir, paths.coreRoot, paths.spoolRoot, paths.cacheDir, paths.logDir])
      makePrivateDirectory(directory);
    prepareRunDirectory(paths, io.env);
    const { clusters } = await updateClusters(paths, io.env, (now) =>
      !mayHaveWorkers(io.env) || now.some(({ name }) => name === "local")
        ? now
        : [...now, parse(ClusterEntry, { name: "local", mode: "local" })],
    );
    if (json) {
      const names = clusters.map(({ name }) => name);
      await printJson(io.stdout, {
        core: paths.coreRoot,
        spool: paths.spoolRoot,
        clusters: paths.clustersFile,
        cluster_names: names,
        settings,
      });
    } else await io.stdout.write(`initialized core=${paths.coreRoot} spool=${paths.spoolRoot} clusters=${paths.clustersFile}\n`);
    return EXIT.ok;
  },
});
