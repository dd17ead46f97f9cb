import { expect, test } from "bun:test";
import { isRelayError } from "../../src/domain/errors.ts";
import { parseRelayUrl } from "../../src/domain/relay-url.ts";

test.each([
  ["wss://relay.example.edu", { host: "relay.example.edu", port: 443, prefix: "", authority: "relay.example.edu:443" }],
  ["WSS://Relay.Example.EDU:443/", { text: "wss://relay.example.edu", authority: "relay.example.edu:443" }],
  ["wss://relay.example.edu/a/b/", { prefix: "/a/b", text: "wss://relay.example.edu/a/b" }],
  ["ws://127.0.0.1:8080", { host: "127.0.0.1", port: 8080, text: "ws://127.0.0.1:8080" }],
  ["tls://[2001:DB8::1]", { host: "2001:db8::1", port: 443, authority: "[2001:db8::1]:443", text: "tls://[2001:db8::1]" }],
  ["tcp://relay", { port: 7000, authority: "relay:7000", text: "tcp://relay" }],
])("reads %s", (text, expected) => {
  const url = parseRelayUrl(text);
  expect(url).toMatchObject(expected);
  expect(parseRelayUrl(url.text)).toEqual(url);
});

test.each([
  "",
  "relay.example.edu",
  "https://relay.example.edu",
  "wss://user:geheim@relay.example.edu",
  "wss://relay.example.edu?token=geheim",
  "wss://relay.example.edu#geheim",
  "wss://relay.example.edu:0",
  "wss://relay.example.edu:65536",
  "tls://relay.example.edu/path",
  "wss://relay .example",
  "wss://relay.example\r\nX: y",
  `wss://${"a".repeat(2_000)}`,
])("refuses %p without repeating it", (text) => {
  let error: unknown;
  try {
    parseRelayUrl(text);
  } catch (caught) {
    error = caught;
  }
  if (!isRelayError(error, "configuration_error")) throw new Error("not refused");
  expect(`${error.message} ${error.hint} ${JSON.stringify(error.data)}`).not.toContain("geheim");
});
