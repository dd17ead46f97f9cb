import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { refused } from "../../contract/queue-store/scene.ts";
import { WorkerHarness } from "./harness.ts";

let worker: WorkerHarness;
beforeAll(async () => {
  worker = await new WorkerHarness({ capacity: { concurrency: 3 } }).start();
});
afterAll(() => worker[Symbol.asyncDispose]());

const socket = () => worker.socket;

test("bytes that a log has lost are promised to nobody", async () => {
  const { job_id } = await worker.shell("head -c 6000 /dev/zero | tr '\\0' x");
  await worker.ended(job_id);
  fs.truncateSync(path.join(worker.attemptDir(job_id), "stdout.log"), 1_000);
  const content = `/jobs/${job_id}/logs/stdout/content`;
  for (const [target, range, offset] of [
    [content, "", 1_000],
    [`${content}?offset=500`, "", 1_000],
    [`${content}?tail=3000`, "", 3_000],
    [content, "bytes=500-1000", 1_000],
    [content, "bytes=2000-", 2_000],
  ] as const) {
    const answer = await worker.call("GET", target, undefined, range === "" ? {} : { range });
    expect(answer).toMatchObject({ status: 404, body: { reason: "log_not_found", offset, next_offset: 6_000 } });
  }
  const there = await fetch(`http://relay${content}`, { unix: socket(), headers: { range: "bytes=0-999" } });
  expect([there.status, there.headers.get("content-range"), await there.text()]).toEqual([206, "bytes 0-999/6000", "x".repeat(1_000)]);
  expect(worker.messages).not.toContain("RelayError");
});

describe("logs and artifacts by range", () => {
  test("bytes, text and tags", async () => {
    const { job_id } = await worker.shell("printf 'aé€😀z'");
    await worker.ended(job_id);
    const whole = Buffer.from("aé€😀z");
    for (let offset = 0, text = ""; ; ) {
      const chunk = await worker.client.log(job_id, "stdout", { offset, limit: 1 });
      text += chunk.text;
      expect(chunk.next_offset > offset || chunk.eof).toBe(true);
      offset = chunk.next_offset;
      if (!chunk.eof) continue;
      expect(text).toBe("aé€😀z");
      expect(offset).toBe(whole.length);
      break;
    }
    const content = `http://relay/jobs/${job_id}/logs/stdout/content`;
    const part = await fetch(content, { unix: socket(), headers: { range: "bytes=1-2" } });
    expect(part.status).toBe(206);
    expect(part.headers.get("content-range")).toBe(`bytes 1-2/${whole.length}`);
    expect(Buffer.from(await part.arrayBuffer())).toEqual(whole.subarray(1, 3));
    const etag = (await fetch(content, { unix: socket() })).headers.get("etag")!;
    expect((await fetch(content, { unix: socket(), headers: { "if-none-match": etag } })).status).toBe(304);
    const beyond = await fetch(content, { unix: socket(), headers: { range: "bytes=99-" } });
    expect([beyond.status, ((await beyond.json()) as { reason: string }).reason]).toEqual([416, "range_not_satisfiable"]);
    expect(beyond.headers.get("content-range")).toBe(
      `bytes */${(await (await fetch(content, { unix: socket() })).arrayBuffer()).byteLength}`,
    );
    const other = { range: "bytes=1-2", "if-range": '"other"' };
    expect((await fetch(content, { unix: socket(), headers: other })).status).toBe(200);
    expect((await fetch(content, { unix: socket(), headers: { range: "bytes=1-2", "if-range": etag } })).status).toBe(206);
    const unmet = await fetch(content, { unix: socket(), headers: { "if-match": '"other"' } });
    expect([unmet.status, ((await unmet.json()) as { reason: string }).reason]).toEqual([412, "precondition_failed"]);
    expect((await fetch(content, { unix: socket(), headers: { "if-match": etag } })).status).toBe(200);
  });

  test("a log of many pieces comes as it is, from any place, and ends", async () => {
    const { job_id } = await worker.shell("seq 300000");
    await worker.ended(job_id);
    const whole = Buffer.from(Array.from({ length: 300_000 }, (_, i) => `${i + 1}\n`).join(""));
    const place = 512 * 1024;
    for (const [offset, end] of [[0], [7], [0, place], [0, place + 1], [3, place + 4], [1_000_000]] as const) {
      const range = { headers: { range: `bytes=${offset}-${end === undefined ? "" : end - 1}` } };
      for (const [query, init] of [[`?offset=${offset}`, {}] as const, ["", range] as const]) {
        if (end !== undefined && query !== "") continue;
        const { body } = await fetch(`http://relay/jobs/${job_id}/logs/stdout/content${query}`, { unix: socket(), ...init });
        const pieces: Uint8Array[] = [];
        for await (const piece of body as unknown as AsyncIterable<Uint8Array>) {
          pieces.push(piece);
          if (Buffer.concat(pieces).length > whole.length) break;
        }
        expect([offset, end, Buffer.concat(pieces).equals(whole.subarray(offset, end))]).toEqual([offset, end, true]);
      }
    }
  });

  test("an output that was changed afterwards is refused, and so is one that is gone", async () => {
    const { job_id } = await worker.shell("head -c 2000000 /dev/zero > big.bin", { workdir: worker.directory, outputs: ["big.bin"] });
    await worker.ended(job_id);
    const { artifacts } = await worker.client.artifacts(job_id);
    const output = artifacts.find((artifact) => artifact.kind === "execution_output")!;
    expect(output.uri).toStartWith("file:");
    const file = path.join(worker.directory, "big.bin");
    expect((await (await worker.client.artifactContent(output.artifact_id)).arrayBuffer()).byteLength).toBe(2_000_000);
    await Bun.write(file, "other");
    await refused(worker.client.artifactContent(output.artifact_id), "artifact_changed");
    await Bun.file(file).delete();
    await refused(worker.client.artifactContent(output.artifact_id), "artifact_unreadable");
  });
});

