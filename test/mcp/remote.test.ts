import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { updateRemoteMcpCache, withEntry } from "../../src/config/remote-mcp-cache.ts";
import { SourceRelay } from "../cli/source-relay.ts";
import { environment } from "../config/environments.ts";
import { linesOf } from "../runner/lines.ts";
import { eventually } from "../runner/wait.ts";
import { Agent } from "./agent.ts";
import { entry, found, tool } from "./federation/found.ts";
import { HttpEndpoint } from "./http-endpoint.ts";
import { Wire } from "./wire.ts";

const INSPECT = "remote_science_inspect";

let relay: SourceRelay;
beforeAll(async () => {
  relay = new SourceRelay();
  await relay.ok("init");
});
afterAll(async () => {
  await relay?.[Symbol.asyncDispose]();
});

/** Register a server, and put down what a refresh would have found of it. */
async function registered(name: string, tools: readonly ReturnType<typeof tool>[], ...args: string[]): Promise<void> {
  await relay.ok(
    "remote-mcp",
    "register",
    "--cluster",
    "local",
    "--name",
    name,
    "--command",
    "science-mcp",
    "--allow-tool",
    "*",
    "--replace",
    ...args,
  );
  const shown = await relay.json<ReturnType<typeof entry>>("cluster", "show", "local");
  const files = { remoteMcpCacheFile: path.join(relay.home, "state", "remote-mcp-cache.json"), runDir: path.join(relay.home, "run") };
  const dates = { discovered_at: new Date().toISOString(), expires_at: new Date(Date.now() + 3_600_000).toISOString() };
  const its = found(entry("local", shown.remote_mcp_servers), name, tools, dates);
  await updateRemoteMcpCache(files, environment(), (entries) => withEntry(entries, its));
}

const named = async (agent: Agent, name: string) => (await agent.client.listTools()).tools.find((one) => one.name === name);

test("of a cluster that nobody comes through to an agent is told what a person types", async () => {
  await relay.ok("cluster", "add", "far", "--ssh-host", "nowhere.invalid");
  await using agent = await Agent.of(relay);
  const { clusters } = await agent.ok<{ clusters: { cluster: string; link: object }[] }>("relay_list_clusters");
  await relay.ok("cluster", "remove", "far", "--yes");
  expect(clusters.map(({ cluster, link }) => [cluster, link])).toMatchObject([
    ["local", { state: "down", detail: "no worker is running; a person types: clio-relay worker start --cluster local" }],
    ["far", { state: "down", detail: "there is no link; a person types: clio-relay connect far" }],
  ]);
});

test("a tool of a server on a cluster is among an agent's, and what is not shown is told with the reason", async () => {
  await registered("science", [tool("inspect"), tool("bad", { inputSchema: { type: "string" } })], "--profile", "user");
  await using agent = await Agent.of(relay);
  expect(await named(agent, INSPECT)).toMatchObject({
    inputSchema: { required: ["cluster", "path"], properties: { cluster: { enum: ["local"] } } },
    outputSchema: { type: "object" },
  });
  const context = await agent.ok<{ catalog_revision: string }>("relay_remote_mcp_context");
  expect(context).toMatchObject({
    context: { profile: "user", tools: 1, issues: 1 },
    virtual_remote_tools: [
      { name: INSPECT, server_tool: "inspect", arguments: "flat", clusters: [{ cluster: "local", server: "science" }] },
    ],
    catalog_issues: [{ reason: "invalid_schema", tool: "bad" }],
  });
  const reloaded = await relay.json<{ catalog_revision: string }>("remote-mcp", "reload");
  expect(reloaded.catalog_revision).toBe(context.catalog_revision);
});

