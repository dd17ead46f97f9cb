import { runShim } from "../../src/execution/shim/main.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";

/** The shim with less patience, for a full disk and for pipes that do not end: `impatient-shim-entry.ts __shim <attempt-dir>`. */
process.exit(await runShim(process.argv.slice(3), { version: "test", clock: systemClock, stdin: 0, patienceMs: 1_500, drainMs: 2_500 }));
