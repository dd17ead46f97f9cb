import { clusterEntry } from "../../config/clusters.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { killProcess, terminate, workerProcess } from "../../roles/worker-process.ts";
import { killCommand } from "../../transport/link-failures.ts";
import { CLUSTER } from "../cluster-option.ts";
import { printJson } from "../print/table.ts";
import { patience } from "../values.ts";
import { also, defineVerb, optionOr, toggle } from "../verb.ts";
import { SSH, stopElsewhere } from "./elsewhere.ts";
import { clusterElsewhere, localCluster, localWorker } from "./local-worker.ts";

export const verb = defineVerb({
  summary: "Stop a worker; its jobs go on",
  details:
    "The worker takes no new jobs and ends; running jobs go on, and the next worker takes them over. So does the host of a cluster that is reached by ssh, over the connection that is there or a new one; its service stays stopped until worker start.",
  positionals: {},
  flags: {
    cluster: CLUSTER,
    ssh: SSH,
    "timeout-seconds": also(optionOr(patience, 30, "How long to wait for its end"), "timeout"),
    kill: toggle("End it by force where it has not ended by then: one that hangs, or is stopped by a signal. Its jobs go on all the same"),
  },
  examples: [
    ["worker stop --cluster local", "stop it and wait until it is gone"],
    ["worker stop --kill --timeout 5", "one that does not answer any more"],
  ],
  async run(call) {
    const { flags, io, json, relay } = call;
    const elsewhere = await clusterElsewhere(io, relay, flags.cluster);
    if (elsewhere !== null) return stopElsewhere(call, elsewhere, flags.ssh, flags.kill);
    // All that is needed lies on this machine; no daemon is asked, or started.
    const { name, registry } = await localCluster(io, relay, flags.cluster);
    const identity = await workerProcess(localWorker(io, relay, name), relay.paths.coreDir(name));
    // The worker of a cluster that was forgotten may run on.
    if (identity === null) clusterEntry(registry, name);
    const ended = identity === null || (await terminate(identity, flags["timeout-seconds"] * 1_000));
    if (!ended && !(flags.kill && (await killProcess(identity)))) {
      throw new RelayError(
        "observation_timeout",
        `the worker, process ${identity.pid}, was ${flags.kill ? "killed" : "asked to stop"} and still runs`,
        { pid: identity.pid },
        flags.kill ? "it waits for the system, for a file system that does not answer most of the time" : killCommand(name),
      );
    }
    const state = identity === null ? "not_running" : "stopped";
    if (json) await printJson(io.stdout, { cluster: name, state, pid: identity?.pid ?? null });
    else await io.stdout.write(identity === null ? `no worker is running for ${name}\n` : `stopped process ${identity.pid}\n`);
    return EXIT.ok;
  },
});
