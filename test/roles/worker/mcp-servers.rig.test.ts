import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { serverArtifact } from "../../../src/execution/mcp-call/artifact/server-artifact.ts";
import { fastMcp } from "../../rigs/fastmcp/client.ts";
import { mcpProgram } from "../../rigs/mcp-programs/programs.ts";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { WorkerHarness } from "./harness.ts";
import { McpCalls } from "./mcp-calls.ts";

/** A server of others, run by Bun. */
const program = (name: string, ...args: string[]) => ({
  server: process.execPath,
  server_args: [mcpProgram("@modelcontextprotocol", name, "dist", "index.js"), ...args],
});

describeWith("mcp-programs", "servers of others", () => {
  const worker = new WorkerHarness();
  const calls = new McpCalls(worker);
  const everything = () => ({ ...program("server-everything"), reuse: {} });
  const call = (server: object, tool: string, given: object = {}) =>
    calls.submit({ ...server, operation: "tools/call", tool, arguments: given });

  beforeAll(async () => void (await worker.start()));
  afterAll(() => worker[Symbol.asyncDispose]());

  test("server-everything lists, answers and reports progress", async () => {
    const listed = await calls.result((await calls.submit({ ...everything(), operation: "tools/list" })).job_id);
    expect(listed.server?.protocol_version).toBe("2025-11-25");
    const tools = listed.answer.kind === "tools" ? listed.answer.tools : [];
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["echo", "get-sum", "trigger-long-running-operation", "trigger-elicitation-request"]));
    expect(tools.find(({ name }) => name === "get-sum")).toMatchObject({
      inputSchema: { required: ["a", "b"] },
      annotations: { readOnlyHint: true },
    });
    expect(await calls.text((await call(everything(), "echo", { message: "ä" })).job_id)).toBe("Echo: ä");
    const wrong = await calls.result((await call(everything(), "get-sum", { a: "no number" })).job_id);
    expect(wrong.answer).toMatchObject({ kind: "result", is_error: true });
    const long = await call(everything(), "trigger-long-running-operation", { duration: 1, steps: 4 });
    expect(await calls.text(long.job_id)).toContain("completed");
    const { progress } = await worker.client.status(long.job_id);
    expect(progress).toMatchObject([{ label: "trigger-long-running-operation", current: 4, total: 4 }]);
    expect((await calls.result(long.job_id)).server_call).toBe(3);
  });

  test("server-everything ends with a cancel, and asks people what it asks", async () => {
    const never = await call(program("server-everything"), "trigger-long-running-operation", { duration: 600, steps: 600 });
    await eventually(async () => (await worker.client.status(never.job_id)).progress.length > 0, {
      what: "its progress",
    });
    await worker.client.cancel(never.job_id, { cancel_scheduler_job: false });
    expect((await worker.ended(never.job_id)).job.outcome).toMatchObject({ reason: "canceled", residual: [] });
    await calls.nothingLeft(never.job_id);

    const { job_id } = await call(program("server-everything"), "trigger-elicitation-request");
    const [task] = (await worker.client.tasks(job_id, { limit: 1 })).tasks;
    const asked = async () =>
      (await worker.client.taskEvents(task!.task_id, { limit: 100 })).events.find((one) => one.event_type === "mcp.input_requested");
    const { metadata } = await eventually(asked, { what: "the question" });
    const [key] = Object.keys(metadata["requests"] as object);
    await worker.client.recordTaskEvent(task!.task_id, {
      event_type: "mcp.input_answered",
      label: "input",
      summary: "answered",
      metadata: { responses: { [key!]: { action: "decline" } } },
    });
    expect(await calls.text(job_id)).toContain("declined");
  });

  test("server-filesystem reads below its directory, and nowhere else", async () => {
    const directory = fs.realpathSync(worker.directory);
    fs.writeFileSync(path.join(directory, "note.txt"), "what it says");
    const files = { ...program("server-filesystem", directory), reuse: {} };
    expect(await calls.text((await call(files, "read_text_file", { path: path.join(directory, "note.txt") })).job_id)).toBe("what it says");
    const outside = await calls.result((await call(files, "read_text_file", { path: "/etc/passwd" })).job_id);
    expect(outside.answer).toMatchObject({ kind: "result", is_error: true });
    expect(outside.server_call).toBe(2);
    expect(outside.server_artifact).toMatchObject({ immutable: false, cause: "not_established" });
    const listed = await calls.result((await calls.submit({ ...files, operation: "tools/list" })).job_id);
    // Its package has no lockfile of npm's here.
    expect(listed.server_artifact).toMatchObject({ immutable: false, cause: "no_manifest" });
  });
});

describeWith("fastmcp", "a server made with FastMCP", () => {
  const worker = new WorkerHarness();
  const calls = new McpCalls(worker);
  const server = () => ({ server: fastMcp.python(), server_args: [path.resolve(import.meta.dir, "../../rigs/fastmcp/server.py")] });

  beforeAll(async () => void (await worker.start()));
  afterAll(() => worker[Symbol.asyncDispose]());

  test("lists, answers, reports and fails in its own version of the protocol", async () => {
    const call = async (tool: string, given: object = {}) =>
      (await calls.submit({ ...server(), operation: "tools/call", tool, arguments: given, reuse: {} })).job_id;
    const listed = await calls.result((await calls.submit({ ...server(), operation: "tools/list" })).job_id);
    expect(listed.server).toMatchObject({ protocol_version: "2026-07-28", name: "of-fastmcp" });
    expect(listed.answer).toMatchObject({
      kind: "tools",
      tools: [{ name: "add", annotations: { readOnlyHint: true } }, { name: "steps" }, { name: "fails" }],
    });
    expect(listed.server_artifact).toMatchObject({ immutable: false, cause: "script" });
    const added = await call("add", { a: 1, b: 2 });
    expect(await calls.text(added)).toBe("3");
    // It leads its standard output elsewhere.
    expect(await (await worker.client.logContent(added, "stderr")).text()).toContain("a line that is no message\n");
    const stepped = await call("steps");
    expect(await calls.text(stepped)).toBe("done");
    expect((await worker.client.status(stepped)).progress).toMatchObject([{ label: "steps", current: 3, total: 3 }]);
    const failed = await calls.result(await call("fails"));
    expect(failed).toMatchObject({ answer: { kind: "result", is_error: true }, server_call: 3 });
  });

  test("what pip has installed is the distribution that it is, and a program that runs others is none", async () => {
    const python = fastMcp.python();
    const of = (file: string, ...args: string[]) => serverArtifact({ file, args, env: { HOME: "/nonexistent" }, workdir: "/" });
    expect(await of(python, "-m", "markdown_it.cli.parse")).toMatchObject({
      immutable: true,
      kind: "python_distribution",
      name: "markdown_it_py",
    });
    expect(await of(path.join(path.dirname(python), "fastmcp"))).toMatchObject({ immutable: false, cause: "launcher" });
  });
});
