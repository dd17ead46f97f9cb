import { describe, expect, test } from "bun:test";
import type { Event } from "../../src/domain/event.ts";
import { Choice, chooseJob } from "./choice.ts";
import { stateFaults } from "./job-faults.ts";
import { difference, pattern } from "./pattern.ts";

describe("the pattern", () => {
  test("is the same for the same key, another for another, and as long as it has to be", () => {
    expect(pattern("a", 5_000).equals(pattern("a", 5_000))).toBe(true);
    expect(pattern("a", 5_000).equals(pattern("b", 5_000))).toBe(false);
    expect(pattern("a", 5_000).length).toBeWithin(5_000, 5_400);
    expect(pattern("a", 0).length).toBe(0);
  });

  test("no piece of it stands anywhere else in it", () => {
    const text = pattern("a", 20_000).toString();
    const lines = text.split("\n").filter(Boolean);
    expect(new Set(lines).size).toBe(lines.length);
    expect(lines.length).toBeGreaterThan(50);
  });
});

describe("a difference", () => {
  const whole = pattern("a", 1_000);
  const without = (from: number, to: number): Buffer => Buffer.concat([whole.subarray(0, from), whole.subarray(to)]);

  test("is seen where a byte is missing, doubled, changed or too much", () => {
    expect(difference(whole, whole)).toBeNull();
    expect(difference(without(100, 101), whole)).toStartWith("differs at byte");
    expect(difference(Buffer.concat([whole.subarray(0, 200), whole.subarray(100)]), whole)).toStartWith("differs at byte 200");
    expect(difference(Buffer.concat([whole, Buffer.from("x")]), whole)).toBe(`${whole.length + 1} bytes of ${whole.length}`);
    expect(difference(whole.subarray(0, 999), whole)).toBe(`999 bytes of ${whole.length}`);
  });

  test("is none where a piece from the beginning will do", () => {
    expect(difference(whole.subarray(0, 999), whole, false)).toBeNull();
    expect(difference(whole.subarray(1, 999), whole, false)).not.toBeNull();
  });
});

describe("the states of a history", () => {
  const events = (...types: string[]): Event[] => types.map((event_type, i) => ({ event_type, seq: i + 1 }) as Event);

  test("follow the table of transitions", () => {
    const good = events("job.queued", "task.queued", "job.leased", "job.requeued", "job.leased", "job.running", "job.succeeded");
    expect(stateFaults(good, "succeeded")).toEqual([]);
    expect(stateFaults(good, "failed")).toEqual(["the events end in succeeded, the job in failed"]);
  });

  test("and those that do not are found", () => {
    expect(stateFaults(events("job.leased", "job.running"), "running")).toEqual(["event 1 leads from null to leased"]);
    expect(stateFaults(events("job.queued", "job.leased", "job.succeeded", "job.running"), "running")).toEqual([
      "event 4 leads from succeeded to running",
    ]);
  });
});

test("one seed chooses the same jobs, and all kinds in time", () => {
  const jobs = (seed: number) => {
    const choice = new Choice(seed);
    return Array.from({ length: 200 }, (_, i) => chooseJob(choice, `job${i}`, "/effects"));
  };
  expect(jobs(7)).toEqual(jobs(7));
  expect(jobs(7)).not.toEqual(jobs(8));
  expect(new Set(jobs(7).map(({ kind }) => kind)).size).toBe(9);
});
