import { expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { SourceRelay } from "../cli/source-relay.ts";
import { commandLines, type Exchange, kept, render, words } from "./transcript.ts";

/** What is another in each run. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "TIME"],
  [/^\d\d:\d\d:\d\d /gm, "TIME "],
  [/\b(job|task|artifact)_[0-9a-f]{32}\b/g, "$1_ID"],
  [/\b[0-9a-f]{64}\b/g, "SHA256"],
  [/\b[\d.]+s ago\b/g, "A WHILE ago"],
  [/^(duration +)[\d.]+s$/gm, "$1A WHILE"],
  [/\bprocess( {2,}|: | is |, | )\d+\b/g, "process$1PID"],
  [/\bprovenance\.json, \d+ bytes|\bprovenance\t\d+\b/g, "provenance SIZE"],
  [/\blog-capture\.json, \d+ bytes|\blog_capture\t\d+\b/g, "log-capture SIZE"],
  [/\b(version +)\d+\.\d+\.\d+\S*/g, "$1VERSION"],
  [/\b\d+ records checked/g, "N records checked"],
];

test("a session", async () => {
  const file = path.join(import.meta.dir, "session.transcript");
  await using relay = new SourceRelay();
  const masked = (text: string): string =>
    MASKS.reduce(
      (all, [pattern, mask]) => all.replace(pattern, mask),
      text.replaceAll(relay.directory, "$DIR").replaceAll(os.hostname(), "HOST"),
    );
  const parts: (Exchange | string)[] = [];
  let job = "";
  for (const line of commandLines(fs.readFileSync(file, "utf8"))) {
    if (line.startsWith("#")) {
      parts.push(line);
      continue;
    }
    const { code, stdout, stderr } = await relay.run(words(line, { JOB: job }).slice(1));
    if (line.startsWith("clio-relay job submit") && code % 10 === 0) job = stdout.trim();
    parts.push({ line, code, stdout: masked(stdout), stderr: masked(stderr) });
  }
  expect(parts.length).toBeGreaterThan(20);
  const now = render(parts);
  expect(now).toBe(kept(file, now));
});
