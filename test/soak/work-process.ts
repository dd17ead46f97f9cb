/** The program of a soak's jobs: `bun work-process.ts WORK` with a Work as JSON. Every effect of it can be counted from outside. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { identify } from "../../src/lib/system/process-identity.ts";
import { pattern } from "./pattern.ts";
import { countsText, daemonFile, effectFile, patternKey, type Work } from "./work.ts";

const work = JSON.parse(process.argv[2]!) as Work;
const attempt = Number(process.env["CLIO_RELAY_ATTEMPT"]!.split("/")[1]);
if (work.ignoresTerm) process.on("SIGTERM", () => undefined);

const effect = effectFile(work, attempt);
fs.mkdirSync(path.dirname(effect), { recursive: true });
let record: number;
try {
  record = fs.openSync(effect, "wx");
} catch (error) {
  fs.writeFileSync(path.join(path.dirname(effect), `again-${attempt}-${process.pid}`), "");
  throw error;
}
const counts = { stdout: 0, stderr: 0, reports: 0, outputs: 0 };
const note = (): unknown => fs.writeSync(record, countsText(counts), 0);
note();

for (const [i, size] of work.outputs.entries()) {
  fs.mkdirSync("out", { recursive: true });
  fs.writeFileSync(`out/${i}`, pattern(patternKey(work, attempt, `out${i}`), size));
  counts.outputs++;
  note();
}
if (work.daemon !== null) {
  const env = work.daemon === "bare" ? {} : process.env;
  const child = spawn("/bin/sleep", ["1000"], { detached: true, env, stdio: "ignore" });
  child.unref();
  fs.writeFileSync(daemonFile(work, attempt), JSON.stringify(identify(child.pid!)));
}

const streams = [
  { name: "stdout", fd: 1, bytes: pattern(patternKey(work, attempt, "stdout"), work.stdout) },
  { name: "stderr", fd: 2, bytes: pattern(patternKey(work, attempt, "stderr"), work.stderr) },
] as const;
const report = (i: number): string =>
  i % 2 === 0
    ? `{"type":"progress","label":"own","current":${i + 1},"total":${work.reports}}\n`
    : `{"type":"task-event","event_type":"step","label":"own ${i + 1}","summary":"é"}\n`;
const chunks = Math.ceil(Math.max(...streams.map(({ bytes }) => bytes.length)) / work.chunk);
for (let i = 0; i < Math.max(chunks, work.reports); i++) {
  for (const { name, fd, bytes } of streams) {
    const piece = bytes.subarray(i * work.chunk, (i + 1) * work.chunk);
    for (let at = 0; at < piece.length; ) at += fs.writeSync(fd, piece, at);
    counts[name] += piece.length;
  }
  if (i < work.reports) {
    fs.appendFileSync(path.join(process.env["CLIO_RELAY_EVENTS"]!, "own.jsonl"), report(i));
    counts.reports++;
  }
  note();
  if (work.pauseMs > 0) await Bun.sleep(work.pauseMs);
}
for (let i = 0; i < work.emits; i++) {
  const args =
    i % 2 === 0
      ? ["progress", "--label", "emit", "--current", String(i + 1)]
      : ["task-event", "--event-type", "step", "--label", "emitted", "--summary", "€"];
  const emitted = Bun.spawnSync(["clio-relay", "emit", ...args], { stdio: ["ignore", "inherit", "inherit"] });
  if (emitted.exitCode !== 0) process.exit(99);
  counts.reports++;
  note();
}
if (work.hangs) await new Promise((resolve) => setTimeout(resolve, 3_600_000));
process.exit(attempt <= 0 ? 98 : failuresLeft() ? 3 : work.exitCode);

/** Attempts are numbered with those that were voided; failures are counted by what was started. */
function failuresLeft(): boolean {
  const started = fs.readdirSync(path.dirname(effect)).filter((name) => /^attempt-\d+$/.test(name)).length;
  return started <= work.failures;
}
