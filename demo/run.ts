/**
 * The demonstration: a real computation under the relay whose worker is killed in the middle. Every claim that it prints is
 * checked; the exit code is 0 only if all of them held.
 */
import fs from "node:fs";
import path from "node:path";
import { DemoFailure, Installation } from "./installation.ts";

const ROOT = path.dirname(import.meta.dir);
const EXECUTABLE = path.join(ROOT, "dist", process.platform === "win32" ? "clio-relay.exe" : "clio-relay");
const PROGRAM = path.join(ROOT, "demo", "heat.ts");
const INPUT = path.join(ROOT, "demo", "plate.f32");
const WIDTH = "1280";
/** Estimated before the code is warm, so the work turns out a little shorter. */
const WORK_MS = 32_000;
/** Share of the work after which the worker is killed. */
const KILL_AT = 0.4;
/** The executable runs a script when this is set. */
const AS_BUN = { BUN_BE_BUN: "1" };

interface Process {
  pid: number;
  start_time: number;
}
interface Status {
  job: { state: string };
  attempt: { process: Process | null } | null;
  progress: { label: string; current: number; total: number }[];
}
interface Artifact {
  artifact_id: string;
  kind: string;
  name: string;
  size_bytes: number;
  sha256: string;
}

const relay = new Installation(EXECUTABLE);
const say = (text = "") => console.log(text);
const command = (text: string) => say(`\n$ clio-relay ${text}`);

function check(claim: string, holds: boolean, detail = ""): void {
  say(`  ${holds ? "ok" : "FAILED"}  ${claim}${detail === "" ? "" : ` (${detail})`}`);
  if (!holds) throw new DemoFailure(claim);
}

async function demonstrate(): Promise<void> {
  say("A job survives the death of the worker that started it.");
  say(`Everything lies in ${relay.directory} and is removed at the end.`);

  command("init");
  say(indent(await relay.run("init")));
  command("worker run --cluster local &");
  let worker = await startWorker();
  say(`  worker runs as process ${worker.pid}`);

  const steps = await calibrate();
  const reference = startReference(steps);
  const jobId = await submit(steps);

  command(`job watch ${jobId}`);
  const watcher = watch(jobId);
  const before = await untilProgress(jobId, KILL_AT);

  say(`\n  ---- kill -9 ${worker.pid} (the worker) ----`);
  process.kill(worker.pid, "SIGKILL");
  await gone(worker.pid);
  check("the worker is gone", !alive(worker));
  check("the job goes on without it", alive(before), `process ${before.pid}`);
  worker = await startWorker();
  say(`  ---- started again as process ${worker.pid} ----\n`);

  const code = await watcher.exited;
  check("the watch lived through it and ended with the job", code === 0, `exit code ${code}`);

  command(`job wait ${jobId}`);
  const job = await relay.json<{ state: string; attempts: number; observation: { outcome: string } }>("job", "wait", jobId);
  check("the job succeeded", job.state === "succeeded", `observation ${job.observation.outcome}`);
  check("it was started once", job.attempts === 1, `${job.attempts} attempt`);
  const after = (await relay.json<Status>("job", "status", jobId)).attempt?.process;
  check(
    "process id and start time are those from before",
    after?.pid === before.pid && after.start_time === before.start_time,
    `pid ${after?.pid}, start time ${after?.start_time}`,
  );

  say("\nThe same computation without the relay, which has run beside it since the start:");
  check("it ended well", (await reference.process.exited) === 0);
  const log = await readLogByOffsets(jobId);
  check("the log, read piece by piece, is its output byte for byte", log.equals(await reference.output()), `${log.length} bytes`);

  await fetchArtifacts(jobId, reference.directory);
  await showProvenance(jobId);
}

