import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { eventually } from "../runner/wait.ts";
import { Agent } from "./agent.ts";
import { ADMIN_TOOLS, USER_TOOLS } from "./tool-names.ts";

interface Receipt {
  readonly job_id: string;
  readonly idempotency_key: string;
  readonly route_revision: string;
  readonly existing: boolean;
  readonly state: string;
}

interface Artifact {
  readonly artifact_id: string;
  readonly name: string;
  readonly sha256: string;
}

let relay: SourceRelay;
let agent: Agent;

beforeAll(async () => {
  relay = await initialized();
  await relay.ok("cluster", "add", "--name", "local", "--agent-commands");
  await relay.ok("worker", "start", "--cluster", "local");
  agent = await Agent.of(relay);
});

afterAll(async () => {
  await agent?.[Symbol.asyncDispose]();
  await relay?.[Symbol.asyncDispose]();
});

const names = async (agent: Agent): Promise<string[]> => (await agent.client.listTools()).tools.map(({ name }) => name).sort();

describe("the profile user", () => {
  test("submits, waits, reads what a job wrote and left, and follows its lineage", async () => {
    await agent.client.listTools();
    const made = await agent.ok<Receipt>("relay_submit_command", {
      cluster: "local",
      script: "echo hello; echo trouble >&2; printf 'wert ü' > result.txt; head -c 3 /dev/zero > raw.bin",
      workdir: relay.directory,
      outputs: ["result.txt", "raw.bin"],
      title: null,
    });
    expect(made.existing).toBe(false);
    const ended = await agent.ok("relay_wait", { job_id: made.job_id, include_logs: true });
    expect(ended).toMatchObject({
      state: "succeeded",
      observation: { outcome: "terminal", relay_action: "none", scheduler_action: "none" },
      logs_tail: { stdout: { text: "hello\n", eof: true }, stderr: { text: "trouble\n" } },
    });
    expect(ended["retry"]).toBeUndefined();
    expect(await agent.ok("relay_read_job_log", { job_id: made.job_id, stream: "stderr", offset: 2, limit: 3 })).toMatchObject({
      text: "oub",
      next_offset: 5,
      eof: false,
    });
    const { artifacts } = await agent.ok<{ artifacts: Artifact[] }>("relay_list_artifacts", { job_id: made.job_id });
    const named = (name: string): Artifact => artifacts.find((one) => one.name === name)!;
    const read = (name: string, more = {}) => agent.ok("relay_read_artifact", { artifact_id: named(name).artifact_id, ...more });
    expect(await read("result.txt")).toMatchObject({ encoding: "utf-8", data: "wert ü", eof: true });
    // A piece ends before the letter that it would cut.
    expect(await read("result.txt", { limit: 6 })).toMatchObject({ data: "wert ", next_offset: 5, eof: false });
    expect(await read("raw.bin")).toMatchObject({ encoding: "base64", data: "AAAA", eof: true });
    const { artifact_id, sha256 } = named("result.txt");
    const again = { cluster: "local", argv: ["true"], used_artifact_refs: [{ artifact_id, sha256 }], wait_for_terminal: true };
    const consumer = await agent.ok<Receipt>("relay_submit_command", again);
    expect(consumer.state).toBe("succeeded");
    expect(await agent.ok("relay_artifact_lineage", { artifact_id })).toMatchObject({
      job_id: made.job_id,
      used_by: [{ consumer_job_id: consumer.job_id, producer_job_id: made.job_id }],
    });
    expect(await agent.ok("relay_artifact_lineage", { job_id: consumer.job_id })).toMatchObject({
      used: [{ artifact_id, sha256 }],
      total: 1,
    });
  });

  test("a key makes one job, and a wait that runs out of time ends nothing", async () => {
    const work = { cluster: "local", argv: ["sleep", "60"], idempotency_key: "one" };
    const first = await agent.ok<Receipt>("relay_submit_command", work);
    expect(await agent.ok("relay_submit_command", work)).toMatchObject({ job_id: first.job_id, existing: true });
    expect(await agent.problem("relay_submit_command", { ...work, argv: ["sleep", "61"] })).toMatchObject({
      reason: "job_submission_conflict",
    });
    const seen = await agent.ok<{ retry: { tool: string; arguments: Record<string, unknown> } }>("relay_wait", {
      job_id: first.job_id,
      timeout_seconds: 0.1,
      poll_seconds: 2,
    });
    expect(seen).toMatchObject({ terminal: false, observation: { outcome: "observation_unknown" }, retry: { tool: "relay_wait" } });
    const observed = await agent.ok<{ next_cursor: number; events: { event_type: string }[] }>("relay_observe", { job_id: first.job_id });
    expect(observed.events.map(({ event_type }) => event_type)).toContain("job.queued");
    // Nothing more happens by itself; what comes is heard of.
    const next = agent.ok<{ events: { event_type: string }[] }>("relay_observe", {
      job_id: first.job_id,
      cursor: observed.next_cursor + 10,
      wait_seconds: 0.1,
    });
    expect((await next).events).toEqual([]);
    expect(await agent.ok("relay_cancel", { job_id: first.job_id })).toMatchObject({ cancel_requested: true });
    const ended = await agent.ok(seen.retry.tool, { ...seen.retry.arguments, timeout_seconds: 30 });
    expect(ended).toMatchObject({ state: "canceled", terminal: true });
  });

  test("may ask for an agent's allocation, in the relay's words and in no other", async () => {
    const run = (more: Record<string, unknown>) =>
      agent.problem("relay_submit_agent", { cluster: "local", prompt_path: "/prompt.md", ...more });
    expect(await run({ scheduler: { nodes: 2, time_limit_seconds: 60 } })).toMatchObject({ reason: "scheduler_unavailable" });
    const hint = expect.stringMatching(/^clio-relay cluster add --name local --agent-bin PROGRAM,/);
    expect(await run({})).toMatchObject({ reason: "engine_unavailable", cause: "agent_unconfigured", hint });
    for (const scheduler of [{ options: ["--wrap=x"] }, { directives: true }])
      expect(await run({ scheduler })).toMatchObject({ reason: "request_validation_failed" });
    expect(await run({ scheduler: {}, timeout_seconds: 5 })).toMatchObject({ reason: "request_validation_failed" });
  });

  test("records what an agent found on the timeline of a task", async () => {
    const { job_id } = await agent.ok<Receipt>("relay_submit_command", { cluster: "local", argv: ["true"], wait_for_terminal: true });
    const { tasks } = await agent.ok<{ tasks: { task_id: string }[] }>("relay_list_tasks", { job_id });
    const { task_id } = tasks[0]!;
    const event = { event_type: "dataset_found", label: "dataset", summary: "found it", path_refs: ["/mnt/example"] };
    expect(await agent.ok("relay_record_task_event", { task_id, ...event })).toMatchObject({ seq: 1, ...event });
    expect(await agent.ok("relay_watch_task_events", { task_id })).toMatchObject({
      events: [{ ...event, status: "running" }],
      next_cursor: 2,
    });
    // Half a character, as a program reports it that has read a name which is no UTF-8: parsers refuse a whole answer over it.
    await agent.ok("relay_record_task_event", { task_id, ...event, metadata: { "\udc80": ["a\ud800"] } });
    const { content, structuredContent } = await agent.client.callTool({
      name: "relay_watch_task_events",
      arguments: { task_id, cursor: 2 },
    });
    expect(structuredContent).toMatchObject({ events: [{ metadata: { "\ufffd": ["a\ufffd"] } }] });
    expect(content).toEqual([{ type: "text", text: JSON.stringify(structuredContent) }]);
  });

  test("has its tools and no others, by their names neither; every schema is an object's, and all of them fit an agent's context", async () => {
    const { tools } = await agent.client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual(USER_TOOLS.toSorted());
    for (const { name, inputSchema, outputSchema, description, annotations } of tools) {
      expect([name, inputSchema.type, outputSchema?.["type"]]).toEqual([name, "object", "object"]);
      expect(description?.length).toBeGreaterThan(80);
      expect(annotations).toMatchObject({ readOnlyHint: expect.any(Boolean), destructiveHint: expect.any(Boolean) });
    }
    // What a client puts before an agent, and what it has to check answers with.
    expect(Buffer.byteLength(JSON.stringify(tools.map(({ outputSchema: _none, ...shown }) => shown)))).toBeLessThan(48 * 1024);
    expect(Buffer.byteLength(JSON.stringify(tools))).toBeLessThan(80 * 1024);
    for (const name of ["relay_get_job", "relay_submit_mcp_call", "constructor", "__proto__", "no\u0000such\u001b[31m"]) {
      const refused = await agent.client.callTool({ name, arguments: {} }).catch((error: unknown) => error);
      expect([name, refused]).toEqual([
        name,
        expect.objectContaining({ code: -32602, data: expect.objectContaining({ reason: "tool_not_found" }) }),
      ]);
    }
  });

  test("arguments that do not fit are an answer that says which; so is what is not there", async () => {
    const wrong: [string, Record<string, unknown>, string][] = [
      ["relay_status", {}, "request_validation_failed"],
      ["relay_status", { job_id: 5 }, "request_validation_failed"],
      ["relay_status", { job_id: "job\u001b[2J" }, "request_validation_failed"],
      ["relay_status", { job_id: "x", surplus: 1 }, "request_validation_failed"],
      ["relay_status", { job_id: `job_${"0".repeat(32)}` }, "job_not_found"],
      ["relay_status", { job_id: `job_${"0".repeat(32)}`, cluster: "elsewhere" }, "cluster_not_found"],
      ["relay_status", { job_id: `job_${"0".repeat(32)}`, cluster: "local", route_revision: "0".repeat(64) }, "job_route_refused"],
      // Without the cluster as well.
      ...["relay_status", "relay_cancel", "relay_wait", "relay_list_tasks"].map((name): [string, Record<string, unknown>, string] => [
        name,
        { job_id: `job_${"0".repeat(32)}`, route_revision: "0".repeat(64) },
        "job_route_refused",
      ]),
      ["relay_wait", { job_id: "x", timeout_seconds: 1e9 }, "request_validation_failed"],
      ["relay_read_job_log", { job_id: "x", limit: 32_769 }, "request_validation_failed"],
      ["relay_artifact_lineage", {}, "request_validation_failed"],
      ["relay_submit_command", { cluster: "local" }, "request_validation_failed"],
      ["relay_submit_command", { cluster: "local", argv: ["true"], script: "true" }, "request_validation_failed"],
      ["relay_submit_command", { cluster: "local", argv: ["true", "x".repeat(600_000)] }, "payload_too_large"],
      ["relay_read_artifact", { artifact_id: "nothing" }, "artifact_not_found"],
      ["relay_watch_task_events", { task_id: "nothing" }, "task_not_found"],
    ];
    for (const [name, args, reason] of wrong)
      expect([name, await agent.problem(name, args)]).toEqual([name, expect.objectContaining({ reason })]);
  });

  test("commands are taken where the operator has said so, and each cluster is a value of `cluster`", async () => {
    await using other = await initialized();
    await using user = await Agent.of(other);
    expect(await names(user)).not.toContain("relay_submit_command");
    const refusal = { cluster: "local", argv: ["true"] };
    expect(await user.problem("relay_submit_command", refusal)).toMatchObject({ reason: "agent_commands_refused" });
    await other.ok("cluster", "add", "--name", "two", "--agent-commands");
    const clusters = async () =>
      (await user.client.listTools()).tools.find(({ name }) => name === "relay_submit_command")?.inputSchema.properties?.["cluster"];
    await eventually(async () => (await clusters()) !== undefined);
    expect(await clusters()).toMatchObject({ enum: ["two"] });
    await using admin = await Agent.of(other, { args: ["--profile", "admin"] });
    expect(await names(admin)).toEqual([...USER_TOOLS, ...ADMIN_TOOLS].sort());
    expect(await admin.problem("relay_submit_command", refusal)).toMatchObject({ reason: "worker_not_running", retryable: true });
  });
});

test("a client of before 2026-07-28 has the same tools and answers", async () => {
  await using older = await Agent.of(relay, { legacy: true });
  expect(await names(older)).toEqual(USER_TOOLS.toSorted());
  const made = await older.ok<Receipt>("relay_submit_command", { cluster: "local", argv: ["echo", "x"], wait_for_terminal: true });
  expect(made).toMatchObject({ state: "succeeded", logs_tail: { stdout: { text: "x\n" } } });
  const { contents } = await older.client.readResource({ uri: `relay://local/jobs/${made.job_id}/log/stdout` });
  expect(contents).toMatchObject([{ mimeType: "text/plain", text: "x\n" }]);
  expect(older.client.getServerCapabilities()?.extensions).toBeUndefined();
});
