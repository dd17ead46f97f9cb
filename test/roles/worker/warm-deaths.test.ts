import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { historyFaults, WorkerHarness } from "./harness.ts";
import { McpCalls } from "./mcp-calls.ts";
import type { Death } from "./mortal.ts";
import { countingCall, diesOver } from "./warm-death.ts";

test.each<Death>([
  { call: "keep", when: "before" },
  { call: "keep", when: "after" },
  { call: "startAttempt", when: "before" },
  { call: "settle", when: "before" },
])("a worker that dies over a call of a kept server (%j) leaves one that is made once", async (death) => {
  await using worker = new WorkerHarness();
  const file = path.join(worker.directory, "counted");
  // A start is recorded by itself where the end does not follow at once.
  if (death.call === "startAttempt") fs.writeFileSync(`${file}.hold`, "");
  expect(await diesOver(countingCall(file), new WorkerHarness({ death }, worker.directory))).toBe("SIGKILL");
  fs.rmSync(`${file}.hold`, { force: true });
  await worker.start();
  const calls = new McpCalls(worker);
  const { job_id } = await worker.client.submit(countingCall(file));
  expect(await calls.text(job_id)).toBe("counted");
  expect(fs.readFileSync(file, "utf8")).toBe("x");
  expect((await calls.result(job_id)).server_call).toBe(1);
  expect(historyFaults(await worker.events(job_id))).toEqual([]);
});
