import { expect, test } from "bun:test";
import { isOutage, Reconnect } from "../../../src/cli/follow/reconnect.ts";
import { type ErrorCode, RelayError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";

const failure = (code: ErrorCode): RelayError => new RelayError(code, "as a test has it");

test("whatever a redial may fail with on its way is an outage; what a person or another command has to see to is none", () => {
  const outages: ErrorCode[] = [
    "link_down",
    "host_unreachable",
    "worker_absent",
    "frp_unreachable",
    "proxy_failed",
    "tls_failed",
    "upgrade_refused",
  ];
  const others: ErrorCode[] = [
    "channel_refused",
    "certificate_refused",
    "relay_token_refused",
    "authorization_required",
    "not_found",
    "answer_malformed",
  ];
  expect(outages.filter((code) => !isOutage(failure(code)))).toEqual([]);
  expect(others.filter((code) => isOutage(failure(code)))).toEqual([]);
});

test("who says that it is tried again tries again, also when the next failure is another one", async () => {
  const said: string[] = [];
  const stderr = { write: async (text: string | Uint8Array) => void said.push(String(text)) };
  const reconnect = new Reconnect(stderr, systemClock, new AbortController().signal);
  const failures = [failure("link_down"), failure("frp_unreachable"), failure("host_unreachable")];
  const done = await reconnect.persist(async () => {
    const next = failures.shift();
    if (next !== undefined) throw next;
    return "done";
  });
  expect([done, said]).toEqual(["done", [expect.stringContaining("trying again until it is back"), "notice: connected again\n"]]);
});
