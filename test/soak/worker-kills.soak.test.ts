import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isAlive } from "../../src/lib/process-identity.ts";
import { historyFaults, WorkerHarness } from "../roles/worker/harness.ts";
import { randomOf, scaled, soakSettings } from "../runner/soak.ts";

/** What one job has to have left, whatever died meanwhile. */
interface Expected {
  readonly jobId: string;
  readonly state: "succeeded" | "failed";
  readonly stdout: string;
  /** Runs that its own process counted: more than one per attempt would mean that something was started twice. */
  readonly starts: string;
  readonly progress: number;
}

const KILLS = 50;
const JOBS = 200;

/** Whole numbers below a bound. */
type Below = (bound: number) => number;

function jobOf(below: Below, starts: string): { line: string; stdout: string; state: Expected["state"]; progress: number } {
  const count = 1 + below(60);
  const pause = (below(40) / 1_000).toFixed(3);
  const lines = Array.from({ length: count }, (_, i) => `line ${i} ${"é".repeat(i % 7)}\n`).join("");
  const reports = below(4);
  const body = [
    `echo $$ >> ${starts}`,
    ...Array.from(
      { length: reports },
      (_, i) => `echo '{"type":"progress","current":${i + 1},"total":${reports}}' >> "$CLIO_RELAY_EVENTS/own.jsonl"`,
    ),
    `i=0; while [ $i -lt ${count} ]; do printf 'line %d ' $i; k=$((i % 7)); while [ $k -gt 0 ]; do printf 'é'; k=$((k-1)); done; echo; i=$((i+1)); sleep ${pause}; done`,
  ];
  const fails = below(5) === 0;
  return {
    line: [...body, fails ? "exit 9" : "exit 0"].join("; "),
    stdout: lines,
    state: fails ? "failed" : "succeeded",
    progress: reports,
  };
}

test("the worker is killed again and again: every job ends once, no byte is missing or doubled, every history is whole", async () => {
  const random = randomOf(soakSettings().seed);
  const below: Below = (bound) => Math.floor(random() * bound);
  const kills = scaled(KILLS, 5);
  const jobs = scaled(JOBS, 20);
  await using worker = await new WorkerHarness({ capacity: { concurrency: 13 }, spares: 2 }).start();
  const expected: Expected[] = [];
  const startsDir = path.join(worker.directory, "starts");
  fs.mkdirSync(startsDir);

  let submitted = 0;
  for (let kill = 0; kill < kills; kill++) {
    const until = Math.round(((kill + 1) * jobs) / kills);
    for (; submitted < until; submitted++) {
      const starts = path.join(startsDir, String(submitted));
      const job = jobOf(below, starts);
      const { job_id } = await worker.shell(job.line);
      expected.push({ jobId: job_id, state: job.state, stdout: job.stdout, starts, progress: job.progress });
    }
    await Bun.sleep(below(600));
    await worker.kill();
    if (below(3) === 0) await Bun.sleep(below(400));
    await worker.start();
  }

  const faults: string[] = [];
  for (const { jobId, state, stdout, starts, progress } of expected) {
    const { job, attempt } = await worker.ended(jobId, 120_000);
    const note = (fault: string) => faults.push(`${jobId}: ${fault}`);
    if (job.state !== state) note(`${job.state} instead of ${state}: ${JSON.stringify(job.outcome)}`);
    const output = await worker.stdout(jobId);
    if (output !== stdout) note(`stdout has ${output.length} of ${stdout.length} characters`);
    const runs = fs.readFileSync(starts, "utf8").trim().split("\n").length;
    if (runs !== 1) note(`started ${runs} times`);
    const reports = (await worker.client.progress(jobId, { limit: 500 })).total;
    if (reports !== progress) note(`${reports} of ${progress} progress reports`);
    for (const fault of historyFaults(await worker.events(jobId))) note(fault);
    if (attempt?.process != null && isAlive(attempt.process)) note("its process still runs");
  }
  expect(faults).toEqual([]);
  expect(expected.length).toBe(jobs);
  expect(await worker.client.http.json<{ ok: boolean; findings: unknown[] }>("/queue/audit", { method: "POST" })).toMatchObject({
    ok: true,
    findings: [],
  });
});
