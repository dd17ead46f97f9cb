import { variable } from "../../config/environment.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { type Emission, emit } from "../../execution/emit.ts";
import type { CliIo } from "../io.ts";
import { jsonText } from "../print/safe-text.ts";

/** Write a report where the worker looks for it. */
export async function emitReport(io: CliIo, json: boolean, emission: Emission): Promise<number> {
  const directory = variable(io.env, "CLIO_RELAY_EVENTS");
  if (directory === undefined) {
    throw new RelayError(
      "usage",
      "CLIO_RELAY_EVENTS is not set",
      {},
      "emit reports from inside a job; from outside it is job record-progress or job record-task-event",
    );
  }
  emit(directory, emission);
  if (json) await io.stdout.write(`${jsonText(emission)}\n`);
  return EXIT.ok;
}
