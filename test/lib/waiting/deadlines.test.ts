import { expect, test } from "bun:test";
import { Deadlines } from "../../../src/lib/waiting/deadlines.ts";

const late = () => new Error("late");

test("what comes in time is handed on, and so is what fails", async () => {
  const deadlines = new Deadlines(5);
  expect(await deadlines.within(Promise.resolve(1), 60_000, late)).toBe(1);
  await expect(deadlines.within(Promise.reject(new Error("failed")), 60_000, late)).rejects.toThrow("failed");
});

test("what does not come is late, beside something that has more time", async () => {
  const deadlines = new Deadlines(5);
  const patient = Promise.withResolvers<string>();
  const both = [deadlines.within(patient.promise, 60_000, late), deadlines.within(new Promise(() => undefined), 10, late)];
  await expect(both[1]).rejects.toThrow("late");
  patient.resolve("came");
  expect(await both[0]).toBe("came");
  // The clock has run out with nothing to wait for, and runs again.
  await Bun.sleep(20);
  await expect(deadlines.within(new Promise(() => undefined), 10, late)).rejects.toThrow("late");
});
