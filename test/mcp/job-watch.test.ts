import { expect, test } from "bun:test";
import path from "node:path";
import { HttpPeer } from "../../src/api/client/http-peer.ts";
import { ClusterClient } from "../../src/api/client.ts";
import type { Event } from "../../src/domain/event.ts";
import type { Place } from "../../src/mcp/clusters.ts";
import { Held, heldTurns } from "../../src/mcp/held.ts";
import { JobWatch } from "../../src/mcp/job-watch.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const JOB = "job_00000000000000000000000000000001";
const event = (seq: number): Event => ({
  job_id: JOB,
  seq,
  event_type: "task.event",
  message: `the event ${seq}`,
  level: "info",
  payload: {},
  created_at: "2026-01-01T00:00:00.000Z",
});
const problem = (status: number, reason: string): Response =>
  new Response(JSON.stringify({ type: `urn:clio-relay:error:${reason}`, title: reason, status, detail: reason, reason, retryable: true }), {
    status,
    headers: { "content-type": "application/problem+json" },
  });

/** A worker that answers as it is told to. */
function worker(events: () => Response | Promise<Response>) {
  const directory = temporaryDirectory();
  const cursors: (string | null)[] = [];
  const open = new Set<ReadableStreamDefaultController<Uint8Array>>();
  const socket = path.join(directory.path, "w.sock");
  const server = Bun.serve({
    unix: socket,
    fetch(request) {
      const url = new URL(request.url);
      if (!url.pathname.endsWith("/sse")) return events();
      cursors.push(url.searchParams.get("cursor"));
      let mine: ReadableStreamDefaultController<Uint8Array>;
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          mine = controller;
          open.add(controller);
        },
        cancel: () => void open.delete(mine),
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const client = new ClusterClient("w", new HttpPeer({ kind: "unix", path: socket }));
  const place = { client, entry: { name: "w" }, held: new Held(heldTurns(1), "w") } as unknown as Place;
  return {
    place,
    cursors,
    open,
    tell(seq: number): void {
      for (const controller of open) controller.enqueue(Buffer.from(`id: ${seq}\nevent: job\ndata: ${JSON.stringify(event(seq))}\n\n`));
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await server.stop(true);
      directory[Symbol.dispose]();
    },
  };
}

const page = (total: number): Response => Response.json({ events: [], cursor: 1, limit: 1, next_cursor: 1, total });

test("whoever listens is told from where on, after every outage, and one stream is enough for all", async () => {
  let outages = 2;
  await using far = worker(() => (outages-- > 0 ? problem(503, "link_down") : page(3)));
  const watch = new JobWatch();
  const heard: [string, number][] = [];
  const one = watch.on(far.place, JOB, ({ seq }) => void heard.push(["one", seq]));
  const two = watch.on(far.place, JOB, ({ seq }) => void heard.push(["two", seq]));
  await Promise.all([one.begun, two.begun]);
  expect(outages).toBe(-1);
  await eventually(() => far.open.size === 1);
  expect(far.cursors).toEqual(["4"]);
  far.tell(4);
  await eventually(() => heard.length === 2);
  two.stop();
  // The stream breaks off, and is taken up where it was.
  for (const controller of far.open) controller.close();
  far.open.clear();
  await eventually(() => far.open.size === 1);
  expect(far.cursors).toEqual(["4", "5"]);
  far.tell(5);
  await eventually(() => heard.length === 3);
  expect(heard).toEqual([
    ["one", 4],
    ["two", 4],
    ["one", 5],
  ]);
  one.stop();
  await eventually(() => far.open.size === 0);
});

test("of a job that there is not nobody hears, and who stopped is not waited for", async () => {
  await using far = worker(() => problem(404, "job_not_found"));
  const watch = new JobWatch();
  const heard: number[] = [];
  await watch.on(far.place, JOB, ({ seq }) => void heard.push(seq)).begun;
  await using away = worker(() => problem(503, "link_down"));
  const waiting = watch.on(away.place, "job_00000000000000000000000000000002", ({ seq }) => void heard.push(seq));
  waiting.stop();
  await waiting.begun;
  expect([heard, far.cursors, away.cursors]).toEqual([[], [], []]);
});
