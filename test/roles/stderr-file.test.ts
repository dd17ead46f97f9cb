import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { ROTATE_BYTES } from "../../src/roles/stderr-file.ts";
import { initialized } from "../cli/source-relay.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const directory = temporaryDirectories();
const BOUND = 2_000;

async function write(named: string, target: string, lines: number): Promise<void> {
  const fd = fs.openSync(target, "a");
  const child = Bun.spawn([process.execPath, path.join(import.meta.dir, "bounded-stderr-child.ts"), named, String(BOUND), String(lines)], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: fd,
  });
  fs.closeSync(fd);
  expect(await child.exited).toBe(1);
}

test("standard error goes on in a new file when its file is full; both together are bounded, and no line in them is torn", async () => {
  const file = path.join(directory(), "own.log");
  await write(file, file, 500);
  expect(fs.readdirSync(path.dirname(file)).sort()).toEqual(["own.log", "own.log.1"]);
  const [now, before] = [file, `${file}.1`].map((one) => fs.readFileSync(one, "utf8"));
  for (const text of [now!, before!]) expect(Buffer.byteLength(text)).toBeLessThan(BOUND + 1_000);
  expect(now).toContain("error: the end\n");
  const numbers = [...(before! + now!).matchAll(/line (\d+)\n/g)].map((match) => Number(match[1]));
  expect(numbers.at(-1)).toBe(499);
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, i) => 500 - numbers.length + i));
});

test("a file that a user named is left alone, however large it gets", async () => {
  const base = directory();
  const mine = path.join(base, "mine.log");
  fs.writeFileSync(path.join(base, "own.log"), "");
  await write(path.join(base, "own.log"), mine, 500);
  expect(fs.readdirSync(base).sort()).toEqual(["mine.log", "own.log"]);
  expect(fs.readFileSync(mine, "utf8").match(/line \d+\n/g)).toHaveLength(500);
});

test("logs of a worker and a daemon in the background: put aside at their start, and while they run", async () => {
  await using relay = await initialized();
  const log = path.join(relay.home, "log", "worker-local.log");
  const stderr = path.join(relay.home, "log", "desktop-stderr.log");
  const old = "o".repeat(ROTATE_BYTES);
  for (const file of [log, stderr]) fs.writeFileSync(file, old);
  await relay.ok("worker", "start", "--cluster", "local");
  await relay.ok("desktop", "start");
  for (const file of [log, stderr]) {
    expect(fs.statSync(`${file}.1`).size).toBe(ROTATE_BYTES);
    expect(fs.statSync(file).size).toBeLessThan(10_000);
  }
  // As if it had said much by now.
  fs.appendFileSync(log, "m".repeat(ROTATE_BYTES));
  fs.rmSync(path.join(relay.home, "spool", "local"), { recursive: true });
  const id = await relay.submit("--cluster", "local", "--", "true");
  expect(id).toStartWith("job_");
  await eventually(() => fs.readFileSync(log, "utf8").includes("was gone, and is made again"));
  expect(fs.statSync(log).size).toBeLessThan(10_000);
  expect(fs.readFileSync(`${log}.1`, "latin1")).toEndWith("m");
});
