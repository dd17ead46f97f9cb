import { describe, expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import { Hono } from "hono";
import * as v from "valibot";
import { parse, queryObject, readJsonBody } from "../../src/api/request.ts";
import { serveOnSocket } from "../../src/api/socket-server.ts";
import { withProblems } from "../../src/api/with-problems.ts";
import { RelayError } from "../../src/domain/errors.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const temporary = temporaryDirectories();

const post = (body: string, headers: Record<string, string> = {}) => new Request("http://relay/", { method: "POST", body, headers });

async function reasonOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof RelayError) return error.code;
    throw error;
  }
  return "accepted";
}

/** What a client gets that sends `first` and then nothing, of a server that waits 50 ms for bodies; once the server has ended the connection. */
async function halfSent(first: string): Promise<string> {
  const socket = path.join(temporary(), "s.sock");
  const app = new Hono();
  withProblems(app, "1", () => undefined);
  app.post("/", async (c) => c.json({ got: await readJsonBody(c.req.raw, 1_000, 50) }));
  const server = serveOnSocket(app, socket);
  try {
    const client = net.connect({ path: socket, allowHalfOpen: true });
    client.write(first);
    const chunks: Buffer[] = [];
    for await (const chunk of client) chunks.push(chunk as Buffer);
    client.destroy();
    return Buffer.concat(chunks).toString();
  } finally {
    await server.stop(0);
  }
}

describe("a body that does not come to its end", () => {
  test.each([
    ["of a declared length", "POST / HTTP/1.1\r\nHost: relay\r\nContent-Length: 10\r\n\r\n{"],
    ["in chunks", "POST / HTTP/1.1\r\nHost: relay\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"],
  ])("%s is not waited for, and neither is its connection", async (_, first) => {
    const answer = await halfSent(first);
    expect(answer).toStartWith("HTTP/1.1 408 ");
    expect(answer.toLowerCase()).toContain("connection: close");
    expect(answer).toContain("request_timeout");
  });
});

describe("readJsonBody", () => {
  test("reads JSON", async () => {
    expect(await readJsonBody(post('{"a":[1,"ü"]}'))).toEqual({ a: [1, "ü"] });
  });

  test("no body is undefined, not an error", async () => {
    expect(await readJsonBody(post(""))).toBeUndefined();
  });

  test("refuses what is not JSON", async () => {
    expect(await reasonOf(readJsonBody(post("{")))).toBe("http_request_malformed");
  });

  test("refuses an integer that would be another one", async () => {
    expect(await reasonOf(readJsonBody(post('{"arguments":{"id":9007199254740993}}')))).toBe("request_validation_failed");
    expect(await readJsonBody(post('{"id":"9007199254740993","n":9007199254740992}'))).toEqual({ id: "9007199254740993", n: 2 ** 53 });
  });

  test("refuses what is not UTF-8 instead of reading something else", async () => {
    const body = new Uint8Array([0x22, 0xff, 0x22]);
    expect(await reasonOf(readJsonBody(new Request("http://relay/", { method: "POST", body })))).toBe("http_request_malformed");
  });

  test("refuses a declared length over the bound without reading", async () => {
    let pulled = 0;
    const body = new ReadableStream({
      pull(controller) {
        pulled++;
        controller.enqueue(new Uint8Array(10));
      },
    });
    const request = new Request("http://relay/", { method: "POST", body, headers: { "content-length": "11" } });
    const before = pulled;
    expect(await reasonOf(readJsonBody(request, 10))).toBe("payload_too_large");
    expect(pulled - before).toBeLessThanOrEqual(1);
  });

  test("refuses an undeclared length as soon as it is over the bound", async () => {
    let sent = 0;
    const body = new ReadableStream({
      pull(controller) {
        sent += 1024;
        controller.enqueue(new Uint8Array(1024));
      },
    });
    const request = new Request("http://relay/", { method: "POST", body });
    request.headers.delete("content-length");
    expect(await reasonOf(readJsonBody(request, 4096))).toBe("payload_too_large");
    expect(sent).toBeLessThan(64 * 1024);
  });

  test.each(["__proto__", "constructor", "prototype"])("keeps a member named %s, wherever it is", async (name) => {
    const text = `{"a":[{"${name}":1}]}`;
    expect(JSON.stringify(await readJsonBody(post(text)))).toBe(text);
  });

  test("reads a lone half of a surrogate pair as U+FFFD, and whole pairs as they are", async () => {
    const text = String.raw`{"a\ud800":["\uDC00x","\ud83d\uDE00","\\ud800"]}`;
    expect(await readJsonBody(post(text))).toEqual({ "a\uFFFD": ["\uFFFDx", "\u{1f600}", "\\ud800"] });
  });

  test("refuses nesting that would exhaust a recursive reader", async () => {
    const depth = 5_000;
    expect(await reasonOf(readJsonBody(post("[".repeat(depth) + "]".repeat(depth))))).toBe("http_request_malformed");
  });
});

describe("parse", () => {
  const Shape = v.strictObject({ a: v.number() });

  test("names path and message of each issue", () => {
    try {
      parse(Shape, { a: "x", b: 1 }, "body");
      throw new Error("accepted");
    } catch (error) {
      expect(error).toBeInstanceOf(RelayError);
      const { code, data } = error as RelayError;
      expect(code).toBe("request_validation_failed");
      expect((data.issues as { path: string }[]).map((issue) => issue.path).sort()).toEqual(["a", "b"]);
    }
  });

  test("says of a member that it is missing, or that there is none of that name", () => {
    const detail = (value: unknown): string => {
      try {
        return JSON.stringify(parse(v.strictObject({ a: v.object({ c: v.number() }) }), value, "body"));
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(detail({})).toBe("body a: is missing");
    expect(detail({ a: {} })).toBe("body a.c: is missing");
    expect(detail({ a: { c: 1 }, b: 1 })).toBe("body b: there is none of that name");
    expect(detail({ a: { c: "x" } })).toStartWith("body a.c: Invalid type");
    expect(detail({ a: undefined })).toStartWith("body a: Invalid type");
    expect(detail("x")).toStartWith("body: Invalid type");
  });

  test("lists at most twenty issues and counts all", () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, "x"]));
    try {
      parse(v.record(v.string(), v.number()), many, "body");
      throw new Error("accepted");
    } catch (error) {
      const { data } = error as RelayError;
      expect((data.issues as unknown[]).length).toBe(20);
      expect(data.issue_count).toBe(50);
    }
  });
});

test("a query parameter that comes twice is an array", () => {
  expect(queryObject("http://x/y?a=1&b=2&a=3&c=%20")).toEqual({ a: ["1", "3"], b: "2", c: " " });
  expect(queryObject("http://x/y")).toEqual({});
  for (const name of ["__proto__", "constructor", "toString"]) {
    expect(Object.entries(queryObject(`http://x/y?${name}=1&${name}=2`))).toEqual([[name, ["1", "2"]]]);
  }
});
