import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import type { InputRecord, Upload } from "../../../src/domain/input.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { eventually } from "../../runner/wait.ts";
import { WorkerHarness } from "./harness.ts";

let worker: WorkerHarness;
beforeAll(async () => {
  worker = await new WorkerHarness().start();
});
afterAll(async () => {
  await worker[Symbol.asyncDispose]();
});

const socket = () => worker.socket;

async function call<T = Record<string, unknown>>(method: string, target: string, body?: unknown): Promise<{ status: number; body: T }> {
  const sent = body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body);
  const { status, body: said } = await worker.call<T>(method, target, sent);
  return { status, body: said };
}

/** The status line that a request gets whose body does not come. */
function headOnly(line: string, length: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const connection = net.connect({ path: socket() });
    connection.once("error", reject);
    connection.once("data", (bytes) => {
      connection.destroy();
      resolve(bytes.toString("latin1").split("\r\n")[0]!);
    });
    connection.write(`${line} HTTP/1.1\r\nhost: worker\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`);
  });
}

const described = (data: Uint8Array | string, name = "in.lj", key: string = crypto.randomUUID()) => ({
  cluster: "local",
  logical_name: name,
  size_bytes: Buffer.byteLength(data),
  sha256: sha256Hex(data),
  idempotency_key: key,
});

const ingestOf = (data: Uint8Array | string, name?: string, key?: string) => ({
  schema_version: "clio-relay.input-artifact-ingest.v1",
  ...described(data, name, key),
  data_base64: Buffer.from(data).toString("base64"),
});
const recordOf = (data: Uint8Array | string, name?: string, key?: string) => ({
  schema_version: "clio-relay.input-artifact.v1",
  ...described(data, name, key),
});

const ingested = async (data: string, name?: string): Promise<InputRecord> =>
  (await call<InputRecord>("POST", "/input-artifacts/ingest", ingestOf(data, name))).body;

const withDeck = ({ artifact }: InputRecord, line: string) =>
  worker.submit(
    { argv: ["/bin/sh", "-c", line], inputs: { deck: artifact.artifact_id } },
    { used_artifact_refs: [{ artifact_id: artifact.artifact_id, sha256: artifact.sha256 }] },
  );

test("a small file is handed over in one request, and a job reads it", async () => {
  const request = ingestOf("units lj\n");
  const first = await call<InputRecord>("POST", "/input-artifacts/ingest", request);
  expect(first.status).toBe(201);
  expect(first.body.job).toMatchObject({ kind: "input_ingest", state: "succeeded", spec: { logical_name: "in.lj", size_bytes: 9 } });
  expect(first.body.artifact).toMatchObject({ kind: "input", name: "in.lj", sha256: sha256Hex("units lj\n") });
  expect(await call<InputRecord>("POST", "/input-artifacts/ingest", request)).toEqual({ status: 200, body: first.body });
  const { job_id } = await withDeck(
    first.body,
    'cat "$CLIO_RELAY_INPUT_DECK"; basename "$CLIO_RELAY_INPUT_DECK"; stat -c %a "$CLIO_RELAY_INPUT_DECK"',
  );
  const status = await worker.ended(job_id);
  expect(status.job.state).toBe("succeeded");
  expect(await worker.stdout(job_id)).toBe("units lj\nin.lj\n400\n");
  expect(status.inputs).toEqual([
    {
      name: "deck",
      variable: "CLIO_RELAY_INPUT_DECK",
      artifact_id: first.body.artifact.artifact_id,
      logical_name: "in.lj",
      size_bytes: 9,
      sha256: sha256Hex("units lj\n"),
    },
  ]);
  const content = await worker.client.artifactContent(first.body.artifact.artifact_id);
  expect([await content.text(), content.headers.get("etag")]).toEqual(["units lj\n", `"${sha256Hex("units lj\n")}"`]);
  const { body: edges } = await call<{ used_artifacts: unknown[] }>("GET", `/jobs/${job_id}/used-artifacts`);
  expect(edges.used_artifacts).toMatchObject([
    { artifact_id: first.body.artifact.artifact_id, producer_job_id: first.body.job.job_id, consumer_job_id: job_id },
  ]);
});

