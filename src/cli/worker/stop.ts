import { clusterEntry } from "../../config/clusters.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { terminate, workerProcess } from "../../roles/worker-process.ts";
import { CLUSTER } from "../cluster-option.ts";
import { printJson } from "../print/table.ts";
import { patience } from "../values.ts";
import { also, defineVerb, optionOr } from "../verb.ts";
import { SSH, stopElsewhere } from "./elsewhere.ts";
import { clusterElsewhere, localCluster, localWorker } from "./local-worker.ts";

export const verb = defineVerb({
  summary: "Stop a worker; its jobs go on",
  details:
    "The worker takes no new jobs and ends; running jobs go on, and the next worker takes them over. So does the host of a cluster that is reached by ssh, over the connection that is there or a new one; its service stays stopped until worker start.",
  positionals: {},
  flags: { cluster: CLUSTER, ssh: SSH, "timeout-seconds": also(optionOr(patience, 30, "How long to wait for its end"), "timeout") },
  examples: [["worker stop --cluster local", "stop it and wait until it is gone"]],
  async run(call) {
    const { flags, io, json, relay } = call;
    const elsewhere = await clusterElsewhere(io, relay, flags.cluster);
    if (elsewhere !== null) return stopElsewhere(call, elsewhere, flags.ssh);
    // All that is needed lies on this machine; no daemon is asked, or started.
    const { name, registry } = await localCluster(io, relay, flags.cluster);
    const identity = await workerProcess(localWorker(io, relay, name), relay.paths.coreDir(name));
    // The worker of a cluster that was forgotten may run on.
    if (identity === null) clusterEntry(registry, name);
    if (identity !== null && !(await terminate(identity, flags["timeout-seconds"] * 1_000))) {
      throw new RelayError("observation_timeout", `the worker, process ${identity.pid}, was asked to stop and still runs`, {
        pid: identity.pid,
      });
    }
    const state = identity === null ? "not_running" : "stopped";
    if (json) await printJson(io.stdout, { cluster: name, state, pid: identity?.pid ?? null });
    else await io.stdout.write(identity === null ? `no worker is running for ${name}\n` : `stopped process ${identity.pid}\n`);
    return EXIT.ok;
  },
});
