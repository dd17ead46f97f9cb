import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { RelayError } from "../../../src/domain/errors.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { type Fetch, fetchResumed } from "../../../src/transport/bulk/resumed-transfer.ts";
import { TransferWindows } from "../../../src/transport/bulk/transfer-windows.ts";
import type { ChannelAnswer } from "../../../src/transport/http/http-channel.ts";
import type { ChannelRequest } from "../../../src/transport/http/request-head.ts";

interface Source {
  bytes: Buffer;
  tag: string | null;
  /** Where the n-th answer breaks off, if it does. */
  breaks?: (n: number) => number | null;
  /** What the n-th request gets instead. */
  instead?: (n: number, request: ChannelRequest) => ChannelAnswer | Error | null;
  /** What the other side says the digest is; null: nothing. */
  digest?: string | null;
  readonly asked: string[];
  readonly conditions: (string | null)[];
}

const bare = (status: number, fields: Record<string, string> = {}, body: ChannelAnswer["body"] = null): ChannelAnswer => ({
  status,
  headers: new Headers(fields),
  body,
  upgraded: null,
});

const sourceOf = (bytes: Buffer, tag: string | null = `"${sha256Hex(bytes)}"`): Source => ({ bytes, tag, asked: [], conditions: [] });

const PIECE = 64 * 1024;
const broken = new RelayError("link_down", "broken");

/** A body in pieces, which breaks off behind so many bytes. */
function streamed(bytes: Buffer, breaksAt: number | null): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        await Bun.sleep(0);
        const end = Math.min(at + PIECE, breaksAt ?? bytes.length, bytes.length);
        if (end > at) controller.enqueue(Buffer.from(bytes.subarray(at, end)));
        at = end;
        if (at === breaksAt) controller.error(broken);
        else if (at === bytes.length) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}

/** A server of one content, as RFC 9110 has it. */
const serverOf =
  (source: Source): Fetch =>
  async (request, signal) => {
    const { method, headers } = request;
    const range = headers.get("range");
    const n = source.asked.push(`${method} ${range ?? headers.get("want-repr-digest") ?? ""}`.trim());
    source.conditions.push(headers.get("if-match"));
    await Bun.sleep(Math.random() * 3);
    signal?.throwIfAborted();
    const instead = source.instead?.(n, request);
    if (instead instanceof Error) throw instead;
    if (instead != null) return instead;
    const { bytes, tag } = source;
    const fields: Record<string, string> = tag === null ? {} : { etag: tag };
    if (headers.get("if-none-match") === tag && tag !== null) return bare(304, fields);
    if (headers.has("if-match") && headers.get("if-match") !== tag) return bare(412);
    if (method === "HEAD") {
      const digest = source.digest === undefined ? sha256Hex(bytes) : source.digest;
      return bare(
        200,
        digest === null ? fields : { ...fields, "repr-digest": `sha-256=:${Buffer.from(digest, "hex").toString("base64")}:` },
      );
    }
    const breaksAt = source.breaks?.(n) ?? null;
    const match = /^bytes=(\d+)-(\d*)$/.exec(range ?? "");
    if (match === null) return bare(200, { ...fields, "content-length": String(bytes.length) }, streamed(bytes, breaksAt));
    const [start, end] = [Number(match[1]), Math.min(match[2] === "" ? bytes.length : Number(match[2]) + 1, bytes.length)];
    if (start >= bytes.length) return bare(416);
    return bare(
      206,
      { ...fields, "content-range": `bytes ${start}-${end - 1}/${bytes.length}` },
      streamed(bytes.subarray(start, end), breaksAt),
    );
  };

const get = (source: Source, fields: Record<string, string> = {}, signal?: AbortSignal, windows = new TransferWindows()) =>
  fetchResumed(serverOf(source), windows, { method: "GET", target: "/", headers: new Headers(fields), body: null }, signal);

async function bytesOf({ body }: ChannelAnswer): Promise<Buffer> {
  if (!(body instanceof ReadableStream)) return Buffer.from(body ?? []);
  const pieces: Uint8Array[] = [];
  for await (const piece of body as unknown as AsyncIterable<Uint8Array>) pieces.push(piece);
  return Buffer.concat(pieces);
}

const MIB = 1024 * 1024;
const LARGE = randomBytes(3 * MIB + 12_345);
const DIGEST = "HEAD sha-256=10";

