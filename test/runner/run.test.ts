import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { identify } from "../../src/lib/system/process-identity.ts";
import { describeWith } from "./components.ts";
import { neighboursOf } from "./neighbours.ts";
import { filesOf, SUITES, testFiles } from "./suites.ts";
import { temporaryDirectories } from "./temporary.ts";
import { eventually } from "./wait.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));
const directories = temporaryDirectories();

/** Run the runner in a project of its own that holds these tests. */
function run(tests: Record<string, string>, args: string[], env: Record<string, string> = {}) {
  const project = directories();
  fs.mkdirSync(path.join(project, "test/project"), { recursive: true });
  for (const part of ["runner", "rigs"]) {
    const from = path.join(path.dirname(import.meta.dir), part);
    fs.cpSync(from, path.join(project, "test", part), { recursive: true, filter: (file) => !file.endsWith(".test.ts") });
  }
  for (const [file, text] of Object.entries(tests)) fs.writeFileSync(path.join(project, file), text);
  const { CLIO_RELAY_TEST_REQUIRE: _, CLIO_RELAY_TEST_SKIPS: __, ...inherited } = process.env;
  const result = Bun.spawnSync([process.execPath, "test/runner/run.ts", ...args], {
    cwd: project,
    env: { ...inherited, ...env },
    stderr: "pipe",
  });
  const lines = result.stdout.toString().trimEnd().split("\n");
  return { code: result.exitCode, last: lines.at(-1), stdout: lines.join("\n"), stderr: result.stderr.toString() };
}

const HEAD = 'import { expect, test } from "bun:test";\n';
const PASSES = `${HEAD}test("a", () => { expect(1).toBe(1); });\n`;

test("what a test file takes, another one takes, too", () => {
  const taken = testFiles(ROOT).flatMap((file) => neighboursOf(file, fs.readFileSync(path.join(ROOT, file), "utf8")).takes);
  expect([...new Set(taken)].filter((name) => taken.indexOf(name) === taken.lastIndexOf(name))).toEqual([]);
  expect(taken.length).toBeGreaterThan(0);
});

