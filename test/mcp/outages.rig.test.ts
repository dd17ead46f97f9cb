import { afterAll, beforeAll, expect, test } from "bun:test";
import path from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { DesktopClient } from "../../src/api/client/desktop-client.ts";
import { DEFAULT_CAPACITY } from "../../src/config/cluster-entry.ts";
import { runTool, toolOf } from "../../src/mcp/dispatch.ts";
import { McpService } from "../../src/mcp/service.ts";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { Agent } from "./agent.ts";
import { HeldJob } from "./held-job.ts";
import { HttpEndpoint, messagesOf } from "./http-endpoint.ts";
import { type Rpc, Wire } from "./wire.ts";

/** What is waited for where an outage has to pass first. */
const PATIENT = { timeoutMs: 120_000, everyMs: 50 };

/** Requests at one cluster: more than a process sends at a time, and 23 more than 28 that it is sent and 1,000 that may wait. */
const MANY = 1_051;

interface Told {
  readonly method: string;
  readonly params: Record<string, unknown>;
}

let relay: SourceRelay;
let endpoint: HttpEndpoint;
let wire: Wire;
/** The worker that takes requests and does not answer; it is one throughout. */
let hungWorker = 0;
/** A task whose cluster was taken away. */
let stale = "";
let hung: Promise<{ readonly byStdio: Rpc; readonly byHttp: Rpc }>;

let neverAnswered: ReturnType<typeof askTheSilent>;

beforeAll(async () => {
  relay = await initialized();
  for (const name of ["local", "hung", "gone"])
    await relay.ok("cluster", "add", "--name", name, "--agent-commands", "--worker-concurrency", "8");
  for (const name of ["local", "hung", "gone"]) await relay.ok("worker", "start", "--cluster", name);
  [endpoint, wire] = [await HttpEndpoint.of(relay), new Wire(relay)];
  hungWorker = relay.processes("--cluster hung")[0]!;
  process.kill(hungWorker, "SIGSTOP");
  hung = askTheHung();
  neverAnswered = askTheSilent();
  for (const one of [hung, neverAnswered]) one.catch(() => undefined);
});

afterAll(async () => {
  if (hungWorker > 0) process.kill(hungWorker, "SIGCONT");
  await wire?.[Symbol.asyncDispose]();
  await endpoint?.[Symbol.asyncDispose]();
  await relay?.[Symbol.asyncDispose]();
});

/** Answers of the cluster that gives none. */
async function askTheHung() {
  const asked = wire.send("tools/call", { name: "relay_list_jobs", arguments: { cluster: "hung" } });
  const response = await endpoint.call("tools/call", { name: "relay_list_jobs", arguments: { cluster: "hung" } }, "relay_list_jobs");
  return { byHttp: (await response.json()) as Rpc, byStdio: await wire.answer(asked, PATIENT.timeoutMs) };
}

const submit = async (argv: readonly string[], cluster = "local"): Promise<string> =>
  (await wire.result<{ taskId: string }>("tools/call", { name: "relay_submit_command", arguments: { cluster, argv } })).taskId;
const overHttp = async (method: string, params: { taskId: string } & Record<string, unknown>): Promise<Rpc> =>
  (await (await endpoint.call(method, params, params.taskId)).json()) as Rpc;

/** Collects what an event stream of 2026-07-28 says. */
function collected(stream: Response): Told[] {
  const told: Told[] = [];
  void (async () => {
    for await (const message of messagesOf(stream)) told.push(message);
  })().catch(() => undefined);
  return told;
}

test("whoever subscribed, by either way and in either time of the protocol, hears of what happens after the daemon has died", async () => {
  const held = new HeldJob(relay, "echo late");
  const taskId = await submit(held.argv);
  const uris = [`relay://local/jobs/${taskId}`, `relay://local/jobs/${taskId}/log/stdout`];
  const wanted = { notifications: { taskIds: [taskId], resourceSubscriptions: uris } };
  await using older = await Agent.of(relay, { legacy: true });
  const olderOverHttp = await endpoint.client("legacy");
  const stop = new AbortController();
  try {
    const id = wire.send("subscriptions/listen", wanted);
    const told = collected(await endpoint.call("subscriptions/listen", wanted, undefined, stop.signal));
    const subscribed = async (client: Client): Promise<string[]> => {
      const updated: string[] = [];
      client.setNotificationHandler("notifications/resources/updated", ({ params }) => void updated.push(params.uri));
      for (const uri of uris) await client.subscribeResource({ uri });
      return updated;
    };
    const updated = await Promise.all([older.client, olderOverHttp].map(subscribed));
    await eventually(() => told.length > 0 && wire.notes("notifications/subscriptions/acknowledged").length > 0, PATIENT);
    expect(wire.notes("notifications/subscriptions/acknowledged")[0]).toMatchObject({ notifications: { taskIds: [taskId] } });
    for (const pid of relay.daemons()) await relay.kill(pid);
    held.letGo();
    const of = (method: string): Record<string, unknown>[] => told.filter((one) => one.method === method).map(({ params }) => params);
    const everywhere = [
      () => of("notifications/resources/updated").map(({ uri }) => uri),
      () => wire.notes("notifications/resources/updated").map(({ uri }) => uri),
      ...updated.map((list) => () => list),
    ];
    for (const heard of everywhere) await eventually(() => uris.every((uri) => (heard() as string[]).includes(uri)), PATIENT);
    for (const tasks of [() => of("notifications/tasks"), () => wire.notes("notifications/tasks")]) {
      await eventually(() => tasks().some(({ status }) => status === "completed"), PATIENT);
      expect(tasks().at(-1)).toMatchObject({ taskId, status: "completed", result: { isError: false } });
    }
    wire.notify("notifications/cancelled", { requestId: id });
  } finally {
    stop.abort();
    await olderOverHttp.close();
  }
});

