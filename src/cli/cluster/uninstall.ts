import { EXIT } from "../../domain/errors.ts";
import { bytesText } from "../print/quantities.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
import { defineVerb, toggle } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";
import { onHost } from "./on-host.ts";

interface Removed {
  readonly removed: readonly string[];
  readonly service: { readonly removed: readonly string[] };
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
  async takesAway({ flags, args, relay }) {
    const { name, mode } = await relay.clusterEntry(nameOf(args, flags));
    // There is nothing to be asked about: it is refused.
    if (mode === "local") return null;
    const rest = flags.purge ? "with its queue, its spool, and so everything that its jobs left" : "but for queue, spool and keys";
    return `this stops service and worker of ${name} and removes clio-relay from their host, ${rest}`;
  },
  async run(call) {
    const { flags, args, io, json } = call;
    const name = nameOf(args, flags);
    const options = { purge: flags.purge };
    const done = await onHost<"uninstall", Removed>(call, name, { task: "uninstall", command: "cluster uninstall", options });
    if (json) await printJson(io.stdout, done);
    else {
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["", "PATH", "SIZE"],
        [
          ...[...done.service.removed, ...done.removed].map((path) => ["removed", path, null]),
          ...done.remains.map(({ path, kib }) => ["remains", path, bytesText(kib * 1_024)]),
        ],
      );
      for (const version of done.running) await io.stderr.write(`notice: ${version} stays, because something of it runs\n`);
    }
    return EXIT.ok;
  },
});
