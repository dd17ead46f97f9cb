import { expect, test } from "bun:test";
import fs from "node:fs";
import { pipe } from "../../../src/lib/system/libc.ts";
import { LossyOutput } from "../../../src/lib/text/lossy-output.ts";

const ON_LINUX = process.platform === "linux";

/** What can be read of a pipe that holds something. */
function taken(fd: number): string {
  const bytes = Buffer.alloc(1024 * 1024);
  return bytes.toString("latin1", 0, fs.readSync(fd, bytes));
}

test.skipIf(!ON_LINUX)(
  "a pipe that nobody reads makes nobody wait; what it did not take is counted, and said once it takes something",
  () => {
    const [read, write] = pipe();
    const output = new LossyOutput(write, (count) => `${count} left out\n`);
    const line = (i: number): string => `line ${i} ${"x".repeat(5_000)}\n`;
    for (let i = 0; i < 100; i++) output.write(line(i));
    const before = taken(read);
    const whole = before.split("\n").slice(0, -1);
    expect(whole.length).toBeGreaterThan(5);
    for (const [i, text] of whole.entries()) expect(`${text}\n`).toBe(line(i));
    output.write("later\n");
    const cut = before.endsWith("\n") ? "" : "\n";
    expect(taken(read)).toBe(`${cut}${100 - whole.length} left out\nlater\n`);
    fs.closeSync(read);
    // Nor does a reader that is gone.
    output.write("to nobody\n");
    fs.closeSync(write);
  },
);

test("a file gets every line", () => {
  const file = `${process.env["TMPDIR"] ?? "/tmp"}/lossy-${process.pid}`;
  const fd = fs.openSync(file, "w");
  const output = new LossyOutput(fd, () => "left out\n");
  for (let i = 0; i < 50; i++) output.write(`${i}${"y".repeat(9_000)}\n`);
  fs.closeSync(fd);
  expect(fs.readFileSync(file, "utf8").split("\n").length).toBe(51);
  fs.rmSync(file);
});
