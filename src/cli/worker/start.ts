import fs from "node:fs";
import { clusterEntry } from "../../config/clusters.ts";
import { variable } from "../../config/environment.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { tryLock } from "../../lib/file-lock.ts";
import { startInBackground } from "../../roles/background.ts";
import { backgroundEnvironment } from "../../roles/background-environment.ts";
import { probe } from "../../roles/probe.ts";
import { CLUSTER } from "../cluster-option.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { CAPACITY, capacityWith } from "./capacity-options.ts";
import { localCluster, localWorker, restartCommand, runningWorker } from "./local-worker.ts";

const WITHIN_MS = 60_000;
const POLL_MS = 50;

export const verb = defineVerb({
  summary: "Run a worker in the background",
  details:
    "Returns when it answers. Its messages are in the log directory. A worker that runs already is left alone, with the limits that it began with.",
  positionals: {},
  flags: {
    cluster: CLUSTER,
    ...CAPACITY,
  },
  examples: [["worker start --cluster local", "start it and go on"]],
  async run({ flags, io, json, relay }) {
    const { paths } = relay;
    const { name, registry } = await localCluster(io, relay, flags.cluster);
    const { worker_capacity: configured } = clusterEntry(registry, name);
    const capacity = capacityWith(configured, {
      concurrency: flags.concurrency,
      control: flags["control-query-concurrency"],
      kinds: flags["kind-concurrency"],
    });
    prepareRunDirectory(paths, io.env);
    const socket = paths.workerSocket(name);
    const answers = (): Promise<boolean> =>
      probe(socket, 2_000).then(
        () => true,
        () => false,
      );
    const worker = localWorker(io, relay, name);
    /** @param started the process that this command started; the worker that answers may be another */
    const report = async (started: number | null): Promise<number> => {
      const log = paths.workerLog(name);
      const running = await runningWorker(worker);
      const pid = running?.process.pid ?? null;
      const state = started !== null && (pid === null || pid === started) ? "started" : "already_running";
      if (json) await printJson(io.stdout, { cluster: name, state, pid: pid ?? started, log });
      else if (state === "started") await io.stdout.write(`worker of ${name} runs as process ${started}; its log is ${log}\n`);
      else await io.stdout.write(`worker of ${name} runs already${pid === null ? "" : ` as process ${pid}`}\n`);
      const options = passedOn(flags);
      if (state === "already_running" && options.length > 0 && running !== null && !Bun.deepEquals(running.capacity, capacity)) {
        await io.stderr.write(
          `notice: it runs with other limits; these take effect when it is restarted: ${restartCommand(name, options)}\n`,
        );
      }
      return EXIT.ok;
    };
    const late = (pid: number | null): RelayError =>
      new RelayError(
        "observation_timeout",
        `the worker${pid === null ? "" : `, process ${pid},`} has not answered yet`,
        pid === null ? {} : { pid },
        `see ${paths.workerLog(name)}`,
      );
    const deadline = performance.now() + WITHIN_MS;
    while (!(await answers())) {
      // Of several commands that want the same at once one starts it; the others wait for it to answer.
      const lock = tryLock(paths.workerStartLock(name));
      try {
        if (lock !== null && !(await answers())) {
          const outcome = await startInBackground({
            command: [...io.self, "worker", "run", "--cluster", name, ...passedOn(flags)],
            cwd: startDirectory(io.env.home),
            environment: backgroundEnvironment(paths, io.env),
            withinAttempt: variable(io.env, "CLIO_RELAY_ATTEMPT"),
            stderrFile: paths.workerLog(name),
            ready: answers,
            withinMs: deadline - performance.now(),
          });
          if (outcome.state === "ready") return await report(outcome.pid);
          if (outcome.state === "late") throw late(outcome.pid);
          // One that was started in another way was faster.
          if (await answers()) break;
          throw new RelayError(
            "worker_not_running",
            `the worker ended at once: ${outcome.said === "" ? `exit code ${outcome.exitCode}` : outcome.said}`,
            {},
            `see ${paths.workerLog(name)}`,
          );
        }
      } finally {
        lock?.release();
      }
      if (performance.now() > deadline) throw late(null);
      await Bun.sleep(POLL_MS);
    }
    return report(null);
  },
});

/** Where a worker runs; the home directory that a name service knows need not be there. */
const startDirectory = (home: string): string => (fs.statSync(home, { throwIfNoEntry: false })?.isDirectory() ? home : "/");

const passedOn = (flags: {
  readonly concurrency: number | undefined;
  readonly "control-query-concurrency": number | undefined;
  readonly "kind-concurrency": readonly (readonly [string, number])[];
}): string[] => [
  ...(flags.concurrency === undefined ? [] : ["--concurrency", String(flags.concurrency)]),
  ...(flags["control-query-concurrency"] === undefined ? [] : ["--control-query-concurrency", String(flags["control-query-concurrency"])]),
  ...flags["kind-concurrency"].flatMap(([kind, limit]) => ["--kind-concurrency", `${kind}=${limit}`]),
];
