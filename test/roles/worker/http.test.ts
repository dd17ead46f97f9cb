import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { refused } from "../../contract/queue-store/scene.ts";
import { WorkerHarness } from "./harness.ts";

let worker: WorkerHarness;
beforeAll(async () => {
  worker = await new WorkerHarness({ capacity: { concurrency: 3 } }).start();
});
afterAll(() => worker[Symbol.asyncDispose]());

const socket = () => worker.socket;

const call = (method: string, target: string, body?: string, headers?: Record<string, string>) =>
  worker.call(method, target, body, headers);

const command = (spec: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  JSON.stringify({ cluster: "local", kind: "command", spec, ...more });

describe("bodies", () => {
  test.each([
    ["not JSON", "{", 400, "http_request_malformed"],
    ["no body", undefined, 422, "request_validation_failed"],
    ["an array", "[]", 422, "request_validation_failed"],
    ["an unknown member", command({ argv: ["true"] }, { color: "red" }), 422, "request_validation_failed"],
    ["an unknown member of the spec", command({ argv: ["true"], shell: true }), 422, "request_validation_failed"],
    ["an unknown kind", command({ argv: ["true"] }, { kind: "magic" }), 422, "request_validation_failed"],
    ["half of an owner", command({ argv: ["true"] }, { owner_session_id: "s" }), 422, "request_validation_failed"],
    ["another cluster", command({ argv: ["true"] }, { cluster: "elsewhere" }), 409, "job_cluster_mismatch"],
    [
      "a spec that is too large",
      command({ argv: ["true"], env: Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`A${i}`, "x".repeat(120_000)])) }),
      413,
      "payload_too_large",
    ],
    ["a body that is too large", `"${"x".repeat(3 * 1024 * 1024)}"`, 413, "payload_too_large"],
    ["a body that nests too deep", `${"[".repeat(10_000)}${"]".repeat(10_000)}`, 400, "http_request_malformed"],
  ])("%s is refused, and nothing is written", async (_name, body, status, reason) => {
    const before = (await worker.client.queue({ include_terminal: true })).source_total;
    const answer = await call("POST", "/jobs", body);
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ reason, status, type: `urn:clio-relay:error:${reason}`, schema_version: "clio-relay.error.v1" });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect((await worker.client.queue({ include_terminal: true })).source_total).toBe(before);
  });

  test("kind input_ingest has a schema, and no engine", async () => {
    const spec = { logical_name: "f", size_bytes: 1, sha256: "0".repeat(64) };
    const before = (await worker.client.queue({ include_terminal: true })).source_total;
    const answer = await call("POST", "/jobs", JSON.stringify({ cluster: "local", kind: "input_ingest", spec }));
    const available = ["command", "jarvis", "remote_agent", "mcp_call"];
    expect(answer).toMatchObject({ status: 422, body: { reason: "engine_unavailable", available } });
    expect((await worker.client.queue({ include_terminal: true })).source_total).toBe(before);
  });

  test.each([
    ["/jobs/jarvis", { pipeline_yaml: "name: demo" }],
    ["/jobs/jarvis", { pipeline_yaml: "name: demo", workdir: "/w", env: { A: "b" }, timeout_seconds: 5 }],
    ["/jobs/jarvis-pipeline", { pipeline_name: "demo" }],
    ["/jobs/remote-agent", { prompt_path: "/p", mcp_config_path: "/m", model: "m", workdir: "/w", timeout_seconds: 1 }],
  ])("%s takes %j, and there is neither JARVIS-CD nor an agent here", async (path, spec) => {
    const before = (await worker.client.queue({ include_terminal: true })).source_total;
    const answer = await call("POST", path, JSON.stringify({ cluster: "local", ...spec }));
    const cause = path === "/jobs/remote-agent" ? "agent_unconfigured" : "jarvis_missing";
    expect(answer).toMatchObject({ status: 422, body: { reason: "engine_unavailable", cause } });
    expect((await worker.client.queue({ include_terminal: true })).source_total).toBe(before);
  });

  test.each([
    [
      "/jobs/mcp-call",
      { server: "s", server_args: ["a"], env_from: { A: "NOT_THERE" }, operation: "tools/call", tool: "t", arguments: { a: 1 } },
      { reason: "mcp_admission_refused", cause: "environment" },
    ],
    ["/jobs/jarvis-mcp-call", { operation: "tools/list" }, { reason: "engine_unavailable", cause: "jarvis_mcp_unconfigured" }],
  ])("%s takes %j, which this worker cannot run", async (path, spec, body) => {
    const common = { cluster: "local", idempotency_key: "k", used_artifact_refs: [], metadata: { a: 1 } };
    const answer = await call("POST", path, JSON.stringify({ ...common, ...spec }));
    expect(answer).toMatchObject({ status: 422, body });
    expect(await call("POST", path, JSON.stringify({ ...common, ...spec, cluster: "elsewhere" }))).toMatchObject({
      status: 409,
      body: { reason: "job_cluster_mismatch" },
    });
  });

  test.each([
    ["/jobs/jarvis", {}],
    ["/jobs/jarvis", { pipeline_yaml: "" }],
    ["/jobs/jarvis", { pipeline_yaml: "x", pipeline_name: "y" }],
    ["/jobs/jarvis", { kind: "jarvis", pipeline_yaml: "x" }],
    ["/jobs/jarvis-pipeline", { pipeline_name: "n".repeat(257) }],
    ["/jobs/remote-agent", { prompt_path: "relative" }],
    ["/jobs/remote-agent", { prompt_path: "/p", timeout_seconds: 0 }],
    ["/jobs/mcp-call", { server: "s", operation: "tools/call" }],
    ["/jobs/mcp-call", { server: "s", operation: "tools/list", tool: "t" }],
    ["/jobs/mcp-call", { operation: "tools/list" }],
    ["/jobs/jarvis-mcp-call", { server: "s", operation: "tools/list" }],
    ["/jobs/jarvis-mcp-call", { operation: "resources/list" }],
  ])("%s refuses %j", async (path, spec) => {
    const answer = await call("POST", path, JSON.stringify({ cluster: "local", ...spec }));
    expect(answer).toMatchObject({ status: 422, body: { reason: "request_validation_failed", issues: expect.any(Array) } });
  });

  test("a body without end is refused once it is over the bound", async () => {
    const text = await new Promise<string>((resolve, reject) => {
      const peer = connect(socket());
      let answer = "";
      const chunk = Buffer.alloc(64 * 1024, "x");
      const piece = Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]);
      peer.on("data", (data) => {
        answer += data.toString();
        if (answer.includes("payload_too_large")) {
          peer.destroy();
          resolve(answer);
        }
      });
      peer.on("error", reject);
      peer.on("close", () => resolve(answer));
      peer.write("POST /jobs HTTP/1.1\r\nHost: relay\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
      const send = () => {
        while (!peer.destroyed && peer.write(piece));
        if (!peer.destroyed) peer.once("drain", send);
      };
      send();
    });
    expect(text).toStartWith("HTTP/1.1 413");
  });
});

