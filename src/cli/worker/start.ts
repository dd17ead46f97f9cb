import { clusterEntry } from "../../config/clusters.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { CAPACITY, capacityOf, capacityWords, workerCapacity } from "./capacity-options.ts";
import { otherDirectories, refuseOtherDirectories } from "./directories.ts";
import { SSH, startElsewhere } from "./elsewhere.ts";
import { ensureWorker } from "./ensure-worker.ts";
import { clusterElsewhere, localCluster, localWorker, restartCommand, runningWorker } from "./local-worker.ts";

export const verb = defineVerb({
  summary: "Run a worker in the background",
  details:
    "Returns when it answers. Its messages are in the log directory. A worker that runs already is left alone, with the limits that it began with. On the host of a cluster that is reached by ssh it is started over the connection that is there, or a new one.",
  positionals: {},
  flags: {
    cluster: CLUSTER,
    ...CAPACITY,
    ssh: SSH,
  },
  examples: [["worker start --cluster local", "start it and go on"]],
  async run(call) {
    const { flags, io, json, relay } = call;
    const { paths, settings } = relay;
    const elsewhere = await clusterElsewhere(io, relay, flags.cluster);
    if (elsewhere !== null) return startElsewhere(call, elsewhere, capacityWords(flags), flags.ssh);
    const { name, registry } = await localCluster(io, relay, flags.cluster);
    const capacity = workerCapacity(capacityOf(clusterEntry(registry, name).worker_capacity, flags), settings);
    const options = capacityWords(flags);
    prepareRunDirectory(paths, io.env);
    const started = await ensureWorker(io, relay, name, options);
    const running = await runningWorker(localWorker(io, relay, name));
    const pid = running?.process.pid ?? null;
    const state = started !== null && (pid === null || pid === started) ? "started" : "already_running";
    if (state === "already_running" && running !== null) refuseOtherDirectories(io.env, paths, running);
    const log = paths.workerLog(name);
    if (json) await printJson(io.stdout, { cluster: name, state, pid: pid ?? started, log });
    else if (state === "started") await io.stdout.write(`worker of ${name} runs as process ${started}; its log is ${log}\n`);
    else await io.stdout.write(`worker of ${name} runs already${pid === null ? "" : ` as process ${pid}`}\n`);
    const apart = state === "already_running" && running !== null ? otherDirectories(paths, running) : null;
    if (apart !== null) await io.stderr.write(`notice: ${apart}\n`);
    if (state === "already_running" && options.length > 0 && running !== null && !Bun.deepEquals(running.capacity, capacity)) {
      await io.stderr.write(
        `notice: it runs with other limits; these take effect when it is restarted: ${restartCommand(name, options)}\n`,
      );
    }
    return EXIT.ok;
  },
});
