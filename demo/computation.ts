import fs from "node:fs";
import path from "node:path";
import { DemoFailure, type Installation } from "./installation.ts";
import { check, command, indent, say } from "./narration.ts";
import type { Process } from "./process.ts";

export const PROGRAM = path.join(import.meta.dir, "heat.ts");
export const INPUT = path.join(import.meta.dir, "plate.f32");
const WIDTH = "1280";
/** Estimated before the code is warm, so the work turns out a little shorter. */
const WORK_MS = 24_000;
/** The executable runs a script when this is set. */
const AS_BUN = { BUN_BE_BUN: "1" };

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

/** The computation of the demonstration, as a command line. Its files are named as they are where it runs. */
export const workOf = (at: { executable: string; program: string; input: string }, steps: number): string[] => [
  ...[at.executable, at.program, "--input", at.input, "--width", WIDTH],
  ...["--steps", String(steps), "--out", "result"],
];

/** The same computation without the relay. */
interface Reference {
  readonly process: Bun.Subprocess;
  /** Where it leaves its result. */
  readonly directory: string;
  output(): Promise<Buffer>;
}

/** How many steps make enough work on this machine. */
export async function calibrate(relay: Installation): Promise<number> {
  const child = Bun.spawn([relay.executable, PROGRAM, "--input", INPUT, "--width", WIDTH, "--calibrate"], {
    env: { ...relay.environment, ...AS_BUN },
  });
  const { ms_per_step } = JSON.parse(await child.stdout.text()) as { ms_per_step: number };
  return Math.ceil(WORK_MS / ms_per_step / 100) * 100;
}

export function startReference(relay: Installation, steps: number): Reference {
  const directory = relay.file("reference");
  fs.mkdirSync(directory);
  const output = path.join(directory, "stdout");
  const child = Bun.spawn(workOf({ executable: relay.executable, program: PROGRAM, input: INPUT }, steps), {
    cwd: directory,
    env: { ...relay.environment, ...AS_BUN },
    stdout: Bun.file(output),
  });
  relay.owns(child);
  return { process: child, directory, output: async () => Buffer.from(await Bun.file(output).bytes()) };
}

interface Submission {
  readonly cluster: string;
  readonly workdir: string;
  readonly work: readonly string[];
  readonly steps: number;
}

export async function submit(relay: Installation, { cluster, workdir, work, steps }: Submission): Promise<string> {
  const args = ["job", "submit", "--cluster", cluster, "--workdir", workdir, "--env", "BUN_BE_BUN=1", "--output", "result/*"];
  command(`${args.join(" ")} -- \\\n    ${work.join(" ")}`);
  const receipt = JSON.parse(await relay.run(...args, "--json", "--", ...work)) as { job_id: string; state: string };
  say(`  ${receipt.job_id} is ${receipt.state}; ${fs.statSync(INPUT).size} bytes of input, ${steps} steps`);
  return receipt.job_id;
}

/** Follow live; every tenth line of output and of progress is enough to see. @param onLine gets them all */
export function watch(relay: Installation, jobId: string, onLine: (line: string) => void = () => undefined): Bun.Subprocess {
  const seen = new Map<string, number>();
  return relay.start(["job", "watch", jobId], {
    onLine(line) {
      onLine(line);
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

/** Wait until a share of the work is done; the process that does it. */
export async function untilProgress(relay: Installation, jobId: string, share: number): Promise<Process> {
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

/** Wait for the end, and check that the process is the one from before whatever happened. */
export async function checkEnd(relay: Installation, jobId: string, before: Process): Promise<void> {
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
}

export async function readLogByOffsets(relay: Installation, jobId: string): Promise<Buffer> {
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

export const artifactsOf = async (relay: Installation, jobId: string): Promise<Artifact[]> =>
  (await relay.json<{ artifacts: Artifact[] }>("job", "list-artifacts", jobId)).artifacts;

/** Fetch what the job left and hold it against the reference's result. */
export async function fetchArtifacts(relay: Installation, jobId: string, reference: string): Promise<void> {
  command(`job list-artifacts ${jobId}`);
  const artifacts = await artifactsOf(relay, jobId);
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
