import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { contentHeaders, wantedOf } from "../../../src/api/range.ts";
import { forwardOverLink } from "../../../src/roles/desktop/forward.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { LinkRig } from "../../transport/link/link-rig.ts";

const directories = temporaryDirectories();
const MIB = 1024 * 1024;
const PATH = "/jobs/job_1/logs/stdout/content";

/** A link to a worker with one log, and what it was asked for. */
async function site(log: Buffer) {
  const asked: string[] = [];
  const rig = await LinkRig.start(directories(), {}, (request) => {
    const { searchParams: query } = new URL(request.url);
    const range = request.headers.get("range");
    asked.push(`${request.method} ${query} ${range ?? ""}`.trim());
    const tail = query.get("tail");
    const offset = tail === null ? Number(query.get("offset") ?? 0) : Math.max(0, log.length - Number(tail));
    if (range !== null && Number(/\d+/.exec(range)) >= log.length) return new Response("", { status: 416 });
    const part = wantedOf((name) => request.headers.get(name) ?? undefined, log.length, null);
    const { start, end } = part === null || part === "unchanged" ? { start: Math.min(offset, log.length), end: log.length } : part;
    const length = String(end - start);
    const headers = { ...contentHeaders(log.length, part as null, null), "content-length": length, "clio-relay-log-offset": String(start) };
    return new Response(request.method === "HEAD" ? null : log.subarray(start, end), { status: part === null ? 200 : 206, headers });
  });
  await rig.connect();
  const get = async (query: string, headers: Record<string, string> = {}) => {
    asked.length = 0;
    const target = `${PATH}${query}`;
    const request = new Request(`http://x${target}`, { headers });
    const answer = await forwardOverLink({ target, request, over: () => undefined }, rig.link);
    const pieces: Buffer[] = [];
    // A piece is its reader's until the next one is asked for.
    if (answer.body !== null)
      for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) pieces.push(Buffer.from(piece));
    return { answer, bytes: Buffer.concat(pieces) };
  };
  return { rig, asked, get };
}

test("a long log comes as a transfer from wherever it is asked for, and the answer is the one to a single request", async () => {
  const log = randomBytes(2 * MIB + 17);
  const { rig, asked, get } = await site(log);
  await using _ = rig;
  for (const [query, start] of [
    ["", 0],
    ["?offset=0", 0],
    ["?offset=1000", 1_000],
    ["?offset=1000&follow=false", 1_000],
    [`?tail=${MIB}`, log.length - MIB],
    [`?tail=${log.length + 5}`, 0],
  ] as const) {
    const { answer, bytes } = await get(query);
    expect([query, answer.status, bytes.equals(log.subarray(start))]).toEqual([query, 200, true]);
    expect(answer.headers.get("content-length")).toBe(String(log.length - start));
    expect(answer.headers.get("content-range")).toBeNull();
    expect(answer.headers.get("clio-relay-log-offset")).toBe(String(start));
    const ranges = asked.filter((line) => line.startsWith("GET"));
    expect(ranges.every((line) => line.includes("bytes="))).toBe(true);
    expect(ranges).toHaveLength(1);
  }
});

test("what is short, followed, asked for by range, or not understood here is left to the worker", async () => {
  const log = randomBytes(MIB);
  const { rig, asked, get } = await site(log);
  await using _ = rig;
  for (const query of ["?tail=100", "?offset=0&follow=true", "?offset=x", "?offset=1&offset=2", "?offset=1&tail=2", "?other=1"]) {
    const { answer } = await get(query);
    expect([query, answer.status, asked]).toEqual([query, 200, [`GET ${query.slice(1)}`]]);
  }
  const behind = await get(`?offset=${log.length}`);
  expect([behind.answer.status, behind.bytes.length]).toEqual([200, 0]);
  const part = await get("?offset=7", { range: `bytes=10-5099` });
  expect([part.answer.status, part.bytes.equals(log.subarray(10, 5_100))]).toEqual([206, true]);
  expect(part.answer.headers.get("content-range")).toBe(`bytes 10-5099/${log.length}`);
});
