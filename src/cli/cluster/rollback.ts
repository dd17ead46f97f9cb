import { EXIT } from "../../domain/errors.ts";
import { oneLine } from "../print/safe-text.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";
import { onHost } from "./on-host.ts";

interface RolledBack {
  readonly version: string;
  /** SHA-256 of the executable. */
  readonly now: string;
  readonly worker: { readonly pid: number | null };
}

export const verb = defineVerb({
  summary: "Go back to the version that was installed on a cluster before",
  details: "That version is tried first; the worker is drained and started again with it, and its jobs go on.",
  ...NAMED,
  examples: [["cluster rollback my-cluster", "undo the last bootstrap"]],
  async run(call) {
    const { flags, args, io, json } = call;
    const name = nameOf(args, flags);
    const done = await onHost<"rollback", RolledBack>(call, name, { task: "rollback", command: "cluster rollback", options: {} });
    if (json) await printJson(io.stdout, done);
    else
      await io.stdout.write(
        `${name} has version ${oneLine(done.version)} (${oneLine(done.now).slice(0, 12)}) again; its worker runs as process ${done.worker.pid ?? "unknown"}\n`,
      );
    return EXIT.ok;
  },
});
