import { expect, test } from "bun:test";
import { isRelayError } from "../../../src/domain/errors.ts";
import { proxyFor, type Target } from "../../../src/transport/outbound/proxy-choice.ts";

const target = (host: string, port = 443, tls = true): Target => ({ host, port, tls });
const textOf = (where: Target, variables: Record<string, string>): string | null => proxyFor(where, variables)?.text ?? null;

test("which variable counts: by what is spoken, lower case first, an empty one says none", () => {
  const variables = { HTTPS_PROXY: "http://s:1", HTTP_PROXY: "http://p:2", ALL_PROXY: "http://a:3" };
  expect(textOf(target("relay"), variables)).toBe("http://s:1");
  expect(textOf(target("relay", 80, false), variables)).toBe("http://p:2");
  expect(textOf(target("relay"), { ALL_PROXY: "a:3" })).toBe("http://a:3");
  expect(textOf(target("relay"), { ...variables, https_proxy: "https://l" })).toBe("https://l:443");
  expect(textOf(target("relay"), { ...variables, https_proxy: "" })).toBeNull();
  expect(textOf(target("relay"), {})).toBeNull();
});

test("name and password are decoded, and are in nothing that is shown", () => {
  const proxy = proxyFor(target("relay"), { HTTPS_PROXY: "http://me%40site:p%3Aw%20d@[::1]:3128/" });
  expect(proxy).toEqual({ tls: false, host: "::1", port: 3128, credentials: "me@site:p:w d", text: "http://[::1]:3128" });
});

test.each([
  "socks5://geheim@host:1080",
  "http://",
  "http://geheim:%zz@host:1",
  "http://a:b%0d@host:1",
  "http://host:99999",
  "http://geheim@host:1/path",
])("a value that is no proxy is refused, and not repeated: %s", (HTTPS_PROXY) => {
  let error: unknown;
  try {
    proxyFor(target("relay"), { HTTPS_PROXY });
  } catch (caught) {
    error = caught;
  }
  if (!isRelayError(error, "configuration_error")) throw new Error("not refused");
  expect(error.message).toStartWith("HTTPS_PROXY ");
  expect(error.message + JSON.stringify(error.data)).not.toContain("geheim");
});

test.each([
  ["*", "anything", true],
  ["relay.example", "relay.example", true],
  ["RELAY.example", "relay.example", true],
  ["example", "relay.example", true],
  [".example", "relay.example", true],
  ["*.example", "relay.example", true],
  ["example.", "relay.example.", true],
  ["ample", "relay.example", false],
  ["relay.example:443", "relay.example", true],
  ["relay.example:444", "relay.example", false],
  ["other, relay.example", "relay.example", true],
  ["other relay.example", "relay.example", true],
  ["10.0.0.0/8", "10.200.3.4", true],
  ["10.0.0.0/8", "11.0.0.1", false],
  ["10.1.2.3", "10.1.2.3", true],
  ["10.1.2.3:443", "10.1.2.3", true],
  ["10.1.2.3:80", "10.1.2.3", false],
  ["2001:db8::/32", "2001:db8:1::7", true],
  ["2001:db8::/32", "2001:db9::7", false],
  ["::1", "0:0:0:0:0:0:0:1", true],
  ["[::1]:443", "::1", true],
  ["10.0.0.0/99", "10.0.0.1", false],
  ["", "relay.example", false],
  [".", "relay.example", false],
  ["0.0.0.1", "relay.0.0.0.1", false],
])("NO_PROXY=%s and %s: %p", (NO_PROXY, host, exempt) => {
  expect(textOf(target(host), { HTTPS_PROXY: "http://s:1", NO_PROXY }) === null).toBe(exempt);
});
