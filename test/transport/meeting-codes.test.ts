import { expect, test } from "bun:test";
import { RelayError } from "../../src/domain/errors.ts";
import { closedBy, retryAfter } from "../../src/transport/meeting/codes.ts";

test("what only a person can put right is not tried every few seconds, whoever of relay-host and worker says it", () => {
  for (const code of ["host_key_changed", "key_expired", "authentication_failed"] as const) {
    expect(retryAfter(new RelayError(code, "of the session inside"))).toBe(60_000);
  }
  for (const close of ["token", "key", "refused"] as const) expect(retryAfter(closedBy(close, 0))).toBe(60_000);
  for (const other of [new RelayError("link_down", "a connection"), closedBy("absent", 0), new Error("x"), null])
    expect(retryAfter(other)).toBe(0);
  expect([retryAfter(closedBy("busy", 7_000)), retryAfter(closedBy("busy", 86_400_000))]).toEqual([7_000, 60_000]);
});
