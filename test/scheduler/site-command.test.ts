import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { lastWords, OUTPUT_MAX_BYTES, runSiteCommand, siteEnvironment } from "../../src/scheduler/site-command.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const directory = temporaryDirectories();
const PATH = "/usr/bin:/bin";

/** Run a shell script as if it were a site's command. */
function site(script: string, options: { input?: string; deadlineMs?: number; environment?: Record<string, string> } = {}) {
  const place = directory();
  fs.writeFileSync(path.join(place, "command"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const { environment = {}, deadlineMs = 30_000, ...rest } = options;
  return {
    place,
    end: runSiteCommand({
      argv: ["command", "a b", "$HOME"],
      environment: { PATH: `${place}:${PATH}`, ...environment },
      deadlineMs,
      ...rest,
    }),
  };
}

describe("a site's command", () => {
  test("gets its arguments as they are, its input, and an environment that names the site and nothing else", async () => {
    const environment = siteEnvironment({
      PATH,
      HOME: "/home/u",
      USER: "u",
      SLURM_CONF: "/etc/s.conf",
      SGE_ROOT: "/sge",
      SGE_CELL: "",
      API_TOKEN: "secret",
      TZ: "Asia/Tokyo",
    });
    expect(environment).toEqual({ LC_ALL: "C", PATH, HOME: "/home/u", USER: "u", SLURM_CONF: "/etc/s.conf", SGE_ROOT: "/sge" });
    const { end } = site('printf "%s|" "$@"; cat; pwd; env | grep -c CLIO', { input: "script\n", environment: { HOME: "/home/u" } });
    expect(await end).toEqual({ kind: "ended", code: 1, stdout: "a b|$HOME|script\n/\n0\n", stderr: "", cut: false });
  });

  test("that is not there, or no program, has done nothing", async () => {
    const place = directory();
    fs.writeFileSync(path.join(place, "text"), "no program");
    for (const name of ["nowhere-at-all", "text"]) {
      expect(await runSiteCommand({ argv: [name], environment: { PATH: place }, deadlineMs: 1_000 })).toEqual({
        kind: "missing",
        program: name,
      });
    }
    fs.writeFileSync(path.join(place, "broken"), "#!/no/such/interpreter\n", { mode: 0o755 });
    expect((await runSiteCommand({ argv: ["broken"], environment: { PATH: place }, deadlineMs: 1_000 })).kind).toBe("missing");
  });

  test("that hangs is ended with whatever it has started, and what it said is kept", async () => {
    const { place, end } = site('echo 17; sleep 300 & echo $! > "$(dirname "$0")/child"; wait', { deadlineMs: 3_000 });
    expect(await end).toMatchObject({ kind: "killed", by: "deadline", stdout: "17\n" });
    const child = Number(fs.readFileSync(path.join(place, "child"), "utf8"));
    await eventually(() => !fs.existsSync(`/proc/${child}`) || /^State:\s+Z/m.test(fs.readFileSync(`/proc/${child}/status`, "utf8")), {
      what: "its end",
    });
  });

  test("that passes over TERM is killed", async () => {
    const { end } = site("trap '' TERM; while true; do sleep 0.1; done", { deadlineMs: 2_000 });
    expect(await end).toMatchObject({ kind: "killed", by: "deadline", signal: "SIGKILL" });
  });

  test("that somebody kills has not ended by itself", async () => {
    const { end } = site("kill -KILL $$");
    expect(await end).toMatchObject({ kind: "killed", by: "somebody", signal: "SIGKILL" });
  });

  test("whose output never ends is read up to a bound, and says so", async () => {
    const { end } = site("head -c 9000000 /dev/zero; echo whole >&2");
    const result = await end;
    expect(result).toMatchObject({ kind: "ended", code: 0, cut: true, stderr: "whole\n" });
    expect(result.kind === "ended" && result.stdout.length).toBe(OUTPUT_MAX_BYTES);
  });

  test("that leaves something behind with its output is not waited for", async () => {
    const { place, end } = site('sleep 300 & echo $! > "$(dirname "$0")/child"; echo done');
    expect(await end).toMatchObject({ kind: "ended", code: 0, stdout: "done\n" });
    process.kill(Number(fs.readFileSync(path.join(place, "child"), "utf8")), "SIGKILL");
  });

  test("says last what matters", () => {
    expect(lastWords({ kind: "ended", code: 1, stdout: "out", stderr: " denied \n", cut: false })).toBe("ended with 1: denied");
    expect(lastWords({ kind: "killed", by: "deadline", signal: "SIGTERM", stdout: "", stderr: "", cut: false })).toBe(
      "did not end within its time",
    );
    expect(lastWords({ kind: "missing", program: "sbatch" })).toBe("there is no sbatch");
  });
});
