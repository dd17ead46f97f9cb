import { expect, test } from "bun:test";
import path from "node:path";
import { sh, testAttempts } from "./attempts.ts";

const attempt = testAttempts([
  "/bin/sh",
  "-c",
  'ulimit -n 256; exec "$@"',
  "sh",
  process.execPath,
  path.join(import.meta.dir, "starved-shim-entry.ts"),
]);

test("a shim that has too many open files starts its job once it has not", async () => {
  const job = attempt(sh("echo ran; exit 4"));
  expect((await job.run()).outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 4 });
  expect(job.text("stdout.log")).toBe("ran\n");
  expect(job.text("shim.log")).toContain("EMFILE");
}, 30_000);
