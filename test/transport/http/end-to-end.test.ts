import { expect, test } from "bun:test";
import { endToEnd } from "../../../src/transport/http/end-to-end.ts";
import { requestHead } from "../../../src/transport/http/request-head.ts";

const FIELDS = {
  connection: "Keep-Alive, X-Hop",
  "x-hop": "1",
  te: "trailers",
  upgrade: "h2c",
  "x-end": "2",
  authorization: "Bearer x",
  host: "here",
};

test("fields of one connection stay on it, those that Connection names included", () => {
  expect(Object.fromEntries(endToEnd(new Headers(FIELDS)))).toEqual({ "x-end": "2", authorization: "Bearer x", host: "here" });
});

test("a request's head has the end-to-end fields, its own Host, and what is sent in place of others", () => {
  const head = requestHead({
    method: "GET",
    target: "/a?b",
    headers: new Headers(FIELDS),
    instead: { authorization: "", "clio-relay-client": "1; protocol=1" },
    body: null,
  });
  expect(String(head).split("\r\n").sort()).toEqual([
    "",
    "",
    "GET /a?b HTTP/1.1",
    "clio-relay-client: 1; protocol=1",
    "connection: keep-alive",
    "host: worker",
    "x-end: 2",
  ]);
});

test("what would begin another line is refused", () => {
  const request = { method: "GET", target: "/", headers: new Headers(), body: null };
  expect(() => requestHead({ ...request, instead: { "x-a": "b\r\nx-c: d" } })).toThrow("not well-formed");
  expect(() => requestHead({ ...request, instead: { "x a": "b" } })).toThrow("not well-formed");
});
