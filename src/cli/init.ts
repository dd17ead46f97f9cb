import fs from "node:fs";
import { parse } from "valibot";
import { ClusterEntry } from "../config/cluster-entry.ts";
import { updateClusters } from "../config/clusters.ts";
import { mayHaveWorkers } from "../config/environment.ts";
import { prepareRunDirectory } from "../config/run-directory.ts";
import { EXIT } from "../domain/errors.ts";
import { makePrivateDirectory } from "../lib/files/atomic-file.ts";
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
    const directories = [paths.configDir, paths.coreRoot, paths.spoolRoot, paths.cacheDir, paths.logDir];
    let changed = [...directories, paths.runDir, paths.clustersFile].some((place) => !fs.existsSync(place));
    for (const directory of directories) makePrivateDirectory(directory);
    prepareRunDirectory(paths, io.env);
    const { clusters } = await updateClusters(paths, io.env, (now) => {
      if (!mayHaveWorkers(io.env) || now.some(({ name }) => name === "local")) return now;
      changed = true;
      return [...now, parse(ClusterEntry, { name: "local", mode: "local" })];
    });
    const names = clusters.map(({ name }) => name);
    if (json) {
      await printJson(io.stdout, {
        core: paths.coreRoot,
        spool: paths.spoolRoot,
        clusters: paths.clustersFile,
        cluster_names: names,
        changed,
        settings,
      });
      return EXIT.ok;
    }
    await io.stdout.write(`initialized core=${paths.coreRoot} spool=${paths.spoolRoot} clusters=${paths.clustersFile}\n`);
    if (!changed) await io.stderr.write(`notice: all of it was there, and nothing was changed; clusters: ${names.join(", ") || "none"}\n`);
    return EXIT.ok;
  },
});
