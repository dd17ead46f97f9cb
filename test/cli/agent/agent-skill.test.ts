import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import YAML from "yaml";
import { skillText } from "../../../src/cli/agent/skill-text.ts";
import { parseArguments } from "../../../src/cli/arguments.ts";
import { COMMANDS, NOUNS } from "../../../src/cli/commands.ts";
import { TOOLS } from "../../../src/mcp/catalogue.ts";
import { SourceRelay } from "../source-relay.ts";

const text = skillText({ commands: COMMANDS, nouns: NOUNS });

test("it begins as a skill does: a name, and when it is of use", () => {
  const [, head] = /^---\n([\s\S]*?)\n---\n/.exec(text) ?? [];
  const { name, description } = YAML.parse(head!) as { name: string; description: string };
  expect([name, description.length > 50, description.length <= 1_024]).toEqual(["clio-relay", true, true]);
  // All of it is in an agent's context.
  expect(text.length).toBeLessThan(32_000);
});

test("it has every tool, and every command that an agent may use", () => {
  for (const { name } of TOOLS) {
    const [line] = new RegExp(`^- \`${name}\`: .+$`, "m").exec(text) ?? [];
    // A whole sentence.
    expect(line).toEndWith(".");
  }
  const commands = Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
    Object.entries(verbs).map(([verb, { alias, summary }]) => [`- \`clio-relay ${`${noun} ${verb}`.trim()}\`: ${summary}`, alias] as const),
  );
  const missing = commands
    .filter(([line, alias]) => alias !== true && !text.includes(line))
    .map(([line]) => line.slice(0, line.indexOf(":")));
  expect(missing.toSorted()).toEqual(
    ["mcp-server", "worker run", "worker bridge", "worker configure", "desktop run", "relay-host serve"]
      .map((one) => `- \`clio-relay ${one}\``)
      .toSorted(),
  );
  expect(commands.filter(([line, alias]) => alias === true && text.includes(line))).toEqual([]);
});

test("the command lines that it shows are understood", async () => {
  const lines = [...text.matchAll(/^clio-relay (.*?)(?: +#.*)?$/gm)].map(([, line]) => line!.replaceAll("'", ""));
  expect(lines.length).toBeGreaterThan(4);
  for (const line of lines) {
    const [noun = "", name = "", ...rest] = line.split(" ");
    const { verb } = await COMMANDS[noun]![name]!.load();
    const words = rest.map((word) => (word === "ID" ? `job_${"0".repeat(32)}` : word));
    expect(() => parseArguments(verb, words, `${noun} ${name}`)).not.toThrow();
  }
});

test("it is written where it is wanted, in place of another one when that is said", async () => {
  await using relay = new SourceRelay();
  const file = path.join(relay.directory, "skills", "clio-relay", "SKILL.md");
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, "another");
  const kept = await relay.run(["agent", "skill", "--output", "skills/clio-relay"]);
  expect([kept.code, kept.stderr]).toEqual([7, expect.stringContaining(`another file is there already: ${file} [state_conflict]`)]);
  expect(fs.readFileSync(file, "utf8")).toBe("another");
  expect(await relay.ok("agent", "skill", "--output", "skills/clio-relay", "--overwrite")).toBe(file);
  expect(await relay.ok("agent", "skill", "--output", "skills/clio-relay")).toBe(file);
  expect(fs.readFileSync(file, "utf8")).toBe(text);
  expect(await relay.ok("agent", "skill")).toBe(text.trimEnd());
  fs.writeFileSync(path.join(relay.directory, "file"), "");
  const refused = await relay.run(["agent", "skill", "--json", "--output", "file"]);
  expect([refused.code, JSON.parse(refused.stderr)]).toEqual([
    1,
    expect.objectContaining({ reason: "local_file_unusable", detail: "--output file: that is not a directory" }),
  ]);
});
