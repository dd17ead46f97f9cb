import { afterAll, beforeAll, expect, test } from "bun:test";
import path from "node:path";
import { DesktopClient } from "../../src/api/client/desktop-client.ts";
import type { Place } from "../../src/mcp/clusters.ts";
import { followEvents } from "../../src/mcp/follow.ts";
import { Held, heldTurns } from "../../src/mcp/held.ts";
import type { ToolCall } from "../../src/mcp/tool.ts";
import { waited } from "../../src/mcp/wait.ts";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { eventually } from "../runner/wait.ts";
import { HeldJob } from "./held-job.ts";

let relay: SourceRelay;

beforeAll(async () => {
  relay = await initialized();
  await relay.ok("worker", "start", "--cluster", "local");
});
afterAll(() => relay?.[Symbol.asyncDispose]());

test("what waits at one cluster leaves places for what waits at others", () => {
  const turns = heldTurns(8);
  const [one, other] = [new Held(turns, "one"), new Held(turns, "other")];
  const taken = Array.from({ length: 8 }, () => one.take());
  expect(taken.filter((place) => place !== null)).toHaveLength(6);
  expect([other.take() === null, other.take() === null, other.take()]).toEqual([false, false, null]);
});

test("where no request may wait, a job is followed and waited for all the same, by looking", async () => {
  const job = new HeldJob(relay);
  const id = await relay.submit("--", ...job.argv);
  const client = new DesktopClient({ kind: "unix", path: path.join(relay.home, "run", "desktop.sock") }).cluster("local");
  const asked: string[] = [];
  const watched = new Proxy(client, {
    get(of, name) {
      asked.push(String(name));
      const member: unknown = Reflect.get(of, name);
      return typeof member === "function" ? member.bind(of) : member;
    },
  });
  const place = {
    client: watched,
    entry: { name: "local" },
    route_revision: "0".repeat(64),
    held: new Held(heldTurns(0), "local", 20),
  } as unknown as Place;
  const { signal } = new AbortController();
  const seen: [number, string][] = [];
  const followed = (async () => {
    for await (const { seq, event_type } of followEvents(place, id, 1, signal)) seen.push([seq, event_type]);
  })();
  const told: string[] = [];
  const now = () => performance.now();
  const call = { signal, now, wantsProgress: true, progress: (_: number, message: string) => told.push(message) } as unknown as ToolCall;
  const ended = waited(place, id, { timeout_seconds: 50 }, call);
  await eventually(() => told.length > 0 && seen.some(([, type]) => type === "job.running"), { what: "that it has started" });
  job.letGo();
  expect((await ended).state).toBe("succeeded");
  await followed;
  expect(seen.map(([seq]) => seq)).toEqual(seen.map((_, at) => at + 1));
  expect(seen.at(-1)?.[1]).toBe("job.succeeded");
  expect(asked).not.toContain("eventStream");
});
