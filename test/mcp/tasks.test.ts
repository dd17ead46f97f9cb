import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { eventually } from "../runner/wait.ts";
import { Wire } from "./wire.ts";

interface Task {
  readonly taskId: string;
  readonly status: string;
  readonly inputRequests?: Record<string, unknown>;
  readonly result?: { readonly isError: boolean; readonly structuredContent: Record<string, unknown> };
}

let relay: SourceRelay;
let wire: Wire;

beforeAll(async () => {
  relay = await initialized();
  const agent = path.join(relay.directory, "agent");
  fs.writeFileSync(agent, "#!/bin/sh\nexec sleep 60\n", { mode: 0o755 });
  await relay.ok("cluster", "add", "--name", "local", "--agent-commands", "--agent-bin", agent);
  await relay.ok("worker", "start", "--cluster", "local");
  wire = new Wire(relay);
});

afterAll(async () => {
  await wire?.[Symbol.asyncDispose]();
  await relay?.[Symbol.asyncDispose]();
});

const submit = (of: Wire, argv: readonly string[], more = {}): Promise<Task> =>
  of.result("tools/call", { name: "relay_submit_command", arguments: { cluster: "local", argv, ...more } });
const get = (of: Wire, taskId: string): Promise<Task> => of.result("tasks/get", { taskId });
const ended = async (of: Wire, taskId: string): Promise<Task> => {
  await eventually(async () => ["completed", "cancelled", "failed"].includes((await get(of, taskId)).status));
  return get(of, taskId);
};

