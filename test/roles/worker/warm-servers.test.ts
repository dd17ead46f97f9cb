import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type Identity, identify, isAlive } from "../../../src/lib/system/process-identity.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";
import { McpCalls } from "./mcp-calls.ts";

const SETUP = 'echo noise of the setup text; export MADE_BY_SETUP="it is"';

const worker = new WorkerHarness({ envSetup: SETUP }, fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-worker-")));
const calls = new McpCalls(worker);
const started: Identity[] = [];
beforeAll(async () => void (await worker.start()));
afterAll(async () => {
  await worker[Symbol.asyncDispose]();
  // The end of their worker is that of kept servers.
  await Promise.all(started.map((one) => eventually(() => !isAlive(one), { what: "the end of a kept server" })));
});

const KEPT = { reuse: {} };

interface Told {
  readonly jobId: string;
  readonly pid: number;
  readonly env: Record<string, string>;
  readonly call: number;
  readonly shim: Identity;
}

/** One call of a kept server that says which process it is. */
async function told(argument: string, spec: Record<string, unknown> = KEPT): Promise<Told> {
  const { job_id: jobId } = await calls.call("environment", argument, spec);
  const { pid, env } = JSON.parse(await calls.text(jobId)) as { pid: number; env: Record<string, string> };
  const shim = shimOf(jobId);
  const server = identify(pid);
  started.push(shim, ...(server === null ? [] : [server]));
  return { jobId, pid, env, call: (await calls.result(jobId)).server_call, shim };
}

const shimOf = (jobId: string): Identity =>
  (JSON.parse(fs.readFileSync(path.join(worker.attemptDir(jobId), "start.json"), "utf8")) as { shim: Identity }).shim;

const gone = (identity: Identity | null) => eventually(() => identity === null || !isAlive(identity), { what: "its end" });

describe("a kept server", () => {
  test("answers one call after the other, each a job of its own", async () => {
    const first = await told("a");
    const second = await told("a");
    const other = await told("b");
    expect(second.pid).toBe(first.pid);
    expect([first.call, second.call, other.call]).toEqual([1, 2, 1]);
    expect(other.pid).not.toBe(first.pid);
    expect(second.shim).toEqual(first.shim);
    expect(second.env).toMatchObject({ MADE_BY_SETUP: "it is" });
    expect(Object.keys(second.env).filter((name) => name.startsWith("CLIO_RELAY_"))).toEqual([]);
    const { job, attempt } = await worker.client.status(second.jobId);
    expect(job).toMatchObject({ state: "succeeded", outcome: { reason: "completed", exit_code: 0 }, attempts: 1 });
    expect(attempt).toMatchObject({ shim: { pid: first.shim.pid } });
    expect(historyFaults(await worker.events(second.jobId))).toEqual([]);
    expect((await calls.artifacts(second.jobId)).map(({ kind }) => kind).sort()).toEqual([
      "log_capture",
      "mcp_result",
      "provenance",
      "stderr",
      "stdout",
    ]);
  });

  test("says in each job's log what it said during that job's call", async () => {
    const jobs: string[] = [];
    for (let at = 0; at < 2; at++) {
      const { job_id } = await calls.call("junk", "", KEPT);
      await calls.result(job_id);
      jobs.push(job_id);
    }
    const [first, second] = await Promise.all(jobs.map((id) => worker.stdout(id)));
    expect(first).toContain("a banner\n");
    expect(second).toStartWith("Listening on stdio…\n");
    expect((await calls.result(jobs[1]!)).output).toMatchObject({ junk_lines: 5 });
    expect((await calls.result(jobs[1]!)).server_call).toBe(2);
  });

  test("has what was said before an answer in the log of that call", async () => {
    for (const nonce of ["one", "two", "three"]) {
      const { job_id } = await calls.call("says-why", "", { ...KEPT, arguments: { nonce } });
      expect(await calls.text(job_id)).toBe("said");
      const log = await (await worker.client.logContent(job_id, "stderr")).text();
      expect(log.includes(`e ${nonce}\n`)).toBe(true);
    }
  });

  test("has its limits: calls, time", async () => {
    const twice = { reuse: { max_calls: 2 } };
    const [first, second, third] = [await told("c", twice), await told("c", twice), await told("c", twice)];
    expect([first.call, second.call, third.call]).toEqual([1, 2, 1]);
    expect(third.pid).not.toBe(first.pid);
    await gone(first.shim);
    const short = await told("d", { reuse: { idle_seconds: 1 } });
    await gone(short.shim);
    const small = { reuse: { max_memory_bytes: 1024 * 1024 } };
    expect((await told("e", small)).call).toBe(1);
    expect((await told("e", small)).call).toBe(1);
  });
});

test("a kept server that has ended by itself is started again for the next call", async () => {
  const first = await calls.call("dies-after", "", KEPT);
  const server = identify(Number(await calls.text(first.job_id)));
  await gone(server);
  const { job_id } = await calls.call("dies-after", "", KEPT);
  const result = await calls.result(job_id);
  expect(result).toMatchObject({ answer: { kind: "result", is_error: false }, server_call: 1 });
  expect(shimOf(job_id)).toEqual(shimOf(first.job_id));
});

test("one that takes no input any more is replaced before it has read a call, and the call is made once", async () => {
  const calledFile = path.join(worker.directory, "closes-input");
  const call = async (): Promise<{ pid: number; setup: string }> => {
    const { job_id } = await calls.call("closes-input", calledFile, { ...KEPT, arguments: { last: fs.existsSync(calledFile) } });
    const said = JSON.parse(await calls.text(job_id)) as { pid: number; setup: string };
    expect((await calls.result(job_id)).server_call).toBe(1);
    return said;
  };
  const first = await call();
  const server = identify(first.pid);
  // Its input is closed, and it runs.
  await eventually(() => !fs.existsSync(`/proc/${first.pid}/fd/0`), { what: "the end of its input" });
  expect(server === null || isAlive(server)).toBe(true);
  const second = await call();
  expect(second.pid).not.toBe(first.pid);
  // It has what the setup text makes, as one has that is started with its first call.
  expect([first.setup, second.setup]).toEqual(["it is", "it is"]);
  expect(fs.readFileSync(calledFile, "utf8")).toBe("xx");
  await gone(server);
});

describe("what ends a kept server", () => {
  test("is a cancel of its call, which ends as any", async () => {
    const note = path.join(worker.directory, "note");
    const { job_id } = await calls.call("notes-cancel", note, KEPT);
    await eventually(() => fs.existsSync(note), { what: "the call" });
    const shim = shimOf(job_id);
    await worker.client.cancel(job_id, { cancel_scheduler_job: false });
    const { job } = await worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "canceled", residual: [] });
    expect(JSON.parse(fs.readFileSync(note, "utf8"))).toMatchObject({ requestId: 3 });
    await gone(shim);
  });

  test("is its own end, its time limit, and an answer that cannot be taken; the next call has another", async () => {
    const [died, late, wrong] = await Promise.all([
      calls.call("dies", "call", KEPT),
      calls.call("never-answers", "", { ...KEPT, timeout_seconds: 1 }),
      calls.call("invalid-utf8", "", KEPT),
    ]);
    const outcomes = await Promise.all([died, late, wrong].map(async ({ job_id }) => (await worker.ended(job_id)).job.outcome!));
    expect(outcomes.map(({ reason }) => reason)).toEqual(["engine_failed", "timeout", "engine_failed"]);
    for (const { job_id } of [died, late, wrong]) await gone(shimOf(job_id));
    const again = await calls.call("invalid-utf8", "", KEPT);
    expect((await calls.result(again.job_id)).server_call).toBe(1);
    // An error of the protocol is an answer.
    const refused = async () => (await calls.result((await calls.call("protocol-error", "", KEPT)).job_id)).server_call;
    expect([await refused(), await refused()]).toEqual([1, 2]);
  });

  test("is the end of its shim, whatever kills that", async () => {
    const file = path.join(worker.directory, "never");
    const { job_id } = await calls.call("waits-for", file, KEPT);
    const pid = await eventually(() => fs.readFileSync(`${file}.called`, "utf8"), { what: "the call" });
    const server = identify(Number(pid));
    process.kill(shimOf(job_id).pid, "SIGKILL");
    const { job } = await worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "outcome_unknown", residual: [] });
    await gone(server);
  });

  test("is the end of its shim, over a call that had begun a moment ago", async () => {
    const kept = await calls.call("kills-shim", "", { ...KEPT, arguments: { kill: false } });
    const server = identify(Number(await calls.text(kept.job_id)));
    const { job_id } = await calls.call("kills-shim", "", { ...KEPT, arguments: { kill: true } });
    const { job, attempt } = await worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "outcome_unknown", residual: [] });
    expect(attempt).toMatchObject({ state: "ended", shim: shimOf(kept.job_id), process: shimOf(kept.job_id) });
    expect(attempt!.started_at).not.toBeNull();
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
    await gone(server);
  });

  test("is the end of its worker, after the call that is under way", async () => {
    const file = path.join(worker.directory, "go-on");
    const { job_id } = await calls.call("waits-for", file, KEPT);
    await eventually(() => fs.existsSync(`${file}.called`), { what: "the call" });
    const shim = shimOf(job_id);
    await worker.kill();
    fs.writeFileSync(file, "");
    await worker.start();
    expect(await calls.text(job_id)).toBe("it is there");
    expect((await worker.client.status(job_id)).job).toMatchObject({ attempts: 1, state: "succeeded" });
    await gone(shim);
    expect((await told("a")).call).toBe(1);
  });
});
