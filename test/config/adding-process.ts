// Adds clusters to a registry, one after the other: registry file, run directory, prefix, how many.
import { updateClusters } from "../../src/config/clusters.ts";
import { readEnvironment } from "../../src/config/environment.ts";

const [clustersFile = "", runDir = "", prefix = "", count = "0"] = process.argv.slice(2);
for (let i = 0; i < Number(count); i++) {
  const name = `${prefix}${i}`;
  await updateClusters({ clustersFile, runDir }, readEnvironment(), (clusters) => [
    ...clusters,
    { name, mode: "local", env_setup: null, worker_capacity: { concurrency: 2, control_query_concurrency: 1, kind_concurrency: {} } },
  ]);
}
