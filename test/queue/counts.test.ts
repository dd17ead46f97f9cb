import { expect, test } from "bun:test";
import path from "node:path";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import type { Writing } from "../../src/queue/sqlite/access.ts";
import { Budget } from "../../src/queue/sqlite/checks/budget.ts";
import type { Damage } from "../../src/queue/sqlite/checks/damage.ts";
import { counters } from "../../src/queue/sqlite/checks/file.ts";
import { Counts } from "../../src/queue/sqlite/counts.ts";
import { openDatabase } from "../../src/queue/sqlite/database-file.ts";
import { HeldAttempts } from "../../src/queue/sqlite/held-attempts.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { Statements } from "../../src/queue/sqlite/statements.ts";
import { SteadyTime } from "../../src/queue/sqlite/steady-time.ts";
import { command, jarvis } from "../contract/queue-store/scene.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

test("numbers in memory that are not those of the tables are found, and counted anew", async () => {
  using directory = temporaryDirectory();
  const core = path.join(directory.path, "core");
  const store = openQueue(core, { clock: systemClock, activeJobsMax: 10, leaseSeconds: 120 });
  for (const submission of [command(), command(), jarvis()]) await store.submit(submission, "workload");
  await store.requestCancel((await store.submit(command(), "control")).job.job_id, { cancel_scheduler: false });
  await store.close();

  const { database } = openDatabase(core);
  const sql = new Statements(database);
  const w: Writing = {
    sql,
    counts: new Counts(),
    time: new SteadyTime(systemClock),
    held: new HeldAttempts(),
    now: "",
    touch: () => undefined,
  };
  const found = (): Damage[] => [...counters(w, new Budget())].filter((damage) => damage !== null);
  expect(found()).toMatchObject([{ check: "counters" }, { check: "counters" }]);
  expect(found().map(({ detail }) => detail)).toEqual([
    "the numbers of jobs that have not ended in memory are not those of the tables",
    "the numbers of all jobs in memory are not those of the tables",
  ]);
  found()[1]!.mend!(w);
  expect([w.counts.total, w.counts.active, w.counts.queued("command"), w.counts.queued("jarvis")]).toEqual([4, 3, 2, 1]);
  expect(found()).toEqual([]);
  sql.finalize();
  database.close();
});
