import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { RelayError } from "../../../src/domain/errors.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { BulkGate } from "../../../src/transport/bulk/bulk-gate.ts";
import { type Fetch, fetchInRanges, RANGE_BYTES } from "../../../src/transport/bulk/ranged-transfer.ts";
import type { ChannelAnswer } from "../../../src/transport/http/http-channel.ts";
import { eventually } from "../../runner/wait.ts";

interface Source {
  bytes: Buffer;
  tag: string | null;
  /** What the n-th request gets instead. */
  instead?: (n: number, range: string | null) => ChannelAnswer | Error | null | Promise<ChannelAnswer | null>;
  readonly asked: (string | null)[];
  readonly conditions: (string | null)[];
}

const bare = (status: number, fields: Record<string, string> = {}, body: Uint8Array | null = null): ChannelAnswer => ({
  status,
  headers: new Headers(fields),
  body,
  upgraded: null,
});

const sourceOf = (bytes: Buffer, tag: string | null = `"${sha256Hex(bytes)}"`): Source => ({ bytes, tag, asked: [], conditions: [] });

/** A server of one content, as RFC 9110 has it. */
const serverOf =
  (source: Source): Fetch =>
  async ({ headers }, signal) => {
    const range = headers.get("range");
    const n = source.asked.push(range);
    source.conditions.push(headers.get("if-match"));
    await Bun.sleep(Math.random() * 3);
    signal?.throwIfAborted();
    const instead = await source.instead?.(n, range);
    if (instead instanceof Error) throw instead;
    if (instead != null) return instead;
    const { bytes, tag } = source;
    const fields = tag === null ? {} : { etag: tag };
    if (headers.get("if-none-match") === tag && tag !== null) return bare(304, fields);
    if (headers.has("if-match") && headers.get("if-match") !== tag) return bare(412);
    const match = /^bytes=(\d+)-(\d*)$/.exec(range ?? "");
    if (match === null) return bare(200, { ...fields, "content-length": String(bytes.length) }, bytes);
    const [start, end] = [Number(match[1]), Math.min(match[2] === "" ? bytes.length : Number(match[2]) + 1, bytes.length)];
    if (start >= bytes.length) return bare(416);
    return bare(206, { ...fields, "content-range": `bytes ${start}-${end - 1}/${bytes.length}` }, bytes.subarray(start, end));
  };

const get = (source: Source, fields: Record<string, string> = {}, gate = new BulkGate(), signal?: AbortSignal) =>
  fetchInRanges(serverOf(source), gate, { method: "GET", target: "/", headers: new Headers(fields), body: null }, signal);

async function bytesOf({ body }: ChannelAnswer): Promise<Buffer> {
  if (!(body instanceof ReadableStream)) return Buffer.from(body ?? []);
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces);
}

const LARGE = randomBytes(7 * RANGE_BYTES + 12_345);

