import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { ownCoreDir } from "./own-core-dir.ts";

export const verb = defineVerb({
  summary: "Put right what an audit can prove",
  details: "Works through the worker while one runs, and on its files while none does. Ends with 1 when something is left.",
  positionals: {},
  flags: { cluster: CLUSTER },
  examples: [["queue repair --cluster local --yes", "without being asked"]],
  async takesAway({ flags, relay }) {
    const { name } = await relay.clusterEntry(await relay.clusterName(flags.cluster));
    return `this changes the queue of ${name}: records that cannot be mended are put aside, and jobs of which nothing is left to run are ended`;
  },
  async run({ flags, io, json, relay }) {
    const { repairQueue } = await import("../../roles/queue-check.ts");
    const cluster = await relay.cluster(flags.cluster);
    const report = await repairQueue(cluster, await ownCoreDir(io, relay, cluster));
    if (json) await printJson(io.stdout, report);
    else {
      const rowsOf = (result: string, findings: typeof report.repaired) =>
        findings.map(({ check, subject, detail }) => [result, check, subject, detail]);
      const rows = [...rowsOf("repaired", report.repaired), ...rowsOf("left", report.remaining)];
      if (rows.length > 0) await printTable(io.stdout, styleFor(io.stdout, io.env), ["RESULT", "CHECK", "SUBJECT", "DETAIL"], rows);
      await io.stderr.write(`${report.repaired.length} repaired, ${report.remaining.length}${report.truncated ? " and more" : ""} left\n`);
    }
    return report.remaining.length === 0 && !report.truncated ? EXIT.ok : EXIT.failed;
  },
});
