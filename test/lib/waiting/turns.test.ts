import { expect, test } from "bun:test";
import { Turns } from "../../../src/lib/waiting/turns.ts";

test("so many at a time, in the order in which they come, whatever becomes of them", async () => {
  const turns = new Turns(2);
  const began: number[] = [];
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<number>());
  const works = ends.map(({ promise }, n) =>
    turns.run(() => {
      began.push(n);
      return promise;
    }),
  );
  await Promise.resolve();
  expect(began).toEqual([0, 1]);
  ends[1]!.reject(new Error("one fails"));
  await expect(works[1]).rejects.toThrow("one fails");
  await works[1]!.catch(() => undefined);
  ends[0]!.resolve(0);
  await works[0];
  expect(began).toEqual([0, 1, 2, 3]);
  for (const [n, { resolve }] of ends.entries()) resolve(n);
  expect(await Promise.all([works[2], works[3], works[4]])).toEqual([2, 3, 4]);
  expect(began).toEqual([0, 1, 2, 3, 4]);
});

test("no more wait than may", async () => {
  const turns = new Turns(1, 1);
  const first = Promise.withResolvers<void>();
  const running = turns.run(() => first.promise);
  const waiting = turns.run(async () => "waited");
  await expect(
    turns.run(
      async () => "no",
      () => new RangeError("full"),
    ),
  ).rejects.toThrow("full");
  first.resolve();
  await running;
  expect(await waiting).toBe("waited");
  expect(await turns.run(async () => "room again")).toBe("room again");
});