describe("queries and paths", () => {
  test.each([
    ["GET", "/jobs/job_none", 404, "job_not_found"],
    ["GET", "/jobs/%2e%2e%2f%2e%2e%2fetc", 404, "job_not_found"],
    ["GET", "/jobs/job_none/events", 404, "job_not_found"],
    ["GET", "/jobs/job_none/events/sse", 404, "job_not_found"],
    ["GET", "/jobs/job_none/logs/stdout", 404, "job_not_found"],
    ["GET", "/jobs/job_none/logs/stdout/content", 404, "job_not_found"],
    ["POST", "/jobs/job_none/cancel", 404, "job_not_found"],
    ["POST", "/jobs/job_none/wait", 404, "job_not_found"],
    ["GET", "/tasks/task_none/events", 404, "task_not_found"],
    ["GET", "/artifacts/artifact_none/content", 404, "artifact_not_found"],
    ["GET", "/nowhere", 404, "route_not_found"],
    ["DELETE", "/jobs", 405, "method_not_allowed"],
    ["GET", "/queue?limit=0", 422, "queue_query_refused"],
    ["GET", "/queue?limit=501", 422, "queue_query_refused"],
    ["GET", "/queue?limit=0x10", 422, "queue_query_refused"],
    ["GET", "/queue?limit=1e1", 422, "queue_query_refused"],
    ["GET", "/queue?limit=%201", 422, "queue_query_refused"],
    ["GET", "/queue?limit=", 422, "queue_query_refused"],
    ["GET", "/queue?limit=1&limit=2", 422, "queue_query_refused"],
    ["GET", "/queue?scan_limit=10001", 422, "queue_query_refused"],
    ["GET", "/queue?include_terminal=yes", 422, "queue_query_refused"],
    ["GET", "/queue?state=lost", 422, "queue_query_refused"],
    ["GET", "/queue?colour=red", 422, "queue_query_refused"],
    // Operations without parameters take none.
    ["GET", "/healthz?colour=red", 422, "request_validation_failed"],
    ["GET", "/workers?limit=1", 422, "request_validation_failed"],
    ["GET", "/jobs/job_none?verbose=1", 422, "request_validation_failed"],
    ["POST", "/jobs?dry_run=1", 422, "request_validation_failed"],
    ["POST", "/jobs/job_none/cancel?force=1", 422, "request_validation_failed"],
    ["POST", "/queue/audit?deep=1", 422, "request_validation_failed"],
    ["GET", "/artifacts/artifact_none/content?offset=1", 422, "request_validation_failed"],
    ["GET", "/jobs/job_none/events/sse?limit=501", 422, "request_validation_failed"],
    ["GET", "/jobs/job_none/monitor/sse?poll_seconds=-1", 400, "poll_interval_invalid"],
    ["GET", "/jobs/job_none/monitor?poll_seconds=3601", 400, "poll_interval_invalid"],
    ["POST", "/jobs/job_none/wait?poll_seconds=-1", 422, "wait_parameters_invalid"],
    ["GET", "/jobs/jarvis", 404, "job_not_found"],
    ["DELETE", "/jobs/jarvis", 405, "method_not_allowed"],
    ["GET", "/tasks/task_none/events/sse?stop_after_replay=maybe", 422, "request_validation_failed"],
    ["GET", "/jobs?before=0", 422, "request_validation_failed"],
  ])("%s %s is %d %s", async (method, target, status, reason) => {
    expect(await call(method, target)).toMatchObject({ status, body: { reason } });
  });

  test("parameters of one job", async () => {
    const { job_id } = await worker.shell("echo hi");
    await worker.ended(job_id);
    for (const [target, status, reason] of [
      [`/jobs/${job_id}/logs/console`, 400, "log_stream_invalid"],
      [`/jobs/${job_id}/logs/stdout?offset=-1`, 422, "request_validation_failed"],
      [`/jobs/${job_id}/logs/stdout?limit=1048577`, 422, "request_validation_failed"],
      [`/jobs/${job_id}/events?cursor=0`, 422, "request_validation_failed"],
      [`/jobs/${job_id}/events?cursor=1e99`, 422, "request_validation_failed"],
    ] as const) {
      expect(await call("GET", target)).toMatchObject({ status, body: { reason } });
    }
    expect((await call("POST", `/jobs/${job_id}/wait?timeout_seconds=1.5&poll_seconds=0.5`)).body).toMatchObject({
      observation: { outcome: "terminal", timeout_seconds: 1.5 },
    });
    for (const few of [1 / 3, 1e-7, 0]) expect((await call("POST", `/jobs/${job_id}/wait?timeout_seconds=${few}`)).status).toBe(200);
    expect(await call("POST", `/jobs/${job_id}/wait?poll_seconds=x`)).toMatchObject({
      status: 422,
      body: { reason: "wait_parameters_invalid", issues: [{ path: "poll_seconds" }] },
    });
    for (const seconds of ["-1", "x", "86401", "", "Infinity", "1e3"]) {
      expect(await call("POST", `/jobs/${job_id}/wait?timeout_seconds=${seconds}`)).toMatchObject({
        status: 422,
        body: { reason: "wait_parameters_invalid" },
      });
    }
    expect(await call("GET", `/jobs/${job_id}/events/sse`, undefined, { "last-event-id": "seven" })).toMatchObject({ status: 422 });
  });
});

