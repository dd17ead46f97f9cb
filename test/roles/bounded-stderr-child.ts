/** Writes numbered lines to standard error as a worker's log does: `bun bounded-stderr-child.ts FILE BOUND LINES`. */
import { stderrFile } from "../../src/roles/stderr-file.ts";
import { stderrLog } from "../../src/roles/worker/log.ts";

const [file, bound, lines] = process.argv.slice(2);
const own = stderrFile(file!, Number(bound));
const log = own === null ? stderrLog() : { info: (message: string) => own.write(`${message}\n`) };
for (let i = 0; i < Number(lines); i++) log.info(`line ${i}`);
// What the runtime says of a crash goes to the file of now, too.
throw new Error("the end");
