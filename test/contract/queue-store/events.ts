import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { Event } from "../../../src/domain/event.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { expectGapless, type OpenScene, pagesOf, refused, settlement, withRetries } from "./scene.ts";

export function eventContract(open: OpenScene): void {
  describe("events", () => {
    test("are numbered from 1 without gaps through everything that happens to a job, restarts included", async () => {
      const scene = await open();
      const { fence } = await scene.running(withRetries(1));
      await scene.reopen();
      await scene.store.appendEvents(fence.job_id, [{ event_type: "execution.adopted", message: "adopted" }]);
      await refused(scene.store.voidAttempt(fence, "no"), "state_conflict");
      await scene.store.requestCancel(fence.job_id, { cancel_scheduler: false });
      await scene.reopen();
      await scene.store.settle(fence, settlement(scene.clock, "canceled"));
      const events = await scene.events(fence.job_id);
      expectGapless(events);
      for (const event of events) expect(v.parse(Event, event)).toEqual(event);
      expect(events.map((event) => event.event_type)).toEqual([
        "job.queued",
        "task.queued",
        "job.leased",
        "execution.started",
        "job.running",
        "execution.adopted",
        "job.cancel_requested",
        "job.cancel_acknowledged",
        "job.canceled",
      ]);
    });

    test("the newest of a type that says something is found, whatever follows it", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const said = (payload: Record<string, unknown>) =>
        scene.store.appendEvents(job_id, [{ event_type: "runtime.metadata_ingested", message: "said", payload: payload as never }]);
      const latest = (member: string) => scene.store.latestEvent(job_id, "runtime.metadata_ingested", member);
      expect(await latest("state")).toBeNull();
      for (const payload of [{ state: "running" }, { state: "completed" }, { state: null }, { port: 1 }]) await said(payload);
      await scene.store.appendEvents(job_id, [{ event_type: "execution.adopted", message: "adopted", payload: { state: "else" } }]);
      const found = await latest("state");
      expect(found).toMatchObject({ job_id, message: "said", payload: { state: "completed" } });
      expect(found).toEqual((await scene.events(job_id)).find(({ seq }) => seq === found!.seq)!);
      await refused(scene.store.latestEvent("job_none", "execution.adopted", "state"), "job_not_found");
    });

    test("concurrent writers leave no gap and lose nothing", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          scene.store.appendEvents(job_id, [
            { event_type: "execution.adopted", message: `${i} a` },
            { event_type: "execution.adopted", message: `${i} b` },
          ]),
        ),
      );
      const events = await scene.events(job_id);
      expectGapless(events);
      expect(events).toHaveLength(102);
      expect(new Set(events.map((event) => event.message)).size).toBe(102);
    });

    test("pages end by bytes too, and go on where they ended", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const added = Array.from({ length: 40 }, (_, i) => ({
        event_type: "execution.adopted" as const,
        message: `${i}`,
        payload: { blob: "é".repeat(100_000) },
      }));
      await scene.store.appendEvents(job_id, added);
      const pages = await pagesOf((cursor) => scene.store.events(job_id, { cursor, limit: 500 }));
      // Two small ones came with the job; 20 of 200,000 bytes make 4 MiB.
      expect(pages.map((items) => items.length)).toEqual([22, 20]);
      const smaller = await pagesOf((cursor) => scene.store.events(job_id, { cursor, limit: 500, maxBytes: 450_000 }));
      expect(smaller.map((items) => items.length)).toEqual([4, ...Array.from({ length: 19 }, () => 2)]);
      expectGapless(pages.flat());
    });

    test("pages say where to go on, also at the end", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      await scene.store.appendEvents(
        job_id,
        Array.from({ length: 8 }, (_, i) => ({ event_type: "execution.adopted" as const, message: `${i}` })),
      );
      const first = await scene.store.events(job_id, { cursor: 1, limit: 4 });
      expect(first).toMatchObject({ cursor: 1, limit: 4, next_cursor: 5, total: 10 });
      expect(first.items.map((event) => event.seq)).toEqual([1, 2, 3, 4]);
      const last = await scene.store.events(job_id, { cursor: 9, limit: 4 });
      expect(last).toMatchObject({ next_cursor: 11, total: 10 });
      expect(await scene.store.events(job_id, { cursor: 11, limit: 4 })).toEqual({
        items: [],
        cursor: 11,
        limit: 4,
        next_cursor: 11,
        total: 10,
      });
      expect(await scene.store.events(job_id, { cursor: 99, limit: 4 })).toMatchObject({ items: [], next_cursor: 99, total: 10 });
    });

    test("long messages are cut, large payloads refused, and the refusal leaves no gap", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const payload = { blob: "x".repeat(LIMITS.eventRecordBytes) };
      await refused(
        scene.store.appendEvents(job_id, [
          { event_type: "execution.adopted", message: "fits" },
          { event_type: "execution.adopted", message: "does not", payload },
        ]),
        "payload_too_large",
      );
      await scene.store.appendEvents(job_id, [{ event_type: "execution.adopted", level: "error", message: "語".repeat(5_000) }]);
      const events = await scene.events(job_id);
      expectGapless(events);
      expect(events).toHaveLength(3);
      expect(events[2]?.message).toHaveLength(2_000);
      expect(events[2]?.level).toBe("error");
    });

    test("can be added to a job that has ended", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      await scene.store.requestCancel(job_id, { cancel_scheduler: false });
      await scene.store.appendEvents(job_id, [{ event_type: "execution.residual", message: "pid 7", payload: { pids: [7] } }]);
      expect((await scene.events(job_id)).at(-1)).toMatchObject({ event_type: "execution.residual", payload: { pids: [7] } });
    });

    test("of an unknown job are job_not_found", async () => {
      const scene = await open();
      await refused(scene.store.events("job_none", { cursor: 1, limit: 1 }), "job_not_found");
      await refused(scene.store.appendEvents("job_none", []), "job_not_found");
    });
  });
}
