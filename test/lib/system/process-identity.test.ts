import { expect, test } from "bun:test";
import { identify, isAlive, processStat, self } from "../../../src/lib/system/process-identity.ts";

test("this process is alive and has a start time", () => {
  const identity = self();
  expect(identity.pid).toBe(process.pid);
  expect(identity.start_time).toBeGreaterThan(0);
  expect(isAlive(identity)).toBe(true);
});

test("another start time or another boot is another process", () => {
  expect(isAlive({ ...self(), start_time: self().start_time + 1 })).toBe(false);
  expect(isAlive({ ...self(), boot_id: "another" })).toBe(false);
});

test("a process that has ended is not alive", async () => {
  const child = Bun.spawn(["sleep", "60"]);
  const identity = identify(child.pid)!;
  expect(isAlive(identity)).toBe(true);
  child.kill("SIGKILL");
  await child.exited;
  expect(isAlive(identity)).toBe(false);
  expect(processStat(child.pid)).toBeNull();
});

test("a command name with spaces and parentheses does not shift the fields", async () => {
  const child = Bun.spawn(["bash", "-c", "printf 'a) (b 1 2' > /proc/self/comm; echo ready; exec 2>&-; read x"], {
    stdin: "pipe",
    stdout: "pipe",
  });
  const reader = child.stdout.getReader();
  await reader.read();
  expect(processStat(child.pid)?.ppid).toBe(process.pid);
  child.kill("SIGKILL");
  await child.exited;
});
