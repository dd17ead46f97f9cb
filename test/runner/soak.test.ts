import { expect, test } from "bun:test";
import { randomOf, scaled, soakSettings } from "./soak.ts";

test("one seed gives one sequence, spread over [0, 1)", () => {
  const take = (seed: number): number[] => Array.from({ length: 1000 }, randomOf(seed));
  expect(take(7)).toEqual(take(7));
  expect(take(7)).not.toEqual(take(8));
  const numbers = take(7);
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...numbers)).toBeLessThan(1);
  expect(Math.abs(numbers.reduce((a, b) => a + b) / 1000 - 0.5)).toBeLessThan(0.05);
});

test("the settings are read from the environment, and nonsense is refused", () => {
  expect(soakSettings({ CLIO_RELAY_SOAK_SEED: "12", CLIO_RELAY_SOAK_SCALE: "0.5" })).toEqual({ seed: 12, scale: 0.5 });
  expect(() => soakSettings({ CLIO_RELAY_SOAK_SEED: "x" })).toThrow("SOAK_SEED");
  expect(() => soakSettings({ CLIO_RELAY_SOAK_SCALE: "0" })).toThrow("SOAK_SCALE");
});

test("scaled", () => {
  expect([scaled(200, 1, 0.1), scaled(50, 8, 0.1), scaled(3, 1, 0.01), scaled(50, 1, 2)]).toEqual([20, 8, 1, 100]);
});