describe("an artifact's content", () => {
  const content = (id: string, headers: Record<string, string>, method = "GET") =>
    fetch(`http://relay/artifacts/${id}/content`, { unix: socket(), headers, method });

  async function output(text: string) {
    const { job_id } = await worker.shell(`printf '${text}'`);
    await worker.ended(job_id);
    const { artifacts } = await worker.client.artifacts(job_id);
    return artifacts.find(({ kind }) => kind === "stdout")!;
  }

  test("is a document for who would rather have one", async () => {
    const artifact = await output("h\\001i");
    const response = await content(artifact.artifact_id, { accept: "application/json" });
    expect([response.status, response.headers.get("vary")]).toEqual([200, "accept"]);
    expect(await response.json()).toEqual({ artifact, encoding: "base64", data: Buffer.from("h\u0001i").toString("base64") });
    for (const accept of ["*/*", "application/json, text/plain, */*", "application/octet-stream, application/json;q=0.9", "text/html"]) {
      const bytes = await content(artifact.artifact_id, { accept });
      expect([accept, bytes.headers.get("content-type"), await bytes.text()]).toEqual([accept, "application/octet-stream", "h\u0001i"]);
    }
  });

  test("is read for whoever wants its digest with the headers, and as it was recorded for whoever gets the bytes", async () => {
    const artifact = await output("hello");
    const digest = `sha-256=:${Buffer.from(artifact.sha256, "hex").toString("base64")}:`;
    const wanted = { "want-repr-digest": "unixsum=1, sha-256=10" };
    for (const method of ["HEAD", "GET"]) {
      const response = await content(artifact.artifact_id, wanted, method);
      expect([response.status, response.headers.get("repr-digest")]).toEqual([200, digest]);
    }
    for (const other of ["", "sha-256=0", "sha-512=3", "sha-256=11"]) {
      const response = await content(artifact.artifact_id, { "want-repr-digest": other }, "HEAD");
      expect([other, response.status, response.headers.get("repr-digest")]).toEqual([other, 200, null]);
    }
    const file = path.join(worker.spoolDir, artifact.job_id, artifact.uri.slice("spool:".length));
    const { atimeMs, mtimeMs } = fs.statSync(file);
    fs.writeFileSync(file, "hullo");
    fs.utimesSync(file, atimeMs / 1_000, mtimeMs / 1_000);
    expect((await content(artifact.artifact_id, wanted, "HEAD")).status).toBe(409);
  });

  test("comes whole in a document, in however many pieces it was read", async () => {
    const { job_id } = await worker.shell("seq 1 200000");
    await worker.ended(job_id);
    const { artifacts } = await worker.client.artifacts(job_id);
    const artifact = artifacts.find(({ kind }) => kind === "stdout")!;
    const response = await content(artifact.artifact_id, { accept: "application/json" });
    const { data } = (await response.json()) as { data: string };
    const bytes = Buffer.from(data, "base64");
    expect([bytes.length, Bun.SHA256.hash(bytes, "hex")]).toEqual([artifact.size_bytes, artifact.sha256]);
    expect(bytes.length).toBeGreaterThan(1024 * 1024);
  });

  test("that is too large for a document is refused with what is known of it, and can be had as bytes", async () => {
    const { job_id } = await worker.shell("head -c 16777217 /dev/zero");
    await worker.ended(job_id);
    const { artifacts } = await worker.client.artifacts(job_id);
    const artifact = artifacts.find(({ kind }) => kind === "stdout")!;
    const response = await content(artifact.artifact_id, { accept: "application/json" });
    expect([response.status, await response.json()]).toEqual([
      413,
      expect.objectContaining({
        reason: "payload_too_large",
        content_truncated: true,
        result_available: false,
        delivery: expect.objectContaining({ status: "failed", max_inline_bytes: 16 * 1024 * 1024 }),
        artifact,
      }),
    ]);
    const part = await content(artifact.artifact_id, { range: "bytes=16777216-" });
    expect([part.status, await part.bytes()]).toEqual([206, new Uint8Array(1)]);
  });

  test.each([
    ["bytes=0-1", 206, "he"],
    ["BYTES=-2", 206, "lo"],
    ["bytes=1-99999999999999999999999", 206, "ello"],
    ["bytes=, 1-1 ,", 206, "e"],
    ["bytes=0-0,2-3", 200, "hello"],
    ["bytes=4-1", 200, "hello"],
    ["lines=0-1", 200, "hello"],
    ["bytes=\u00e9-1", 200, "hello"],
    ["bytes=5-", 416, null],
    ["bytes=-0", 416, null],
    ["bytes=99999999999999999999999-", 416, null],
  ])("by Range %p is %d %p", async (range, status, text) => {
    const { artifact_id } = await output("hello");
    const response = await content(artifact_id, { range });
    expect(response.status).toBe(status);
    if (text === null) expect(response.headers.get("content-range")).toBe("bytes */5");
    else expect(await response.text()).toBe(text);
    // A range is one of a GET.
    const head = await content(artifact_id, { range }, "HEAD");
    expect([head.status, head.headers.get("content-length"), head.headers.get("content-range")]).toEqual([200, "5", null]);
  });
});

test("HEAD answers with the headers and opens nothing", async () => {
  const { job_id } = await worker.shell("echo hi");
  await worker.ended(job_id);
  const { artifacts } = await worker.client.artifacts(job_id);
  const output = artifacts.find((artifact) => artifact.kind === "stdout")!;
  const handles = () => new Bun.Glob("*").scanSync({ cwd: `/proc/${worker.pid}/fd`, onlyFiles: false });
  const before = [...handles()].length;
  for (let i = 0; i < 50; i++) {
    for (const target of [`/artifacts/${output.artifact_id}/content`, `/jobs/${job_id}/logs/stdout/content`]) {
      const response = await fetch(`http://relay${target}`, { unix: socket(), method: "HEAD" });
      expect(response.status).toBe(200);
      expect(response.headers.get("etag")).not.toBeNull();
    }
  }
  expect([...handles()].length).toBeLessThan(before + 20);
});
