import fs from "node:fs";
import {
  artifactsOf,
  calibrate,
  checkEnd,
  fetchArtifacts,
  INPUT,
  PROGRAM,
  readLogByOffsets,
  startReference,
  submit,
  untilProgress,
  watch,
  workOf,
} from "./computation.ts";
import { DemoFailure, type Installation } from "./installation.ts";
import { check, command, indent, say } from "./narration.ts";
import { alive, gone, type Process } from "./process.ts";

/** Share of the work after which the worker is killed. */
const KILL_AT = 0.4;

/** The first half: on this machine, the worker is killed in the middle. Returns how many steps were enough work. */
export async function workerDies(relay: Installation): Promise<number> {
  say("A job survives the death of the worker that started it.");
  say(`Everything lies in ${relay.directory} and is removed at the end.`);

  command("init");
  say(indent(await relay.run("init")));
  command("worker run --cluster local &");
  let worker = await startWorker(relay);
  say(`  worker runs as process ${worker.pid}`);

  const steps = await calibrate(relay);
  const reference = startReference(relay, steps);
  const workdir = relay.file("work");
  fs.mkdirSync(workdir);
  const work = workOf({ executable: relay.executable, program: PROGRAM, input: INPUT }, steps);
  const jobId = await submit(relay, { cluster: "local", workdir, work, steps });

  command(`job watch ${jobId}`);
  const watcher = watch(relay, jobId);
  const before = await untilProgress(relay, jobId, KILL_AT);

  say(`\n  ---- kill -9 ${worker.pid} (the worker) ----`);
  process.kill(worker.pid, "SIGKILL");
  await gone(worker.pid);
  check("the worker is gone", !alive(worker));
  check("the job goes on without it", alive(before), `process ${before.pid}`);
  worker = await startWorker(relay);
  say(`  ---- started again as process ${worker.pid} ----\n`);

  const code = await watcher.exited;
  check("the watch lived through it and ended with the job", code === 0, `exit code ${code}`);
  await checkEnd(relay, jobId, before);

  say("\nThe same computation without the relay, which has run beside it since the start:");
  check("it ended well", (await reference.process.exited) === 0);
  const log = await readLogByOffsets(relay, jobId);
  check("the log, read piece by piece, is its output byte for byte", log.equals(await reference.output()), `${log.length} bytes`);

  await fetchArtifacts(relay, jobId, reference.directory);
  await showProvenance(relay, jobId);
  return steps;
}

async function startWorker(relay: Installation): Promise<Process> {
  relay.start(["worker", "run", "--cluster", "local"], { file: `worker-${Date.now()}.log` });
  const deadline = Date.now() + 20_000;
  for (;;) {
    try {
      const status = await relay.json<{ workers: { process: Process }[] }>("worker", "status", "--cluster", "local");
      return status.workers[0]!.process;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await Bun.sleep(100);
    }
  }
}

async function showProvenance(relay: Installation, jobId: string): Promise<void> {
  const provenance = (await artifactsOf(relay, jobId)).find((artifact) => artifact.kind === "provenance");
  if (provenance === undefined) throw new DemoFailure("the job has no provenance");
  command(`job read-artifact ${provenance.artifact_id} -o -`);
  const text = await relay.run("job", "read-artifact", provenance.artifact_id, "-o", "-");
  say(indent(JSON.stringify(JSON.parse(text), null, 2)));
}
