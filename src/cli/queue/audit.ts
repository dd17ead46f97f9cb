import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { ownCoreDir } from "./own-core-dir.ts";

export const verb = defineVerb({
  summary: "Check the whole queue",
  details:
    "Changes nothing. Works through the worker while one runs, and on its files while none does. Ends with 1 when something was found.",
  positionals: {},
  flags: { cluster: CLUSTER },
  examples: [["queue audit --cluster local", "what is wrong, if anything is"]],
  async run({ flags, io, json, relay }) {
    const { auditQueue } = await import("../../roles/queue-check.ts");
    const cluster = await relay.cluster(flags.cluster);
    const report = await auditQueue(cluster, await ownCoreDir(io, relay, cluster));
    if (json) await printJson(io.stdout, report);
    else {
      const rows = report.findings.map(({ check, subject, repairable, detail }) => [check, subject, repairable ? "yes" : "no", detail]);
      if (rows.length > 0)
        await printTable(io.stdout, styleFor(io.stdout, io.env), ["CHECK", "SUBJECT", { spare: "REPAIRABLE" }, "DETAIL"], rows);
      const checked = Object.values(report.checked).reduce((sum, count) => sum + count, 0);
      await io.stderr.write(
        `${checked} records checked, ${report.findings.length}${report.truncated ? " and more" : ""} findings${report.ok ? "" : "; clio-relay queue repair puts right what it can"}\n`,
      );
    }
    return report.ok ? EXIT.ok : EXIT.failed;
  },
});
