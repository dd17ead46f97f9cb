import { EXIT, RelayError } from "../../domain/errors.ts";
import { terminate, workerProcess } from "../../roles/worker-process.ts";
import { CLUSTER } from "../cluster-option.ts";
import { printJson } from "../print/table.ts";
import { patience } from "../values.ts";
import { defineVerb, optionOr } from "../verb.ts";

export const verb = defineVerb({
  summary: "Stop a worker; its jobs go on",
  details: "The worker takes no new jobs and ends; running jobs go on, and the next worker takes them over.",
  positionals: {},
  flags: { cluster: CLUSTER, "timeout-seconds": optionOr(patience, 30, "How long to wait for its end") },
  examples: [["worker stop --cluster local", "stop it and wait until it is gone"]],
  async run({ flags, io, json, relay }) {
    const cluster = await relay.cluster(flags.cluster);
    const identity = await workerProcess(cluster, relay.paths.coreDir(cluster.name));
    if (identity !== null && !(await terminate(identity, flags["timeout-seconds"] * 1_000))) {
      throw new RelayError("observation_timeout", `the worker, process ${identity.pid}, was asked to stop and still runs`, {
        pid: identity.pid,
      });
    }
    const state = identity === null ? "not_running" : "stopped";
    if (json) await printJson(io.stdout, { cluster: cluster.name, state, pid: identity?.pid ?? null });
    else await io.stdout.write(identity === null ? `no worker is running for ${cluster.name}\n` : `stopped process ${identity.pid}\n`);
    return EXIT.ok;
  },
});
