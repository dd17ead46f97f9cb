import { EXIT } from "../../domain/errors.ts";
import { confirm } from "../confirm.ts";
import { Interrupted } from "../failure.ts";
import { bytesText } from "../print/quantities.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
import { defineVerb, toggle } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";
import { onHost } from "./on-host.ts";

interface Removed {
  readonly running: readonly string[];
  readonly remains: readonly { readonly path: string; readonly kib: number }[];
}

export const verb = defineVerb({
  summary: "Remove clio-relay from a cluster's host",
  details:
    "Stops service and worker and removes installation, links and unit; jobs that run go on under their shims. Queue, spool and keys remain and are listed. " +
    "With --purge queue and spool go, too, when the worker says that no job is active.",
  positionals: NAMED.positionals,
  flags: { ...NAMED.flags, purge: toggle("Remove the queue and what jobs left, too") },
  examples: [["cluster uninstall my-cluster", "and see what remains"]],
  async run(call) {
    const { flags, args, io, json, relay } = call;
    const name = nameOf(args, flags);
    await relay.clusterEntry(name);
    if (!(await confirm(call, `Remove clio-relay from the host of ${name}${flags.purge ? ", with everything that its jobs left" : ""}?`))) {
      throw new Interrupted();
    }
    const options = { purge: flags.purge };
    const done = await onHost<"uninstall", Removed>(call, name, { task: "uninstall", command: "cluster uninstall", options });
    if (json) await printJson(io.stdout, done);
    else {
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["REMAINS", "SIZE"],
        done.remains.map(({ path, kib }) => [path, bytesText(kib * 1_024)]),
      );
      for (const version of done.running) await io.stderr.write(`notice: ${version} stays, because something of it runs\n`);
    }
    return EXIT.ok;
  },
});
