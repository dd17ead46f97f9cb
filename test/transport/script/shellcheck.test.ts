import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { requireComponent } from "../../runner/components.ts";

const ROOT = path.resolve(import.meta.dir, "../../../src");
const FRAME = fs.readFileSync(path.join(ROOT, "transport/script/frame.sh"), "utf8");
const scripts = [...new Bun.Glob("transport/**/*.sh").scanSync({ cwd: ROOT })].sort();

/** As it is sent: behind the frame's functions, with the function that is called. */
function findings(text: string): string {
  const whole = `CLIO_NONCE=0\n${FRAME}${text}\nclio_run main\n`;
  // Variables that stand before a script come from outside, not every script uses every function, and subshells are meant.
  const { stdout } = spawnSync(
    "shellcheck",
    ["--shell=sh", "--exclude=SC2154,SC2034,SC2329,SC2317,SC1091,SC2012,SC2015,SC2016,SC2030,SC2031", "-"],
    {
      input: whole,
      encoding: "utf8",
    },
  );
  return stdout;
}

const there = requireComponent("shellcheck");

test.skipIf(!there)("shellcheck sees what is not POSIX sh", () => {
  expect(findings("main() { local x; x=1; [[ $x ]]; }\n")).toContain("SC3010");
});

test("there are scripts to look at", () => {
  expect(scripts.length).toBeGreaterThan(0);
});

test.skipIf(!there).each(scripts)("%s is POSIX sh", (file) => {
  expect(findings(fs.readFileSync(path.join(ROOT, file), "utf8"))).toBe("");
});
