import { describe, expect, test } from "bun:test";
import { COMMON, parseArguments } from "../../src/cli/arguments.ts";
import { COMMANDS, type Command } from "../../src/cli/commands.ts";
import { runCli } from "../../src/cli/main.ts";
import { words } from "../scripts/transcript.ts";
import { capturedIo } from "./captured-io.ts";

const all = Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
  Object.entries(verbs).map(([verb, command]) => [`${noun} ${verb}`.trim(), command] as const),
);
const listed = all.filter(([, command]) => !command.alias);

async function cli(...args: string[]) {
  const io = capturedIo({ variables: { CLIO_RELAY_HOME: "/nowhere/at-all" } });
  const code = await runCli(args, io);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}

/** The verb that a command line names, and what follows the name. */
function named(line: readonly string[]): { path: string; command: Command; rest: readonly string[] } | null {
  for (const length of [1, 2, 3]) {
    const path = line.slice(0, length).join(" ");
    const found = all.find(([one]) => one === path);
    if (found !== undefined) return { path, command: found[1], rest: line.slice(length) };
  }
  return null;
}

/** A command line up to where the shell's own words begin. */
const before = (line: string): string => line.replace(/ (?:[|<>]|&&) ?.*$/, "");

describe.each(listed)("%s", (path, command) => {
  test("refuses a value of --json with a document, as it refuses everything with --json", async () => {
    const { code, stdout, stderr } = await cli(...path.split(" "), "--json=1");
    expect([code, stdout]).toEqual([2, ""]);
    expect(JSON.parse(stderr)).toMatchObject({ reason: "usage", detail: expect.stringContaining("--json") });
  });

  test("says what to do where what it cannot do without is left out", async () => {
    const { verb } = await command.load();
    const needsWord = Object.values(verb.positionals).some(({ optional }) => !optional);
    const needsOption = Object.values(verb.flags).some((flag) => flag.kind === "value" && flag.required);
    if (!needsWord && !needsOption) return expect(path).not.toBe("");
    const { code, stderr } = await cli(...path.split(" "));
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^error: \S+ is missing \[usage\]\nhint: \S.*\S\n$/)]);
  });

  test("takes no empty name where a file or directory is to be named", async () => {
    const { verb } = await command.load();
    const places = Object.entries(verb.flags).flatMap(([name, flag]) =>
      flag.kind === "value" && /^(?:FILE|DIR|PATH)\b/.test(flag.reader.label) ? [name] : [],
    );
    const answers: unknown[] = [];
    for (const name of places) {
      const { code, stderr } = await cli(...path.split(" "), `--${name}=`, "--json");
      answers.push([name, code, JSON.parse(stderr).detail]);
    }
    expect(answers).toEqual(places.map((name) => [name, 2, expect.stringContaining(`--${name} is "", but must be `)]));
  });

  test("has a summary, documented options that do not clash, and examples that it takes", async () => {
    const { verb } = await command.load();
    expect(command.summary).toBe(verb.summary);
    expect(verb.summary).toMatch(/^[A-Z].*[^.]$/);
    const spellings = [...Object.entries(COMMON), ...Object.entries(verb.flags)].flatMap(([name, flag]) => [
      name,
      ...("also" in flag ? (flag.also ?? []) : []),
      ...("short" in flag && flag.short !== undefined ? [flag.short] : []),
    ]);
    expect(spellings.filter((one, at) => spellings.indexOf(one) !== at)).toEqual([]);
    for (const [name, flag] of Object.entries(verb.flags)) {
      expect(name).toMatch(/^[a-z0-9]+(?:-[a-z0-9]+)*$/);
      expect([name, flag.doc]).toEqual([name, expect.stringMatching(/\S.*[^.\s]$/)]);
      // What help lists begins as a sentence does; reasons stand behind a colon.
      if (flag.kind !== "ignored" && flag.kind !== "refused") expect([name, flag.doc]).toEqual([name, expect.stringMatching(/^[A-Z]/)]);
    }
    expect(verb.examples.length).toBeGreaterThan(0);
    for (const [line, what] of verb.examples) {
      expect(what).not.toBe("");
      const found = named(words(before(line)));
      expect([line, found]).not.toEqual([line, null]);
      const example = (await found!.command.load()).verb;
      expect(() => parseArguments(example, found!.rest, found!.path)).not.toThrow();
    }
    expect(named(words(verb.examples[0]![0]))?.path).toBe(path);
  });

  test("gives help, whatever else is wrong", async () => {
    const { verb } = await command.load();
    for (const args of [["--help"], ["-h"], ["--json", "--help"], ["too", "much", "--help"]]) {
      const { code, stdout, stderr } = await cli(...path.split(" "), ...args);
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toStartWith(`${verb.summary}.\n\nUsage: clio-relay ${path} [OPTIONS]`);
      for (const line of stdout.split("\n")) if (!line.startsWith("  clio-relay ")) expect(line.length).toBeLessThanOrEqual(80);
      expect(stdout).toContain("--json");
      for (const [line] of verb.examples) expect(stdout).toContain(`  clio-relay ${line}\n`);
      for (const [name, flag] of Object.entries(verb.flags))
        expect([name, new RegExp(`--${name}(?![\\w-])`).test(stdout)]).toEqual([name, flag.kind !== "ignored" && flag.kind !== "refused"]);
    }
  });

  test("refuses an option that there is not, and says which one is meant", async () => {
    const { code, stdout, stderr } = await cli(...path.split(" "), "--jsno");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toBe("error: there is no option --jsno [usage]\nhint: did you mean --json?\n");
    const asJson = await cli(...path.split(" "), "--json", "--zzzzzzzzzz");
    expect([asJson.code, asJson.stdout, asJson.stderr.indexOf("\n")]).toEqual([2, "", asJson.stderr.length - 1]);
    expect(JSON.parse(asJson.stderr)).toMatchObject({
      reason: "usage",
      status: 400,
      detail: "there is no option --zzzzzzzzzz",
      hint: "--help lists the options",
    });
  });
});