describe("a task is its job", () => {
  test("made when the job is in the queue, and read through to its result, which says how it failed", async () => {
    const made = await submit(wire, ["sh", "-c", "echo out; exit 3"]);
    expect(made).toMatchObject({ resultType: "task", status: "working", ttlMs: 30 * 86_400_000, pollIntervalMs: 1_000 });
    expect(made.taskId).toMatch(/^job_[0-9a-f]{32}$/);
    expect("content" in made).toBe(false);
    const task = await ended(wire, made.taskId);
    expect(task).toMatchObject({ status: "completed", resultType: "complete", result: { isError: true, resultType: "complete" } });
    expect(task.result?.structuredContent).toMatchObject({
      state: "failed",
      outcome: { exit_code: 3 },
      logs_tail: { stdout: { text: "out\n" } },
    });
  });

  test("what keeps it from the queue is said at once; what is none, or not declared, is an error of the protocol", async () => {
    const refused = await wire.result<{ isError: boolean; resultType: string }>("tools/call", {
      name: "relay_submit_command",
      arguments: { cluster: "elsewhere", argv: ["true"] },
    });
    expect(refused).toMatchObject({ isError: true, resultType: "complete" });
    for (const taskId of ["nothing", `job_${"0".repeat(32)}`, "job_\u001b[2J", "../jobs"]) {
      for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
        const error = await wire.error(method, { taskId, inputResponses: {} });
        expect([method, taskId, error.code]).toEqual([method, taskId, -32602]);
      }
    }
    expect(await wire.error("tasks/get", { taskId: "x" }, { tasks: false })).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } },
    });
    expect(await wire.error("tasks/list", {})).toMatchObject({ code: -32601 });
  });

  test("what it asks for is answered once, whoever answers, and partly where only a part is", async () => {
    const { taskId } = await submit(wire, ["sleep", "60"]);
    const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", taskId);
    const task = tasks[0]!.task_id;
    const requests = { a: { method: "elicitation/create", params: { message: "a?" } }, b: { method: "elicitation/create" } };
    // The client's model, its files, and a page that is to be opened are nobody's to ask for.
    const others = {
      model: { method: "sampling/createMessage", params: { messages: [] } },
      roots: { method: "roots/list" },
      page: { method: "elicitation/create", params: { mode: "url", url: "https://example.edu", elicitationId: "1", message: "open it" } },
    };
    const metadata = JSON.stringify({ requests: { ...others, ...requests } });
    const asks = ["--event-type", "mcp.input_requested", "--label", "input", "--summary", "asked", "--metadata-json", metadata];
    await relay.ok("job", "record-task-event", task, ...asks);
    const origin = `Asked for by the job ${taskId} on the cluster local, in its own words`;
    const shown = await get(wire, taskId);
    expect(shown).toMatchObject({
      status: "input_required",
      inputRequests: {
        a: { params: { message: `${origin}: a?` } },
        b: { method: "elicitation/create", params: { message: `${origin}.` } },
      },
    });
    expect(Object.keys(shown.inputRequests ?? {})).toEqual(["a", "b"]);
    await using second = new Wire(relay);
    const answer = (of: Wire, responses: Record<string, unknown>) => of.result("tasks/update", { taskId, inputResponses: responses });
    const [one, two] = [
      { action: "accept", content: { by: 1 } },
      { action: "accept", content: { by: 2 } },
    ];
    expect(await answer(wire, { a: one, nobody: one })).toMatchObject({ resultType: "complete" });
    expect(Object.keys((await get(second, taskId)).inputRequests ?? {})).toEqual(["b"]);
    await Promise.all([answer(wire, { b: one }), answer(second, { a: two, b: two })]);
    expect((await get(wire, taskId)).status).toBe("working");
    const { events } = await relay.json<{ events: { event_type: string; metadata: { responses?: Record<string, unknown> } }[] }>(
      "job",
      "task-events",
      task,
    );
    const answers = events.filter(({ event_type }) => event_type === "mcp.input_answered").map(({ metadata: { responses } }) => responses);
    expect(answers[0]).toEqual({ a: one });
    expect(await wire.error("tasks/update", { taskId, inputResponses: { a: { x: "y".repeat(300_000) } } })).toMatchObject({
      code: -32055,
    });
    expect(await wire.result("tasks/cancel", { taskId })).toMatchObject({ resultType: "complete" });
    expect((await ended(wire, taskId)).status).toBe("cancelled");
    expect(await wire.result("tasks/cancel", { taskId })).toMatchObject({ resultType: "complete" });
  });

  test("whatever it asks for can be answered: under a key that no answer could have, nothing is asked for", async () => {
    const { taskId } = await submit(wire, ["sleep", "60"]);
    const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", taskId);
    const request = '{"method":"elicitation/create","params":{}}';
    const keys = ["constructor", "", "k".repeat(512)];
    const metadata = `{"requests":{${[...keys, "__proto__", "k".repeat(513)].map((key) => `${JSON.stringify(key)}:${request}`).join(",")}}}`;
    const asks = ["--event-type", "mcp.input_requested", "--label", "input", "--summary", "asked", "--metadata-json", metadata];
    await relay.ok("job", "record-task-event", tasks[0]!.task_id, ...asks);
    expect(Object.keys((await get(wire, taskId)).inputRequests ?? {})).toEqual(keys);
    for (const key of keys) {
      const inputResponses = Object.fromEntries([[key, { action: "decline" }]]);
      await wire.result("tasks/update", { taskId, inputResponses });
    }
    expect((await get(wire, taskId)).status).toBe("working");
    await wire.result("tasks/cancel", { taskId });
  });

  test("a further message for an agent is asked for once, however often the agent is submitted, and lies on its timeline", async () => {
    const prompt = path.join(relay.directory, "prompt.md");
    fs.writeFileSync(prompt, "go on as you are told\n");
    const run = (more: Record<string, unknown>) => ({
      name: "relay_submit_agent",
      arguments: { cluster: "local", prompt_path: prompt, idempotency_key: "asks", ...more },
    });
    const { taskId } = await wire.result<Task>("tools/call", run({ request_followup_message: true }));
    expect((await wire.result<Task>("tools/call", run({ request_followup_message: true }))).taskId).toBe(taskId);
    expect(await get(wire, taskId)).toMatchObject({
      status: "input_required",
      inputRequests: { agent_message: { method: "elicitation/create", params: { requestedSchema: { required: ["message"] } } } },
    });
    const answer = { action: "accept", content: { message: "use the new boundary" } };
    await wire.result("tasks/update", { taskId, inputResponses: { agent_message: answer } });
    expect((await get(wire, taskId)).status).toBe("working");
    const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", taskId);
    const { events } = await relay.json<{ events: { event_type: string; metadata: unknown }[] }>("job", "task-events", tasks[0]!.task_id);
    expect(events.filter(({ event_type }) => event_type.startsWith("mcp.input"))).toMatchObject([
      { event_type: "mcp.input_requested" },
      { event_type: "mcp.input_answered", metadata: { responses: { agent_message: answer } } },
    ]);
    // Without the question it is another submission.
    const other = await wire.result<{ isError: boolean; content: { text: string }[] }>("tools/call", run({}));
    expect([other.isError, JSON.parse(other.content[0]!.text)]).toMatchObject([true, { reason: "job_submission_conflict" }]);
    await wire.result("tasks/cancel", { taskId });
  });

  test("who subscribed hears of each status, and of no other task", async () => {
    const { taskId } = await submit(wire, ["sleep", "0.5"]);
    const other = await submit(wire, ["true"]);
    const id = wire.send("subscriptions/listen", { notifications: { taskIds: [taskId, "nothing"] } });
    await eventually(() => wire.notes("notifications/subscriptions/acknowledged").length > 0);
    const [ack] = wire.notes("notifications/subscriptions/acknowledged");
    expect(ack).toMatchObject({ notifications: { taskIds: [taskId] }, _meta: { "io.modelcontextprotocol/subscriptionId": id } });
    await eventually(() => wire.notes("notifications/tasks").some((note) => note["status"] === "completed"));
    const told = wire.notes("notifications/tasks");
    expect(new Set(told.map((note) => note["taskId"]))).toEqual(new Set([taskId]));
    expect(told.at(-1)).toMatchObject({
      status: "completed",
      result: { isError: false },
      _meta: { "io.modelcontextprotocol/subscriptionId": id },
    });
    expect((await ended(wire, other.taskId)).status).toBe("completed");
    expect(await wire.error("subscriptions/listen", { notifications: { taskIds: [taskId] } }, { tasks: false })).toMatchObject({
      code: -32021,
    });
  });

  test("it outlives client, server, daemon and worker", async () => {
    const { taskId } = await submit(wire, ["sh", "-c", "sleep 1; echo late"]);
    await wire[Symbol.asyncDispose]();
    for (const pid of [...relay.processes("worker run"), ...relay.daemons()]) await relay.kill(pid);
    await relay.ok("worker", "start", "--cluster", "local");
    wire = new Wire(relay);
    const task = await ended(wire, taskId);
    expect(task).toMatchObject({
      status: "completed",
      result: { isError: false, structuredContent: { logs_tail: { stdout: { text: "late\n" } } } },
    });
  });
});

