/** A worker as a process of its own, from source: `bun worker-entry.ts DIRECTORY`. Settings come as WORKER_OPTIONS (JSON). */
import path from "node:path";
import { chooseLauncher } from "../../../src/roles/worker/launch.ts";
import { runWorker } from "../../../src/roles/worker/run.ts";
import { mortal } from "./mortal.ts";

const directory = process.argv[2]!;
const { limits = {}, capacity = {}, spares = 0, command, death = null, ...rest } = JSON.parse(process.env["WORKER_OPTIONS"] ?? "{}");
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());

await runWorker(
  {
    cluster: "local",
    version: "test",
    capacity: { concurrency: 5, control_query_concurrency: 1, kind_concurrency: {}, scheduler_jobs: 500, ...capacity },
    limits: {
      logStreamBytes: 64 * 1024 * 1024,
      logJobBytes: 128 * 1024 * 1024,
      artifactStoreBytes: 1024 * 1024,
      inputInlineMaxBytes: 1024 * 1024,
      minFreeBytes: 0,
      activeJobsMax: 100_000,
      cancelGraceSeconds: 1,
      ...limits,
    },
    coreDir: path.join(directory, "core"),
    spoolDir: path.join(directory, "spool"),
    socketPath: path.join(directory, "run", "worker.sock"),
    environment: process.env,
    homeDir: directory,
    executableDir: null,
    envSetup: null,
    envSetupStrict: false,
    takeOver: false,
    confirmHostDead: false,
    storeThrough: (store) => mortal(store, death),
    launcher: async (log) => {
      const launcher = await chooseLauncher({
        command: command ?? [process.execPath, path.resolve(import.meta.dir, "../../../src/main.ts")],
        environment: process.env,
        spares,
        spool: rest.spoolDir ?? path.join(directory, "spool"),
        log,
      });
      return mortal(launcher, death);
    },
    onReady: () => console.log("ready"),
    ...rest,
  },
  stop.signal,
);
process.exit(0);
