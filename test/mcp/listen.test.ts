import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { eventually } from "../runner/wait.ts";
import { Wire } from "./wire.ts";

/** As docs/mcp.md says. */
const MOST = 256;

let relay: SourceRelay;

beforeAll(async () => {
  relay = await initialized();
  await relay.ok("worker", "start", "--cluster", "local");
});
afterAll(() => relay?.[Symbol.asyncDispose]());

const nobody = (at: number): string => `job_${at.toString(16).padStart(32, "0")}`;
const several = <T>(count: number, of: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => of(at));

describe("a subscription", () => {
  test("that asks for too much, or for what is none, is refused and not half agreed to", async () => {
    await using wire = new Wire(relay);
    const unfit: [Record<string, unknown>, string][] = [
      [{ taskIds: several(MOST + 1, nobody) }, "taskIds"],
      [{ taskIds: "all" }, "taskIds"],
      [{ taskIds: [5] }, "taskIds"],
      [{ resourceSubscriptions: several(MOST + 1, (at) => `relay://local/jobs/${nobody(at)}`) }, "resourceSubscriptions"],
      [{ resourceSubscriptions: "relay://clusters" }, "resourceSubscriptions"],
    ];
    for (const [notifications, member] of unfit)
      expect([member, await wire.error("subscriptions/listen", { notifications })]).toEqual([
        member,
        { code: -32602, message: expect.stringContaining(member) },
      ]);
    expect(wire.notes("notifications/subscriptions/acknowledged")).toEqual([]);
  });

  test("is to what there is: the acknowledgement leaves the rest out", async () => {
    await using wire = new Wire(relay);
    const job = await relay.submit("--", "true");
    const there = ["relay://clusters", `relay://local/jobs/${job}`, `relay://local/jobs/${job}/log/stdout`];
    const not = [`relay://local/jobs/${nobody(1)}`, `relay://elsewhere/jobs/${job}`, "file:///etc/passwd", "relay://local/jobs/../x"];
    wire.send("subscriptions/listen", { notifications: { taskIds: [job, nobody(1)], resourceSubscriptions: [...not, ...there] } });
    const acknowledged = () => wire.notes("notifications/subscriptions/acknowledged")[0];
    expect((await eventually(acknowledged, { what: "the acknowledgement" }))["notifications"]).toEqual({
      taskIds: [job],
      resourceSubscriptions: there,
    });
  });
});

test("an older client that subscribes to many things at once gets as many as it may have, and is told of what is not there", async () => {
  await using wire = new Wire(relay);
  const subscribe = (id: number, uri: string): void =>
    wire.line(JSON.stringify({ jsonrpc: "2.0", id, method: "resources/subscribe", params: { uri } }));
  const handshake = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "old", version: "1" } };
  wire.line(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: handshake }));
  await wire.answer(1);
  subscribe(2, `relay://local/jobs/${nobody(1)}`);
  expect((await wire.answer(2)).error?.code).toBe(-32602);
  const artifact = (at: number): string => `relay://local/artifacts/artifact_${at.toString(16).padStart(32, "0")}`;
  for (let at = 0; at < MOST + 10; at++) subscribe(1_000 + at, artifact(at));
  const answers = await Promise.all(several(MOST + 10, (at) => wire.answer(1_000 + at)));
  expect(answers.filter(({ error }) => error === undefined).length).toBe(MOST);
});
