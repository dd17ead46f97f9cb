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

  test("out of time, says what was waited for", async () => {
    const failure = await eventually(() => false, { timeoutMs: 30, what: "rain" }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ message: "rain did not come about within 30 ms" });
    expect((failure as Error).cause).toBeUndefined();
  });

  test("out of time, tells what a look threw last, also where later ones saw nothing", async () => {
    const cause = new Error("dry");
    await expect(eventually(() => Promise.reject(cause), { timeoutMs: 30 })).rejects.toMatchObject({
      message: "the condition did not come about within 30 ms; the last look threw",
      cause,
    });
    let looks = 0;
    const look = () => {
      if (++looks === 1) throw cause;
      return looks > 2 ? null : false;
    };
    await expect(eventually(look, { timeoutMs: 30, everyMs: 1 })).rejects.toMatchObject({
      message: "the condition did not come about within 30 ms; a look before the last threw",
      cause,
    });
  });
});
