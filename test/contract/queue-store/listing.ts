import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { JobSummary } from "../../../src/domain/views.ts";
import { command, jarvis, type OpenScene, ROOMY, refused, type Scene, settlement } from "./scene.ts";

const CANCEL = { cancel_scheduler: false };

/** Ten jobs; those with an odd sequence are canceled, the tenth is of another kind and lane. */
async function tenJobs(scene: Scene): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 1; i <= 9; i++) ids.push((await scene.submit()).job_id);
  ids.push((await scene.store.submit(jarvis(), "control")).job.job_id);
  for (let i = 0; i < 10; i += 2) await scene.store.requestCancel(ids[i]!, CANCEL);
  return ids;
}

export function listingContract(open: OpenScene): void {
  describe("recentJobs", () => {
    test("newest first, page by page", async () => {
      const scene = await open();
      const ids = await tenJobs(scene);
      const seen: string[] = [];
      let before: number | null = null;
      do {
        const page: { jobs: readonly JobSummary[]; next_before: number | null } = await scene.store.recentJobs({}, before, 4);
        for (const job of page.jobs) expect(v.parse(JobSummary, job)).toEqual(job);
        seen.push(...page.jobs.map((job) => job.job_id));
        before = page.next_before;
      } while (before !== null);
      expect(seen).toEqual(ids.toReversed());
    });

    test("filters by state, kind and cluster", async () => {
      const scene = await open();
      await tenJobs(scene);
      await scene.submit({ cluster: "elsewhere" });
      const sequences = async (filter: Parameters<typeof scene.store.recentJobs>[0]) =>
        (await scene.store.recentJobs(filter, null, 50)).jobs.map((job) => job.sequence);
      expect(await sequences({ states: ["canceled"] })).toEqual([9, 7, 5, 3, 1]);
      expect(await sequences({ states: ["queued", "leased", "running"] })).toEqual([11, 10, 8, 6, 4, 2]);
      expect(await sequences({ kind: "jarvis" })).toEqual([10]);
      expect(await sequences({ cluster: "elsewhere" })).toEqual([11]);
      expect(await sequences({ states: ["failed"] })).toEqual([]);
      expect(await scene.store.recentJobs({ states: ["canceled"] }, null, 5)).toMatchObject({ next_before: null });
      expect(await scene.store.recentJobs({ states: ["canceled"] }, null, 2)).toMatchObject({ next_before: 7 });
    });

    test("finds jobs by the beginning of their ids, among any number of others", async () => {
      const scene = await open();
      const ids = await tenJobs(scene);
      const found = async (idPrefix: string, limit = 50) =>
        (await scene.store.recentJobs({ idPrefix }, null, limit)).jobs.map((job) => job.job_id);
      for (const id of ids) expect(await found(id)).toEqual([id]);
      expect(await found("job_")).toEqual(ids.toReversed());
      expect(await found(ids[3]!.slice(0, -1))).toEqual(ids.filter((id) => id.startsWith(ids[3]!.slice(0, -1))).toReversed());
      expect(await found(`job_${"f".repeat(31)}`)).toEqual([]);
      expect(await scene.store.recentJobs({ idPrefix: "job_" }, null, 4)).toMatchObject({ next_before: 7 });
      const canceled = await scene.store.recentJobs({ idPrefix: "job_", states: ["canceled"] }, 9, 2);
      expect(canceled.jobs.map((job) => job.sequence)).toEqual([7, 5]);
    });

    test("titles are the command line, on one line", async () => {
      const scene = await open();
      await scene.submit({ spec: { ...command().spec, argv: ["python3", "train.py", "--note", "it's\nfine"] } });
      const { argv: _argv, ...rest } = command().spec;
      await scene.submit({ spec: { ...rest, script: "#!/bin/bash\n# a comment\n\nsrun ./solve --all\n" } });
      const titles = (await scene.store.recentJobs({}, null, 5)).jobs.map((job) => job.title);
      expect(titles).toEqual(["srun ./solve --all", "python3 train.py --note 'it'\\''s ↵ fine'"]);
    });
  });

  describe("queueWindow", () => {
    test("goes through all jobs in the order of submission and says where to go on", async () => {
      const scene = await open();
      const ids = await tenJobs(scene);
      const first = await scene.store.queueWindow({}, { cursor: 1, limit: 6 }, 100);
      expect(first).toMatchObject({ next_cursor: 7, total: 10, scan_truncated: false });
      const second = await scene.store.queueWindow({}, { cursor: 7, limit: 6 }, 100);
      expect(second).toMatchObject({ next_cursor: null, total: 10, scan_truncated: false });
      expect([...first.jobs, ...second.jobs].map((job) => job.job_id)).toEqual(ids);
      expect(await scene.store.queueWindow({}, { cursor: 11, limit: 6 }, 100)).toMatchObject({ jobs: [], next_cursor: null });
    });

    test("looks at no more jobs than it may, and says when that ended it", async () => {
      const scene = await open();
      await tenJobs(scene);
      const window = await scene.store.queueWindow({ states: ["canceled"] }, { cursor: 2, limit: 10 }, 4);
      expect(window.jobs.map((job) => job.sequence)).toEqual([3, 5]);
      expect(window).toMatchObject({ next_cursor: 6, scan_truncated: true });
      const rest = await scene.store.queueWindow({ states: ["canceled"] }, { cursor: 6, limit: 10 }, 5);
      expect(rest.jobs.map((job) => job.sequence)).toEqual([7, 9]);
      expect(rest).toMatchObject({ next_cursor: null, scan_truncated: false });
    });

    test("a window over active jobs does not count the ended ones as looked at", async () => {
      const scene = await open();
      await tenJobs(scene);
      const window = await scene.store.queueWindow({ states: ["queued"] }, { cursor: 1, limit: 10 }, 4);
      expect(window.jobs.map((job) => job.sequence)).toEqual([2, 4, 6, 8]);
      expect(window).toMatchObject({ next_cursor: 9, scan_truncated: true });
    });
  });

  describe("jobsAhead and stats", () => {
    test("counts queued jobs of the same lane that were submitted earlier", async () => {
      const scene = await open();
      const ids = await tenJobs(scene);
      const ahead = async (index: number) => scene.store.jobsAhead(ids[index]!);
      expect([await ahead(1), await ahead(3), await ahead(7), await ahead(9)]).toEqual([0, 1, 3, 0]);
      expect(await ahead(0)).toBeNull();
      await scene.store.claim(await scene.endpoint(), ROOMY);
      expect([await ahead(1), await ahead(3)]).toEqual([null, 0]);
      await refused(scene.store.jobsAhead("job_none"), "job_not_found");
    });

    test("stats count what waits and what is out", async () => {
      const scene = await open();
      expect(await scene.store.stats()).toEqual({ queued_by_kind: {}, leases_by_kind: {}, leases_by_lane: {}, active: 0, quarantined: 0 });
      await tenJobs(scene);
      const endpoint = await scene.endpoint();
      const claim = await scene.store.claim(endpoint, ROOMY);
      await scene.store.claim(endpoint, ROOMY);
      await scene.store.settle({ job_id: claim!.job.job_id, attempt: 1 }, settlement(scene.clock, "completed"));
      expect(await scene.store.stats()).toEqual({
        queued_by_kind: { command: 2, jarvis: 1 },
        leases_by_kind: { command: 1 },
        leases_by_lane: { workload: 1 },
        active: 4,
        quarantined: 0,
      });
    });

    test("job of an unknown id is job_not_found", async () => {
      const scene = await open();
      const error = await refused(scene.store.job("job_none"), "job_not_found");
      expect(error.data).toEqual({ job_id: "job_none" });
    });
  });
}
