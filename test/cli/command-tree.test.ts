import { describe, expect, test } from "bun:test";
import { runCommand } from "citty";
import { argsOf, commandTree } from "../../src/cli/command-tree.ts";
import { COMMANDS } from "../../src/cli/commands.ts";

const all = Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
  Object.keys(verbs).map((verb) => (noun === "" ? [verb] : [...noun.split(" "), verb])),
);

describe("the tree of commands", () => {
  test.each(all.map((path) => [path.join(" "), path] as const))("finds %s and hands over what follows, untouched", async (name, path) => {
    const calls: unknown[] = [];
    const tree = commandTree(async (found, verb, rawArgs) => {
      calls.push([found, verb.summary.length > 0, rawArgs]);
    });
    const rest = ["--json", "x", "--", "a", "--b=c"];
    await runCommand(tree, { rawArgs: [...path, ...rest] });
    expect(calls).toEqual([[name, true, rest]]);
  });

  test("declares every option of a verb", async () => {
    const { verb } = await COMMANDS["job"]!["submit"]!.load();
    const args = argsOf(verb);
    for (const name of Object.keys(verb.flags)) expect(args[name]).toBeDefined();
    expect(args["timeout"]).toMatchObject({ type: "string", valueHint: "DURATION" });
    expect(args["login"]).toMatchObject({ type: "boolean" });
    expect(Object.values(args).filter((arg) => arg.required === true)).toEqual([]);
  });
});