describe("content that is fetched in ranges", () => {
  test("is the content, and the answer is the one to a single request", async () => {
    for (const size of [1, RANGE_BYTES - 1, RANGE_BYTES, RANGE_BYTES + 1, LARGE.length]) {
      const source = sourceOf(LARGE.subarray(0, size));
      const got = await get(source);
      expect(got.status).toBe(200);
      expect(got.headers.get("content-length")).toBe(String(size));
      expect(got.headers.get("content-range")).toBeNull();
      expect(got.headers.get("etag")).toBe(source.tag);
      expect((await bytesOf(got)).equals(source.bytes)).toBe(true);
      expect(source.asked).toHaveLength(Math.ceil(size / RANGE_BYTES));
      expect(source.conditions.slice(1)).toEqual(Array(source.asked.length - 1).fill(source.tag));
    }
  });

  test("is the part that was asked for", async () => {
    const end = LARGE.length;
    for (const [asked, start, last] of [
      ["bytes=0-9", 0, 9],
      ["bytes=100-", 100, end - 1],
      [`bytes=${RANGE_BYTES - 1}-${3 * RANGE_BYTES}`, RANGE_BYTES - 1, 3 * RANGE_BYTES],
      [`bytes=5-${end * 2}`, 5, end - 1],
    ] as const) {
      const got = await get(sourceOf(LARGE), { range: asked });
      expect(got.status, asked).toBe(206);
      expect(got.headers.get("content-range"), asked).toBe(`bytes ${start}-${last}/${end}`);
      expect((await bytesOf(got)).equals(LARGE.subarray(start, last + 1)), asked).toBe(true);
    }
  });

  test("may be nothing, unchanged, or an error: then the answer is that", async () => {
    expect(await bytesOf(await get(sourceOf(Buffer.alloc(0))))).toEqual(Buffer.alloc(0));
    const same = sourceOf(LARGE);
    expect((await get(same, { "if-none-match": same.tag! })).status).toBe(304);
    expect((await get(sourceOf(LARGE), { range: `bytes=${LARGE.length}-` })).status).toBe(416);
    const missing = { ...sourceOf(LARGE), instead: () => bare(404, {}, Buffer.from("no")) };
    expect((await get(missing)).status).toBe(404);
    const plain = { ...sourceOf(LARGE), instead: () => bare(200, {}, Buffer.from("all of it")) };
    expect(String(await bytesOf(await get(plain)))).toBe("all of it");
    const several = sourceOf(LARGE);
    await get(several, { range: "bytes=0-1,5-6" });
    expect(several.asked).toEqual(["bytes=0-1,5-6"]);
  });

  test("that changes on the way ends in an error", async () => {
    const source = sourceOf(LARGE, '"one"');
    source.instead = (n) => {
      if (n === 4) source.tag = '"two"';
      return null;
    };
    await expect(get(source).then(bytesOf)).rejects.toMatchObject({ code: "artifact_changed" });
    const silent = sourceOf(LARGE, '"one"');
    silent.instead = (n, range) => {
      const start = Number(/\d+/.exec(range ?? "")?.[0]);
      const bytes = LARGE.subarray(start, start + RANGE_BYTES);
      return n < 3
        ? null
        : bare(206, { etag: '"two"', "content-range": `bytes ${start}-${start + bytes.length - 1}/${LARGE.length}` }, bytes);
    };
    await expect(get(silent).then(bytesOf)).rejects.toMatchObject({ code: "artifact_changed" });
  });

  test("whose tag is another digest is not handed on to its end", async () => {
    const source = sourceOf(LARGE, `"${"0".repeat(64)}"`);
    const got = await get(source);
    let handed = 0;
    const reading = (async () => {
      for await (const piece of got.body as unknown as AsyncIterable<Uint8Array>) handed += piece.length;
    })();
    await expect(reading).rejects.toMatchObject({ code: "artifact_changed" });
    expect(handed).toBeLessThan(LARGE.length);
    // A part of it says nothing about the digest of the whole.
    const part = await get(sourceOf(LARGE, source.tag), { range: "bytes=1-" });
    expect((await bytesOf(part)).equals(LARGE.subarray(1))).toBe(true);
  });

  test("without a tag may grow behind what was asked for", async () => {
    const source = sourceOf(LARGE.subarray(0, 3 * RANGE_BYTES), null);
    source.instead = (n) => {
      if (n === 2) source.bytes = LARGE;
      return null;
    };
    expect((await bytesOf(await get(source))).equals(LARGE.subarray(0, 3 * RANGE_BYTES))).toBe(true);
  });

  test("survives that channels fail, and gives up where one range fails four times", async () => {
    const down = new RelayError("link_down", "broken");
    for (const failures of [3, 4]) {
      const source = sourceOf(LARGE);
      let failed = 0;
      source.instead = (_n, range) => (range?.startsWith(`bytes=${2 * RANGE_BYTES}-`) && failed++ < failures ? down : null);
      const reading = get(source).then(bytesOf);
      if (failures === 4) await expect(reading).rejects.toBe(down);
      else expect((await reading).equals(LARGE)).toBe(true);
    }
    const other = sourceOf(LARGE);
    other.instead = (n) => (n === 3 ? new Error("something else") : null);
    await expect(get(other).then(bytesOf)).rejects.toThrow("something else");
  });

  test("is refused where an answer is not the range that was asked for", async () => {
    const answers: Record<string, (start: number) => ChannelAnswer> = {
      "too short": (start) => bare(206, { "content-range": `bytes ${start}-${start + RANGE_BYTES - 1}/${LARGE.length}` }, Buffer.alloc(10)),
      elsewhere: () => bare(206, { "content-range": `bytes 0-${RANGE_BYTES - 1}/${LARGE.length}` }, Buffer.alloc(RANGE_BYTES)),
      "without saying which": () => bare(206, {}, Buffer.alloc(RANGE_BYTES)),
      backwards: (start) => bare(206, { "content-range": `bytes ${start}-${start - 1}/${LARGE.length}` }, Buffer.alloc(RANGE_BYTES)),
    };
    for (const [what, answer] of Object.entries(answers)) {
      const source = sourceOf(LARGE, null);
      source.instead = (n, range) => (n === 3 ? answer(Number(/\d+/.exec(range ?? "")?.[0])) : null);
      await expect(get(source).then(bytesOf), what).rejects.toMatchObject({ code: "answer_malformed" });
    }
    const first = { ...sourceOf(LARGE, null), instead: () => bare(206, {}, Buffer.alloc(10)) };
    await expect(get(first)).rejects.toMatchObject({ code: "answer_malformed" });
  });

  test("is fetched no further than somebody reads, and not at all when nobody does", async () => {
    const source = sourceOf(LARGE);
    const got = await get(source);
    await Bun.sleep(30);
    expect(source.asked).toHaveLength(1);
    const reader = (got.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await eventually(() => source.asked.length > 1);
    await Bun.sleep(30);
    expect(source.asked.length).toBeLessThanOrEqual(4);
    await reader.cancel();
    const before = source.asked.length;
    await Bun.sleep(30);
    expect(source.asked.length).toBe(before);
  });

  test("ends with the signal's reason", async () => {
    const controller = new AbortController();
    const source = sourceOf(LARGE);
    source.instead = (n) => {
      if (n === 3) controller.abort(new Error("stop"));
      return null;
    };
    await expect(get(source, {}, new BulkGate(), controller.signal).then(bytesOf)).rejects.toThrow("stop");
  });
});

describe("the gate", () => {
  const never = new AbortController().signal;
  const timing = (firstByteMs: number, totalMs: number) => ({ firstByteMs, totalMs });

  test("lets two through at first, whoever they belong to, and the next in order", async () => {
    const gate = new BulkGate();
    const [leaveOne] = [await gate.enter(never), await gate.enter(never)];
    const order: number[] = [];
    const waiting = [3, 4].map(async (n) => {
      const leave = await gate.enter(never);
      order.push(n);
      return leave;
    });
    await Bun.sleep(5);
    expect(order).toEqual([]);
    leaveOne();
    (await waiting[0]!)();
    (await waiting[1]!)();
    expect(order).toEqual([3, 4]);
  });

  test("who waits and is aborted leaves the queue", async () => {
    const gate = new BulkGate();
    const leaves = [await gate.enter(never), await gate.enter(never)];
    const controller = new AbortController();
    const waiting = gate.enter(controller.signal);
    controller.abort(new Error("stop"));
    await expect(waiting).rejects.toThrow("stop");
    for (const leave of leaves) leave();
    const again = [await gate.enter(never), await gate.enter(never)];
    expect(again).toHaveLength(2);
  });

  /** A path with a delay and a rate: what is under way shares the rate. */
  async function settle(delayMs: number, msPerRange: number): Promise<number> {
    const gate = new BulkGate();
    let inside = 0;
    for (let i = 0; i < 400; i++) {
      const leaves = await Promise.all(Array.from({ length: gate.limit }, () => gate.enter(never)));
      inside = leaves.length;
      // The k-th of them has k - 1 before it; a long path hides that for as long as it is not full.
      leaves.forEach((leave, k) => {
        const queue = Math.max(0, k * msPerRange - delayMs);
        leave(timing(delayMs + queue, delayMs + queue + msPerRange));
      });
    }
    return inside;
  }

  test("finds out how many a path needs: few where it is short, many where it is long", async () => {
    expect(await settle(0.5, 4)).toBeLessThanOrEqual(3);
    expect(await settle(50, 4)).toBeGreaterThanOrEqual(10);
    expect(await settle(50, 4)).toBeLessThanOrEqual(16);
    expect(await settle(50, 50)).toBeLessThanOrEqual(4);
  });
});