describe("a transfer", () => {
  test("is the content, asked for once, and the answer is the one to a request without a range", async () => {
    for (const size of [1, PIECE, PIECE + 1, LARGE.length]) {
      const source = sourceOf(LARGE.subarray(0, size));
      const got = await get(source);
      expect([got.status, got.headers.get("content-length"), got.headers.get("content-range")]).toEqual([200, String(size), null]);
      expect(got.headers.get("etag")).toBe(source.tag);
      expect((await bytesOf(got)).equals(source.bytes)).toBe(true);
      expect(source.asked).toEqual(["GET bytes=0-"]);
    }
  });

  test("is the part that was asked for", async () => {
    const end = LARGE.length;
    for (const [asked, start, last] of [
      ["bytes=0-9", 0, 9],
      ["bytes=100-", 100, end - 1],
      [`bytes=5-${end * 2}`, 5, end - 1],
    ] as const) {
      const got = await get(sourceOf(LARGE), { range: asked });
      expect([got.status, got.headers.get("content-range")]).toEqual([206, `bytes ${start}-${last}/${end}`]);
      expect((await bytesOf(got)).equals(LARGE.subarray(start, last + 1)), asked).toBe(true);
    }
  });

  test("may be nothing, unchanged, or an error: then the answer is that", async () => {
    expect(await bytesOf(await get(sourceOf(Buffer.alloc(0))))).toEqual(Buffer.alloc(0));
    const same = sourceOf(LARGE);
    expect((await get(same, { "if-none-match": same.tag! })).status).toBe(304);
    expect((await get(sourceOf(LARGE), { range: `bytes=${LARGE.length}-` })).status).toBe(416);
    expect((await get({ ...sourceOf(LARGE), instead: () => bare(404, {}, Buffer.from("no")) })).status).toBe(404);
    const plain = { ...sourceOf(LARGE), instead: () => bare(200, {}, Buffer.from("all of it")) };
    expect(String(await bytesOf(await get(plain)))).toBe("all of it");
  });

  test("goes on where its channel failed, and its digest is asked for before the last bytes", async () => {
    const source = sourceOf(LARGE);
    source.breaks = (n) => (n <= 2 ? MIB + n : null);
    const got = await get(source);
    expect((await bytesOf(got)).equals(LARGE)).toBe(true);
    const last = LARGE.length - 1;
    expect(source.asked).toEqual(["GET bytes=0-", `GET bytes=${MIB + 1}-${last}`, `GET bytes=${2 * MIB + 3}-${last}`, DIGEST]);
    expect(source.conditions.slice(1)).toEqual(Array(3).fill(source.tag));
    const part = sourceOf(LARGE);
    part.breaks = (n) => (n === 1 ? 10 : null);
    expect((await bytesOf(await get(part, { range: "bytes=7-99" }))).equals(LARGE.subarray(7, 100))).toBe(true);
    expect(part.asked).toEqual(["GET bytes=7-99", "GET bytes=17-99"]);
  });

  test("without a tag may grow behind what was asked for", async () => {
    const source = sourceOf(LARGE.subarray(0, MIB), null);
    source.breaks = (n) => {
      if (n > 1) return null;
      source.bytes = LARGE;
      return PIECE;
    };
    source.instead = (n) =>
      n === 1 ? null : bare(206, { "content-range": `bytes ${PIECE}-${MIB - 1}/${LARGE.length}` }, LARGE.subarray(PIECE, MIB));
    expect((await bytesOf(await get(source))).equals(LARGE.subarray(0, MIB))).toBe(true);
  });

  test("gives up where its channel fails four times without getting on, and where another failure comes", async () => {
    for (const failures of [3, 4]) {
      const source = sourceOf(LARGE);
      source.breaks = (n) => (n === 1 ? MIB : null);
      source.instead = (n) => (n > 1 && n <= failures ? broken : null);
      const reading = get(source).then(bytesOf);
      if (failures === 4) await expect(reading).rejects.toBe(broken);
      else expect((await reading).equals(LARGE)).toBe(true);
    }
    const other = sourceOf(LARGE);
    other.breaks = (n) => (n === 1 ? MIB : null);
    other.instead = (n) => (n === 2 ? new Error("something else") : null);
    await expect(get(other).then(bytesOf)).rejects.toThrow("something else");
  });

  test("that would go on with another content ends in an error", async () => {
    const changing: Record<string, Partial<Source>> = {
      "its tag changes": { instead: (n) => (n === 2 ? bare(412) : null) },
      silently: {
        instead: (n) =>
          n === 2 ? bare(206, { etag: '"two"', "content-range": `bytes ${MIB}-${LARGE.length - 1}/${LARGE.length}` }) : null,
      },
      "its digest is another one": { digest: "0".repeat(64) },
      "it cannot be read any more": { instead: (n, { method }) => (n === 3 && method === "HEAD" ? bare(409) : null) },
    };
    for (const [what, how] of Object.entries(changing)) {
      const source = Object.assign(sourceOf(LARGE), how);
      source.breaks = (n) => (n === 1 ? MIB : null);
      let handed = 0;
      const reading = (async () => {
        const { body } = await get(source);
        for await (const piece of body as unknown as AsyncIterable<Uint8Array>) handed += piece.length;
      })();
      await expect(reading, what).rejects.toMatchObject({ code: "artifact_changed" });
      expect(handed, what).toBeLessThan(LARGE.length);
    }
    const silent = Object.assign(sourceOf(LARGE), { digest: null });
    silent.breaks = (n) => (n === 1 ? MIB : null);
    await expect(get(silent).then(bytesOf)).rejects.toMatchObject({ code: "answer_malformed" });
  });

  test("is refused where an answer is not the range that was asked for, or longer than it said", async () => {
    const answers: Record<string, ChannelAnswer> = {
      elsewhere: bare(206, { "content-range": `bytes 0-${LARGE.length - 1}/${LARGE.length}` }, Buffer.alloc(10)),
      "without saying which": bare(206, {}, Buffer.alloc(10)),
      "too long": bare(206, { "content-range": `bytes ${MIB}-${LARGE.length - 1}/${LARGE.length}` }, Buffer.alloc(LARGE.length)),
    };
    for (const [what, answer] of Object.entries(answers)) {
      const source = sourceOf(LARGE, null);
      source.breaks = (n) => (n === 1 ? MIB : null);
      source.instead = (n) => (n === 2 ? answer : null);
      await expect(get(source).then(bytesOf), what).rejects.toMatchObject({ code: "answer_malformed" });
    }
  });

  test("ends with the signal's reason, and with its reader", async () => {
    const controller = new AbortController();
    const source = sourceOf(LARGE);
    source.breaks = (n) => {
      if (n === 2) controller.abort(new Error("stop"));
      return MIB;
    };
    await expect(get(source, {}, controller.signal).then(bytesOf)).rejects.toThrow("stop");
    const windows = new TransferWindows();
    const { body } = await get(sourceOf(LARGE), {}, undefined, windows);
    const alone = windows.enter();
    expect(alone.size).toBe(windows.window / 2);
    await (body as ReadableStream).cancel();
    expect(alone.size).toBe(windows.window);
  });
});
