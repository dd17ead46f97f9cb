import { expect, test } from "bun:test";
import type { Context } from "hono";
import * as v from "valibot";
import { readSse } from "../../src/api/client/sse-reader.ts";
import { type Growing, StreamQuery, streamRoutes } from "../../src/api/routes/streams.ts";
import type { WorkerServices } from "../../src/api/worker-services.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";

/** What comes of a stream of five entries, read one at a time, when the worker begins to drain behind the first. */
async function drained(query: Record<string, string>, look: (cursor: number) => void = () => undefined) {
  const drain = new AbortController();
  const services = { store: { subscribe: () => () => undefined }, draining: drain.signal, clock: systemClock } as unknown as WorkerServices;
  const growing: Growing = {
    jobId: "job_1",
    look(cursor) {
      look(cursor);
      const messages = [{ event: "step", id: cursor, data: cursor }];
      return Promise.resolve({ state: "running", messages, next_cursor: cursor + 1, more: cursor < 5 });
    },
  };
  const route = { path: "/things/:id", id: "things", summary: "Things", schema: v.number(), errors: [] };
  const [sse] = streamRoutes(services, route, () => Promise.resolve(growing));
  const raw = new Request("http://relay/things/1/sse");
  const c = { req: { raw, header: () => undefined } } as unknown as Context;
  const response = await sse!.handler({ c, query: v.parse(StreamQuery, query), body: undefined, param: () => "1" } as never);
  const ids: string[] = [];
  for await (const { id } of readSse(response.body!)) {
    ids.push(id!);
    drain.abort();
  }
  return ids;
}

test("a worker that drains ends a stream, but what was asked for as a whole it gives whole", async () => {
  expect((await drained({})).length).toBeLessThan(5);
  expect(await drained({ stop_after_replay: "true" })).toEqual(["1", "2", "3", "4", "5"]);
});

test("a replay that fails while the worker drains breaks off", async () => {
  const fail = (cursor: number) => {
    if (cursor > 3) throw new Error("the store is closed");
  };
  await expect(drained({ stop_after_replay: "true" }, fail)).rejects.toBeUndefined();
});

test("between two pages of a stream everything else has its turn", async () => {
  let turns = 0;
  let over = false;
  const turn = (): void => {
    turns += 1;
    if (!over) setImmediate(turn);
  };
  setImmediate(turn);
  const seen = new Set<number>();
  await drained({ stop_after_replay: "true" }, () => seen.add(turns));
  over = true;
  expect(seen.size).toBe(5);
});