async function startWorker(): Promise<Process> {
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

/** How many steps make enough work on this machine. */
async function calibrate(): Promise<number> {
  const child = Bun.spawn([EXECUTABLE, PROGRAM, "--input", INPUT, "--width", WIDTH, "--calibrate"], {
    env: { ...relay.environment, ...AS_BUN },
  });
  const { ms_per_step } = JSON.parse(await child.stdout.text()) as { ms_per_step: number };
  return Math.ceil(WORK_MS / ms_per_step / 100) * 100;
}

function startReference(steps: number) {
  const directory = relay.file("reference");
  fs.mkdirSync(directory);
  const output = path.join(directory, "stdout");
  const child = Bun.spawn([EXECUTABLE, PROGRAM, "--input", INPUT, "--width", WIDTH, "--steps", String(steps), "--out", "result"], {
    cwd: directory,
    env: { ...relay.environment, ...AS_BUN },
    stdout: Bun.file(output),
  });
  relay.owns(child);
  return { process: child, directory, output: async () => Buffer.from(await Bun.file(output).bytes()) };
}

async function submit(steps: number): Promise<string> {
  const workdir = relay.file("work");
  fs.mkdirSync(workdir);
  const args = ["job", "submit", "--cluster", "local", "--workdir", workdir, "--env", "BUN_BE_BUN=1", "--output", "result/*"];
  const work = [EXECUTABLE, PROGRAM, "--input", INPUT, "--width", WIDTH, "--steps", String(steps), "--out", "result"];
  command(`${args.join(" ")} -- \\\n    ${work.join(" ")}`);
  const receipt = JSON.parse(await relay.run(...args, "--json", "--", ...work)) as { job_id: string; state: string };
  say(`  ${receipt.job_id} is ${receipt.state}; ${fs.statSync(INPUT).size} bytes of input, ${steps} steps`);
  return receipt.job_id;
}

/** Follow live; every tenth line of output and of progress is enough to see. */
function watch(jobId: string): Bun.Subprocess {
  const seen = new Map<string, number>();
  return relay.start(["job", "watch", jobId], {
    onLine(line) {
      const kind = /^(stdout|progress) \|/.exec(line)?.[1];
      if (kind !== undefined) {
        const count = seen.get(kind) ?? 0;
        seen.set(kind, count + 1);
        if (count % 10 !== 0) return;
      }
      say(`  | ${line}`);
    },
  });
}

async function untilProgress(jobId: string, share: number): Promise<Process> {
  const deadline = Date.now() + 100_000;
  while (Date.now() < deadline) {
    const { job, attempt, progress } = await relay.json<Status>("job", "status", jobId);
    const { current = 0, total = 1 } = progress[0] ?? {};
    if (current / total >= share && attempt?.process) return attempt.process;
    if (!["queued", "leased", "running"].includes(job.state)) throw new DemoFailure(`the job ended too early: ${job.state}`);
    await Bun.sleep(250);
  }
  throw new DemoFailure("the job makes no progress");
}

async function readLogByOffsets(jobId: string): Promise<Buffer> {
  command(`job read-log ${jobId} --offset N --limit 4096`);
  const pieces: string[] = [];
  for (let offset = 0; ; ) {
    const chunk = await relay.json<{ next_offset: number; eof: boolean; text: string }>(
      ...["job", "read-log", jobId, "--offset", String(offset), "--limit", "4096"],
    );
    pieces.push(chunk.text);
    offset = chunk.next_offset;
    if (chunk.eof) break;
  }
  say(`  ${pieces.length} pieces; the last lines are`);
  const text = pieces.join("");
  say(indent(text.trimEnd().split("\n").slice(-2).join("\n")));
  return Buffer.from(text);
}

async function fetchArtifacts(jobId: string, reference: string): Promise<void> {
  command(`job list-artifacts ${jobId}`);
  const { artifacts } = await relay.json<{ artifacts: Artifact[] }>("job", "list-artifacts", jobId);
  for (const artifact of artifacts)
    say(`  ${artifact.kind.padEnd(17)} ${String(artifact.size_bytes).padStart(9)}  ${artifact.sha256.slice(0, 16)}…  ${artifact.name}`);
  const outputs = artifacts.filter((artifact) => artifact.kind === "execution_output");
  check("both declared outputs are there", outputs.length === 2);
  for (const output of outputs) {
    const target = relay.file(path.basename(output.name));
    command(`job read-artifact ${output.artifact_id} -o ${path.basename(target)}`);
    await relay.run("job", "read-artifact", output.artifact_id, "-o", target);
    const bytes = fs.readFileSync(target);
    const digest = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    check("its SHA-256 is the recorded one", digest === output.sha256, `${digest.slice(0, 16)}…`);
    check("it is the reference's result byte for byte", bytes.equals(fs.readFileSync(path.join(reference, output.name))), output.name);
  }
}

async function showProvenance(jobId: string): Promise<void> {
  const { artifacts } = await relay.json<{ artifacts: Artifact[] }>("job", "list-artifacts", jobId);
  const provenance = artifacts.find((artifact) => artifact.kind === "provenance");
  if (provenance === undefined) throw new DemoFailure("the job has no provenance");
  command(`job read-artifact ${provenance.artifact_id} -o -`);
  const text = await relay.run("job", "read-artifact", provenance.artifact_id, "-o", "-");
  say(indent(JSON.stringify(JSON.parse(text), null, 2)));
}

const indent = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n");

function alive(target: Process): boolean {
  try {
    const stat = fs.readFileSync(`/proc/${target.pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] !== "Z" && Number(fields[19]) === target.start_time;
  } catch {
    return false;
  }
}

async function gone(pid: number): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (Date.now() < deadline) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await Bun.sleep(20);
  }
}

try {
  await demonstrate();
  say("\nEverything above was verified.");
} catch (error) {
  process.exitCode = 1;
  say(`\nThe demonstration failed: ${error instanceof Error ? error.message : String(error)}`);
  if (!(error instanceof DemoFailure)) console.error(error);
} finally {
  await relay.remove();
  say(`Removed ${relay.directory}`);
}
