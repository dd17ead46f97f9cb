import { EXIT, isRelayError, RelayError } from "../../domain/errors.ts";
import { terminate } from "../../roles/worker-process.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { runningDesktop } from "./running.ts";

const ANSWER_MS = 2_000;
const WITHIN_MS = 10_000;

export const verb = defineVerb({
  summary: "Stop the desktop daemon; workers and jobs go on",
  details: "The next command that needs it starts it again.",
  positionals: {},
  flags: {},
  examples: [["desktop stop", "stop it and wait until it is gone"]],
  async run({ io, json, relay }) {
    const running = await runningDesktop(io, relay);
    if (running !== null) {
      const limit = AbortSignal.timeout(ANSWER_MS);
      await running.desktop.stop(limit).catch((error: unknown) => {
        // One that does not answer gets the signal below.
        if (!limit.aborted && !isRelayError(error, "desktop_unavailable")) throw error;
      });
      // It ends by itself now; the signal makes no difference to one that does.
      if (!(await terminate(running.process, WITHIN_MS))) {
        throw new RelayError("observation_timeout", `the daemon, process ${running.process.pid}, was asked to stop and still runs`);
      }
    }
    if (json) await printJson(io.stdout, { state: running === null ? "not_running" : "stopped", pid: running?.process.pid ?? null });
    else await io.stdout.write(running === null ? "no daemon is running\n" : `stopped process ${running.process.pid}\n`);
    return EXIT.ok;
  },
});