describe("what comes in", () => {
  test("is bounded and answered, whatever it is, and the connection goes on", async () => {
    await using raw = new Wire(relay);
    const deep = `${"[".repeat(70)}${"]".repeat(70)}`;
    const cases: [string, number][] = [
      ["{", -32700],
      [`"\\ud800`, -32700],
      ["[]", -32600],
      ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600],
      ["5", -32600],
      ['{"jsonrpc":"1.0","id":900,"method":"ping"}', -32600],
      [`{"jsonrpc":"2.0","id":901,"method":"tools/call","params":{"x":${deep}}}`, -32600],
      [`{"jsonrpc":"2.0","id":901,"method":"tools/call","params":{"x":[${"0,".repeat(100_001)}0]}}`, -32600],
      [`{"jsonrpc":"2.0","id":901,"method":"tools/call","params":{"x":"${"x".repeat(1_100_000)}"}}`, -32600],
    ];
    for (const [line, code] of cases) {
      raw.line(line);
      expect([line.slice(0, 40), (await raw.stray()).code]).toEqual([line.slice(0, 40), code]);
    }
    raw.bytes(new Uint8Array([0xff, 0xfe, 0x0a]));
    expect((await raw.stray()).code).toBe(-32700);
    expect((await raw.result<{ tools: unknown[] }>("tools/list", {})).tools.length).toBeGreaterThan(10);
  });
});

test("requests that are all there when the input ends are answered", async () => {
  const handshake = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "pipe", version: "1" } };
  const lines = [
    { jsonrpc: "2.0", id: 1, method: "initialize", params: handshake },
    { jsonrpc: "2.0", method: "notifications/initialized" },
    { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "relay_list_clusters", arguments: {} } },
  ];
  const { code, stdout } = await relay.run(["mcp-server"], { stdin: lines.map((line) => `${JSON.stringify(line)}\n`).join("") });
  const answers = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { id: number; result: Record<string, unknown> });
  expect([code, answers.map(({ id }) => id)]).toEqual([0, [1, 2]]);
  expect(answers[0]?.result["protocolVersion"]).toBe("2025-06-18");
});

test("a cluster that hangs delays neither the list of tools nor the others", async () => {
  await relay.ok("cluster", "add", "--name", "two", "--agent-commands");
  await relay.ok("worker", "start", "--cluster", "two");
  const [pid] = relay.processes("--cluster two");
  process.kill(pid!, "SIGSTOP");
  try {
    await using agent = new Wire(relay);
    const { tools } = await agent.result<{ tools: { name: string; inputSchema: { properties: Record<string, unknown> } }[] }>(
      "tools/list",
      {},
    );
    expect(tools.find(({ name }) => name === "relay_status")?.inputSchema.properties["cluster"]).toMatchObject({
      enum: ["local", "two"],
    });
    const hung = agent.send("tools/call", { name: "relay_list_jobs", arguments: { cluster: "two" } });
    const { taskId } = await submit(agent, ["true"]);
    expect((await ended(agent, taskId)).status).toBe("completed");
    expect(agent.answered(hung)).toBe(false);
  } finally {
    process.kill(pid!, "SIGCONT");
  }
});
