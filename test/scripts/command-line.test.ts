import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { runCli } from "../../src/cli/main.ts";
import { capturedIo } from "../cli/captured-io.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { commandLines, type Exchange, kept, render, words } from "./transcript.ts";

const directory = temporaryDirectories();

// What these commands say is decided before anything is asked of a daemon.
test.each(["help", "refusals"])("%s", async (name) => {
  const file = path.join(import.meta.dir, `${name}.transcript`);
  const home = path.join(directory(), "h");
  const parts: (Exchange | string)[] = [];
  for (const line of commandLines(fs.readFileSync(file, "utf8"))) {
    if (line.startsWith("#")) {
      parts.push(line);
      continue;
    }
    const [variables, command] = assignments(words(line));
    const io = capturedIo({ variables: { CLIO_RELAY_HOME: home, ...variables }, cwd: path.dirname(home) });
    const code = await runCli(command.slice(1), io);
    const masked = (text: string) => text.replaceAll(home, "$HOME").replaceAll(path.dirname(home), "$CWD");
    parts.push({ line, code, stdout: masked(io.stdout.text), stderr: masked(io.stderr.text) });
  }
  expect(parts.length).toBeGreaterThan(3);
  const now = render(parts);
  expect(now).toBe(kept(file, now));
  // Whatever was refused was refused before anything was made.
  expect(fs.existsSync(home)).toBe(false);
});

/** Variables behind the program's name: `clio-relay A=1 job list` reads as the shell's `A=1 clio-relay job list`. */
function assignments(all: readonly string[]): [Record<string, string>, string[]] {
  const set = all.filter((word) => /^CLIO_RELAY_\w+=/.test(word));
  return [Object.fromEntries(set.map((word) => word.split(/=(.*)/s, 2) as [string, string])), all.filter((word) => !set.includes(word))];
}