test.each(["constructor", "prototype", "__proto__"])(
  "a variable named %s reaches the job, and its record comes back as it was sent",
  async (name) => {
    const env = JSON.parse(`{"${name}":"x y","OTHER":"z"}`) as Record<string, string>;
    const metadata = JSON.parse(`{"${name}":{"${name}":[1]}}`) as Record<string, never>;
    const body = command({ argv: ["env"], env }, { metadata, idempotency_key: `named ${name}` });
    const { status, body: receipt } = await call("POST", "/jobs", body);
    expect(status).toBe(201);
    const { job_id, spec } = receipt as unknown as { job_id: string; spec: { env: object } };
    expect(JSON.stringify(spec.env)).toBe(JSON.stringify(env));
    const { job } = await worker.ended(job_id);
    expect([job.state, JSON.stringify(job.metadata)]).toEqual(["succeeded", JSON.stringify(metadata)]);
    expect((await worker.stdout(job_id)).split("\n")).toContain(`${name}=x y`);
    expect((await call("POST", "/jobs", body)).body).toMatchObject({ job_id, existing: true });
    // What a job reports from inside is read by the same rule.
    const report = await worker.shell(`echo '{"type":"progress","current":1,"metadata":{"${name}":2}}' > $CLIO_RELAY_EVENTS/a.jsonl`);
    await worker.ended(report.job_id);
    const { progress } = await worker.client.progress(report.job_id);
    expect(progress.map((one) => JSON.stringify(one.metadata))).toEqual([`{"${name}":2}`]);
    for (const query of [`${name}=1`, `${name}=1&${name}=2`]) {
      expect(await call("GET", `/queue?${query}`)).toMatchObject({ status: 422, body: { issues: [{ path: name }] } });
      expect(await call("GET", `/jobs/${job_id}?${query}`)).toMatchObject({ status: 422, body: { issues: [{ path: name }] } });
    }
  },
);

