import { expect, test } from "bun:test";
import { giveBack } from "../../../src/lib/system/give-back.ts";

test("memory that is given back is gone for every view of it", () => {
  const memory = Buffer.from(new ArrayBuffer(64 * 1024));
  const part = memory.subarray(10, 60_000);
  giveBack(part);
  expect([memory.length, part.length, part.buffer.byteLength]).toEqual([0, 0, 0]);
});

test("memory that others may share stays", () => {
  const small = Buffer.from("from the pool of all buffers");
  giveBack(small);
  expect(small.toString()).toBe("from the pool of all buffers");
  const shared = new Uint8Array(new SharedArrayBuffer(64 * 1024)).fill(7);
  giveBack(shared);
  expect(shared.length).toBe(64 * 1024);
});
