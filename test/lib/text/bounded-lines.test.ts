import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { linesOf } from "../../../src/lib/text/bounded-lines.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

async function read(pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>, max = 1_000): Promise<(string | null)[]> {
  const lines: (string | null)[] = [];
  async function* input(): AsyncGenerator<Uint8Array> {
    yield* pieces;
  }
  for await (const line of linesOf(input(), max)) lines.push("bytes" in line ? new TextDecoder().decode(line.bytes) : null);
  return lines;
}

test("lines are the same in whatever pieces they come", async () => {
  const text = `one\n\n${"ä€😀".repeat(400)}\n${"x".repeat(2_000)}\nlast`;
  const whole = text.split("\n");
  const all = bytes(text);
  for (const length of [1, 2, 3, 7, 1_023, 1_024, 1_025, all.length]) {
    const pieces = Array.from({ length: Math.ceil(all.length / length) }, (_, at) => all.subarray(at * length, (at + 1) * length));
    expect(await read(pieces, 10_000)).toEqual(whole);
  }
});

test("what is too long is read over, and the line after it is whole", async () => {
  expect(await read([bytes("12345\n123456\n1234"), bytes("567\n1"), bytes("2345\n"), bytes("123456")], 5)).toEqual([
    "12345",
    null,
    null,
    "12345",
    null,
  ]);
  expect(await read([], 5)).toEqual([]);
});

test("a line is its reader's: what comes later does not change it", async () => {
  const piece = bytes("abc\n");
  async function* input(): AsyncGenerator<Uint8Array> {
    yield piece;
    piece.fill(0x7a);
    yield piece;
  }
  const kept: Uint8Array[] = [];
  for await (const line of linesOf(input(), 100)) if ("bytes" in line) kept.push(line.bytes);
  expect(kept.map((line) => new TextDecoder().decode(line))).toEqual(["abc", "zzzz"]);
});

test("a line that comes byte by byte takes no more than its bytes", async () => {
  const one = bytes("a");
  let held = Number.POSITIVE_INFINITY;
  async function* input(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < 50_000; at++) yield one;
    Bun.gc(true);
    held = heapStats().objectTypeCounts["Uint8Array"] ?? 0;
    yield bytes("\n");
  }
  const [line] = await read(input(), 100_000);
  expect([line?.length, held < 10_000]).toEqual([50_000, true]);
});
