import { afterEach, describe, expect, test } from "bun:test";
import { ROOMY, settlement, withRetries } from "../contract/queue-store/scene.ts";
import { type Sample, type Statement, sample } from "./damage-sample.ts";

const samples: Sample[] = [];
afterEach(async () => {
  for (const { scene } of samples.splice(0)) await scene.dispose();
});

/** A sample with one more job behind the queued one. */
async function open(): Promise<Sample & { readonly next: string }> {
  const s = await sample();
  samples.push(s);
  return { ...s, next: (await s.scene.submit()).job_id };
}

const claimed = async ({ scene }: Sample): Promise<string | null> =>
  (await scene.store.claim(await scene.endpoint(), ROOMY))?.job.job_id ?? null;

const OF = "job = (SELECT sequence FROM jobs WHERE job_id = ?)";

interface InTheWay {
  readonly name: string;
  readonly damage: (s: Sample) => Promise<void>;
  /** Of the quarantine. */
  readonly reason: string;
  /** The check that a repair mends. */
  readonly check: string;
}

const KEPT_OUT: readonly InTheWay[] = [
  {
    name: "its id leads nowhere",
    damage: (s) => s.spoilIndex("sqlite_autoindex_jobs_1", s.queued),
    reason: "the index of ids has no ",
    check: "job_index",
  },
  {
    name: "a stray lease stands in its way",
    damage: (s) =>
      s.damage([
        `INSERT INTO leases (job, lease_id, endpoint_id, attempt, kind, lane, acquired_at, expires_at)
         SELECT sequence, 'lease_stray', 'endpoint_stray', 1, kind, lane, created_at, created_at FROM jobs WHERE job_id = ?`,
        s.queued,
      ]),
    reason: "leases.job",
    check: "lease",
  },
  {
    name: "an attempt of that number is there",
    damage: (s) =>
      s.damage([
        `INSERT INTO attempts (job, attempt, state, claimed_at, ended_at)
         SELECT sequence, 1, 'void', created_at, created_at FROM jobs WHERE job_id = ?`,
        s.queued,
      ]),
    reason: "attempts.job",
    check: "attempt_counter",
  },
  {
    name: "an event of that number is there",
    damage: (s) => s.damage(["UPDATE jobs SET next_seq = 2 WHERE job_id = ?", s.queued]),
    reason: "events.job",
    check: "event_counter",
  },
];

describe("a job that cannot be claimed is kept out, holds no slot, and the claim goes on", () => {
  for (const { name, damage, reason, check } of KEPT_OUT) {
    test(`because ${name}`, async () => {
      const s = await open();
      await damage(s);
      const before = (await s.scene.store.stats()).leases_by_kind.command ?? 0;
      expect(await claimed(s)).toBe(s.next);
      expect(await claimed(s)).toBeNull();
      expect(await s.scene.store.stats()).toMatchObject({ quarantined: 1, leases_by_kind: { command: before + 1 } });
      const listed = (await s.scene.store.queueWindow({ states: ["queued"] }, { cursor: 1, limit: 10 }, 10)).jobs;
      expect(listed.map(({ job_id }) => job_id)).toEqual([s.queued]);
      expect(listed[0]?.quarantine).toContain(reason);

      const { repaired } = await s.scene.store.repair({ deep: true });
      expect(repaired.map((finding) => finding.check)).toContain(check);
      expect(repaired).toContainEqual(expect.objectContaining({ check: "quarantine", subject: s.queued }));
      expect(await claimed(s)).toBe(s.queued);
      expect((await s.scene.store.audit({ deep: true })).findings.filter((finding) => finding.subject === s.queued)).toEqual([]);
    });
  }

  test("an attempt whose job is not found by its id is not taken over, and keeps no other from it", async () => {
    const s = await open();
    await s.spoilIndex("sqlite_autoindex_jobs_1", s.running);
    expect((await s.scene.store.openAttempts()).map(({ job }) => job.job_id)).toEqual([s.retried, s.leased]);
    expect((await s.scene.store.stats()).quarantined).toBe(1);
  });
});

