import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { Agent } from "./agent.ts";
import { HeldJob } from "./held-job.ts";

interface Match {
  readonly stream: string;
  readonly excerpt: string;
  readonly position: number;
  readonly timestamp: string;
}
interface Observed {
  readonly state: string;
  readonly terminal: boolean;
  readonly events: readonly { readonly seq: number; readonly event_type: string }[];
  readonly next_cursor: number;
  readonly truncated: boolean;
  readonly matches?: readonly Match[];
  readonly matches_truncated?: boolean;
  readonly matched?: boolean;
  readonly match?: Match | null;
}

let relay: SourceRelay;
let agent: Agent;

beforeAll(async () => {
  relay = await initialized();
  await relay.ok("cluster", "add", "--name", "local", "--agent-commands", "--worker-concurrency", "8");
  await relay.ok("worker", "start", "--cluster", "local");
  agent = await Agent.of(relay);
  // Every answer is held against its schema.
  await agent.client.listTools();
});

afterAll(async () => {
  await agent?.[Symbol.asyncDispose]();
  await relay?.[Symbol.asyncDispose]();
});

const submit = async (argv: readonly string[]): Promise<string> =>
  (await agent.ok<{ job_id: string }>("relay_submit_command", { cluster: "local", argv })).job_id;
const observe = (job_id: string, more: Record<string, unknown>): Promise<Observed> =>
  agent.ok<Observed>("relay_observe", { job_id, include_logs: false, ...more });

describe("relay_observe", () => {
  test("picks the lines that match out of logs, progress and events, with the place of each", async () => {
    const script = "printf 'erste Zeile\\nÜbel: 17\\n'; echo 'Übel: 18' >&2; printf 'halb'; sleep 0.3; printf ' Übel 19\\rganz\\n'";
    const job = await submit(["sh", "-c", script]);
    await agent.ok("relay_wait", { job_id: job });
    await relay.ok("job", "record-progress", job, "--label", "Übel", "--current", "3");
    const seen = await observe(job, { pattern: "(?i)übel:? (\\d+)", limit: 100 });
    const found = seen.matches!.map(({ stream, excerpt, position }) => [stream, excerpt, position]);
    expect(found.filter(([stream]) => stream === "stdout")).toEqual([
      ["stdout", "Übel: 17", 12],
      ["stdout", "halb Übel 19", 22],
    ]);
    expect(found.filter(([stream]) => stream === "stderr")).toEqual([["stderr", "Übel: 18", 0]]);
    expect(seen).toMatchObject({ matches_truncated: false, truncated: false, terminal: true });
    expect(seen.matched).toBeUndefined();
    const only = async (pattern: string, scope: string[]): Promise<string[]> =>
      (await observe(job, { pattern, pattern_scope: scope, limit: 100 })).matches!.map(({ excerpt }) => excerpt);
    expect(await only("Übel", ["stderr"])).toEqual(["Übel: 18"]);
    expect(await only("^Übel", ["progress"])).toEqual([expect.stringContaining("Übel")]);
    expect(await only("^job\\.succeeded", ["events"])).toEqual([expect.stringMatching(/^job\.succeeded: /)]);
    expect(await only("^job\\.succeeded", ["stdout", "progress"])).toEqual([]);
  });

  test("waits for a line, answers with it and where to go on, and says where none came", async () => {
    const [first, second] = [new HeldJob(relay, "echo ready on port 4711"), new HeldJob(relay, "echo over")] as const;
    const job = await submit(["sh", "-c", `echo begun; sh -c "$1" sh "$2"; sh -c "$3" sh "$4"`, "sh", ...tail(first), ...tail(second)]);
    const none = await observe(job, { until_pattern: "ready", wait_seconds: 0.2 });
    expect([none.matched, none.match, none.terminal]).toEqual([false, null, false]);
    const waiting = observe(job, { until_pattern: "ready on port \\d+", cursor: none.next_cursor });
    first.letGo();
    const found = await waiting;
    expect(found).toMatchObject({
      matched: true,
      terminal: false,
      match: { stream: "stdout", excerpt: "ready on port 4711", position: 6 },
    });
    expect(found.next_cursor).toBe(found.events.at(-1)!.seq + 1);
    // What was found is behind the cursor.
    second.letGo();
    const rest = await observe(job, { until_pattern: "ready on port \\d+", cursor: found.next_cursor });
    expect(rest).toMatchObject({ matched: false, match: null, terminal: true });
    expect(rest.next_cursor).toBe(rest.events.at(-1)!.seq + 1);
    expect(await observe(job, { until_pattern: "^over$", pattern: "o", cursor: 1 })).toMatchObject({
      matched: true,
      match: { excerpt: "over" },
      matches: expect.arrayContaining([expect.objectContaining({ excerpt: "over" })]),
    });
  });

  test("finds a line in a long log, however many turns it takes, and shows the first hundred of many", async () => {
    const job = await submit(["sh", "-c", "yes 'nothing to see' | head -c 9000000; echo needle; yes hay | head -n 300"]);
    await agent.ok("relay_wait", { job_id: job });
    let cursor = 1;
    const turns: Observed[] = [];
    do {
      turns.push(await observe(job, { until_pattern: "^needle$", pattern_scope: ["stdout"], cursor, limit: 500, wait_seconds: 5 }));
      cursor = turns.at(-1)!.next_cursor;
    } while (!turns.at(-1)!.matched && turns.length < 50);
    expect(turns.at(-1)!.match).toMatchObject({ excerpt: "needle", position: 9_000_000 });
    const many = await observe(job, { pattern: "^hay$", cursor: 1, limit: 500 }).then(async (page) => {
      let last = page;
      while (last.matches!.length === 0 && last.events.length > 0)
        last = await observe(job, { pattern: "^hay$", cursor: last.next_cursor, limit: 500 });
      return last;
    });
    expect([many.matches!.length, many.matches_truncated]).toEqual([100, true]);
  });

  test("what is no pattern, or would take any time, is refused by name, and a pattern that others take long for is as fast as any", async () => {
    const job = await submit(["sh", "-c", "head -c 200000 /dev/zero | tr '\\0' a"]);
    await agent.ok("relay_wait", { job_id: job });
    for (const [pattern, reason] of [
      ["(", "observation_pattern_invalid"],
      ["x".repeat(513), "observation_pattern_invalid"],
      ["ü".repeat(257), "observation_pattern_invalid"],
      ["(a)\\1", "observation_pattern_unsafe"],
      ["(?=a)", "observation_pattern_unsafe"],
      ["(a{1000}){1000}", "observation_pattern_unsafe"],
      ["", "request_validation_failed"],
    ] as const) {
      for (const argument of ["pattern", "until_pattern"])
        expect([pattern, await agent.problem("relay_observe", { job_id: job, [argument]: pattern })]).toEqual([
          pattern,
          expect.objectContaining({ reason }),
        ]);
    }
    expect(await agent.problem("relay_observe", { job_id: job, pattern: "a", pattern_scope: ["elsewhere"] })).toMatchObject({
      reason: "request_validation_failed",
    });
    const slow = await observe(job, { pattern: "^(a|a|aa)+$b", until_pattern: "(a+)+b", limit: 100 });
    expect([slow.matched, slow.matches]).toEqual([false, []]);
  });
});

/** What a held job does, as arguments of `sh -c`. */
const tail = ({ argv }: HeldJob): string[] => [argv[2]!, argv[4]!];
