import { afterAll, beforeAll, expect, test } from "bun:test";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { eventually } from "../runner/wait.ts";
import { HeldJob } from "./held-job.ts";
import { HttpEndpoint, META, messagesOf, TOKEN } from "./http-endpoint.ts";

let relay: SourceRelay;
let endpoint: HttpEndpoint;

beforeAll(async () => {
  relay = await initialized();
  await relay.ok("cluster", "add", "--name", "local", "--agent-commands");
  await relay.ok("worker", "start", "--cluster", "local");
  endpoint = await HttpEndpoint.of(relay);
});

afterAll(async () => {
  await endpoint?.[Symbol.asyncDispose]();
  await relay?.[Symbol.asyncDispose]();
});

test("without a token, off loopback, or at a place that is none, it does not start", async () => {
  const start = (args: string[], token: string | null) =>
    relay.run(["mcp-server", "--transport", "http", "--port", "0", ...args], {
      env: token === null ? {} : { CLIO_RELAY_API_TOKEN: token },
    });
  const refused = await Promise.all([
    start([], null),
    start([], "short"),
    start(["--host", "0.0.0.0"], TOKEN),
    start(["--path", "mcp"], TOKEN),
  ]);
  expect(refused.map(({ code }) => code)).toEqual([2, 2, 2, 2]);
  expect(refused[0]!.stderr).toContain("CLIO_RELAY_API_TOKEN has none");
});

test("it answers who has the token and names it, at its place, and nobody else", async () => {
  const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: META } });
  const status = async (headers: Record<string, string>, at = endpoint.url) => (await endpoint.post(list, headers, at)).status;
  const modern = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" };
  expect(await status(modern)).toBe(200);
  expect(await status({ ...modern, authorization: "Bearer wrong" })).toBe(401);
  expect(await status({ ...modern, host: "evil.example" })).toBe(403);
  expect(await status({ ...modern, origin: "https://evil.example" })).toBe(403);
  expect(await status(modern, `${endpoint.url}/elsewhere`)).toBe(404);
  expect(await status({ ...modern, "content-type": "text/plain" })).toBe(415);
  for (const [body, code] of [
    ["x".repeat(1_100_000), 413],
    ["{", 400],
    ["[]", 400],
    [`[${"[".repeat(80)}`, 400],
  ] as const) {
    expect([body.slice(0, 10), (await endpoint.post(body)).status]).toEqual([body.slice(0, 10), code]);
  }
  expect((await endpoint.post(list, { "mcp-session-id": "nothing" })).status).toBe(400);
  expect((await endpoint.post(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }), { "mcp-session-id": "nothing" })).status).toBe(
    404,
  );
});

for (const mode of ["modern", "legacy"] as const) {
  test(`a ${mode} client calls tools, and is told how far it is`, async () => {
    const agent = await endpoint.client(mode);
    await agent.listTools();
    const job = new HeldJob(relay, "echo done");
    const work = { cluster: "local", argv: job.argv };
    const made = await agent.callTool({ name: "relay_submit_command", arguments: work });
    const { job_id } = made.structuredContent as { job_id: string };
    const told: number[] = [];
    const ended = await agent.callTool(
      { name: "relay_wait", arguments: { job_id, include_logs: true } },
      {
        onprogress: ({ progress }) => {
          told.push(progress);
          job.letGo();
        },
      },
    );
    expect(ended.structuredContent).toMatchObject({ state: "succeeded", logs_tail: { stdout: { text: "done\n" } } });
    expect(told).toEqual([...told].sort((a, b) => a - b));
    await agent.close();
  });
}

test("a task is read with its name in the header, and told of on the stream that asked for it", async () => {
  const held = new HeldJob(relay);
  const made = (await (
    await endpoint.call(
      "tools/call",
      { name: "relay_submit_command", arguments: { cluster: "local", argv: held.argv } },
      "relay_submit_command",
    )
  ).json()) as {
    result: { taskId: string };
  };
  const { taskId } = made.result;
  expect(await (await endpoint.call("tasks/get", { taskId }, taskId)).json()).toMatchObject({
    result: { taskId, resultType: "complete" },
  });
  // A client in use leaves it out.
  expect(await (await endpoint.call("tasks/get", { taskId })).json()).toMatchObject({ result: { taskId } });
  const refused = await endpoint.call("tasks/get", { taskId }, "another");
  expect([refused.status, await refused.json()]).toEqual([
    400,
    expect.objectContaining({ error: expect.objectContaining({ code: -32020 }) }),
  ]);
  const stream = await endpoint.call("subscriptions/listen", {
    notifications: { taskIds: [taskId, "nothing"], resourceSubscriptions: [`relay://local/jobs/${taskId}`] },
  });
  const messages: { method: string; params: Record<string, unknown> }[] = [];
  const isHeard = (method: string, what: Record<string, unknown>): boolean =>
    messages.some((one) => one.method === method && Object.entries(what).every(([member, value]) => one.params[member] === value));
  for await (const message of messagesOf(stream)) {
    messages.push(message);
    if (messages.length === 1) held.letGo();
    if (isHeard("notifications/tasks", { status: "completed" }) && isHeard("notifications/resources/updated", {})) break;
  }
  expect(messages[0]).toMatchObject({
    method: "notifications/subscriptions/acknowledged",
    params: { notifications: { taskIds: [taskId] } },
  });
  expect(messages.filter(({ method }) => method === "notifications/tasks").at(-1)?.params).toMatchObject({ taskId, status: "completed" });
  expect(messages.find(({ method }) => method === "notifications/resources/updated")?.params).toMatchObject({
    uri: `relay://local/jobs/${taskId}`,
  });
});

test("an older client hears of a resource that it subscribed to", async () => {
  const agent = await endpoint.client("legacy");
  const held = new HeldJob(relay);
  const made = await agent.callTool({ name: "relay_submit_command", arguments: { cluster: "local", argv: held.argv } });
  const { job_id } = made.structuredContent as { job_id: string };
  const uri = `relay://local/jobs/${job_id}`;
  const updated: string[] = [];
  agent.setNotificationHandler("notifications/resources/updated", ({ params }) => void updated.push(params.uri));
  await agent.subscribeResource({ uri });
  held.letGo();
  await eventually(() => updated.length > 0);
  expect(new Set(updated)).toEqual(new Set([uri]));
  await agent.unsubscribeResource({ uri });
  await expect(agent.subscribeResource({ uri: "relay://nowhere/jobs/x" })).rejects.toThrow("Resource not found");
  await agent.close();
});
