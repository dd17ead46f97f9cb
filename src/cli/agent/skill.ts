import fs from "node:fs";
import path from "node:path";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { unusableDirectory } from "../local-file.ts";
import { OVERWRITE, writeMade } from "../overwrite.ts";
import { printJson } from "../print/table.ts";
import { text } from "../values.ts";
import { defineVerb, option } from "../verb.ts";

const FILE = "SKILL.md";

export const verb = defineVerb({
  summary: "Write a skill that teaches an agent the commands and the tools",
  details:
    "SKILL.md, as agents' programs read it: what to do first, every command, every tool. It is of this version; write it again after an upgrade, with --overwrite. Without --output it is printed.",
  positionals: {},
  flags: {
    output: option(text("DIR"), "Directory that is to hold SKILL.md; made where it is missing", "o"),
    ...OVERWRITE,
  },
  examples: [
    ["agent skill --output ~/.claude/skills/clio-relay", "where Claude Code looks for skills"],
    ["agent skill --output .agents/skills/clio-relay", "with a project"],
  ],
  async run({ flags, io, json, table }) {
    if (flags.output === "") throw new RelayError("usage", "--output is empty");
    const { skillText } = await import("./skill-text.ts");
    const skill = skillText(table);
    const file = flags.output === undefined ? null : path.join(path.resolve(io.env.cwd, flags.output), FILE);
    if (file !== null) write(file, skill, { overwrite: flags.overwrite, where: `--output ${flags.output}` });
    if (json) await printJson(io.stdout, { path: file, text: skill });
    else await io.stdout.write(file === null ? skill : `${file}\n`);
    return EXIT.ok;
  },
});

function write(file: string, skill: string, { overwrite, where }: { readonly overwrite: boolean; readonly where: string }): void {
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true });
  } catch (error) {
    throw unusableDirectory(where, error);
  }
  // For whoever may read the directory: nothing in it is private.
  writeMade(new Map([[file, skill]]), { overwrite, where: file, mode: 0o644 });
}
