import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { readSse, type SseMessage } from "../../../src/api/client/sse-reader.ts";
import { listen } from "../../api/web-socket-client.ts";
import { eventually } from "../../runner/wait.ts";
import { WorkerHarness } from "./harness.ts";

let worker: WorkerHarness;
beforeAll(async () => {
  worker = await new WorkerHarness().start();
});
afterAll(() => worker[Symbol.asyncDispose]());

const open = (target: string, signal?: AbortSignal, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`http://relay${target}`, { unix: path.join(worker.directory, "run", "worker.sock"), headers, ...(signal ? { signal } : {}) });

/** Every message until the stream ends by itself. */
const all = async (target: string, headers: Record<string, string> = {}): Promise<SseMessage[]> =>
  Array.fromAsync(readSse((await open(target, undefined, headers)).body!));

const data = (message: SseMessage | undefined) => JSON.parse(message!.data) as Record<string, unknown>;

/** A job that has ended, with some entries in its task's timeline. */
async function ended(entries = 3): Promise<{ jobId: string; taskId: string; last: number }> {
  const { job_id } = await worker.shell("echo hi");
  await worker.ended(job_id);
  const { tasks } = await worker.client.tasks(job_id);
  const taskId = tasks[0]!.task_id;
  for (let i = 0; i < entries; i++) await worker.client.recordTaskEvent(taskId, { event_type: "step", label: `${i}`, summary: "done" });
  return { jobId: job_id, taskId, last: (await worker.events(job_id)).length };
}

/** A job that runs until it is released. */
async function running(): Promise<{ jobId: string; release: () => void }> {
  const gate = path.join(worker.directory, crypto.randomUUID());
  const { job_id } = await worker.shell(`while [ ! -e ${gate} ]; do sleep 0.02; done`);
  await worker.running(job_id);
  return { jobId: job_id, release: () => fs.writeFileSync(gate, "") };
}

describe("events", () => {
  test("come once each, however few are read at a time, and end with the job", async () => {
    const { jobId, last } = await ended();
    for (const limit of [1, 2, 500]) {
      const messages = await all(`/jobs/${jobId}/events/sse?limit=${limit}`);
      expect(messages.map(({ id }) => Number(id))).toEqual([...Array.from({ length: last }, (_, i) => i + 1), last]);
      expect(messages.at(-1)).toMatchObject({ event: "terminal", data: JSON.stringify({ job_id: jobId, state: "succeeded" }) });
    }
    expect((await all(`/jobs/${jobId}/events/sse?cursor=1`, { "last-event-id": String(last - 1) })).map(({ event }) => event)).toEqual([
      "task.event",
      "terminal",
    ]);
  });

  test("stop_after_replay ends with what there is, while the job runs", async () => {
    const { jobId, release } = await running();
    const messages = await all(`/jobs/${jobId}/events/sse?stop_after_replay=true&limit=2`);
    expect(messages.map(({ event }) => event)).toEqual((await worker.events(jobId)).map((event) => event.event_type));
    release();
    await worker.ended(jobId);
    expect((await all(`/jobs/${jobId}/events/sse?stop_after_replay=1`)).at(-1)?.event).toBe("terminal");
  });

  test("stop_on_terminal=false goes on behind the end, and says it once", async () => {
    const { jobId, taskId, last } = await ended(0);
    const leave = new AbortController();
    const seen: SseMessage[] = [];
    const response = await open(`/jobs/${jobId}/events/sse?stop_on_terminal=false&cursor=${last}`, leave.signal);
    for await (const message of readSse(response.body!)) {
      seen.push(message);
      if (seen.length === 2) await worker.client.recordTaskEvent(taskId, { event_type: "late", label: "l", summary: "s" });
      if (seen.length === 3) break;
    }
    leave.abort();
    expect(seen.map(({ event, id }) => [event, Number(id)]).slice(1)).toEqual([
      ["terminal", last],
      ["task.event", last + 1],
    ]);
  });
});

describe("the monitor", () => {
  test("has at most `limit` events in each document, and all of them in all", async () => {
    const { jobId, last } = await ended();
    const messages = await all(`/jobs/${jobId}/monitor/sse?limit=2`);
    const documents = messages.filter(({ event }) => event === "monitor").map(data) as { events: { seq: number }[]; next_cursor: number }[];
    expect(documents.flatMap(({ events }) => events.map(({ seq }) => seq))).toEqual(Array.from({ length: last }, (_, i) => i + 1));
    expect(Math.max(...documents.map(({ events }) => events.length))).toBe(2);
    expect(messages.at(-1)).toMatchObject({ event: "terminal", id: String(last) });
    expect(await (await worker.client.http.send(`/jobs/${jobId}/monitor?cursor=2&limit=1&poll_seconds=0.5`)).json()).toMatchObject({
      events: [{ seq: 2 }],
      next_cursor: 3,
      terminal: true,
    });
  });

  test("poll_seconds joins what comes close together, and loses none of it", async () => {
    const { jobId, release } = await running();
    const response = await open(`/jobs/${jobId}/monitor/sse?poll_seconds=1`);
    const documents: { events: { event_type: string }[] }[] = [];
    for await (const message of readSse(response.body!)) {
      if (message.event !== "monitor") break;
      documents.push(data(message) as (typeof documents)[number]);
      if (documents.length === 1) {
        await Promise.all(Array.from({ length: 20 }, (_, i) => worker.client.recordProgress(jobId, { current: i })));
        release();
      }
    }
    const progress = documents.map(({ events }) => events.filter((event) => event.event_type === "progress.updated").length);
    expect(progress.reduce((sum, n) => sum + n, 0)).toBe(20);
    expect(documents.length).toBeLessThan(10);
    expect(documents.flatMap(({ events }) => events.map((event) => event.event_type))).toEqual(
      (await worker.events(jobId)).map((event) => event.event_type),
    );
  });
});

