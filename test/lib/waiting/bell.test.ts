import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { DirectoryWatch } from "../../../src/lib/files/directory-watch.ts";
import { Bell } from "../../../src/lib/waiting/bell.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const temporary = temporaryDirectories();

test("a ring before the wait counts once, and can be forgotten", async () => {
  const bell = new Bell();
  bell.ring();
  bell.ring();
  await bell.wait();
  let woken = false;
  const waiting = bell.wait().then(() => {
    woken = true;
  });
  await Bun.sleep(1);
  expect(woken).toBe(false);
  bell.ring();
  await waiting;
  bell.ring();
  bell.reset();
  const since = performance.now();
  await bell.wait(20);
  expect(performance.now() - since).toBeGreaterThanOrEqual(19);
});

test("a watch tells of its directory only, by name, until it is closed", async () => {
  const [first, second] = [temporary(), temporary()];
  const seen: string[] = [];
  const bell = new Bell();
  const watch = new DirectoryWatch((name) => {
    seen.push(name);
    bell.ring();
  });
  expect(watch.move(path.join(first, "missing"))).toBe(false);
  expect(watch.move(first)).toBe(true);
  fs.writeFileSync(path.join(first, "a"), "");
  while (!seen.includes("a")) await bell.wait();
  expect(watch.move(second)).toBe(true);
  fs.writeFileSync(path.join(first, "b"), "");
  fs.writeFileSync(path.join(second, "c"), "");
  while (!seen.includes("c")) await bell.wait();
  expect(seen).not.toContain("b");
  watch.close();
});
