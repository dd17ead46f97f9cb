import { expect, test } from "bun:test";
import { CallProgress, type Told } from "../../src/mcp/progress.ts";
import { eventually } from "../runner/wait.ts";

test("a call that is quiet says that it goes on, in numbers that only grow, and nothing when it has ended", async () => {
  const told: Told[] = [];
  const progress = new CallProgress((one) => told.push(one), 5);
  await eventually(() => told.length >= 2, { what: "that it goes on" });
  progress.tell(3, "job.started");
  progress.tell(3, "the same again");
  const steps = told.length;
  await eventually(() => told.length > steps, { what: "that it goes on" });
  progress.tell(4, "x".repeat(1_000));
  progress.end();
  const count = told.length;
  progress.tell(5, "too late");
  const numbers = told.map((one) => one.progress);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  expect([told[steps - 2], told.at(-1)?.progress, told.at(-1)?.message.length, told.length]).toEqual([
    { progress: 3, message: "job.started" },
    4,
    500,
    count,
  ]);
});
