import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { jobDirectory } from "../../../src/execution/attempt-dir.ts";
import { auditOffline } from "../../../src/roles/worker/offline.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";
import type { Death } from "./mortal.ts";

const KEY = "once";
/** Counts its starts by files that only one start can make; reports, writes, and leaves an output. */
const LINE = [
  "n=$" + "{CLIO_RELAY_ATTEMPT##*/}",
  "(set -C; : > started-$n) || : > again-$n",
  `echo '{"type":"progress","current":1}' >> "$CLIO_RELAY_EVENTS/own.jsonl"`,
  "echo result > out",
  "echo said",
].join("; ");

const submit = (worker: WorkerHarness) =>
  worker.submit({ argv: ["/bin/sh", "-c", LINE], workdir: worker.directory, outputs: ["out"] }, { idempotency_key: KEY });

/** Run a worker that dies at a call. The answer to the submission may get lost with it. */
async function dies(directory: string, death: Death): Promise<void> {
  const worker = new WorkerHarness({ death }, directory);
  const child = worker.spawn();
  const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
  try {
    await eventually(async () => ended() || (await submit(worker)), { what: "a worker to submit to" });
    await eventually(ended, { what: `death ${death.when} ${death.call}` });
    expect(child.signalCode).toBe("SIGKILL");
  } finally {
    await worker.kill();
  }
}

/** The names in the job's directory of artifacts. */
function stored(worker: WorkerHarness, jobId: string): string[] {
  const directory = path.join(jobDirectory(worker.spoolDir, jobId), "artifacts");
  return fs.existsSync(directory) ? fs.readdirSync(directory).sort() : [];
}

/** After these deaths, one after the other: the job ran once, and everything of it is there once. Returns the attempts' states. */
async function survives(deaths: readonly Death[], between: (worker: WorkerHarness, jobId: string) => void = () => undefined) {
  await using worker = new WorkerHarness();
  for (const death of deaths) await dies(worker.directory, death);
  for (const jobId of fs.readdirSync(worker.spoolDir).filter((name) => name.startsWith("job_"))) between(worker, jobId);
  await worker.start();
  const { job_id } = await submit(worker);
  const { job } = await worker.ended(job_id);
  expect(job).toMatchObject({ state: "succeeded", outcome: { reason: "completed" } });
  expect(fs.readdirSync(worker.directory).filter((name) => /^(?:started|again)-/.test(name))).toEqual([`started-${job.attempts}`]);
  expect(await worker.stdout(job_id)).toBe("said\n");
  expect((await worker.client.progress(job_id)).total).toBe(1);
  expect(historyFaults(await worker.events(job_id))).toEqual([]);

  const { artifacts } = await worker.client.artifacts(job_id);
  expect(artifacts.map(({ name }) => name).sort()).toEqual(["log-capture.json", "out", "provenance.json", "stderr.log", "stdout.log"]);
  const out = artifacts.find(({ name }) => name === "out")!;
  expect(await (await worker.client.artifactContent(out.artifact_id)).text()).toBe("result\n");
  const named = artifacts.filter(({ uri }) => uri.startsWith("spool:artifacts/")).map(({ artifact_id }) => artifact_id);
  expect(stored(worker, job_id)).toEqual(named.sort());
  expect((await worker.client.queue({ include_terminal: true })).source_total).toBe(1);

  const { attempts } = await worker.client.attempts(job_id);
  expect(await worker.drain()).toBe(0);
  expect(await auditOffline(worker.coreDir)).toMatchObject({ ok: true, findings: [], checked: { leases: 0, jobs: 1 } });
  return attempts.map(({ state }) => state);
}

const at = (when: Death["when"], call: string): Death => ({ when, call });

// The steps of docs/state-machines.md, each by the call that begins or ends it. Between claim and launch lies the preparation.
test.each([
  ["before the claim", [at("before", "claim")], ["ended"]],
  ["after the claim was committed", [at("after", "claim")], ["void", "ended"]],
  ["when the attempt is prepared", [at("before", "launch")], ["void", "ended"]],
  ["while it is voided, before that is committed", [at("before", "launch"), at("before", "voidAttempt")], ["void", "ended"]],
  ["when it has been voided", [at("before", "launch"), at("after", "voidAttempt")], ["void", "ended"]],
  ["before running is committed", [at("before", "startAttempt")], ["ended"]],
  ["after running was committed", [at("after", "startAttempt")], ["ended"]],
  ["before what it wrote is committed", [at("before", "ingest")], ["ended"]],
  ["after what it wrote was committed", [at("after", "ingest")], ["ended"]],
  ["before its end is committed", [at("before", "settle")], ["ended"]],
  ["after its end was committed", [at("after", "settle")], ["ended"]],
  ["before a recovered attempt's lease is taken over", [at("after", "startAttempt"), at("before", "takeOverLease")], ["ended"]],
  ["after a recovered attempt's lease was taken over", [at("after", "startAttempt"), at("after", "takeOverLease")], ["ended"]],
  ["when the recovery was put down", [at("after", "startAttempt"), at("after", "appendEvents")], ["ended"]],
  ["three times on the way to one end", [at("before", "settle"), at("before", "settle"), at("before", "settle")], ["ended"]],
] satisfies [string, Death[], string[]][])("SIGKILL of the worker %s: the job runs once", async (_step, deaths, states) => {
  expect((await survives(deaths)).map(String)).toEqual(states);
});

test("SIGKILL of the worker once the shim was told: whoever wins start.json, the job runs once", async () => {
  const states = await survives([at("after", "launch")]);
  expect([["ended"], ["void", "ended"]]).toContainEqual(states.map(String));
});

test("SIGKILL of the worker between collecting outputs and the commit: the copies that no record names are removed", async () => {
  let before: string[] = [];
  const states = await survives([at("before", "settle")], (worker, jobId) => {
    before = stored(worker, jobId);
    // One more that was being copied.
    fs.writeFileSync(path.join(jobDirectory(worker.spoolDir, jobId), "artifacts", ".artifact_torn.tmp"), "res");
  });
  expect(states).toEqual(["ended"]);
  expect(before.length).toBe(3);
});
