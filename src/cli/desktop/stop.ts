import type { DesktopClient } from "../../api/client/desktop-client.ts";
import { EXIT, isRelayError, RelayError } from "../../domain/errors.ts";
import { terminate } from "../../roles/worker-process.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { runningDesktop } from "./running.ts";

const ANSWER_MS = 2_000;
const WITHIN_MS = 10_000;

export const verb = defineVerb({
  summary: "Stop the desktop daemon; workers and jobs go on",
  details:
    "The next command that needs it starts it again. Links that are up end with it, and only a person can bring these back: that is asked, or wants --yes.",
  positionals: {},
  flags: {},
  examples: [["desktop stop", "stop it and wait until it is gone"]],
  async takesAway({ io, relay }) {
    const running = await runningDesktop(io, relay);
    const held = running === null ? [] : await heldLinks(running.desktop);
    if (held.length === 0) return null;
    return held.length === 1
      ? `this ends the link to ${held[0]}, which only a person can bring back`
      : `this ends the links to ${held.join(", ")}, which only a person can bring back`;
  },
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

/** Clusters whose links only a person can bring back. One that does not answer has none to lose: it is hung. */
async function heldLinks(desktop: DesktopClient): Promise<string[]> {
  const limit = AbortSignal.timeout(ANSWER_MS);
  try {
    const links = await desktop.links(limit);
    return links
      .filter(({ mode, state }) => mode === "ssh" && ["up", "degraded", "connecting"].includes(state))
      .map(({ cluster }) => cluster);
  } catch (error) {
    if (limit.aborted || isRelayError(error)) return [];
    throw error;
  }
}