test("arguments are looked at before anything is submitted", async () => {
  await registered("science", [tool("inspect")], "--profile", "user");
  await registered("open", [tool("look", { inputSchema: { type: "object" } })], "--profile", "user");
  await using agent = await Agent.of(relay);
  for (const args of [
    {},
    { cluster: "far", path: "/x" },
    { cluster: "local", path: "/x", idempotency_key: "" },
    { cluster: "local", log_limit: 0 },
    { cluster: "local", path: "/x", poll_seconds: -1 },
  ]) {
    expect(await agent.problem(INSPECT, args)).toMatchObject({ reason: "request_validation_failed" });
  }
  const misplaced = await agent.problem("remote_open_look", { cluster: "local", path: "/x" });
  expect(misplaced).toMatchObject({ reason: "request_validation_failed", hint: expect.stringContaining("`arguments`") });
  const nested = (args: object) => agent.problem("remote_open_look", { cluster: "local", arguments: { path: "/x" }, ...args });
  expect(await nested({ idempotency_key: "k" })).toMatchObject({ hint: expect.stringContaining("`controls`") });
  expect(await nested({ arguments: { idempotency_key: "k" } })).toMatchObject({ hint: expect.stringContaining("`controls`") });
  expect(await nested({ controls: { log_limit: 0 } })).toMatchObject({ issues: [{ path: "controls.log_limit" }] });
  for (const none of [1, "x", [], [{}]]) expect(await nested({ controls: none })).toMatchObject({ issues: [{ path: "controls" }] });
  for (const none of [1, "x", [], ["x"]]) expect(await nested({ arguments: none })).toMatchObject({ issues: [{ path: "arguments" }] });
  for (const right of [{}, { controls: null }, { controls: { idempotency_key: "k", log_limit: null, poll_seconds: 2 } }])
    expect(await nested(right)).toMatchObject({ reason: "worker_not_running" });
  expect(await agent.problem(INSPECT, { cluster: "local", path: "/x", controls: { log_limit: 1 } })).toMatchObject({
    hint: expect.stringContaining("beside `cluster`"),
  });
  // What is right goes to the cluster, which has no worker here.
  expect(await agent.problem(INSPECT, { cluster: "local", path: "/x" })).toMatchObject({ reason: "worker_not_running" });
});

for (const legacy of [false, true]) {
  test(`a call is of the list that its connection was shown (${legacy ? "before" : "of"} 2026-07-28)`, async () => {
    await registered("science", [tool("inspect")], "--profile", "user");
    let told = 0;
    await using agent = await Agent.of(relay, { legacy });
    agent.client.setNotificationHandler("notifications/tools/list_changed", () => void told++);
    // Who has listed nothing is held to nothing.
    expect(await agent.problem(INSPECT, { cluster: "local", path: "/x" })).toMatchObject({ reason: "worker_not_running" });
    await agent.client.listTools();
    await registered("science", [tool("inspect"), tool("more")], "--profile", "user");
    expect(await agent.problem(INSPECT, { cluster: "local", path: "/x" })).toMatchObject({ reason: "mcp_catalog_changed" });
    // What is always there means the same in every list.
    await agent.ok("relay_list_clusters");
    expect(await named(agent, "remote_science_more")).toBeDefined();
    expect(await agent.problem(INSPECT, { cluster: "local", path: "/x" })).toMatchObject({ reason: "worker_not_running" });
    if (legacy) expect(told).toBeGreaterThan(0);
  });
}

test("whoever has listed the tools is told of another list, once, and of nothing that changes none", async () => {
  await registered("science", [tool("inspect")], "--profile", "user");
  let told = 0;
  await using agent = await Agent.of(relay, { legacy: true });
  agent.client.setNotificationHandler("notifications/tools/list_changed", () => void told++);
  await agent.client.listTools();
  const changed = async (): Promise<void> => {
    const before = told;
    await eventually(() => told > before);
  };
  // The same was found again, and a server that shows nothing comes and goes.
  await registered("science", [tool("inspect")], "--profile", "user");
  await registered("hidden", [], "--profile", "user");
  await relay.ok("remote-mcp", "unregister", "--cluster", "local", "--name", "hidden");
  await registered("science", [tool("inspect"), tool("more")], "--profile", "user");
  await changed();
  // It was told, and is told no second time for calling by its old list.
  expect(await agent.problem(INSPECT, { cluster: "local", path: "/x" })).toMatchObject({ reason: "mcp_catalog_changed" });
  await agent.client.listTools();
  await registered("science", [tool("inspect")], "--profile", "user");
  await changed();
  expect(told).toBe(2);
});