test("what is staged for an owner session is for jobs of its generation, and what is staged for nobody is not", async () => {
  const owner = { owner_session_id: "desk", owner_session_generation_id: "first" };
  const later = { ...owner, owner_session_generation_id: "second" };
  const staged = async (whose: object) =>
    (await call<InputRecord>("POST", "/input-artifacts/ingest", { ...ingestOf("mesh\n", "mesh", crypto.randomUUID()), ...whose })).body;
  const [own, open] = [await staged(owner), await staged({})];
  expect([own.job, open.job]).toMatchObject([owner, { owner_session_id: null, owner_session_generation_id: null }]);
  const submit = ({ artifact: { artifact_id, sha256 } }: InputRecord, whose: object) =>
    call("POST", "/jobs", {
      cluster: "local",
      kind: "command",
      spec: { argv: ["true"], inputs: { mesh: artifact_id } },
      used_artifact_refs: [{ artifact_id, sha256 }],
      ...whose,
    });
  expect(await submit(own, owner)).toMatchObject({ status: 201, body: owner });
  for (const [record, whose] of [
    [own, {}],
    [own, later],
    [open, owner],
  ] as const) {
    expect(await submit(record, whose)).toMatchObject({ status: 403, body: { reason: "resource_ownership_refused" } });
  }
  const half = { ...recordOf("mesh\n", "mesh"), owner_session_id: "desk" };
  expect(await call("POST", "/input-artifacts", half)).toMatchObject({ status: 422, body: { reason: "request_validation_failed" } });
});

test("what is not what it is said to be is refused", async () => {
  const good = ingestOf("abc");
  const ingest = (change: object) => call("POST", "/input-artifacts/ingest", { ...good, ...change });
  for (const change of [
    { data_base64: "YWJ" },
    { data_base64: "YWJj\n" },
    { data_base64: "YWJjZA==" },
    { size_bytes: 4 },
    { sha256: "0".repeat(64) },
  ])
    expect(await ingest(change)).toMatchObject({ status: 422, body: { reason: "input_ingest_refused" } });
  for (const change of [{ logical_name: "../x" }, { logical_name: ".hidden" }, { logical_name: "" }, { sha256: "x" }, { more: 1 }])
    expect(await ingest(change)).toMatchObject({ status: 422, body: { reason: "request_validation_failed" } });
  expect(await ingest({ cluster: "other" })).toMatchObject({ status: 409, body: { reason: "job_cluster_mismatch" } });
  await ingest({});
  expect(await call("POST", "/input-artifacts/ingest", ingestOf("abcd", "in.lj", good.idempotency_key))).toMatchObject({
    status: 409,
    body: { reason: "job_submission_conflict" },
  });
  expect(await call("POST", "/input-artifacts", recordOf("never sent"))).toMatchObject({
    status: 404,
    body: { reason: "input_ingest_unavailable" },
  });
});

test("more than a request may carry is refused before it is read, and comes in pieces", async () => {
  const data = Buffer.alloc(1024 * 1024 + 5, "x");
  expect(await call("POST", "/input-artifacts/ingest", ingestOf(data))).toMatchObject({
    status: 413,
    body: { reason: "payload_too_large" },
  });
  // Nothing but the head is sent.
  expect(await headOnly("POST /input-artifacts/ingest", 99_999_999)).toContain("413 ");
  expect(await headOnly(`PUT /input-uploads/${"a".repeat(64)}/content?size_bytes=9&offset=0`, 99_999_999)).toContain("404 ");
  const key = { sha256: sha256Hex(data), size_bytes: data.length };
  expect(await call<Upload>("POST", "/input-uploads", key)).toMatchObject({ status: 201, body: { state: "partial", offset: 0 } });
  const put = (from: number, to: number) =>
    call<Upload>("PUT", `/input-uploads/${key.sha256}/content?size_bytes=${key.size_bytes}&offset=${from}`, data.subarray(from, to));
  expect(await put(0, data.length)).toMatchObject({ status: 413 });
  // The second is there before the first.
  const [second, first] = await Promise.all([put(1_000_000, data.length), put(0, 1_000_000)]);
  expect([first, second]).toMatchObject([
    { status: 200, body: { offset: 1_000_000 } },
    { status: 200, body: { state: "complete" } },
  ]);
  expect(await call("POST", "/input-contents/query", { contents: [key, { ...key, sha256: "0".repeat(64) }] })).toMatchObject({
    body: { contents: [{ state: "complete" }, { state: "absent", offset: 0 }] },
  });
  const { body } = await call<InputRecord>("POST", "/input-artifacts", recordOf(data, "big.bin"));
  const job = await withDeck(body, 'sha256sum < "$CLIO_RELAY_INPUT_DECK" | cut -c1-64');
  await worker.ended(job.job_id);
  expect((await worker.stdout(job.job_id)).trim()).toBe(key.sha256);
});

test("an upload can be given up", async () => {
  const key = { sha256: "d".repeat(64), size_bytes: 10 };
  await call("POST", "/input-uploads", key);
  const at = `/input-uploads/${key.sha256}?size_bytes=10`;
  await call("PUT", at.replace("?", "/content?offset=0&"), Buffer.from("12345"));
  expect(await call("GET", at)).toMatchObject({ status: 200, body: { state: "partial", offset: 5 } });
  expect(await call("DELETE", at)).toMatchObject({ status: 200, body: { state: "absent", offset: 0 } });
  expect(await call("GET", "/input-uploads/zz?size_bytes=1")).toMatchObject({ status: 422 });
});

