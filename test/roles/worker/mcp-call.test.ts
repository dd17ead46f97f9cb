import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { JobReceipt } from "../../../src/domain/job.ts";
import { mcpExecution } from "../../../src/domain/mcp-call.ts";
import { canonicalJson, sha256Hex } from "../../../src/lib/digest.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";
import { BAD_SERVER, McpCalls } from "./mcp-calls.ts";

const SECRET = "s3cret-of-the-workers";

const worker = new WorkerHarness(
  { jarvisMcp: [process.execPath, BAD_SERVER, "plain"] },
  fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-worker-")),
  ["/usr/bin/env", `MCP_TEST_SECRET=${SECRET}`],
);
const calls = new McpCalls(worker);
beforeAll(async () => void (await worker.start()));
afterAll(() => worker[Symbol.asyncDispose]());

const refusal = async (going: Promise<JobReceipt>) => {
  const error = (await going.then(
    () => ({}),
    (thrown: unknown) => thrown,
  )) as { code?: string; data?: { cause?: string } };
  return [error.code, error.data?.cause];
};

describe("a call of an MCP server", () => {
  test("leaves its answer, and what it was asked of", async () => {
    const [called, listed] = await Promise.all([
      calls.call("plain", "", { arguments: { a: 1 }, expected_registered_contract: "c@1" }),
      calls.list("plain"),
    ]);
    const result = await calls.result(called.job_id);
    const execution = { server: process.execPath, server_args: [BAD_SERVER, "plain", ""], env_from: {} };
    expect(result).toMatchObject({
      operation: "tools/call",
      tool: "echo",
      contract: "c@1",
      execution_fingerprint: sha256Hex(canonicalJson(mcpExecution(execution))),
      server: { protocol_version: "2025-06-18", name: "bad" },
      server_artifact: { immutable: false },
      phase: "done",
      sent: true,
      server_call: 1,
    });
    expect(JSON.parse(await calls.text(called.job_id))).toMatchObject({ arguments: { a: 1 } });
    const { job } = await worker.client.status(called.job_id);
    expect(job).toMatchObject({ state: "succeeded", lane: "workload", outcome: { reason: "completed", exit_code: 0 } });
    expect((await calls.result(listed.job_id)).answer).toMatchObject({ kind: "tools", tools: [{ name: "echo" }] });
    expect((await worker.client.status(listed.job_id)).job.lane).toBe("control");
    expect(historyFaults(await worker.events(called.job_id))).toEqual([]);
    expect((await calls.artifacts(called.job_id)).map(({ kind }) => kind).sort()).toEqual([
      "log_capture",
      "mcp_result",
      "provenance",
      "stderr",
      "stdout",
    ]);
  });

  test("fails with what the tool, the server or the call says", async () => {
    const jobs = await Promise.all([
      calls.call("tool-error"),
      calls.call("protocol-error"),
      calls.call("dies", "call"),
      calls.call("plain", "", { server: "no-such-server" }),
    ]);
    const outcomes = await Promise.all(jobs.map(async ({ job_id }) => (await worker.ended(job_id)).job.outcome!));
    expect(outcomes.map(({ reason }) => reason)).toEqual(Array(4).fill("engine_failed"));
    const [tool, server, died, absent] = outcomes.map(({ message }) => message);
    expect(tool).toBe("the tool says that it failed: it broke");
    expect(server).toContain("(-32602): no such tool");
    expect(died).toContain("server_exited");
    expect(absent).toContain("server_missing: program not found: no-such-server");
  });

  test("with a large result leaves it as an artifact that can be read", async () => {
    const { job_id } = await calls.call("large-answer", "300000");
    const { answer } = await calls.result(job_id);
    const { artifact, text } = await calls.artifact(job_id, "execution_output");
    expect(answer).toMatchObject({
      kind: "result",
      result: null,
      content: { name: artifact.name, size_bytes: artifact.size_bytes, sha256: artifact.sha256 },
    });
    expect(JSON.parse(text).content[0].text).toHaveLength(300_000);
  });

  test("shows junk in the job's output, and the server's errors", async () => {
    const { job_id } = await calls.call("junk");
    await calls.result(job_id);
    expect(await worker.stdout(job_id)).toContain("a banner\nListening on stdio…\n");
  });
});

describe("variables of the worker's", () => {
  test("reach the server that names them, and no file", async () => {
    const { job_id } = await calls.call("environment", "", { env_from: { TOKEN: "MCP_TEST_SECRET" } });
    const { env } = JSON.parse(await calls.text(job_id)) as { env: Record<string, string> };
    expect(env["TOKEN"]).toBe(SECRET);
    expect(env["MCP_TEST_SECRET"]).toBeUndefined();
    const attempt = worker.attemptDir(job_id);
    for (const name of fs.readdirSync(attempt)) {
      // The tool gave it away itself.
      if (name === "mcp-result.json" || name === "events") continue;
      expect([name, fs.readFileSync(path.join(attempt, name), "utf8").includes(SECRET)]).toEqual([name, false]);
    }
    const { text } = await calls.artifact(job_id, "provenance");
    expect(text).not.toContain(SECRET);
  });

  test("that are not there, and those of the relay, are refused before anything is recorded", async () => {
    expect(await refusal(calls.call("plain", "", { env_from: { A: "NOT_THERE" } }))).toEqual(["mcp_admission_refused", "environment"]);
    for (const env_from of [{ CLIO_RELAY_API_TOKEN: "PATH" }, { A: "CLIO_RELAY_STCP_SECRET" }, { A: "CLIO_RELAY_HOME" }, { "A B": "PATH" }])
      expect((await refusal(calls.call("plain", "", { env_from })))[0]).toBe("request_validation_failed");
  });
});

