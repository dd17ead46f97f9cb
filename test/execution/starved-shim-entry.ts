import fs from "node:fs";
import path from "node:path";
import { runShim } from "../../src/execution/shim/main.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";

/** What a shim may open at once: enough for a claim, too little for a job's logs and pipes. */
const FREE = 6;

/** A shim that has too few open files until it has said so, or for ever with STARVED=always: `starved-shim-entry.ts __shim <attempt-dir>`. */
const directory = process.argv[3]!;
const taken: number[] = [];
try {
  for (;;) taken.push(fs.openSync("/dev/null", "r"));
} catch {
  // That is all.
}
for (const fd of taken.splice(-FREE)) fs.closeSync(fd);
const timer = setInterval(() => {
  const log = path.join(directory, "shim.log");
  if (!fs.existsSync(log) || !fs.readFileSync(log, "utf8").includes("trying again")) return;
  clearInterval(timer);
  if (process.env["STARVED"] === "always") return;
  for (const fd of taken.splice(0)) fs.closeSync(fd);
}, 50);
process.exit(await runShim(process.argv.slice(3), { version: "test", clock: systemClock, stdin: 0 }));