test("over HTTP, too, in both times of the protocol", async () => {
  await registered("science", [tool("inspect")], "--profile", "user");
  await using endpoint = await HttpEndpoint.of(relay);
  const [old, later] = await Promise.all([endpoint.client("legacy"), endpoint.client("modern")]);
  const told = { old: 0, acknowledged: 0, later: 0 };
  old.setNotificationHandler("notifications/tools/list_changed", () => void told.old++);
  await Promise.all([old.listTools(), later.listTools()]);
  const listening = new AbortController();
  const stream = await endpoint.call("subscriptions/listen", { notifications: { toolsListChanged: true } }, undefined, listening.signal);
  const heard = (async () => {
    for await (const line of linesOf(stream.body!)) {
      if (line.includes("subscriptions/acknowledged")) told.acknowledged++;
      if (line.includes("notifications/tools/list_changed")) told.later++;
    }
  })().catch(() => undefined);
  await eventually(() => told.acknowledged > 0);
  await registered("hidden", [], "--profile", "user");
  await registered("science", [tool("inspect"), tool("more")], "--profile", "user");
  await eventually(() => told.later > 0);
  expect(told.later).toBe(1);
  // An older client opens its stream when it likes, and may have missed the first.
  let more = 0;
  await eventually(
    async () => {
      if (told.old > 0) return true;
      await registered("science", [tool("inspect"), tool(`more${++more}`)], "--profile", "user");
      return false;
    },
    { everyMs: 3_000 },
  );
  listening.abort();
  await heard;
  await Promise.all([old.close(), later.close()]);
});

test("a call may name the list that it is of, where there is no connection that does", async () => {
  await registered("science", [tool("inspect")], "--profile", "user");
  await using wire = new Wire(relay);
  const call = async (revision: string) => {
    const params = { name: INSPECT, arguments: { cluster: "local", path: "/x" }, _meta: { "clio-relay/catalog-revision": revision } };
    const { content } = await wire.result<{ content: { text: string }[] }>("tools/call", params, { tasks: false });
    return (JSON.parse(content[0]!.text) as { reason: string }).reason;
  };
  const { catalog_revision } = await relay.json<{ catalog_revision: string }>("remote-mcp", "reload");
  expect([await call(catalog_revision), await call("0".repeat(64))]).toEqual(["worker_not_running", "mcp_catalog_changed"]);
  expect(await wire.error("tools/list", { cursor: "x" })).toMatchObject({ code: -32602 });
});

test("many tools are on as few pages as may be, and what is known spoils nothing else when it cannot be read", async () => {
  const many = Array.from({ length: 600 }, (_, n) => tool(`t${n}`, { description: "x".repeat(200) }));
  await registered("many", many, "--profile", "user");
  await using agent = await Agent.of(relay);
  const { tools } = await agent.client.listTools();
  expect(tools.filter(({ name }) => name.startsWith("remote_many_")).length).toBe(600);
  fs.writeFileSync(path.join(relay.home, "state", "remote-mcp-cache.json"), "{");
  const names = (await agent.client.listTools()).tools.map(({ name }) => name);
  expect([names.includes("relay_status"), names.some((name) => name.startsWith("remote_"))]).toEqual([true, false]);
  expect(await agent.ok("relay_remote_mcp_context")).toMatchObject({ catalog_issues: [{ reason: "catalogue_unreadable" }] });
  fs.rmSync(path.join(relay.home, "state", "remote-mcp-cache.json"));
});