describe("idempotency", () => {
  test("10,000 submissions with one key from 20 clients are one job", async () => {
    const spec = { argv: ["true"] };
    const seen = new Map<string, number>();
    let fresh = 0;
    let left = 10_000;
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        while (left-- > 0) {
          const { job_id, existing } = await worker.submit(spec, { idempotency_key: "the one" });
          seen.set(job_id, (seen.get(job_id) ?? 0) + 1);
          if (!existing) fresh++;
        }
      }),
    );
    expect([...seen.values()]).toEqual([10_000]);
    expect(fresh).toBe(1);
  });

  test("the same key with another body is a conflict that names both digests", async () => {
    await worker.submit({ argv: ["true"] }, { idempotency_key: "k" });
    const error = await refused(worker.submit({ argv: ["false"] }, { idempotency_key: "k" }), "job_submission_conflict");
    expect(error.data["existing_digest"]).toMatch(/^[0-9a-f]{64}$/);
    expect(error.data["submitted_digest"]).toMatch(/^[0-9a-f]{64}$/);
    expect(error.data["existing_digest"]).not.toBe(error.data["submitted_digest"]);
  });

  test("the header means the same as the member, and may not contradict it", async () => {
    const first = await call("POST", "/jobs", command({ argv: ["true"] }), { "idempotency-key": "h" });
    const second = await call("POST", "/jobs", command({ argv: ["true"] }, { idempotency_key: "h" }));
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.body).toMatchObject({ job_id: first.body["job_id"], existing: true });
    expect(await call("POST", "/jobs", command({ argv: ["true"] }, { idempotency_key: "a" }), { "idempotency-key": "b" })).toMatchObject({
      status: 422,
    });
  });
});