describe("the runner", () => {
  test("counts what passed, and ends with the summary", () => {
    expect(run({ "test/project/a.test.ts": PASSES }, ["project"])).toMatchObject({ code: 0, last: "1 passed, 0 failed, 0 skipped" });
  });

  test("files that stand no neighbour run after all others, and the slowest are named", () => {
    const { stdout, code } = run(
      { "test/project/a.test.ts": `// @alone it counts\n${PASSES}`, "test/project/b.test.ts": PASSES, "test/project/c.test.ts": PASSES },
      ["project"],
    );
    expect(code).toBe(0);
    const files = [...stdout.matchAll(/^test\/project\/(.)\.test\.ts: /gm)].map(([, file]) => file);
    expect([files.toSorted(), files.at(-1)]).toEqual([["a", "b", "c"], "a"]);
    expect(stdout).toMatch(/^slowest of 3 files, which took \d+ s in all:\n(?: +\d+\.\d s {2}test\/project\/[abc]\.test\.ts\n){3}/m);
  });

  test("a mark without a reason stops the run", () => {
    const result = run({ "test/project/a.test.ts": `// @alone\n${PASSES}` }, ["project"]);
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining("test/project/a.test.ts says @alone, and not why") });
  });

  test("a failed test fails the run", () => {
    const failing = `${PASSES}test("b", () => { expect(1).toBe(2); });\n`;
    const result = run({ "test/project/a.test.ts": failing }, ["project"]);
    expect(result).toMatchObject({ code: 1, last: "1 passed, 1 failed, 0 skipped" });
    const told = result.stdout.slice(result.stdout.indexOf("slowest of"));
    expect(told).toContain('failed: test/project/a.test.ts: "b"');
    expect(told).toMatch(/^ {2}\| .*expect\(1\)\.toBe\(2\)/m);
  });

  /** Fails in the first run of its file, and in no later one. */
  const failsOnce = (mark: string) => `${HEAD}import fs from "node:fs";
    test("once", () => {
      const known = fs.existsSync(${JSON.stringify(mark)});
      fs.writeFileSync(${JSON.stringify(mark)}, "");
      expect(known).toBe(true);
    });\n`;

  test("a file that failed runs again where that was asked for: what fails twice has failed, what fails once is told as unsteady", () => {
    const failing = `${HEAD}test("always", () => { expect(1).toBe(2); });\n`;
    const files = () => ({ "test/project/a.test.ts": failsOnce(path.join(directories(), "mark")), "test/project/b.test.ts": failing });
    const asked = run(files(), ["project", "--again"]);
    expect(asked).toMatchObject({ code: 1, last: "1 passed, 1 failed, 0 skipped" });
    expect(asked.stdout).toContain('unsteady: test/project/a.test.ts: "once"\n  | ');
    expect(asked.stdout).toContain('failed: test/project/b.test.ts: "always"');
    expect(asked.stdout).not.toContain("failed: test/project/a.test.ts");
    expect(run(files(), ["project"])).toMatchObject({ code: 1, last: "0 passed, 2 failed, 0 skipped" });
  });

  test("where more than three files failed none runs again", () => {
    const files = ["a", "b", "c", "d"].map(
      (name) => [`test/project/${name}.test.ts`, failsOnce(path.join(directories(), "mark"))] as const,
    );
    expect(run(Object.fromEntries(files), ["project", "--again"])).toMatchObject({ code: 1, last: "0 passed, 4 failed, 0 skipped" });
    expect(run(Object.fromEntries(files.slice(1)), ["project", "--again"])).toMatchObject({
      code: 0,
      last: "3 passed, 0 failed, 0 skipped",
    });
  });

  test("a suite without a test fails the run", () => {
    expect(run({}, ["project"])).toMatchObject({ code: 1, last: "0 passed, 1 failed, 0 skipped" });
  });

  test("a file that cannot be loaded fails the run", () => {
    const broken = { "test/project/a.test.ts": PASSES, "test/project/b.test.ts": "throw new Error('broken');\n" };
    const result = run(broken, ["project"]);
    expect(result).toMatchObject({ code: 1, last: "1 passed, 1 failed, 0 skipped" });
    expect(result.stdout).toContain("test/project/b.test.ts: no test in it ran");
  });

  test("a test without an assertion fails the run", () => {
    const result = run({ "test/project/a.test.ts": `${PASSES}test("hollow", () => {});\n` }, ["project"]);
    expect(result).toMatchObject({ code: 1, last: "1 passed, 1 failed, 0 skipped" });
    expect(result.stdout).toContain('"hollow" asserted nothing');
  });

  const needsSystemd = `${HEAD}import { COMPONENTS, describeWith } from "../runner/components.ts";
    COMPONENTS.systemd.probe = () => "nobody started it";
    describeWith("systemd", "units", () => { test("b", () => { expect(1).toBe(1); }); });\n`;

  test("a missing component is a skip that says why", () => {
    const result = run({ "test/project/a.test.ts": PASSES, "test/project/b.test.ts": needsSystemd }, ["project"]);
    expect(result).toMatchObject({ code: 0, last: "1 passed, 0 failed, 1 skipped" });
    expect(result.stdout).toContain("skipped: systemd: nobody started it");
  });

  test("a missing component that is required is a failure", () => {
    const result = run({ "test/project/b.test.ts": needsSystemd }, ["project"], { CLIO_RELAY_TEST_REQUIRE: "systemd" });
    expect(result).toMatchObject({ code: 1, last: "0 passed, 1 failed, 0 skipped" });
    expect(result.stdout).toContain("systemd is required and missing: nobody started it");
  });

  test("an unknown required component is refused before anything runs", () => {
    const result = run({ "test/project/a.test.ts": PASSES }, ["project"], { CLIO_RELAY_TEST_REQUIRE: "systmed" });
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('names "systmed"');
    expect(result.stdout).not.toContain("passed");
  });

  test("the user's own settings do not reach the tests", () => {
    const looking = `${HEAD}test("a", () => { expect(process.env.CLIO_RELAY_HOME).toBeUndefined(); });\n`;
    expect(run({ "test/project/a.test.ts": looking }, ["project"], { CLIO_RELAY_HOME: "/nowhere" })).toMatchObject({ code: 0 });
  });

  test("a process left behind is ended and fails the run, known by its environment or by the directory of temporary files, and named by its file", async () => {
    const leaving = (how: string) => `${HEAD}import fs from "node:fs";
      import os from "node:os";
      import path from "node:path";
      test("a", () => {
        const child = Bun.spawn(["sleep", "1000"], { ${how}, stdio: ["ignore", "ignore", "ignore"] });
        child.unref();
        console.log("child", child.pid, "of", path.basename(import.meta.path));
        expect(child.pid).toBeGreaterThan(0);
      });\n`;
    const result = run(
      {
        "test/project/a.test.ts": leaving("env: process.env"),
        "test/project/b.test.ts": leaving('cwd: fs.mkdtempSync(path.join(os.tmpdir(), "x-")), env: {}'),
        "test/project/c.test.ts": PASSES,
      },
      ["project"],
    );
    expect(result).toMatchObject({ code: 1, last: "3 passed, 2 failed, 0 skipped" });
    const children = [...result.stdout.matchAll(/^child (\d+) of (.*)$/gm)].map(([, pid, file]) => [Number(pid), file] as const);
    expect(children.map(([, file]) => file).toSorted()).toEqual(["a.test.ts", "b.test.ts"]);
    for (const [pid, file] of children) {
      expect(result.stdout).toContain(`test/project/${file} left behind: process ${pid} sleep 1000`);
      expect(await eventually(() => identify(pid) === null)).toBe(true);
    }
  });

  test("temporary files that a test leaves are gone after it", () => {
    const leaving = `${HEAD}import fs from "node:fs";
      import os from "node:os";
      test("a", () => {
        fs.writeFileSync(os.tmpdir() + "/left", "");
        console.log("in", os.tmpdir());
        expect(fs.readdirSync(os.tmpdir())).toEqual(["left"]);
      });\n`;
    const result = run({ "test/project/a.test.ts": leaving, "test/project/b.test.ts": leaving }, ["project"]);
    expect(result).toMatchObject({ code: 0, last: "2 passed, 0 failed, 0 skipped" });
    const places = [...result.stdout.matchAll(/^in (.*)$/gm)].map(([, place]) => place!);
    expect(places.length).toBe(2);
    expect(places.filter((place) => fs.existsSync(place))).toEqual([]);
  });

  test("what it does not understand is a usage error", () => {
    expect(run({}, [])).toMatchObject({ code: 2 });
    expect(run({}, ["test/nothing.test.ts"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no test at test/nothing.test.ts"),
    });
  });
});

