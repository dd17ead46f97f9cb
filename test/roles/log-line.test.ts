import { expect, test } from "bun:test";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { logLine } from "../../src/roles/log-line.ts";

test("what others have said commands no terminal that shows the log, and begins no entry of its own", () => {
  const line = logLine(
    systemClock,
    "warn",
    "the server says \u001b]0;owned\u0007\r2026-01-01T00:00:00Z error gone\u009b2J\nmore",
    new Error("x\u001b[2J"),
  );
  expect(line.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  expect(line).toContain("the server says ^[]0;owned^G");
  const [first, ...rest] = line.trimEnd().split("\n");
  expect(first).toMatch(/^\S+Z warn the server says /);
  expect(rest.every((one) => one.startsWith("  "))).toBe(true);
});