describe("an index of waiting jobs that is wrong is built anew by the claim that meets it", () => {
  const cases: readonly (readonly [string, "jobs_ready", (s: Sample) => readonly Statement[]])[] = [
    [
      "it has a job that was canceled",
      "jobs_ready",
      (s) => [
        ["UPDATE jobs SET state = 'canceled', ready = 0, outcome = '{}' WHERE job_id = ?", s.queued],
        [`UPDATE tasks SET state = 'canceled' WHERE ${OF}`, s.queued],
      ],
    ],
    [
      "it has a job that is gone",
      "jobs_ready",
      (s) => [
        ...["tasks", "events"].map((table): Statement => [`DELETE FROM ${table} WHERE ${OF}`, s.queued]),
        ["DELETE FROM idempotency WHERE job_id = ?", s.queued],
        ["DELETE FROM jobs WHERE job_id = ?", s.queued],
      ],
    ],
  ];
  for (const [name, index, statements] of cases) {
    test(name, async () => {
      const s = await open();
      await s.behindIndex(index, ...statements(s));
      expect(await claimed(s)).toBe(s.next);
      expect(await claimed(s)).toBeNull();
      expect((await s.scene.store.stats()).quarantined).toBe(0);
      const { findings } = await s.scene.store.audit({ deep: true });
      expect(findings.map(({ check }) => check).filter((check) => check === "integrity" || check === "job_index")).toEqual([]);
    });
  }

  test("it takes a job for one of the other lane", async () => {
    const s = await open();
    await s.behindIndex("jobs_ready", ["UPDATE jobs SET lane = 'control' WHERE job_id = ?", s.queued]);
    expect([await claimed(s), await claimed(s)]).toEqual([s.queued, s.next]);
    expect((await s.scene.store.stats()).leases_by_lane).toEqual({ workload: 4, control: 1 });
    await s.scene.expectSound();
  });

  test("it lacks a job that waits: an audit finds it, a repair lets it in", async () => {
    const s = await open();
    await s.scene.store.quarantine(s.queued, "for a while");
    await s.behindIndex("jobs_ready", ["UPDATE jobs SET ready = 1, quarantine = NULL WHERE job_id = ?", s.queued]);
    expect([await claimed(s), await claimed(s)]).toEqual([s.next, null]);
    expect((await s.scene.store.audit()).findings).toMatchObject([{ check: "job_index", subject: s.queued, repairable: true }]);
    expect((await s.scene.store.repair()).remaining).toEqual([]);
    expect(await claimed(s)).toBe(s.queued);
    await s.scene.expectSound();
  });

  for (const what of ["running", "ended", "leased"] as const) {
    test(`by its row a job that is ${what} may be claimed`, async () => {
      const s = await open();
      await s.damage(["UPDATE jobs SET ready = 1 WHERE job_id = ?", s[what]]);
      expect([await claimed(s), await claimed(s), await claimed(s)]).toEqual([s.queued, s.next, null]);
      await s.scene.expectSound();
    });
  }

  test("that of delayed jobs has one that has ended", async () => {
    const s = await open();
    const { job, fence } = await (async () => {
      await s.scene.store.requestCancel(s.queued, { cancel_scheduler: false });
      await s.scene.store.requestCancel(s.next, { cancel_scheduler: false });
      return s.scene.running(withRetries(1));
    })();
    await s.scene.store.settle(fence, settlement(s.scene.clock, "exit_nonzero"));
    await s.behindIndex("jobs_delayed", [
      "UPDATE jobs SET state = 'failed', not_before = NULL, outcome = '{}' WHERE job_id = ?",
      job.job_id,
    ]);
    s.scene.clock.advance(120_000);
    const later = (await s.scene.submit()).job_id;
    expect([await claimed(s), await claimed(s)]).toEqual([later, null]);
    expect((await s.scene.store.audit({ deep: true })).findings.map(({ check }) => check)).not.toContain("integrity");
  });
});