test("who subscribes while there is no way to the cluster hears of what was missed when there is one", async () => {
  const held = new HeldJob(relay, "echo later");
  const taskId = await submit(held.argv);
  await relay.ok("worker", "stop", "--cluster", "local");
  const uri = `relay://local/jobs/${taskId}`;
  const before = wire.notes("notifications/subscriptions/acknowledged").length;
  const id = wire.send("subscriptions/listen", { notifications: { taskIds: [taskId], resourceSubscriptions: [uri] } });
  await eventually(() => wire.notes("notifications/subscriptions/acknowledged").length > before, PATIENT);
  const heard = (method: string): Record<string, unknown>[] =>
    wire.notes(method).filter((note) => note["uri"] === uri || note["taskId"] === taskId);
  // A task of a cluster that is not reached is no task that there is not.
  const away = await wire.error("tasks/get", { taskId });
  expect([away.code, away.data]).toEqual([-32603, expect.objectContaining({ reason: "worker_not_running", retryable: true })]);
  expect((await overHttp("tasks/cancel", { taskId: "job_../x" })).error?.code).toBe(-32602);
  held.letGo();
  await relay.ok("worker", "start", "--cluster", "local");
  await eventually(() => heard("notifications/resources/updated").length > 0, PATIENT);
  await eventually(() => heard("notifications/tasks").some(({ status }) => status === "completed"), PATIENT);
  expect(await wire.result("tasks/get", { taskId })).toMatchObject({ status: "completed" });
  wire.notify("notifications/cancelled", { requestId: id });
});

test("a task of a cluster that was taken out of the registry is none, but for as long as one that could have it does not answer that is not known", async () => {
  const taskId = await submit(["true"], "gone");
  await eventually(async () => (await wire.result("tasks/get", { taskId }))["status"] === "completed", PATIENT);
  await relay.ok("worker", "stop", "--cluster", "gone");
  await relay.ok("cluster", "remove", "gone", "--yes");
  stale = taskId;
  const asked = () => Promise.all([wire.error("tasks/get", { taskId }), overHttp("tasks/get", { taskId }).then(({ error }) => error!)]);
  // What is remembered of the registry is.
  await eventually(async () => (await asked()).every(({ code }) => code === -32603), PATIENT);
  for (const { data } of await asked()) expect(data).toMatchObject({ reason: "link_down", retryable: true, clusters: ["hung"] });
});

test("two clients that answer at once, one by either way, have one answer, and neither is asked again", async () => {
  const held = new HeldJob(relay);
  const taskId = await submit(held.argv);
  const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", taskId, "--cluster", "local");
  const timeline = tasks[0]!.task_id;
  const requests = Object.fromEntries(["a", "b", "c"].map((key) => [key, { method: "elicitation/create", params: { message: key } }]));
  const asks = ["--event-type", "mcp.input_requested", "--label", "input", "--summary", "asked"];
  await relay.ok("job", "record-task-event", timeline, "--cluster", "local", ...asks, "--metadata-json", JSON.stringify({ requests }));
  const answers = (by: string) => Object.fromEntries(Object.keys(requests).map((key) => [key, { action: "accept", content: { by } }]));
  const done = await Promise.all(
    Array.from({ length: 5 }, (_, index) => [
      wire.result("tasks/update", { taskId, inputResponses: answers(`stdio ${index}`) }),
      overHttp("tasks/update", { taskId, inputResponses: answers(`http ${index}`) }).then(
        ({ result }) => result as Record<string, unknown>,
      ),
    ]).flat(),
  );
  expect(done.map((result) => result["resultType"])).toEqual(new Array(10).fill("complete"));
  expect(await wire.result("tasks/get", { taskId })).toMatchObject({ status: "working" });
  expect((await overHttp("tasks/get", { taskId })).result).toMatchObject({ status: "working" });
  // A key that was answered is not asked for anew.
  await relay.ok("job", "record-task-event", timeline, "--cluster", "local", ...asks, "--metadata-json", JSON.stringify({ requests }));
  expect(await wire.result("tasks/get", { taskId })).toMatchObject({ status: "working" });
  held.letGo();
  await eventually(async () => (await wire.result("tasks/get", { taskId }))["status"] === "completed", PATIENT);
  expect((await overHttp("tasks/update", { taskId, inputResponses: answers("too late") })).result).toMatchObject({
    resultType: "complete",
  });
});

