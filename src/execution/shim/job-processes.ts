import { reap } from "../../lib/system/libc.ts";
import { isOver, type ProcessStat } from "../../lib/system/process-identity.ts";
import { descendantsOf } from "../process-table.ts";

/** The job's processes as its shim sees them: being a subreaper, it has all of them below it. */
export class JobProcesses {
  /** @param first the child that Bun started and waits for itself */
  constructor(private readonly first: number) {}

  /** Those that run now. Adopted ones that have ended are waited for. */
  running(): ProcessStat[] {
    // A process that changes parents during one look can be missed by it, so emptiness takes two.
    const found = this.#look();
    return found.length > 0 ? found : this.#look();
  }

  #look(): ProcessStat[] {
    const running: ProcessStat[] = [];
    for (const stat of descendantsOf(process.pid)) {
      if (!isOver(stat)) running.push(stat);
      else if (stat.ppid === process.pid && stat.pid !== this.first) reap(stat.pid);
    }
    return running;
  }
}
