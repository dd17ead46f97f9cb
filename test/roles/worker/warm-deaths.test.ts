import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { JobSubmissionInput } from "../../../src/domain/job.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";
import { BAD_SERVER, McpCalls } from "./mcp-calls.ts";
import type { Death } from "./mortal.ts";

const submit = (worker: WorkerHarness, file: string) =>
  worker.client.submit({
    cluster: "local",
    kind: "mcp_call",
    idempotency_key: "once",
    spec: { server: process.execPath, server_args: [BAD_SERVER, "counts", file], operation: "tools/call", tool: "echo", reuse: {} },
  } as JobSubmissionInput);

test.each<Death>([
  { call: "keep", when: "before" },
  { call: "keep", when: "after" },
  { call: "startAttempt", when: "before" },
  { call: "settle", when: "before" },
])("a worker that dies over a call of a kept server (%j) leaves one that is made once", async (death) => {
  await using worker = new WorkerHarness();
  const file = path.join(worker.directory, "counted");
  const dying = new WorkerHarness({ death }, worker.directory);
  const child = dying.spawn();
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  await eventually(async () => hasEnded() || (await submit(dying, file)), { what: "a worker to submit to" });
  await eventually(hasEnded, { what: "its death" });
  expect(child.signalCode).toBe("SIGKILL");
  await worker.start();
  const calls = new McpCalls(worker);
  const { job_id } = await submit(worker, file);
  expect(await calls.text(job_id)).toBe("counted");
  expect(fs.readFileSync(file, "utf8")).toBe("x");
  expect((await calls.result(job_id)).server_call).toBe(1);
  expect(historyFaults(await worker.events(job_id))).toEqual([]);
});
