/** What sbatch(1) is at a FakeScheduler, for a program that submits by itself: `bun fake-sbatch-entry.ts DIRECTORY NAME SCRIPT OUTPUT` prints the id. */
import { FakeScheduler } from "./fake-scheduler.ts";

const [directory = "", marker = "", script = "", output = ""] = process.argv.slice(2);
const outcome = await new FakeScheduler(directory).submit({ marker, script, output } as Parameters<FakeScheduler["submit"]>[0]);
if (outcome.kind === "accepted") process.stdout.write(`${outcome.native.id}\n`);
else process.stderr.write(`${outcome.said}\n`);
process.exit(outcome.kind === "accepted" ? 0 : 1);
