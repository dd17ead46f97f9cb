import { describe, expect, test } from "bun:test";
import { Exchanges } from "../../../src/roles/desktop/exchanges.ts";

const request = (line: string, ...fields: string[]): string => [`${line} HTTP/1.1`, "Host: a", ...fields, "", ""].join("\r\n");
const answer = (status: string, ...fields: string[]): string => [`HTTP/1.1 ${status}`, ...fields, "", ""].join("\r\n");
const CHUNKED = `${answer("200 OK", "Transfer-Encoding: chunked")}5\r\nhello\r\n0\r\n\r\n`;

type Said = readonly [side: "asked" | "answered", text: string];

/** Whether it rests after each byte but the last, and after the last. */
function heard(said: readonly Said[]): { readonly meanwhile: boolean; readonly last: boolean } {
  const exchanges = new Exchanges();
  const all = said.flatMap(([side, text]) => Array.from(text, (character) => [side, character] as const));
  let meanwhile = false;
  all.forEach(([side, character], at) => {
    exchanges[side](Buffer.from(character, "latin1"));
    if (at < all.length - 1) meanwhile ||= exchanges.resting;
  });
  return { meanwhile, last: exchanges.resting };
}

const whole = (said: readonly Said[]): boolean => {
  const exchanges = new Exchanges();
  for (const [side, text] of said) exchanges[side](Buffer.from(text, "latin1"));
  return exchanges.resting;
};

describe("a request and its answer, byte for byte, rest at their end and not before", () => {
  test.each<[string, readonly Said[]]>([
    [
      "a length",
      [
        ["asked", request("GET /a")],
        ["answered", `${answer("200 OK", "Content-Length: 5")}hello`],
      ],
    ],
    [
      "chunks",
      [
        ["asked", request("GET /a")],
        ["answered", CHUNKED],
      ],
    ],
    [
      "HEAD",
      [
        ["asked", request("HEAD /a")],
        ["answered", answer("200 OK", "Content-Length: 5")],
      ],
    ],
    [
      "no content",
      [
        ["asked", request("GET /a", 'If-None-Match: "x"')],
        ["answered", answer("304 Not Modified")],
      ],
    ],
    [
      "a body",
      [
        ["asked", `${request("POST /a", "Content-Length: 4")}body`],
        ["answered", `${answer("201 Created", "Content-Length: 2")}{}`],
      ],
    ],
    [
      "an answer before the body",
      [
        ["asked", request("POST /a", "Content-Length: 4")],
        ["answered", `${answer("422 No", "Content-Length: 2")}{}`],
        ["asked", "body"],
      ],
    ],
    [
      "an informational answer",
      [
        ["asked", request("POST /a", "Content-Length: 1", "Expect: 100-continue")],
        ["answered", answer("100 Continue")],
        ["asked", "x"],
        ["answered", CHUNKED],
      ],
    ],
  ])("%s", (_, said) => {
    expect([heard(said), whole(said)]).toEqual([{ meanwhile: false, last: true }, true]);
  });
});

test("one exchange after the other, and a part of the next one", () => {
  const exchanges = new Exchanges();
  expect(exchanges.resting).toBe(true);
  for (let n = 0; n < 3; n++) {
    exchanges.asked(Buffer.from(request("GET /a")));
    expect(exchanges.resting).toBe(false);
    exchanges.answered(Buffer.from(CHUNKED));
    expect(exchanges.resting).toBe(true);
  }
  exchanges.asked(Buffer.from("G"));
  expect(exchanges.resting).toBe(false);
});

describe("whatever cannot be followed never rests again", () => {
  test.each<[string, readonly Said[]]>([
    [
      "a request before the answer",
      [
        ["asked", request("GET /a") + request("GET /b")],
        ["answered", CHUNKED + CHUNKED],
      ],
    ],
    [
      "another one, later",
      [
        ["asked", request("GET /a")],
        ["asked", request("GET /b")],
        ["answered", CHUNKED],
        ["answered", CHUNKED],
      ],
    ],
    [
      "more than its length",
      [
        ["asked", `${request("POST /a", "Content-Length: 1")}xy`],
        ["answered", CHUNKED],
      ],
    ],
    [
      "a body in chunks",
      [
        ["asked", `${request("POST /a", "Transfer-Encoding: chunked")}0\r\n\r\n`],
        ["answered", CHUNKED],
      ],
    ],
    [
      "two lengths",
      [
        ["asked", request("POST /a", "Content-Length: 0", "Content-Length: 0")],
        ["answered", CHUNKED],
      ],
    ],
    [
      "another protocol",
      [
        ["asked", request("GET /a", "Upgrade: websocket", "Connection: upgrade")],
        ["answered", CHUNKED],
      ],
    ],
    [
      "no request",
      [
        ["asked", "nothing\r\n\r\n"],
        ["answered", CHUNKED],
      ],
    ],
    ["an answer to nothing", [["answered", CHUNKED]]],
    [
      "two answers",
      [
        ["asked", request("GET /a")],
        ["answered", CHUNKED + CHUNKED],
      ],
    ],
    [
      "an answer until the end",
      [
        ["asked", request("GET /a")],
        ["answered", `${answer("200 OK")}all`],
      ],
    ],
    [
      "a last answer",
      [
        ["asked", request("GET /a")],
        ["answered", answer("401 No", "Content-Length: 0", "Connection: close")],
      ],
    ],
  ])("%s", (_, said) => {
    const more: readonly Said[] = [...said, ["asked", request("GET /c")], ["answered", CHUNKED]];
    expect([whole(said), whole(more), heard(more).last]).toEqual([false, false, false]);
  });
});

test("nothing of what is handed to it is kept", () => {
  const exchanges = new Exchanges();
  const send = (side: Said[0], text: string): void => {
    const chunk = Buffer.from(text);
    exchanges[side](chunk);
    chunk.fill(0);
  };
  send("asked", "GET /a HTTP/1.1\r\nHo");
  send("asked", "st: a\r\n\r\n");
  send("answered", "HTTP/1.1 200 OK\r\nContent-Le");
  send("answered", "ngth: 1\r\n\r\nx");
  expect(exchanges.resting).toBe(true);
});
