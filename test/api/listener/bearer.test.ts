import { expect, test } from "bun:test";
import { carriesToken } from "../../../src/api/listener/bearer.ts";

test.each([
  ["Bearer secret", true],
  ["bearer secret", true],
  ["BEARER  secret", true],
  ["Bearer", false],
  ["Bearer secretx", false],
  ["Bearer Secret", false],
  ["Bearersecret", false],
  ["Basic secret", false],
  ["", false],
  [null, false],
])("%p carries the token: %p", (field, carries) => {
  expect(carriesToken(field, "secret")).toBe(carries);
});
