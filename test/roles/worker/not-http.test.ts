import { afterAll, beforeAll, expect, test } from "bun:test";
import net from "node:net";
import { WorkerHarness } from "./harness.ts";

let worker: WorkerHarness;
beforeAll(async () => {
  worker = await new WorkerHarness().start();
});
afterAll(() => worker[Symbol.asyncDispose]());

/** All that a connection gets that says this. */
function answerTo(...parts: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const connection = net.connect(worker.socket);
    let text = "";
    connection.on("data", (bytes) => (text += bytes.toString("latin1")));
    connection.once("error", reject);
    connection.once("close", () => resolve(text));
    connection.write(parts.join(""));
  });
}

/** What the runtime says before, or in the middle of, a request that it cannot read. */
const BARE = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
const head = (line: string, ...fields: string[]): string =>
  [`${line} HTTP/1.1`, "Host: worker", "Content-Type: application/json", ...fields, "", ""].join("\r\n");
const chunked = (line: string): string => head(line, "Transfer-Encoding: chunked");
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

const SUBMISSION = JSON.stringify({ cluster: "local", kind: "command", spec: { argv: ["true"], workdir: "/" } });

test.each([
  ["a chunk's size that is none", [chunked("POST /jobs"), chunk(SUBMISSION), "zz\r\n"]],
  ["a chunk's size that is a number no longer", [chunked("POST /jobs"), chunk(SUBMISSION), "ffffffffffffffffff\r\n"]],
  ["a chunk that is longer than it said", [chunked("POST /jobs"), chunk(SUBMISSION), "1\r\nxx\r\n0\r\n\r\n"]],
  [
    "two ways to say where it ends",
    [head("POST /jobs", "Transfer-Encoding: chunked", "Content-Length: 3"), chunk(SUBMISSION), "0\r\n\r\n"],
  ],
  ["two lengths", [head("POST /jobs", "Content-Length: 1", `Content-Length: ${SUBMISSION.length}`), SUBMISSION]],
  ["a length that is none", [head("POST /jobs", `Content-Length: ${SUBMISSION.length}x`), SUBMISSION]],
  ["a coding that nobody knows", [head("POST /jobs", "Transfer-Encoding: gzip"), SUBMISSION]],
  ["a line that is none", ["GARBAGE\r\n\r\n"]],
  ["a field that is none", [head("GET /healthz", "A Name: x")]],
  ["no host", ["GET /healthz HTTP/1.1\r\n\r\n"]],
  ["another version", ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]],
])("what is not well-formed is refused without a document, and nothing is done: %s", async (_what, parts) => {
  const before = (await worker.client.queue({ include_terminal: true })).source_total;
  expect(await answerTo(...parts)).toBe(BARE);
  expect((await worker.client.queue({ include_terminal: true })).source_total).toBe(before);
  expect(worker.messages).not.toContain(" error ");
});

test("a piece that breaks off so is not taken, and comes again", async () => {
  const [content, sha256] = ["0123456789", "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"];
  const target = `/input-uploads/${sha256}`;
  await worker.call("POST", "/input-uploads", JSON.stringify({ sha256, size_bytes: 10 }));
  expect(await answerTo(chunked(`PUT ${target}/content?size_bytes=10&offset=0`), chunk(content.slice(0, 6)), "zz\r\n")).toBe(BARE);
  expect(await worker.call("GET", `${target}?size_bytes=10`)).toMatchObject({ body: { state: "partial", offset: 0 } });
  const put = await worker.call("PUT", `${target}/content?size_bytes=10&offset=0`, Buffer.from(content));
  expect(put).toMatchObject({ status: 200, body: { state: "complete" } });
});

test("a head of more than 16 KiB is refused, too, and one of less is not", async () => {
  const large = (bytes: number) => answerTo(head("GET /healthz", "Connection: close", `A: ${"x".repeat(bytes)}`));
  expect(await large(15_000)).toStartWith("HTTP/1.1 200 ");
  expect(await large(17_000)).toBe("HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n");
});

test("a method that nobody knows has no answer, and nothing is done", async () => {
  const before = (await worker.client.queue({ include_terminal: true })).source_total;
  expect(await answerTo(head("SUBMIT /jobs", `Content-Length: ${SUBMISSION.length}`), SUBMISSION)).toBe("");
  expect((await worker.client.queue({ include_terminal: true })).source_total).toBe(before);
});

test("a request that has trailers is answered, and its connection ends", async () => {
  const answer = await answerTo(chunked("POST /jobs"), chunk("{}"), "0\r\nA-Trailer: x\r\n\r\n");
  expect(answer).toStartWith("HTTP/1.1 422 ");
  expect(answer).toContain('"request_validation_failed"');
  expect(answer).toEndWith(BARE);
});

test("of requests that are sent before the answer to the first, only the first is carried out; repeated with their keys, each is done once", async () => {
  const jobs = async () => (await worker.client.queue({ include_terminal: true })).source_total;
  const before = await jobs();
  const keys = [1, 2, 3, 4].map((n) => `sent together ${n}`);
  const posts = keys.map((key) => head("POST /jobs", `Idempotency-Key: ${key}`, `Content-Length: ${SUBMISSION.length}`) + SUBMISSION);
  const answers = (await answerTo(...posts)).split("HTTP/1.1 ").length - 1;
  expect(answers).toBeLessThanOrEqual(1);
  expect(await jobs()).toBeLessThanOrEqual(before + 1);
  for (const key of keys) expect((await worker.call("POST", "/jobs", SUBMISSION, { "idempotency-key": key })).status).toBeOneOf([200, 201]);
  expect(await jobs()).toBe(before + keys.length);
});