describe("operations that take no body", () => {
  test.each([
    ["POST", "/jobs/JOB/wait", '{"timeout_seconds":1}', "timeout_seconds"],
    ["POST", "/jobs/JOB/wait", "[]", ""],
    ["POST", "/queue/audit", '"x"', ""],
    ["POST", "/queue/repair", '{"dry_run":true}', "dry_run"],
  ])("%s %s refuses %s", async (method, target, body, path) => {
    const { job_id } = await worker.shell("true");
    const answer = await call(method, target.replace("JOB", job_id), body);
    expect(answer).toMatchObject({ status: 422, body: { reason: "request_validation_failed", issues: [{ path }] } });
  });

  test("take an empty one, however it is framed", async () => {
    const { job_id } = await worker.shell("true");
    await worker.ended(job_id);
    const empty = new ReadableStream({ start: (out) => out.close() });
    for (const body of [undefined, "", "{}", empty]) {
      const answer = await fetch(`http://relay/jobs/${job_id}/wait`, {
        unix: socket(),
        method: "POST",
        ...(body === undefined ? {} : { body }),
      });
      expect(answer.status).toBe(200);
      await answer.arrayBuffer();
    }
  });
});

test("the worker's own process is among those that the queue has had", async () => {
  const { body } = await call("GET", "/endpoints?limit=1");
  expect(body).toMatchObject({
    endpoints: [{ role: "worker", process: { pid: worker.pid }, stopped_at: null }],
    cursor: 1,
    limit: 1,
    next_cursor: 2,
    total: 1,
  });
  expect((await call("GET", "/endpoints?cursor=2")).body).toMatchObject({ endpoints: [], next_cursor: 2 });
});

test("every answer says the version, refusals too", async () => {
  for (const target of ["/healthz", "/nowhere", "/jobs/job_none"]) {
    expect((await call("GET", target)).headers.get("clio-relay-version")).toBe("test");
  }
});

test("the OpenAPI document is served, with types and bounds of each parameter", async () => {
  const { body } = await call("GET", "/openapi.json");
  expect(body["openapi"]).toBe("3.1.0");
  const paths = body["paths"] as Record<
    string,
    Record<string, { parameters: { name: string; in: string; required: boolean; schema: object }[] }>
  >;
  const schemaOf = (path: string, method: string, name: string) =>
    paths[path]![method]!.parameters.find((one) => one.name === name)?.schema;
  expect(schemaOf("/queue", "get", "limit")).toEqual({ type: "integer", minimum: 1, maximum: 500, default: 100 });
  expect(schemaOf("/queue", "get", "include_terminal")).toEqual({ type: "boolean", default: false });
  expect(schemaOf("/queue", "get", "kind")).toMatchObject({ enum: expect.arrayContaining(["command"]) });
  expect(schemaOf("/queue", "get", "state")).toMatchObject({
    type: "array",
    maxItems: 16,
    items: { enum: expect.arrayContaining(["queued"]) },
  });
  expect(schemaOf("/jobs/{id}/wait", "post", "timeout_seconds")).toEqual({ type: "number", minimum: 0, maximum: 86_400, default: 600 });
  expect(schemaOf("/jobs/{id}/events/sse", "get", "stop_on_terminal")).toEqual({ type: "boolean", default: true });
  const query = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap(({ parameters }) => parameters.filter((one) => one.in === "query")),
  );
  expect([...new Set(query.filter(({ required }) => required).map(({ name }) => name))]).toEqual(["size_bytes", "offset"]);
  expect(query.filter(({ schema }) => !("type" in schema) && !("enum" in schema))).toEqual([]);
  expect(schemaOf("/jobs/{id}/logs/{stream}", "get", "stream")).toEqual({ type: "string", enum: ["stdout", "stderr"] });
  expect(schemaOf("/jobs/{id}", "get", "id")).toMatchObject({ pattern: expect.any(String) });
  expect(schemaOf("/jobs", "post", "Idempotency-Key")).toEqual({ type: "string", minLength: 1, maxLength: 512 });
  expect(Object.keys(paths)).toContain("/openapi.json");
});

test("a client that goes away in the middle of its body is nobody's error", async () => {
  const peer = connect(socket());
  peer.write("POST /jobs HTTP/1.1\r\nHost: relay\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{");
  await new Promise((resolve) => peer.once("connect", resolve));
  await worker.client.workers();
  peer.destroy();
  await worker.client.workers();
  expect((await worker.client.workers()).workers[0]!.lane_last_error).toBeNull();
});
