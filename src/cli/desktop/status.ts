import { EXIT, RelayError } from "../../domain/errors.ts";
import { agoText } from "../print/quantities.ts";
import { styleFor } from "../print/style.ts";
import { printFields, printJson, printTable } from "../print/table.ts";
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
      ["requests", status.active_requests],
      ["clusters in", status.clusters_file ?? null],
      ["registry", status.registry_error],
    ]);
    await printTable(
      io.stdout,
      styleFor(io.stdout, io.env),
      ["CLUSTER", "MODE", "STATE", "ROUND TRIP", "WORKER", "DETAIL"],
      links.map((link) => [
        link.cluster,
        link.mode,
        link.state,
        link.round_trip_ms === null ? null : `${link.round_trip_ms} ms`,
        link.worker_version,
        link.detail,
      ]),
    );
    return EXIT.ok;
  },
});
