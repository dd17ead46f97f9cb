import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { tryLock } from "../../src/lib/files/file-lock.ts";
import { newId } from "../../src/lib/ids.ts";
import { service } from "../../src/lib/service.ts";
import { flock } from "../../src/lib/system/libc.ts";
import { Backoff } from "../../src/lib/waiting/backoff.ts";
import { Notifier } from "../../src/lib/waiting/notifier.ts";

test("identifiers are unlike each other and fit the grammar", () => {
  const ids = new Set(Array.from({ length: 1000 }, () => newId("job")));
  expect(ids.size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^job_[0-9a-f]{32}$/);
});

test("identifiers are in the order in which they were made, as far as the clock tells", async () => {
  const ids: string[] = [];
  for (let i = 0; i < 20; i++) {
    ids.push(newId("job"));
    const now = Date.now();
    while (Date.now() <= now);
  }
  expect(ids.toSorted()).toEqual(ids);
  expect(Math.abs(Number.parseInt(ids[19]!.slice(4, 16), 16) - Date.now())).toBeLessThan(60_000);
});

test("delays double to the cap, and a reset starts over", () => {
  const backoff = new Backoff(100, 1000, () => 0);
  expect([1, 2, 3, 4, 5, 6].map(() => backoff.next())).toEqual([100, 200, 400, 800, 1000, 1000]);
  backoff.reset();
  expect(backoff.next()).toBe(100);
  expect(new Backoff(100, 1000, () => 1).next()).toBe(80);
});

describe("service", () => {
  test("starts once and stops once, however often it is asked", async () => {
    const calls: string[] = [];
    const thing = service({ start: () => void calls.push("start"), stop: () => void calls.push("stop") });
    await Promise.all([thing.start(), thing.start()]);
    await Promise.all([thing.stop(), thing.stop()]);
    expect(calls).toEqual(["start", "stop"]);
  });

  test("what never started need not be stopped", async () => {
    const calls: string[] = [];
    await service({ start: () => void calls.push("start"), stop: () => void calls.push("stop") }).stop();
    expect(calls).toEqual([]);
  });
});

describe("Notifier", () => {
  test("wakes listeners of the topic only, until they leave", () => {
    const notifier = new Notifier<"a" | "b">();
    let count = 0;
    const leave = notifier.subscribe("a", () => count++);
    notifier.notify("b");
    notifier.notify("a");
    leave();
    leave();
    notifier.notify("a");
    expect(count).toBe(1);
    expect(notifier.size).toBe(0);
  });

  test("a listener that leaves while it is called does not disturb the others", () => {
    const notifier = new Notifier<"a">();
    const called: number[] = [];
    const leave = notifier.subscribe("a", () => {
      called.push(1);
      leave();
    });
    notifier.subscribe("a", () => called.push(2));
    notifier.notify("a");
    notifier.notify("a");
    expect(called).toEqual([1, 2, 2]);
  });
});

describe("tryLock", () => {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-lock-")), "lock");

  test("a second holder is refused until the first lets go", () => {
    const first = tryLock(file);
    expect(first).not.toBeNull();
    expect(tryLock(file)).toBeNull();
    first!.release();
    first!.release();
    const second = tryLock(file);
    expect(second).not.toBeNull();
    second!.release();
  });

  test("a failure that is not another holder says so", () => {
    const { EAGAIN, EBADF, EINTR, ENOLCK } = os.constants.errno;
    expect(flock(-1)).toBe(EBADF);
    const open = fs.openSync(file, "r");
    fs.closeSync(open);
    const answers = (...errnos: number[]) => {
      const calls = { left: [...errnos] };
      return { calls, lock: () => calls.left.shift() ?? ENOLCK };
    };
    expect(() => tryLock(file, answers().lock)).toThrow(expect.objectContaining({ code: "ENOLCK", syscall: "flock", path: file }));
    expect(() => tryLock(file, () => 4_095)).toThrow(expect.objectContaining({ code: "errno 4095" }));
    const interrupted = answers(EINTR, EINTR, EAGAIN);
    expect(tryLock(file, interrupted.lock)).toBeNull();
    expect(interrupted.calls.left).toEqual([]);
    tryLock(file, answers(EINTR, 0).lock)!.release();
    // None of them has left its descriptor open.
    const again = fs.openSync(file, "r");
    fs.closeSync(again);
    expect(again).toBe(open);
  });

  test("the kernel lets go when the holder is killed, and its children do not hold it", async () => {
    const script = path.join(path.dirname(file), "holder.ts");
    fs.writeFileSync(
      script,
      `import { tryLock } from ${JSON.stringify(path.resolve("src/lib/files/file-lock.ts"))};
       globalThis.lock = tryLock(process.argv[2]);
       const child = Bun.spawn(["sleep", "60"], { detached: true });
       console.log(child.pid);
       setInterval(() => {}, 1000);`,
    );
    const holder = Bun.spawn([process.execPath, script, file], { stdout: "pipe", env: { BUN_BE_BUN: "1" } });
    const { value } = await holder.stdout.getReader().read();
    const grandchild = Number(new TextDecoder().decode(value));
    expect(tryLock(file)).toBeNull();
    holder.kill("SIGKILL");
    await holder.exited;
    const lock = tryLock(file);
    process.kill(grandchild, "SIGKILL");
    expect(lock).not.toBeNull();
    lock!.release();
  });
});
