import { describe, expect, test } from "bun:test";
import { COMMON, takesValue } from "../../../src/cli/arguments.ts";
import { COMMANDS, NOUNS } from "../../../src/cli/commands.ts";
import { wantedAt } from "../../../src/cli/complete/wanted.ts";
import { optionRows } from "../../../src/cli/help.ts";
import type { Flag } from "../../../src/cli/verb.ts";

const all = Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
  Object.entries(verbs).map(([verb, command]) => [`${noun} ${verb}`.trim(), command] as const),
);

const names = async (words: readonly string[], current = ""): Promise<string[]> => {
  const wanted = await wantedAt(words, current);
  return wanted.kind === "words" ? wanted.words.map(([word]) => word) : [];
};

describe.each(all)("%s", (path, command) => {
  test("is found from its nouns, with its summary, and has the options that its help lists", async () => {
    const words = path.split(" ");
    const wanted = await wantedAt(words.slice(0, -1), "");
    if (!command.alias) expect(wanted).toMatchObject({ kind: "words", words: expect.arrayContaining([[words.at(-1)!, command.summary]]) });
    const { verb } = await command.load();
    const listed = optionRows(verb).map(([option]) => /--[a-z0-9-]+/.exec(option)![0]);
    expect((await names(words, "-")).filter((name) => name !== "--")).toEqual(listed);
    expect((await names(words, "-")).includes("--")).toBe(verb.rest !== undefined);
  });

  test("wants the value of an option where that has one, in both of its forms", async () => {
    const { verb } = await command.load();
    const words = path.split(" ");
    for (const [name, flag] of Object.entries<Flag>({ ...verb.flags, ...COMMON })) {
      const separate = await wantedAt([...words, `--${name}`], "");
      const inline = await wantedAt(words, `--${name}=`);
      if (!takesValue(flag)) {
        expect([name, inline]).toEqual([name, { kind: "words", words: [] }]);
        continue;
      }
      if (separate.kind === "value") expect([name, inline]).toEqual([name, { ...separate, before: `--${name}=` }]);
      else expect([name, separate, inline]).toEqual([name, { kind: "words", words: [] }, { kind: "words", words: [] }]);
      if ("reader" in flag && /^(?:FILE|JOB|ARTIFACT|TASK)$/.test(flag.reader.label))
        expect([name, separate.kind]).toEqual([name, "value"]);
      if ("reader" in flag && /^[a-z]+(?:\|[a-z]+)+$/.test(flag.reader.label))
        expect([name, separate]).toEqual([name, expect.objectContaining({ suggestion: flag.reader.label.split("|") })]);
    }
  });
});

test("nouns and verbs that stand alone come first, and other names of verbs are not shown", async () => {
  const first = await names([]);
  for (const noun of Object.keys(NOUNS).filter((one) => !one.includes(" "))) expect(first).toContain(noun);
  expect(first).toContain("connect");
  expect(first).not.toContain("endpoint");
  expect(await names(["queue"])).not.toContain("cancel");
  expect(await names(["worker"])).toContain("keys");
  expect(await names(["worker", "keys"])).toEqual(["list", "revoke", "rotate"]);
  expect(await names(["help", "job"])).toContain("submit");
  expect(await names(["--json", "job"])).toContain("submit");
  expect(await names([], "--")).toContain("--version");
});

test("what is not known leads nowhere", async () => {
  for (const words of [["nothing"], ["job", "nothing"], ["", "job"], ["constructor"], ["job", "toString"], ["__proto__"]])
    expect(await names(words)).toEqual([]);
  expect(await names(["job", "status", "job_1", "more"], "x")).not.toContain("x");
});

test("an option that was given is not offered again, but where it may be", async () => {
  const left = await names(["job", "submit", "--name", "x", "--env", "A=1"], "--");
  expect(left).not.toContain("--name");
  expect(left).toContain("--env");
});

test("after the mark it is the shell's turn, where a command follows", async () => {
  expect(await wantedAt(["job", "submit", "--wait", "--"], "")).toEqual({ kind: "command" });
  expect(await wantedAt(["job", "submit", "--", "ls"], "-")).toEqual({ kind: "command" });
  expect(await wantedAt(["job", "list", "--"], "")).toEqual({ kind: "words", words: [] });
});

test("a file that is given with a name is looked for behind it", async () => {
  const file = (before: string) => ({ kind: "value" as const, before, suggestion: "file" as const, cluster: null, named: true as const });
  expect(await wantedAt(["job", "submit", "--input"], "deck")).toEqual({ kind: "words", words: [] });
  expect(await wantedAt(["job", "submit", "--input"], "deck=do")).toEqual(file("deck="));
  expect(await wantedAt(["job", "submit"], "--input=deck=a=b")).toEqual(file("--input=deck="));
});

test("arguments in their order, and the cluster that is named goes with them", async () => {
  expect(await wantedAt(["job", "status"], "")).toEqual({ kind: "value", before: "", suggestion: "job", cluster: null });
  expect(await wantedAt(["job", "status", "-c", "far"], "job_")).toMatchObject({ suggestion: "job", cluster: "far" });
  expect(await wantedAt(["job", "status", "--cluster=far"], "")).toMatchObject({ suggestion: "job", cluster: "far" });
  expect(await wantedAt(["connect"], "")).toMatchObject({ suggestion: "cluster" });
  expect(await wantedAt(["worker", "keys", "revoke"], "")).toMatchObject({ suggestion: "key" });
  expect(await wantedAt(["job", "submit", "--used-artifact"], "")).toMatchObject({ suggestion: "pinned artifact" });
  expect(await wantedAt(["completion"], "")).toMatchObject({ suggestion: ["bash", "zsh", "fish"] });
  // Where it lies on the cluster, nobody here knows.
  expect(await wantedAt(["cluster", "add", "--core-dir"], "")).toEqual({ kind: "words", words: [] });
});
