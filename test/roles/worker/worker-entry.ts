/** A worker as a process of its own, from source: `bun worker-entry.ts DIRECTORY`. Settings come as WORKER_OPTIONS (JSON). */
import fs from "node:fs";
import path from "node:path";
import type { ShimLauncher } from "../../../src/execution/launcher.ts";
import { systemTimers } from "../../../src/lib/waiting/timers.ts";
import type { Scheduling } from "../../../src/roles/worker/allocation/scheduling.ts";
import { chooseLauncher } from "../../../src/roles/worker/launch.ts";
import { runWorker } from "../../../src/roles/worker/run.ts";
import type { SchedulerProvider } from "../../../src/scheduler/provider.ts";
import { FakeScheduler } from "./allocation/fake-scheduler.ts";
import { mortal } from "./mortal.ts";

/** Before the name of a call of the scheduler's, where a store has one of the same name. */
const SCHEDULER = "scheduler.";

const directory = process.argv[2]!;
const {
  limits = {},
  capacity = {},
  spares = 0,
  command,
  death = null,
  scheduling,
  shortage,
  ...rest
} = JSON.parse(process.env["WORKER_OPTIONS"] ?? "{}");
const FROM_SOURCE = [process.execPath, path.resolve(import.meta.dir, "../../../src/main.ts")];
const stop = new AbortController();

/** No shim can be started while there is a file `shortage`, as where the user has too many processes. */
function shortOf(launcher: ShimLauncher): ShimLauncher {
  const unlessShort = (): ShimLauncher => {
    if (shortage !== undefined && fs.existsSync(shortage)) throw Object.assign(new Error("EAGAIN: no more processes"), { code: "EAGAIN" });
    return launcher;
  };
  return {
    expect: () => launcher.expect(),
    launch: async (attemptDir) => unlessShort().launch(attemptDir),
    keep: async (args) => unlessShort().keep(args),
    close: () => launcher.close(),
  };
}

/** `scheduling.fake`: a scheduler in that directory. `faster`: by how much the clock runs faster by which a scheduler is asked. */
function schedulingOf(): { scheduling?: Scheduling } {
  if (scheduling === undefined) return {};
  const { fake, faster = 25, ...options } = scheduling;
  const clock = { now: () => Date.now(), monotonic: () => performance.now() * faster };
  const timers = { after: (ms: number, work: () => void) => systemTimers.after(ms / faster, work) };
  if (fake === undefined) return { scheduling: { ...options, observing: { clock, timers } } };
  const ofScheduler = death?.call.startsWith(SCHEDULER) ? { ...death, call: death.call.slice(SCHEDULER.length) } : null;
  const provide = () => mortal<SchedulerProvider>(new FakeScheduler(fake), ofScheduler);
  return { scheduling: { ...options, provide, observing: { clock, timers } } };
}

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
    command: command ?? FROM_SOURCE,
    ...schedulingOf(),
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
        command: command ?? FROM_SOURCE,
        environment: process.env,
        spares,
        spool: rest.spoolDir ?? path.join(directory, "spool"),
        log,
      });
      return mortal(shortOf(launcher), death);
    },
    onReady: () => console.log("ready"),
    ...rest,
  },
  stop.signal,
);
process.exit(0);