test("arguments that are nested deeply, or have too many values, are refused, and a server of JARVIS-CD is the configured one", async () => {
  const many = { list: Array.from({ length: 100_001 }, () => 1) };
  expect(await refusal(calls.call("plain", "", { arguments: many }))).toEqual(["mcp_admission_refused", "arguments"]);
  const deep = JSON.parse(`${'{"a":'.repeat(70)}1${"}".repeat(70)}`) as object;
  expect((await refusal(calls.call("plain", "", { arguments: deep })))[0]).toBe("http_request_malformed");
  const { job_id } = await calls.submit({ server: "jarvis", operation: "tools/list" });
  expect((await calls.result(job_id)).answer).toMatchObject({ tools: [{ name: "echo" }] });
});

describe("the end of a call", () => {
  test("by a cancel is told to the server first; nothing of it is left", async () => {
    const note = path.join(worker.directory, "note");
    const { job_id } = await calls.call("notes-cancel", note);
    await eventually(() => fs.existsSync(note), { what: "the call" });
    await worker.client.cancel(job_id, { cancel_scheduler_job: false });
    const { job } = await worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "canceled", residual: [] });
    expect(JSON.parse(fs.readFileSync(note, "utf8"))).toMatchObject({ requestId: 3 });
    expect((await calls.result(job_id)).answer).toMatchObject({ kind: "failure", reason: "interrupted" });
    await calls.nothingLeft(job_id);
  });

  test("takes everything with it that the server started or that does not end, also by a time limit", async () => {
    const late = await calls.call("never-answers", "", { timeout_seconds: 1 });
    const ends = ["deaf", "leaves-children"].map(async (behaviour) => {
      const { job_id } = await calls.call(behaviour);
      expect(await calls.text(job_id)).toBe("done");
      await calls.nothingLeft(job_id);
      expect((await worker.events(job_id)).map(({ event_type }) => event_type)).toContain("execution.leftover");
    });
    expect((await worker.ended(late.job_id)).job.outcome?.reason).toBe("timeout");
    await calls.nothingLeft(late.job_id);
    await Promise.all(ends);
  });
});

test("what a server asks for is asked on the job's timeline, and answered there", async () => {
  const { job_id } = await calls.call("elicits");
  const [task] = (await worker.client.tasks(job_id, { limit: 1 })).tasks;
  const question = await eventually(
    async () =>
      (await worker.client.taskEvents(task!.task_id, { limit: 100 })).events.find((one) => one.event_type === "mcp.input_requested"),
    { what: "the question" },
  );
  const [key] = Object.keys(question.metadata["requests"] as object);
  const answered = (name: string) =>
    worker.client.recordTaskEvent(task!.task_id, {
      event_type: "mcp.input_answered",
      label: "input",
      summary: "answered",
      metadata: { responses: { [key!]: { action: "accept", content: { name } } } },
    });
  await answered("first");
  await answered("second");
  expect(JSON.parse(await calls.text(job_id))).toEqual({ action: "accept", content: { name: "first" } });
});

describe("the lane of a call", () => {
  const server = path.join(worker.directory, "science-mcp");
  const science = { server, server_args: [BAD_SERVER, "modern"] };

  test("is that of queries where a list of this worker's shows that the tool only reads", async () => {
    fs.copyFileSync(process.execPath, server);
    fs.chmodSync(server, 0o755);
    const listed = await calls.list("", "", science);
    const { server_artifact } = await calls.result(listed.job_id);
    expect(server_artifact).toMatchObject({ immutable: true, kind: "executable", path: server });
    const digest = server_artifact.immutable ? server_artifact.digest : "";
    const { artifact } = await calls.artifact(listed.job_id, "mcp_result");
    const evidence = { artifact_id: artifact.artifact_id, sha256: artifact.sha256 };
    const shown = { ...science, control_query_evidence: evidence, expected_server_artifact_digest: digest };
    const changed = await calls.call("", "", { ...shown, expected_server_artifact_digest: "0".repeat(64) });
    expect(changed.lane).toBe("workload");
    expect(await calls.result(changed.job_id)).toMatchObject({ sent: false, answer: { reason: "server_artifact_changed" } });
    // Which lane it is does not depend on what runs then.
    fs.rmSync(server);
    const laneOf = async (spec: Record<string, unknown>) => (await calls.call("", "", spec)).lane;
    expect(await laneOf(shown)).toBe("control");
    expect(await laneOf({ ...shown, tool: "another" })).toBe("workload");
    expect(await laneOf({ ...shown, timeout_seconds: 601 })).toBe("workload");
    expect(await laneOf({ ...shown, server_args: [BAD_SERVER, "modern", "x"] })).toBe("workload");
    expect(await laneOf({ ...shown, control_query_evidence: { ...evidence, sha256: "0".repeat(64) } })).toBe("workload");
    expect(await laneOf({ ...shown, control_query_evidence: { ...evidence, artifact_id: "artifact_0" } })).toBe("workload");
  });
});

test("a call outlives its worker, and is not repeated", async () => {
  const file = path.join(worker.directory, "go-on");
  const { job_id } = await calls.call("waits-for", file);
  await eventually(() => fs.existsSync(`${file}.called`), { what: "the call" });
  await worker.kill();
  fs.rmSync(`${file}.called`);
  fs.writeFileSync(file, "");
  await worker.start();
  expect(await calls.text(job_id)).toBe("it is there");
  expect(fs.existsSync(`${file}.called`)).toBe(false);
  expect((await worker.client.status(job_id)).job).toMatchObject({ attempts: 1, state: "succeeded" });
});