test("a worker that hangs is given up by name; what is asked of the others is answered meanwhile", async () => {
  const { tools } = await wire.result<{ tools: unknown[] }>("tools/list", {});
  expect(tools.length).toBeGreaterThan(10);
  const taskId = await submit(["echo", "beside"]);
  await eventually(async () => (await wire.result("tasks/get", { taskId }))["status"] === "completed", PATIENT);
  const clusters = await wire.result("tools/call", { name: "relay_list_clusters", arguments: {} });
  const link = expect.objectContaining({
    state: "degraded",
    detail: expect.stringMatching(/^the worker is not answering, since \S+Z; /),
  });
  expect(clusters).toMatchObject({
    isError: false,
    structuredContent: { clusters: expect.arrayContaining([expect.objectContaining({ cluster: "hung", link })]) },
  });
  const { resources } = await wire.result<{ resources: { uri: string }[] }>("resources/list", {});
  expect(resources.map(({ uri }) => uri)).toContain("relay://clusters");
  for (const { result } of Object.values(await hung)) {
    expect(result).toMatchObject({ isError: true });
    const [first] = (result as { content: { text: string }[] }).content;
    expect(JSON.parse(first!.text)).toMatchObject({ reason: "link_down", retryable: true, detail: expect.stringContaining("hung") });
  }
  process.kill(hungWorker, "SIGCONT");
  const gone = async () => await Promise.all([wire.error("tasks/get", { taskId: stale }), overHttp("tasks/get", { taskId: stale })]);
  await eventually(async () => (await gone())[0].code === -32602, PATIENT);
  expect((await gone()).map((one) => ("code" in one ? one.code : one.error?.code))).toEqual([-32602, -32602]);
});

test("a cluster that takes any number of requests and never answers is given up after its time, which holds up nobody else", async () => {
  const { inTime, before, patience } = await neverAnswered;
  expect(inTime).toMatchObject({ isError: false, structuredContent: { cluster: "local", jobs: [] } });
  const problems = patience.map(({ isError, content }) => [isError, JSON.parse(content[0]!["text"] as string)] as const);
  const known = ["observation_timeout", "cluster_busy"];
  expect(problems.filter(([isError, { reason }]) => !isError || !known.includes(reason))).toEqual([]);
  expect(problems.at(-1)![1]).toMatchObject({ reason: "cluster_busy", retryable: true, sent: false });
  expect(problems[0]![1]).toMatchObject({
    reason: "observation_timeout",
    retryable: true,
    scheduler_action: "none",
    relay_action: "none",
    detail: "the worker of silent took the request, and has not answered in 30 s",
  });
  // What is refused is refused at once, and nothing else was over before the other cluster had answered.
  expect(before).toBe(23);
});

/** A daemon that forwards to two clusters, one of which takes every request and never answers. */
async function askTheSilent() {
  using directory = temporaryDirectory();
  const socket = path.join(directory.path, "d.sock");
  const entry = (name: string) => ({ name, mode: "local", env_setup: null, worker_capacity: DEFAULT_CAPACITY });
  const server = Bun.serve({
    unix: socket,
    idleTimeout: 0 as never,
    fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/clusters") return Response.json({ clusters: [entry("local"), entry("silent")] });
      return pathname.startsWith("/clusters/silent/")
        ? new Promise<Response>(() => undefined)
        : Response.json({ jobs: [], next_before: null });
    },
  });
  const now = () => performance.now();
  const service = new McpService({ desktop: new DesktopClient({ kind: "unix", path: socket }), profile: "user", version: "0", now });
  const { profile, clusters } = service;
  const { signal } = new AbortController();
  const remote = () => service.listing(signal);
  const call = { profile, clusters, remote, now, signal, responses: null, wantsProgress: false, progress: () => undefined };
  try {
    const ask = (cluster: string) => runTool(toolOf("user", "relay_list_jobs"), { cluster }, call);
    let over = 0;
    const silent = Array.from({ length: MANY }, () => ask("silent").finally(() => over++));
    const inTime = await ask("local");
    return { inTime, before: over, patience: await Promise.all(silent) };
  } finally {
    service.close();
    await server.stop(true);
  }
}
