import { EXIT, RelayError } from "../../domain/errors.ts";
import { printLinks, roundTripText } from "../link/link-text.ts";
import { agoText } from "../print/quantities.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { answerOf, runningDesktop } from "./running.ts";

export const verb = defineVerb({
  summary: "Show the daemon and the way to each cluster",
  details: "Starts nothing. Ends with 5 when no daemon answers.",
  positionals: {},
  flags: {},
  examples: [["desktop status", "process, address, and which workers answer"]],
  async run({ io, json, relay }) {
    const running = await runningDesktop(io, relay);
    if (running === null) throw new RelayError("desktop_unavailable", "no daemon is running", {}, "clio-relay desktop start");
    const { desktop } = running;
    const status = await answerOf(running.process, (limit) => desktop.status(limit));
    const links = status.registry_error === null ? await answerOf(running.process, (limit) => desktop.links(limit)) : [];
    if (json) {
      await printJson(io.stdout, { ...status, links });
      return EXIT.ok;
    }
    await printFields(io.stdout, [
      ["process", `${status.process.pid} on ${status.process.hostname}`],
      ["version", status.version],
      ["since", `${status.started_at} (${agoText(status.started_at, io.clock.now())})`],
      ["listens on", status.socket],
      ["requests", `${status.active_requests} under way`],
      ["clusters in", status.clusters_file ?? null],
      ["registry", status.registry_error],
    ]);
    await printLinks(io, links, {
      CLUSTER: ({ cluster }) => cluster,
      MODE: ({ mode }) => mode,
      STATE: ({ state }) => state,
      "ROUND TRIP": ({ round_trip_ms }) => roundTripText(round_trip_ms),
      WORKER: ({ worker_version }) => worker_version,
    });
    return EXIT.ok;
  },
});