test("every test file belongs to exactly one of fast, rig and soak", () => {
  const files = ["test/a.test.ts", "test/a.rig.test.ts", "test/project/b.test.ts", "test/project/b.rig.test.ts", "test/c.soak.test.ts"];
  const of = (name: string): string[] => filesOf(SUITES.find((suite) => suite.name === name)!, files);
  expect(of("fast")).toEqual(["test/a.test.ts", "test/project/b.test.ts"]);
  expect(of("rig")).toEqual(["test/a.rig.test.ts", "test/project/b.rig.test.ts"]);
  expect(of("soak")).toEqual(["test/c.soak.test.ts"]);
  expect(of("project")).toEqual(["test/project/b.test.ts"]);
});

describeWith("tmpfs", "a mount left behind", () => {
  test("is undone and fails the run, named by its file", () => {
    const leaving = `${HEAD}import { spawnSync } from "node:child_process";
      import fs from "node:fs";
      import os from "node:os";
      import path from "node:path";
      test("a", () => {
        const directory = fs.mkdtempSync(path.join(os.tmpdir(), "m "));
        console.log("mounted", directory);
        expect(spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", directory]).status).toBe(0);
      });\n`;
    const result = run({ "test/project/a.test.ts": leaving }, ["project"]);
    const directory = /mounted (.*)/.exec(result.stdout)![1]!;
    expect(result).toMatchObject({ code: 1, last: "1 passed, 1 failed, 0 skipped" });
    expect(result.stdout).toContain(`test/project/a.test.ts left behind: mount ${directory}`);
    expect(fs.readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(directory.split("/")[2]!);
  });
});
