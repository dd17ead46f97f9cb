import { describe, expect, test } from "bun:test";
import { parseArguments } from "../../src/cli/arguments.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { artifactId, artifactOrJob, assignment, decimal, duration, jobId, oneOf, taskId, text, whole } from "../../src/cli/values.ts";
import {
  defineVerb,
  type Flags,
  ignored,
  list,
  option,
  optional,
  optionOr,
  type Positionals,
  refused,
  required,
  toggle,
  type Verb,
} from "../../src/cli/verb.ts";

const verb = defineVerb({
  summary: "Try",
  positionals: { job: jobId, more: optional(text("MORE")) },
  rest: "COMMAND…",
  flags: {
    env: list(assignment("NAME=VALUE"), "variables"),
    timeout: option(duration, "time"),
    current: option(decimal, "how far"),
    retries: optionOr(whole(0, 3), 1, "again"),
    state: option(oneOf("queued", "running"), "state"),
    login: toggle("login", "l"),
    output: option(text("FILE"), "file", "o"),
    "poll-seconds": ignored("nobody polls"),
    "ssh-host": refused("no ssh here"),
  },
  examples: [],
  run: () => Promise.resolve(0),
});
const parse = (...argv: string[]) => parseArguments(verb as unknown as Verb<Flags, Positionals>, argv, "job try");
const failure = (...argv: string[]): { code: string; message: string; hint: string | undefined } => {
  try {
    parse(...argv);
  } catch (error) {
    return error as never;
  }
  throw new Error(`${argv.join(" ")} was accepted`);
};

test("options in any order, both ways to give a value, short names, repetition", () => {
  const { flags, args, rest } = parse("--env", "A=1=2", "job_1", "-l", "--env=B=", "--timeout=2h", "-o", "-", "x");
  expect(flags).toEqual({
    env: [
      ["A", "1=2"],
      ["B", ""],
    ],
    timeout: 7_200,
    current: undefined,
    retries: 1,
    state: undefined,
    login: true,
    output: "-",
  });
  expect(args).toEqual({ job: "job_1", more: "x" });
  expect(rest).toEqual([]);
});

test("everything after the first -- is untouched", () => {
  const words = ["--login", "--", "-x", "", "a b", "é\n'\""];
  expect(parse("job_1", "--", ...words).rest).toEqual(words);
  expect(parse("job_1", "--", ...words).flags["login"]).toBe(false);
});

test("a value may be negative, or begin with a dash after =", () => {
  expect(parse("job_1", "--current", "-2.5").flags["current"]).toBe(-2.5);
  expect(parse("job_1", "--output=--odd").flags["output"]).toBe("--odd");
});

describe("refused as usage", () => {
  test.each<[string, string[], string, string | undefined]>([
    ["unknown option", ["job_1", "--timout", "3"], "there is no option --timout", "did you mean --timeout?"],
    ["unknown short option", ["job_1", "-z"], "there is no option -z", "--help lists the options"],
    ["short options joined", ["job_1", "-lo"], "there is no option -lo", "--help lists the options"],
    ["value of a switch", ["job_1", "--login=yes"], "--login takes no value", undefined],
    ["no value", ["job_1", "--timeout"], "--timeout needs a value", undefined],
    [
      "an option in place of a value",
      ["job_1", "--output", "--login"],
      "--output needs a value",
      "--output=--login takes one that begins with a dash",
    ],
    ["twice", ["job_1", "--timeout", "1", "--timeout", "1"], "--timeout is given twice", undefined],
    ["bad number", ["job_1", "--retries", "3.5"], '--retries is "3.5", but must be a whole number from 0 to 3', undefined],
    ["out of range", ["job_1", "--retries", "4"], '--retries is "4", but must be a whole number from 0 to 3', undefined],
    ["bad duration", ["job_1", "--timeout", "soon"], '--timeout is "soon", but must be a duration', undefined],
    ["bad word", ["job_1", "--state", "Running"], '--state is "Running", but must be one of queued, running', "did you mean running?"],
    ["a word that is near to none", ["job_1", "--state", "x"], '--state is "x", but must be one of queued, running', undefined],
    ["no assignment", ["job_1", "--env", "A"], '--env is "A", but must be NAME=VALUE', undefined],
    ["assignment to nothing", ["job_1", "--env", "=1"], '--env is "=1"', undefined],
    [
      "missing argument",
      ["--login"],
      "JOB is missing",
      "last means the job that was submitted last from here; clio-relay job list shows others",
    ],
    ["a record of another kind", ["task_1"], 'JOB is "task_1", but must be the id of a job', "clio-relay job list shows jobs"],
    ["bad identifier", ["../job"], 'JOB is "../job", but must be the id of a job', "clio-relay job list shows jobs"],
    [
      "a command without --",
      ["job_1", "--retries", "2", "a", "python3", "it's.py", "--epochs", "3"],
      'COMMAND… comes after --, but "python3" stands before it',
      "clio-relay job try job_1 --retries 2 a -- python3 'it'\\''s.py' --epochs 3",
    ],
    ["a part of a command before --", ["job_1", "a", "b", "--", "c"], 'COMMAND… comes after --, but "b" stands before it', undefined],
  ])("%s", (_what, argv, message, hint) => {
    const error = failure(...argv);
    expect(error.code).toBe("usage");
    expect(error.message).toContain(message);
    expect(error.hint).toBe(hint as string);
  });

  test("an option that must be there", () => {
    const needs = defineVerb({
      summary: "Try",
      positionals: { job: jobId },
      flags: { name: required(text("NAME"), "a name") },
      examples: [],
      run: () => Promise.resolve(0),
    });
    expect(() => parseArguments(needs as unknown as Verb<Flags, Positionals>, ["job_1"], "job try")).toThrow("--name is missing");
  });

  test("more words than there is a place for", () => {
    const { rest: _rest, ...without } = verb;
    expect(() => parseArguments(without as unknown as Verb<Flags, Positionals>, ["job_1", "a", "b"], "job try")).toThrow('"b" is too much');
  });

  test("words after -- where none may be", () => {
    const { rest: _rest, ...without } = verb;
    expect(() => parseArguments(without as unknown as Verb<Flags, Positionals>, ["job_1", "--", "x"], "job try")).toThrow(
      'nothing may come after --, but "x" does',
    );
  });
});