test("a task's timeline is streamed by the same rules", async () => {
  const { jobId, taskId } = await ended(5);
  const messages = await all(`/tasks/${taskId}/events/sse?limit=2`);
  expect(messages.map(({ event, id }) => [event, Number(id)])).toEqual([
    ...Array.from({ length: 5 }, (_, i) => ["task_event", i + 1]),
    ["terminal", 5],
  ]);
  expect(data(messages.at(-1))).toEqual({ task_id: taskId, job_id: jobId, state: "succeeded" });
  const live = await running();
  const { tasks } = await worker.client.tasks(live.jobId);
  expect(await all(`/tasks/${tasks[0]!.task_id}/events/sse?stop_after_replay=true`)).toEqual([]);
  live.release();
  await worker.ended(live.jobId);
});

test("large entries are read a few at a time, and none is left out", async () => {
  const { job_id } = await worker.shell("true");
  await worker.ended(job_id);
  const { tasks } = await worker.client.tasks(job_id);
  const taskId = tasks[0]!.task_id;
  const entry = { event_type: "step", label: "l", summary: "s", metadata: { text: "x".repeat(30_000) } };
  for (let i = 0; i < 7; i++) await worker.client.recordTaskEvent(taskId, entry);
  const timeline = await all(`/tasks/${taskId}/events/sse`);
  expect(timeline.map(({ id }) => Number(id))).toEqual([1, 2, 3, 4, 5, 6, 7, 7]);
  const events = (await worker.events(job_id)).length;
  const documents = (await all(`/jobs/${job_id}/monitor/sse`)).filter(({ event }) => event === "monitor").map(data) as {
    events: { seq: number }[];
  }[];
  expect(documents.flatMap((document) => document.events.map(({ seq }) => seq))).toEqual(Array.from({ length: events }, (_, i) => i + 1));
});

describe("WebSockets", () => {
  const url = (target: string) => `ws+unix://${path.join(worker.directory, "run", "worker.sock")}:${target}`;

  test.each(["events", "monitor"])("%s bring what the event stream does, from where the client left", async (what) => {
    const { jobId, last } = await ended();
    const messages = await all(`/jobs/${jobId}/${what}/sse?limit=2`);
    const heard = await listen(url(`/jobs/${jobId}/${what}/ws?limit=2`));
    expect(heard).toEqual({
      messages: messages.map(({ event, id, data: text }) => ({ event, id, data: JSON.parse(text) as unknown })),
      code: 1000,
      reason: "terminal",
    });
    const again = await listen(url(`/jobs/${jobId}/${what}/ws?cursor=${last}`));
    expect(again.messages.map(({ id }) => Number(id))).toEqual([last, last]);
    expect((await listen(url(`/jobs/${jobId}/${what}/ws?cursor=1`), { headers: { "last-event-id": String(last - 1) } })).messages).toEqual(
      again.messages,
    );
  });

  test("a task's timeline, as it grows", async () => {
    const { jobId, release } = await running();
    const { tasks } = await worker.client.tasks(jobId);
    const taskId = tasks[0]!.task_id;
    await worker.client.recordTaskEvent(taskId, { event_type: "step", label: "0", summary: "s" });
    const heard = await listen(url(`/tasks/${taskId}/events/ws`), {
      onMessage({ event }) {
        if (event === "task_event") release();
        return undefined;
      },
    });
    expect(heard).toMatchObject({ messages: [{ event: "task_event", id: "1" }, { event: "terminal" }], code: 1000, reason: "terminal" });
  });

  test.each([
    ["/jobs/job_none/events/ws", "job_not_found"],
    ["/tasks/task_none/events/ws", "task_not_found"],
    ["/jobs/job_none/monitor/ws?poll_seconds=-1", "poll_interval_invalid"],
    ["/jobs/job_none/events/ws?colour=red", "request_validation_failed"],
    ["/nowhere/ws", "route_not_found"],
  ])("%s is refused as %s", async (target, reason) => {
    expect(await listen(url(target))).toEqual({ messages: [], code: 1008, reason });
  });

  test("a request that asks for none is told to", async () => {
    const response = await open("/jobs/job_none/events/ws");
    expect([response.status, response.headers.get("upgrade"), await response.json()]).toEqual([
      426,
      "websocket",
      expect.objectContaining({ reason: "upgrade_required" }),
    ]);
  });
});

test("who asks for the headers of a stream follows nothing", async () => {
  const { jobId, release } = await running();
  for (const route of ["events/sse", "monitor/sse", "logs/stdout/content?follow=true"]) {
    const { status, headers } = await fetch(`http://relay/jobs/${jobId}/${route}`, { unix: worker.socket, method: "HEAD" });
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
  }
  const followers = async () => /^clio_relay_worker_followers (\d+)$/m.exec(await (await open("/metrics")).text())?.[1];
  await eventually(async () => (await followers()) === "0", { what: "the end of streams that nobody reads" });
  release();
});

test("a worker that drains ends what is followed, and says that there is more", async () => {
  await using draining = await new WorkerHarness().start();
  const { job_id } = await draining.shell("sleep 60");
  await draining.running(job_id);
  const socket = path.join(draining.directory, "run", "worker.sock");
  let drained: Promise<number> | undefined;
  const heard = await listen(`ws+unix://${socket}:/jobs/${job_id}/events/ws`, {
    onMessage() {
      drained ??= draining.drain();
      return undefined;
    },
  });
  expect([heard.code, heard.reason]).toEqual([1001, "stream_ended"]);
  expect(await drained).toBe(0);
});