test("an input that was altered by one byte is refused by name, and staging the file again mends it", async () => {
  const record = await ingested("precious\n", "deck.lj");
  const file = path.join(worker.spoolDir, "inputs", record.artifact.sha256, "deck.lj");
  fs.chmodSync(file, 0o600);
  fs.writeFileSync(file, "precioux\n");
  const { job_id } = await withDeck(record, "echo must not run");
  const status = await worker.ended(job_id);
  expect(status.job).toMatchObject({ state: "failed", outcome: { reason: "spawn_failed" } });
  expect(status.job.outcome?.message).toContain("the input deck is not what was staged");
  expect(await worker.stdout(job_id)).toBe("");
  expect(
    (await worker.client.artifactContent(record.artifact.artifact_id).catch((error: { code: string }) => error)) as object,
  ).toMatchObject({
    code: "artifact_changed",
  });
  expect(await call("POST", "/input-artifacts", recordOf("precious\n", "deck.lj"))).toMatchObject({
    status: 404,
    body: { reason: "input_ingest_unavailable" },
  });
  const again = await call<InputRecord>("POST", "/input-artifacts/ingest", ingestOf("precious\n", "deck.lj"));
  expect(again.status).toBe(201);
  // The earlier artifact is of the same content.
  const later = await withDeck(record, 'cat "$CLIO_RELAY_INPUT_DECK"');
  await worker.ended(later.job_id);
  expect(await worker.stdout(later.job_id)).toBe("precious\n");
});

test("an input that changes while a job can read it is in the job's history, and the next attempt is not given it", async () => {
  const record = await ingested("as it was\n", "changing.lj");
  const line = 'f="$CLIO_RELAY_INPUT_DECK"; chmod u+w "$f"; echo more >> "$f"; exit 1';
  const { artifact_id, sha256 } = record.artifact;
  const { job_id } = await worker.submit(
    { argv: ["/bin/sh", "-c", line], inputs: { deck: artifact_id }, retries: 1 },
    { used_artifact_refs: [{ artifact_id, sha256 }] },
  );
  const { job } = await worker.ended(job_id);
  expect(job).toMatchObject({ state: "failed", attempts: 2, outcome: { reason: "spawn_failed" } });
  const told = (await worker.events(job_id)).filter(({ event_type }) => event_type === "execution.input_changed");
  expect(told).toMatchObject([{ level: "warning", payload: { attempt: 1, input: "deck", artifact_id } }]);
});

test("a worker that is killed in the middle goes on from what is there; many records at a time come through", async () => {
  const data = Buffer.alloc(300_000, "abcdefg");
  const key = { sha256: sha256Hex(data), size_bytes: data.length };
  await call("POST", "/input-uploads", key);
  const put = (from: number, to: number) =>
    call<Upload>("PUT", `/input-uploads/${key.sha256}/content?size_bytes=${key.size_bytes}&offset=${from}`, data.subarray(from, to));
  await put(0, 123_456);
  await worker.kill();
  await worker.start();
  expect(await call("POST", "/input-uploads", key)).toMatchObject({ status: 200, body: { offset: 123_456 } });
  expect(await put(123_456, 300_000)).toMatchObject({ body: { state: "complete" } });
  const records = await Promise.all(
    Array.from({ length: 20 }, (_, n) => call<InputRecord>("POST", "/input-artifacts", recordOf(data, `n${n}`))),
  );
  expect(records.map(({ status }) => status)).toEqual(records.map(() => 201));
  const inputs = Object.fromEntries(records.map(({ body }, n) => [`n${n}`, body.artifact.artifact_id]));
  const pins = records.map(({ body: { artifact } }) => ({ artifact_id: artifact.artifact_id, sha256: artifact.sha256 }));
  const job = await worker.submit({ argv: ["sh", "-c", "env | grep -c ^CLIO_RELAY_INPUT_N"], inputs }, { used_artifact_refs: pins });
  await worker.ended(job.job_id);
  expect(await worker.stdout(job.job_id)).toBe("20\n");
  const { findings } = await worker.client.audit();
  expect(findings).toEqual([]);
});

test("files that are handed over at once take turns", async () => {
  const files = Array.from({ length: 30 }, (_, n) => `file ${n}\n`.repeat(1_000));
  const done = await Promise.all(files.map((data, n) => call("POST", "/input-artifacts/ingest", ingestOf(data, `f${n}`))));
  expect(done.map(({ status }) => status)).toEqual(files.map(() => 201));
  await eventually(() => fs.readdirSync(path.join(worker.spoolDir, "inputs")).every((name) => !name.endsWith(".part")));
});