test("an option that means nothing here is accepted with a notice, one that cannot be honoured is refused with the reason", () => {
  expect(parse("job_1", "--poll-seconds", "2").notices).toEqual(["--poll-seconds is ignored: nobody polls"]);
  expect(failure("job_1", "--ssh-host", "x")).toMatchObject({
    code: "configuration_error",
    message: "--ssh-host cannot be honoured: no ssh here",
  });
});

test("help is given whatever else is missing", () => {
  expect([...parse("--help").common]).toEqual(["help"]);
});

describe("every verb", () => {
  const all = Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
    Object.entries(verbs).map(([name, command]) => [`${noun} ${name}`.trim(), command] as const),
  );

  test.each(all)("%s", async (_path, command) => {
    const { verb: loaded } = await command.load();
    // The list of verbs says it without loading the verb.
    if (!command.alias) expect(loaded.summary).toBe(command.summary);
    expect(loaded.examples.length).toBeGreaterThan(0);
    expect(loaded.summary.endsWith(".")).toBe(false);
    const shorts = Object.values(loaded.flags).flatMap((flag) => flag.short ?? []);
    expect(new Set([...shorts, "h", "y"]).size).toBe(shorts.length + 2);
    for (const [name, flag] of Object.entries(loaded.flags)) {
      expect(name).toMatch(/^[a-z][a-z0-9-]*$/);
      expect(flag.doc.endsWith(".")).toBe(false);
    }
  });
});

describe("a record of another kind than the one that is asked for", () => {
  const task = { read: taskId, refused: ["last", "job_1", "artifact_1"], taken: ["task_1", "1"] };
  const artifact = { read: artifactId, refused: ["last", "job_1", "task_1"], taken: ["artifact_1", "1"] };
  const either = { read: artifactOrJob, refused: ["task_1"], taken: ["artifact_1", "job_1", "last", "1"] };

  test.each([task, artifact, either])("is refused by what it is called", ({ read, refused, taken }) => {
    expect(refused.map((word) => read.read(word))).toEqual(refused.map(() => undefined));
    expect(taken.map((word) => read.read(word))).toEqual(taken);
  });

  test("and of a job it is said what lists its tasks and artifacts", () => {
    for (const job of ["last", "job_1"]) {
      expect(taskId.hint!(job)).toBe(`clio-relay job tasks ${job} lists the tasks of that job`);
      expect(artifactId.hint!(job)).toBe(`clio-relay job list-artifacts ${job} lists the artifacts of that job`);
    }
    expect(taskId.hint!("artifact_1")).toBeUndefined();
    expect(jobId.hint!("artifact_1")).toStartWith("clio-relay job read-artifact artifact_1 ");
  });
});
