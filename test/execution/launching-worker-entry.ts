import { directSpawner } from "../../src/execution/direct-spawner.ts";
import type { ShimProcess } from "../../src/execution/launcher.ts";
import { SpareShimLauncher } from "../../src/execution/spare-pool.ts";
import { FROM_SOURCE, SPARE_SPOOL } from "./attempts.ts";

/**
 * A process that launches a shim on an attempt, keeps a spare, and waits to be killed: `launching-worker-entry.ts <attempt-dir> <spares>`. Prints their
 * process ids.
 */
const [directory, spares] = process.argv.slice(2);
const spawner = directSpawner({ command: FROM_SOURCE, cgroupParent: null });
const waiting: ShimProcess[] = [];
const launcher = new SpareShimLauncher(
  {
    async spawn(args, logFile) {
      const shim = await spawner.spawn(args, logFile);
      if (args.includes("--spare")) waiting.push(shim);
      return shim;
    },
  },
  { spares: Number(spares), spool: SPARE_SPOOL },
);
const shim = await launcher.launch(directory!);
while (waiting.length === 0) await Bun.sleep(10);
console.log(JSON.stringify({ pid: shim.pid, spare: waiting[0]!.pid }));
setInterval(() => undefined, 60_000);
