import { expect, test } from "bun:test";
import fc from "fast-check";
import { roundedNumber, wouldRound } from "../../../src/lib/text/rounded-number.ts";

test("an integer that a double does not have is found, wherever it stands", () => {
  for (const [text, found] of [
    ['{"a":{"n":9007199254740993}}', { name: "n", source: "9007199254740993" }],
    ["[1,-12345678901234567890]", { name: "1", source: "-12345678901234567890" }],
    ["9007199254740993", { name: "", source: "9007199254740993" }],
    [`{"n":${"1".repeat(30)}}`, { name: "n", source: "1".repeat(30) }],
  ] as const) {
    expect([text, roundedNumber(text)]).toEqual([text, found]);
  }
  expect(wouldRound({ name: "n", source: "9007199254740993" })).toStartWith("n: 9007199254740993 is an integer beyond 2^53");
});

test("what a double has, what is no integer, and digits in a text are none", () => {
  for (const value of [
    ...["9007199254740991", "9007199254740992", "-9007199254740994", "100000000000000000000", `1${"0".repeat(22)}`],
    ...["1e300", "0.12345678901234567890", "12345678901234567890.5", "9007199254740993e0"],
    ...['"9007199254740993"', '{"9007199254740993":1}', '"\\"9007199254740993"', "{}"],
  ]) {
    expect([value, roundedNumber(value)]).toEqual([value, null]);
  }
});

test("whatever was written from doubles comes back as it was", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ noNaN: true, noDefaultInfinity: true })), (all) => {
      expect(roundedNumber(JSON.stringify(all))).toBeNull();
    }),
  );
});
