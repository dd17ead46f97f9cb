import { expect, test } from "bun:test";
import { SharedTurns } from "../../../src/lib/waiting/shared-turns.ts";

const full = () => new Error("full");
const takeAll = (turns: SharedTurns, key: string) => {
  const taken: (() => void)[] = [];
  for (let one = turns.take(key); one !== null; one = turns.take(key)) taken.push(one);
  return taken;
};

test("one takes half, a second one half of what that leaves, and there is something left for a third", () => {
  const turns = new SharedTurns(12);
  expect([takeAll(turns, "a").length, takeAll(turns, "b").length, takeAll(turns, "c").length]).toEqual([6, 3, 2]);
  expect(takeAll(new SharedTurns(12, { weight: 3 }), "a")).toHaveLength(9);
  expect(takeAll(new SharedTurns(1), "a")).toHaveLength(1);
  expect(takeAll(new SharedTurns(0), "a")).toHaveLength(0);
});

test("a place is given back once", () => {
  const turns = new SharedTurns(2);
  const one = turns.take("a")!;
  expect(turns.take("a")).toBeNull();
  one();
  one();
  expect(takeAll(turns, "a")).toHaveLength(1);
  expect(takeAll(turns, "b")).toHaveLength(1);
  expect(turns.take("c")).toBeNull();
});

test("who waits is let in in the order of coming, each key in its turn", async () => {
  const turns = new SharedTurns(2);
  const held = [await turns.enter("a", undefined, full), await turns.enter("b", undefined, full)];
  const entered: string[] = [];
  const waiting = ["a 1", "a 2", "b 1", "a 3", "b 2"].map(async (name) => {
    const leave = await turns.enter(name[0]!, undefined, full);
    entered.push(name);
    await Promise.resolve();
    leave();
  });
  for (const leave of held) leave();
  await Promise.all(waiting);
  expect(entered.filter((name) => name.startsWith("a"))).toEqual(["a 1", "a 2", "a 3"]);
  expect(entered.filter((name) => name.startsWith("b"))).toEqual(["b 1", "b 2"]);
  expect(takeAll(turns, "c")).toHaveLength(1);
});

test("who no longer wants to wait leaves its turn to the next, and one too many is refused", async () => {
  const turns = new SharedTurns(1, { waitingMax: 2 });
  const leave = turns.take("a")!;
  const over = new AbortController();
  const gone = turns.enter("a", over.signal, full).catch((error: unknown) => error);
  const next = turns.enter("a", undefined, full);
  await expect(turns.enter("a", undefined, full)).rejects.toThrow("full");
  over.abort(new Error("given up"));
  expect(await gone).toEqual(new Error("given up"));
  await expect(turns.enter("a", over.signal, full)).rejects.toThrow("given up");
  leave();
  (await next)();
  expect(turns.take("a")).not.toBeNull();
});
