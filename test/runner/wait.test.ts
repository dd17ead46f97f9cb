import { describe, expect, test } from "bun:test";
import { eventually } from "./wait.ts";

describe("eventually", () => {
  test("returns what is seen at last", async () => {
    let looks = 0;
    const seen = await eventually(() => {
      looks++;
      if (looks === 1) throw new Error("not yet");
      return looks === 2 ? null : looks;
    });
    expect(seen).toBe(3);
  });

  test("zero and the empty string are something to see", async () => {
    expect(await eventually(() => 0)).toBe(0);
    expect(await eventually(() => "")).toBe("");
  });

  test("out of time, says what was waited for and what the last look gave", async () => {
    const failure = eventually(() => false, { timeoutMs: 30, what: "rain" });
    await expect(failure).rejects.toThrow("rain did not come about within 30 ms");
    const cause = new Error("dry");
    const looking = eventually(() => Promise.reject(cause), { timeoutMs: 30 });
    await expect(looking).rejects.toMatchObject({ cause });
    await Promise.allSettled([failure, looking]);
  });
});
