import { describe, expect, test } from "bun:test";
import type { EmitLine } from "../../../src/domain/emit-line.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import type { NewProgress } from "../../../src/domain/progress.ts";
import type { NewTaskEvent } from "../../../src/domain/task.ts";
import { parseEmitLine } from "../../../src/execution/emit-line.ts";
import type { Ingest } from "../../../src/queue/store.ts";
import { capture, type OpenScene, ROOMY, refused, settlement, withRetries } from "./scene.ts";

const NOTHING: Ingest = { deltas: [], truncations: [], emits: [] };

export const report = (more: Partial<NewProgress> = {}): NewProgress => ({
  label: "steps",
  current: 1,
  total: 10,
  unit: "steps",
  message: null,
  source_event_seq: null,
  metadata: {},
  ...more,
});

export const timelineEntry = (more: Partial<NewTaskEvent> = {}): NewTaskEvent => ({
  event_type: "solver.converged",
  label: "solver",
  status: "succeeded",
  summary: "converged after 12 iterations",
  detail: null,
  path_refs: [],
  artifact_refs: [],
  metadata: {},
  ...more,
});

export function ingestContract(open: OpenScene): void {
  describe("ingest", () => {
    test("bytes become delta events at the offsets where they lie", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      await scene.store.ingest(fence, {
        ...NOTHING,
        deltas: [
          { stream: "stdout", bytes: 6, text: "a\u0000b\r\né".slice(0, 5) },
          { stream: "stderr", bytes: 3, text: null },
          { stream: "stdout", bytes: 1_000_000, text: null },
        ],
      });
      const deltas = (await scene.events(fence.job_id)).slice(-3);
      expect(deltas.map((event) => [event.event_type, event.payload])).toEqual([
        ["stdout.delta", { stream: "stdout", offset: 0, next_offset: 6, text: "a\u0000b\r\n" }],
        ["stderr.delta", { stream: "stderr", offset: 0, next_offset: 3 }],
        ["stdout.delta", { stream: "stdout", offset: 6, next_offset: 1_000_006 }],
      ]);
      const lengths = Object.fromEntries((await scene.store.segments(fence.job_id)).map(({ stream, length }) => [stream, length]));
      expect(lengths).toEqual({ stdout: 1_000_006, stderr: 3 });
      await scene.expectSound();
    });

    test("works for a claimed attempt too: output may be seen before the start is on record", async () => {
      const scene = await open();
      const { fence } = await scene.claimed();
      await scene.store.ingest(fence, { ...NOTHING, deltas: [{ stream: "stdout", bytes: 1, text: "x" }] });
      expect((await scene.eventTypes(fence.job_id)).at(-1)).toBe("stdout.delta");
    });

    test("a truncation is one event a stream and attempt, however often it is reported", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const cut = capture(10, { observed: 11, dropped: 1, truncated: "stream_quota" });
      await scene.store.ingest(fence, { ...NOTHING, deltas: [{ stream: "stderr", bytes: 10, text: null }] });
      for (let i = 0; i < 2; i++) await scene.store.ingest(fence, { ...NOTHING, truncations: [{ stream: "stderr", capture: cut }] });
      await scene.reopen();
      await scene.store.ingest(fence, { ...NOTHING, truncations: [{ stream: "stderr", capture: cut }] });
      const end = { ...cut, observed: 500, dropped: 490 };
      await scene.store.settle(fence, settlement(scene.clock, "completed", { captures: { stdout: capture(0), stderr: end } }));
      const cuts = (await scene.events(fence.job_id)).filter((event) => event.event_type === "stderr.truncated");
      expect(cuts).toMatchObject([{ level: "warning", payload: { attempt: 1, ...cut } }]);
      expect((await scene.store.segments(fence.job_id))[0]).toMatchObject({ stream: "stderr", capture: end });
    });

    test("a notice is one event an attempt and subject, however often and by whichever worker it is told", async () => {
      const scene = await open();
      const { fence } = await scene.running(withRetries(1));
      const notice = (about: string) =>
        ({
          about,
          event: { event_type: "execution.spool_damaged", level: "error", message: `lost: ${about}`, payload: { n: 1 } },
        }) as const;
      for (let i = 0; i < 2; i++) {
        await scene.store.ingest(fence, { ...NOTHING, notices: [notice("start.json"), notice("stdout.log"), notice("start.json")] });
        await scene.reopen();
      }
      await scene.store.settle(fence, settlement(scene.clock, "outcome_unknown"));
      scene.clock.advance(60_000);
      await scene.store.claim(await scene.endpoint(), ROOMY);
      await scene.store.ingest({ ...fence, attempt: 2 }, { ...NOTHING, notices: [notice("start.json")] });
      const told = (await scene.events(fence.job_id)).filter((event) => event.event_type === "execution.spool_damaged");
      expect(told.map(({ level, message, payload }) => ({ level, message, payload }))).toEqual([
        { level: "error", message: "lost: start.json", payload: { n: 1, attempt: 1, about: "start.json" } },
        { level: "error", message: "lost: stdout.log", payload: { n: 1, attempt: 1, about: "stdout.log" } },
        { level: "error", message: "lost: start.json", payload: { n: 1, attempt: 2, about: "start.json" } },
      ]);
      await scene.expectSound();
    });

    test("lines of a job's own files become progress, task events and refusals, in order", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const lines: EmitLine[] = [
        { type: "progress", progress: report({ current: 4 }) },
        { type: "refused", reason: "line 2 is not JSON" },
        { type: "task-event", event: timelineEntry() },
        { type: "progress", progress: report({ current: 5 }) },
      ];
      await scene.store.ingest(fence, { ...NOTHING, emits: [{ file: "node-1-77-5.jsonl", offset: 0, next_offset: 400, lines }] });
      const events = (await scene.events(fence.job_id)).slice(-4);
      expect(events.map((event) => event.event_type)).toEqual(["progress.updated", "emit.refused", "task.event", "progress.updated"]);
      expect(events[1]).toMatchObject({ level: "warning", payload: { file: "node-1-77-5.jsonl", reason: "line 2 is not JSON" } });
      expect(await scene.store.latestProgress(fence.job_id)).toMatchObject({
        items: [{ label: "steps", current: 5, sequence: 2 }],
        truncated: false,
      });
      const task = (await scene.store.tasks(fence.job_id, { cursor: 1, limit: 1 })).items[0]!;
      expect((await scene.store.taskEvents(task.task_id, { cursor: 1, limit: 9 })).items).toMatchObject([
        { seq: 1, event_type: "solver.converged", summary: "converged after 12 iterations" },
      ]);
      expect(await scene.store.emitOffsets(fence)).toEqual(new Map([["node-1-77-5.jsonl", 400]]));
      await scene.expectSound();
    });

    test("a task that a line names is made once, has a timeline of its own, and follows the job through its attempts", async () => {
      const scene = await open();
      const { fence } = await scene.running(withRetries(1));
      const line = (task: string, summary: string): EmitLine => ({ type: "task-event", task, event: timelineEntry({ summary }) });
      const ingest = (own: typeof fence, offset: number, lines: EmitLine[]) =>
        scene.store.ingest(own, { ...NOTHING, emits: [{ file: "parts:all", offset, next_offset: offset + 1, lines }] });
      const tasks = async () => (await scene.store.tasks(fence.job_id, { cursor: 1, limit: 9 })).items;
      await ingest(fence, 0, [line("part a", "one"), line("part b", "two")]);
      await ingest(fence, 1, [line("part a", "three")]);
      const [own, a, b] = await tasks();
      expect([own, a, b].map((task) => [task!.name === "command" ? "first" : task!.name, task!.sequence, task!.state])).toEqual([
        ["first", 1, "running"],
        ["part a", 2, "running"],
        ["part b", 3, "running"],
      ]);
      const timeline = async (id: string) =>
        (await scene.store.taskEvents(id, { cursor: 1, limit: 9 })).items.map(({ seq, summary }) => [seq, summary]);
      expect([await timeline(own!.task_id), await timeline(a!.task_id), await timeline(b!.task_id)]).toEqual([
        [],
        [
          [1, "one"],
          [2, "three"],
        ],
        [[1, "two"]],
      ]);
      await scene.store.settle(fence, settlement(scene.clock, "exit_nonzero"));
      expect((await tasks()).map(({ state }) => state)).toEqual(["queued", "queued", "queued"]);
      scene.clock.advance(60_000);
      await scene.store.claim(await scene.endpoint(), ROOMY);
      const second = { ...fence, attempt: 2 };
      await ingest(second, 0, [line("part a", "four")]);
      expect((await tasks()).map(({ name }) => name).slice(1)).toEqual(["part a", "part b"]);
      expect((await timeline(a!.task_id)).at(-1)).toEqual([3, "four"]);
      await scene.store.settle(second, settlement(scene.clock, "exit_nonzero"));
      expect((await tasks()).map(({ state }) => state)).toEqual(["failed", "failed", "failed"]);
      await scene.expectSound();
    });

    /** A line of exactly the longest length there is, around as many members of `unit` as fit. */
    const longestLine = (head: string, unit: string): EmitLine => {
      const open = `${head}, "metadata": {"a": [0`;
      const count = Math.floor((LIMITS.emitLineBytes - open.length - 3) / unit.length);
      const text = `${(open + unit.repeat(count)).padEnd(LIMITS.emitLineBytes - 3)}]}}`;
      expect(text).toHaveLength(LIMITS.emitLineBytes);
      return parseEmitLine(Buffer.from(text))!;
    };
    const PROGRESS = '{"type": "progress"';
    const TASK_EVENT = '{"type": "task-event", "event_type": "a.b", "label": "l", "summary": "s"';

    test("a line of the longest length is recorded, although its record takes more bytes", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const lines = [longestLine(PROGRESS, ',"x"'), longestLine(TASK_EVENT, ',"x"')];
      expect(lines.map(({ type }) => type)).toEqual(["progress", "task-event"]);
      await scene.store.ingest(fence, { ...NOTHING, emits: [{ file: "a.jsonl", offset: 0, next_offset: 500, lines }] });
      expect((await scene.eventTypes(fence.job_id)).slice(-2)).toEqual(["progress.updated", "task.event"]);
    });

    test("a line whose record would be too large becomes a refusal, and the rest of the batch is kept", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const lines = [
        { type: "progress" as const, progress: report({ current: 1 }) },
        longestLine(PROGRESS, ",1E20"),
        longestLine(TASK_EVENT, ",1E20"),
        { type: "task-event" as const, event: timelineEntry() },
        { type: "progress" as const, progress: report({ current: 2 }) },
      ];
      expect(lines.map(({ type }) => type)).toEqual(["progress", "progress", "task-event", "task-event", "progress"]);
      await scene.store.ingest(fence, {
        ...NOTHING,
        deltas: [{ stream: "stdout", bytes: 3, text: "abc" }],
        emits: [{ file: "a.jsonl", offset: 0, next_offset: 900, lines }],
      });
      const events = (await scene.events(fence.job_id)).slice(-6);
      expect(events.map((event) => event.event_type)).toEqual([
        "stdout.delta",
        "progress.updated",
        "emit.refused",
        "emit.refused",
        "task.event",
        "progress.updated",
      ]);
      expect(events[2]).toMatchObject({ level: "warning", payload: { file: "a.jsonl", reason: expect.stringContaining("262144 bytes") } });
      expect(await scene.store.emitOffsets(fence)).toEqual(new Map([["a.jsonl", 900]]));
      const task = (await scene.store.tasks(fence.job_id, { cursor: 1, limit: 1 })).items[0]!;
      expect((await scene.store.taskEvents(task.task_id, { cursor: 1, limit: 9 })).items.map(({ seq }) => seq)).toEqual([1]);
      expect((await scene.store.progress(fence.job_id, { cursor: 1, limit: 9 })).items.map(({ sequence }) => sequence)).toEqual([1, 2]);
      await scene.expectSound();
      await scene.store.settle(fence, settlement(scene.clock, "completed", { captures: { stdout: capture(3), stderr: capture(0) } }));
      expect(await scene.store.job(fence.job_id)).toMatchObject({ state: "succeeded" });
    });

    test("a batch from a position that is not the stored one is refused as a whole", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const emit = (offset: number, next: number) => ({
        file: "a.jsonl",
        offset,
        next_offset: next,
        lines: [{ type: "progress" as const, progress: report() }],
      });
      await scene.store.ingest(fence, { ...NOTHING, emits: [emit(0, 50)] });
      const events = await scene.events(fence.job_id);
      const stale: Ingest = { ...NOTHING, deltas: [{ stream: "stdout", bytes: 3, text: "abc" }], emits: [emit(0, 50)] };
      const error = await refused(scene.store.ingest(fence, stale), "state_conflict");
      expect(error.data).toMatchObject({ file: "a.jsonl", offset: 0, stored: 50 });
      await refused(scene.store.ingest(fence, { ...NOTHING, emits: [emit(50, 40)] }), "state_conflict");
      expect(await scene.events(fence.job_id)).toEqual(events);
      expect(await scene.store.emitOffsets(fence)).toEqual(new Map([["a.jsonl", 50]]));
      await scene.store.ingest(fence, { ...NOTHING, emits: [emit(50, 90), emit(90, 120)] });
      expect(await scene.store.emitOffsets(fence)).toEqual(new Map([["a.jsonl", 120]]));
    });

    test("positions are those of one attempt", async () => {
      const scene = await open();
      const { fence } = await scene.claimed();
      await scene.store.ingest(fence, { ...NOTHING, emits: [{ file: "a.jsonl", offset: 0, next_offset: 5, lines: [] }] });
      expect(await scene.store.emitOffsets({ ...fence, attempt: 2 })).toEqual(new Map());
      expect(await scene.store.emitOffsets(fence)).toEqual(new Map([["a.jsonl", 5]]));
    });

    test("positions and what was made of the bytes survive together", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const rounds = 20;
      for (let i = 0; i < rounds; i++) {
        await scene.store.ingest(fence, {
          deltas: [{ stream: "stdout", bytes: i + 1, text: null }],
          truncations: [],
          emits: [
            { file: "a.jsonl", offset: i * 10, next_offset: i * 10 + 10, lines: [{ type: "progress", progress: report({ current: i }) }] },
          ],
        });
      }
      await scene.reopen();
      const stdout = (await scene.store.segments(fence.job_id)).find((segment) => segment.stream === "stdout");
      expect(stdout?.length).toBe((rounds * (rounds + 1)) / 2);
      expect((await scene.store.progress(fence.job_id, { cursor: 1, limit: 100 })).total).toBe(rounds);
      expect((await scene.store.emitOffsets(fence)).get("a.jsonl")).toBe(rounds * 10);
      await scene.expectSound();
    });

    test("bytes that are no number of bytes are refused", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      for (const bytes of [-1, 0.5, Number.NaN]) {
        await refused(scene.store.ingest(fence, { ...NOTHING, deltas: [{ stream: "stdout", bytes, text: null }] }), "internal_error");
      }
      expect((await scene.eventTypes(fence.job_id)).at(-1)).toBe("job.running");
    });
  });
}