test("other names of a verb are the verb", async () => {
  const verbs = await Promise.all(listed.map(async ([, command]) => (await command.load()).verb));
  for (const [, command] of all.filter(([, one]) => one.alias)) expect(verbs).toContain((await command.load()).verb);
});

test("options of one meaning are taken under each of their names", async () => {
  const { verb: wait } = await COMMANDS["job"]!["wait"]!.load();
  for (const name of ["--timeout-seconds", "--timeout"])
    expect(parseArguments(wait, ["job_1", name, "2m"], "job wait").flags["timeout-seconds"]).toBe(120);
  expect(() => parseArguments(wait, ["job_1", "--timeout", "1", "--timeout-seconds", "2"], "job wait")).toThrow(
    "--timeout-seconds is given twice",
  );
  const { verb: submit } = await COMMANDS["job"]!["submit"]!.load();
  for (const name of ["--timeout-seconds", "--timeout"])
    expect(parseArguments(submit, [name, "2m"], "job submit").flags["timeout"]).toBe(120);
  const { verb: logs } = await COMMANDS["desktop"]!["logs"]!.load();
  for (const name of ["--lines", "--tail", "-n"]) expect(parseArguments(logs, [name, "7"], "desktop logs").flags["lines"]).toBe(7);
});

test("an artifact is pinned as a pair or as its record", async () => {
  const { verb } = await COMMANDS["job"]!["submit"]!.load();
  const sha256 = "0a".repeat(32);
  const taken = (given: string) => parseArguments(verb, ["--used-artifact", given], "job submit").flags["used-artifact"];
  expect(taken(`artifact_1=${sha256}`)).toEqual([{ artifact_id: "artifact_1", sha256 }]);
  expect(taken(JSON.stringify({ sha256, artifact_id: "artifact_1" }))).toEqual([{ artifact_id: "artifact_1", sha256 }]);
  for (const given of [
    "artifact_1",
    `=${sha256}`,
    "{",
    "{}",
    JSON.stringify({ artifact_id: "a=b", sha256 }),
    JSON.stringify({ artifact_id: "a", sha256, more: 1 }),
  ])
    expect(() => taken(given)).toThrow("--used-artifact");
});
