import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { Artifact } from "../../../src/domain/artifact.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { Progress } from "../../../src/domain/progress.ts";
import { Task, TaskEvent } from "../../../src/domain/task.ts";
import { report, timelineEntry } from "./ingest.ts";
import { artifact, type OpenScene, pagesOf, refused, settlement } from "./scene.ts";

/** 200,000 bytes: 20 make a page of 4 MiB, 5 make 1 MiB. */
const BLOB = { blob: "é".repeat(100_000) };
const FORTY = [20, 20];

export function recordContract(open: OpenScene): void {
  describe("tasks", () => {
    test("every job has one, found by its id", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const page = await scene.store.tasks(job_id, { cursor: 1, limit: 10 });
      expect(page).toMatchObject({ next_cursor: 2, total: 1 });
      const task = page.items[0]!;
      expect(v.parse(Task, task)).toEqual(task);
      expect(await scene.store.task(task.task_id)).toEqual(task);
      await refused(scene.store.task("task_none"), "task_not_found");
      await refused(scene.store.tasks("job_none", { cursor: 1, limit: 10 }), "job_not_found");
    });

    test("task events have a timeline of their own and are told to the job's followers", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const { task_id } = (await scene.store.tasks(job_id, { cursor: 1, limit: 1 })).items[0]!;
      const recorded = await scene.store.recordTaskEvent(
        task_id,
        timelineEntry({ status: "error", detail: "a\u0000b", path_refs: ["/a b"], artifact_refs: ["artifact_1"], metadata: { n: 1 } }),
      );
      expect(v.parse(TaskEvent, recorded)).toEqual(recorded);
      expect(recorded).toMatchObject({ seq: 1, job_id, task_id, status: "error", path_refs: ["/a b"] });
      for (let i = 0; i < 4; i++) await scene.store.recordTaskEvent(task_id, timelineEntry());
      const page = await scene.store.taskEvents(task_id, { cursor: 1, limit: 3 });
      expect(page).toMatchObject({ next_cursor: 4, total: 5 });
      expect(page.items[0]).toEqual(recorded);
      expect((await scene.store.taskEvents(task_id, { cursor: 4, limit: 3 })).items.map((event) => event.seq)).toEqual([4, 5]);
      expect((await scene.events(job_id)).at(2)).toMatchObject({
        event_type: "task.event",
        level: "error",
        payload: { task_id, seq: 1, event_type: "solver.converged", status: "error" },
      });
      await refused(scene.store.recordTaskEvent("task_none", timelineEntry()), "task_not_found");
      await refused(scene.store.taskEvents("task_none", { cursor: 1, limit: 1 }), "task_not_found");
      await scene.expectSound();
    });

    test("pages of task events end by bytes too, and go on where they ended", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const { task_id } = (await scene.store.tasks(job_id, { cursor: 1, limit: 1 })).items[0]!;
      await Promise.all(Array.from({ length: 40 }, () => scene.store.recordTaskEvent(task_id, timelineEntry({ metadata: BLOB }))));
      const pages = await pagesOf((cursor) => scene.store.taskEvents(task_id, { cursor, limit: 500 }));
      expect(pages.map((items) => items.length)).toEqual(FORTY);
      expect(pages.flat().map(({ seq }) => seq)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
      const one = await scene.store.taskEvents(task_id, { cursor: 1, limit: 500, maxBytes: 1 });
      expect(one.items.map(({ seq }) => seq)).toEqual([1]);
    });

    test("a task event larger than an event record is refused, and takes no number", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const { task_id } = (await scene.store.tasks(job_id, { cursor: 1, limit: 1 })).items[0]!;
      const big = timelineEntry({ metadata: { blob: "x".repeat(LIMITS.eventRecordBytes) } });
      await refused(scene.store.recordTaskEvent(task_id, big), "payload_too_large");
      expect((await scene.store.recordTaskEvent(task_id, timelineEntry())).seq).toBe(1);
      await scene.expectSound();
    });
  });

  describe("progress", () => {
    test("reports are numbered, paged and told to followers", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const first = await scene.store.recordProgress(job_id, report({ current: 2.5, message: "half a step", metadata: { a: [1] } }));
      expect(v.parse(Progress, first)).toEqual(first);
      const bare = await scene.store.recordProgress(job_id, report({ label: "files", current: null, total: null, unit: null }));
      const page = await scene.store.progress(job_id, { cursor: 1, limit: 5 });
      expect(page).toEqual({ items: [first, bare], cursor: 1, limit: 5, next_cursor: 3, total: 2 });
      const events = (await scene.events(job_id)).slice(2);
      expect(events.map((event) => [event.event_type, event.message])).toEqual([
        ["progress.updated", "steps: 2.5 of 10 steps, half a step"],
        ["progress.updated", "files"],
      ]);
      expect(events[0]?.payload).toMatchObject({ progress_id: first.progress_id, sequence: 1, current: 2.5, total: 10 });
      await refused(scene.store.recordProgress("job_none", report()), "job_not_found");
      await refused(scene.store.progress("job_none", { cursor: 1, limit: 1 }), "job_not_found");
      await refused(scene.store.latestProgress("job_none"), "job_not_found");
    });

    test("the latest report of each label, of at most 100", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      expect(await scene.store.latestProgress(job_id)).toEqual({ items: [], truncated: false });
      await Promise.all(
        Array.from({ length: 330 }, (_, i) =>
          scene.store.recordProgress(job_id, report({ label: `label ${String(i % 110).padStart(3, "0")}`, current: i })),
        ),
      );
      const { items: latest, truncated } = await scene.store.latestProgress(job_id);
      expect([latest.length, truncated]).toEqual([100, true]);
      expect(latest.map(({ label, current }) => [label, current])).toEqual(
        Array.from({ length: 100 }, (_, i) => [`label ${String(i).padStart(3, "0")}`, 220 + i]),
      );
    });

    test("pages end by bytes too, and go on where they ended", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      await Promise.all(Array.from({ length: 40 }, (_, i) => scene.store.recordProgress(job_id, report({ current: i, metadata: BLOB }))));
      const pages = await pagesOf((cursor) => scene.store.progress(job_id, { cursor, limit: 500 }));
      expect(pages.map((items) => items.length)).toEqual(FORTY);
      expect(pages.flat().map(({ sequence }) => sequence)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
    });

    test("the latest reports are at most 1 MiB in all; those that fit are among them", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      for (let i = 0; i < 9; i++) await scene.store.recordProgress(job_id, report({ label: `big ${i}`, metadata: BLOB }));
      await scene.store.recordProgress(job_id, report({ label: "small" }));
      const { items: latest, truncated } = await scene.store.latestProgress(job_id);
      expect(truncated).toBe(true);
      expect(latest.map(({ label }) => label)).toEqual(["big 0", "big 1", "big 2", "big 3", "big 4", "small"]);
      expect(JSON.stringify(latest).length).toBeLessThan(1024 * 1024);
    });

    test("a report larger than an event record is refused", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      await refused(
        scene.store.recordProgress(job_id, report({ metadata: { blob: "x".repeat(LIMITS.eventRecordBytes) } })),
        "payload_too_large",
      );
      expect((await scene.store.progress(job_id, { cursor: 1, limit: 1 })).total).toBe(0);
    });
  });

  describe("artifacts", () => {
    test("are paged by job and found by id", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const added = Array.from({ length: 7 }, (_, i) => artifact(`artifact_${i}`, { metadata: { i } }));
      await scene.store.settle(fence, settlement(scene.clock, "completed", { artifacts: added }));
      const page = await scene.store.artifacts(fence.job_id, { cursor: 3, limit: 3 });
      expect(page).toMatchObject({ cursor: 3, next_cursor: 6, total: 7 });
      expect(page.items.map(({ artifact_id }) => artifact_id)).toEqual(["artifact_2", "artifact_3", "artifact_4"]);
      for (const item of page.items) {
        expect(v.parse(Artifact, item)).toEqual(item);
        expect(await scene.store.artifact(item.artifact_id)).toEqual(item);
      }
      await refused(scene.store.artifact("artifact_none"), "artifact_not_found");
      await refused(scene.store.artifacts("job_none", { cursor: 1, limit: 1 }), "job_not_found");
    });

    test("pages end by bytes too, and go on where they ended", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const added = Array.from({ length: 40 }, (_, i) => artifact(`artifact_${i}`, { metadata: BLOB }));
      await scene.store.settle(fence, settlement(scene.clock, "completed", { artifacts: added }));
      const pages = await pagesOf((cursor) => scene.store.artifacts(fence.job_id, { cursor, limit: 500 }));
      expect(pages.map((items) => items.length)).toEqual(FORTY);
      expect(pages.flat().map(({ sequence }) => sequence)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
    });
  });
}
