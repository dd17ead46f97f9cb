import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { LogStream } from "../../src/domain/log.ts";
import { OutputBudget } from "../../src/execution/shim/output-budget.ts";
import { completeUtf8Length } from "../../src/lib/text/utf8.ts";

const quota = (stream_bytes: number, job_bytes = 1e9, used = { stdout: 0, stderr: 0 }) => ({ stream_bytes, job_bytes, used });

/** What a recorder keeps of each stream when the pieces come in this order. */
function record(budget: OutputBudget, pieces: readonly { stream: LogStream; bytes: Uint8Array }[]): Record<LogStream, Buffer> {
  const state = {
    stdout: { kept: [] as Buffer[], carry: Buffer.alloc(0), cut: false },
    stderr: { kept: [] as Buffer[], carry: Buffer.alloc(0), cut: false },
  };
  const take = (stream: LogStream, bytes: Uint8Array, last: boolean): void => {
    const mine = state[stream];
    const all = Buffer.concat([mine.carry, bytes]);
    if (mine.cut || all.length === 0) return;
    const ruling = budget.rule(stream, all, last);
    expect(ruling.carry).toBeLessThanOrEqual(3);
    if (last) expect(ruling.carry).toBe(0);
    if (ruling.truncated === null) expect(ruling.keep + ruling.carry).toBe(all.length);
    mine.kept.push(all.subarray(0, ruling.keep));
    mine.carry = all.subarray(ruling.keep, ruling.keep + ruling.carry);
    if (ruling.truncated !== null) {
      mine.cut = true;
      budget.release(stream);
    }
  };
  for (const { stream, bytes } of pieces) take(stream, bytes, false);
  for (const stream of ["stdout", "stderr"] as const) take(stream, new Uint8Array(0), true);
  return { stdout: Buffer.concat(state.stdout.kept), stderr: Buffer.concat(state.stderr.kept) };
}

/** Text cut into pieces anywhere, also within characters. */
const pieces = fc.tuple(fc.string({ unit: "binary", maxLength: 40 }), fc.array(fc.nat(6), { maxLength: 60 })).map(([text, sizes]) => {
  const bytes = Buffer.from(text);
  const cut: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    cut.push(bytes.subarray(at, at + size));
    at += size;
  }
  cut.push(bytes.subarray(at));
  return { bytes, pieces: cut.filter((piece) => piece.length > 0) };
});

describe("one stream", () => {
  test("keeps the longest prefix of whole characters, however its bytes come", () => {
    fc.assert(
      fc.property(pieces, fc.nat(120), (text, limit) => {
        const kept = record(
          new OutputBudget(quota(limit)),
          text.pieces.map((bytes) => ({ stream: "stdout", bytes })),
        ).stdout;
        const expected = text.bytes.length <= limit ? text.bytes.length : completeUtf8Length(text.bytes.subarray(0, limit));
        expect(kept.equals(text.bytes.subarray(0, expected))).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  test("keeps any bytes that fit, and a prefix of those that do not", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 9 }), { maxLength: 20 }), fc.nat(100), (chunks, limit) => {
        const all = Buffer.concat(chunks);
        const kept = record(
          new OutputBudget(quota(limit)),
          chunks.map((bytes) => ({ stream: "stderr", bytes })),
        ).stderr;
        expect(all.subarray(0, kept.length).equals(kept)).toBe(true);
        if (all.length <= limit) expect(kept.length).toBe(all.length);
        else expect(kept.length).toBeWithin(Math.max(0, limit - 3), limit + 1);
      }),
      { numRuns: 2_000 },
    );
  });
});

test("two streams stay within the job's bound, and neither is cut inside a character", () => {
  fc.assert(
    fc.property(
      pieces,
      pieces,
      fc.array(fc.boolean(), { maxLength: 120 }),
      fc.nat(150),
      fc.nat(100),
      (out, err, order, jobLimit, streamLimit) => {
        const queue = { stdout: [...out.pieces], stderr: [...err.pieces] };
        const mixed: { stream: LogStream; bytes: Uint8Array }[] = [];
        for (const first of [...order, ...out.pieces.map(() => true), ...err.pieces.map(() => false)]) {
          const stream = first ? "stdout" : "stderr";
          const bytes = queue[stream].shift();
          if (bytes !== undefined) mixed.push({ stream, bytes });
        }
        const kept = record(new OutputBudget(quota(streamLimit, jobLimit)), mixed);
        expect(kept.stdout.length + kept.stderr.length).toBeLessThanOrEqual(jobLimit);
        for (const [mine, whole] of [
          [kept.stdout, out.bytes],
          [kept.stderr, err.bytes],
        ] as const) {
          expect(mine.length).toBeLessThanOrEqual(streamLimit);
          expect(whole.subarray(0, mine.length).equals(mine)).toBe(true);
          // Valid text stays valid text.
          expect(Buffer.from(mine.toString("utf8")).equals(mine)).toBe(true);
        }
        if (out.bytes.length + err.bytes.length <= jobLimit && Math.max(out.bytes.length, err.bytes.length) <= streamLimit) {
          expect(kept.stdout.length + kept.stderr.length).toBe(out.bytes.length + err.bytes.length);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

test("what earlier attempts kept counts, and more than the quota leaves nothing", () => {
  expect(new OutputBudget(quota(10, 100, { stdout: 8, stderr: 0 })).rule("stdout", Buffer.from("abc"), false)).toEqual({
    keep: 2,
    carry: 0,
    truncated: "stream_quota",
  });
  expect(new OutputBudget(quota(10, 12, { stdout: 8, stderr: 3 })).rule("stderr", Buffer.from("abc"), false)).toEqual({
    keep: 1,
    carry: 0,
    truncated: "job_quota",
  });
  expect(new OutputBudget(quota(10, 12, { stdout: 20, stderr: 20 })).rule("stderr", Buffer.from("a"), true)).toEqual({
    keep: 0,
    carry: 0,
    truncated: "stream_quota",
  });
});
