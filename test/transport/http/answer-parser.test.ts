import { describe, expect, test } from "bun:test";
import { AnswerParser } from "../../../src/transport/http/answer-parser.ts";
import type { AnswerHead } from "../../../src/transport/http/head.ts";

interface Read {
  status: number | null;
  fields: readonly (readonly [string, string])[];
  body: string;
  complete: boolean;
  rest: string;
}

interface Asked {
  readonly method?: string;
  readonly upgrade?: boolean;
}

/** Reads an answer that comes in these pieces. */
function read(pieces: readonly Buffer[], { method = "GET", upgrade = false }: Asked = {}): Read {
  const seen: Read = { status: null, fields: [], body: "", complete: false, rest: "" };
  const parser = new AnswerParser(method, upgrade, {
    head({ status, fields }: AnswerHead) {
      seen.status = status;
      seen.fields = fields;
    },
    data(chunk) {
      seen.body += chunk.toString("latin1");
    },
    end(rest) {
      seen.complete = true;
      seen.rest = rest.toString("latin1");
    },
  });
  for (const piece of pieces) parser.push(piece);
  return seen;
}

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");
const eachByte = (text: string): Buffer[] => [...bytes(text)].map((byte) => Buffer.from([byte]));
const inPieces = (text: string, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, n) => bytes(text.slice(n * size, (n + 1) * size)));
const OK = "HTTP/1.1 200 OK\r\n";

const GOOD: Record<string, { text: string; expected: Partial<Read>; asked?: Asked }> = {
  "a length": { text: `${OK}Content-Length: 5\r\nX-A:  b c \r\n\r\nhello`, expected: { status: 200, body: "hello" } },
  "a length of nothing": { text: `${OK}content-length: 0\r\n\r\n`, expected: { body: "" } },
  chunks: {
    text: `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;name="x"\r\n0123456789\r\n0\r\n\r\n`,
    expected: { body: "hello0123456789" },
  },
  "chunks with fields behind them": {
    text: `${OK}transfer-encoding: Chunked\r\n\r\n1 \r\nx\r\n000\r\nDigest: y\r\nA: b\r\n\r\n`,
    expected: { body: "x" },
  },
  "informational answers before it": {
    text: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${OK}Content-Length: 1\r\n\r\nx`,
    expected: { status: 200, body: "x" },
  },
  "no reason phrase": { text: "HTTP/1.1 404 \r\nContent-Length: 2\r\n\r\nno", expected: { status: 404, body: "no" } },
  "204, whatever it says of itself": { text: "HTTP/1.1 204 No Content\r\n\r\n", expected: { status: 204, body: "" } },
  "304 with a length that is not its own": {
    text: "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    expected: { status: 304, body: "" },
  },
  "an answer to HEAD": { text: `${OK}Content-Length: 9\r\n\r\n`, expected: { status: 200, body: "" }, asked: { method: "HEAD" } },
  "another protocol": {
    text: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\n\r\n",
    expected: { status: 101, body: "" },
    asked: { upgrade: true },
  },
  "bytes above ASCII in a value": {
    text: `${OK}X: \xe4\xff\r\nContent-Length: 0\r\n\r\n`,
    expected: {
      fields: [
        ["x", "\xe4\xff"],
        ["content-length", "0"],
      ],
    },
  },
};

describe("an answer with", () => {
  for (const [what, { text, expected, asked }] of Object.entries(GOOD)) {
    test(`${what}, cut at every place`, () => {
      const whole = read([bytes(text)], asked);
      expect(whole).toMatchObject({ ...expected, complete: true, rest: "" });
      expect(read(eachByte(text), asked)).toEqual(whole);
      for (let at = 1; at < text.length; at++) {
        const [first, second] = [bytes(text.slice(0, at)), bytes(text.slice(at))];
        expect(read([first], asked).complete, `${at}`).toBe(false);
        expect(read([first, second], asked), `${at}`).toEqual(whole);
      }
    });

    test(`${what}, and something behind it`, () => {
      expect(read([bytes(`${text}HTTP/1.1 200 smuggled`)], asked)).toMatchObject({
        ...expected,
        complete: true,
        rest: "HTTP/1.1 200 smuggled",
      });
    });
  }
});

const LONG = "x".repeat(70_000);

const BAD: Record<string, string> = {
  "both length and chunks": `${OK}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  "chunks and length": `${OK}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
  "two lengths": `${OK}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
  "the same length twice": `${OK}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`,
  "a list of lengths": `${OK}Content-Length: 5, 5\r\n\r\nhello`,
  "a negative length": `${OK}Content-Length: -1\r\n\r\n`,
  "a length with a sign": `${OK}Content-Length: +5\r\n\r\nhello`,
  "a length in another base": `${OK}Content-Length: 0x5\r\n\r\nhello`,
  "a length of nothing at all": `${OK}Content-Length:\r\n\r\nhello`,
  "a length beyond all numbers": `${OK}Content-Length: 99999999999999999999\r\n\r\n`,
  "neither length nor chunks": `${OK}Content-Type: text/plain\r\n\r\nuntil the end`,
  "another coding": `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  "a coding twice": `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  "a coding that only looks like one": `${OK}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  "a space before the colon": `${OK}Content-Length : 5\r\n\r\nhello`,
  "a folded field": `${OK}X: a\r\n b\r\nContent-Length: 0\r\n\r\n`,
  "a bare line feed in a field": `${OK}X: a\nContent-Length: 5\r\n\r\nhello`,
  "a bare carriage return in a field": `${OK}X: a\rb\r\nContent-Length: 0\r\n\r\n`,
  "a NUL in a field": `${OK}X: a\0b\r\nContent-Length: 0\r\n\r\n`,
  "a field without a name": `${OK}: x\r\nContent-Length: 0\r\n\r\n`,
  "a field without a colon": `${OK}hello\r\nContent-Length: 0\r\n\r\n`,
  "HTTP/1.0": "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
  "HTTP/2": "HTTP/2 200\r\n\r\n",
  "no status line": "hello\r\n\r\n",
  "a status that is no number": "HTTP/1.1 2x0 OK\r\n\r\n",
  "a status below 100": "HTTP/1.1 099 No\r\n\r\n",
  "an empty line first": `\r\n${OK}Content-Length: 0\r\n\r\n`,
  "another protocol that nobody asked for": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\n\r\n",
  "a head without end": `${OK}X: ${LONG}`,
  "a head that is too long": `${OK}X: ${LONG}\r\nContent-Length: 0\r\n\r\n`,
  "informational answers without end": "HTTP/1.1 100 Continue\r\n\r\n".repeat(4_000),
  "a chunk without a size": `${OK}Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n`,
  "a chunk size that is no number": `${OK}Transfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n`,
  "a negative chunk size": `${OK}Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n`,
  "a chunk size with 0x": `${OK}Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n`,
  "a chunk size beyond all numbers": `${OK}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n`,
  "a chunk longer than its size": `${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n`,
  "a chunk whose end is a line feed": `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n\n0\r\n\r\n`,
  "a chunk extension without end": `${OK}Transfer-Encoding: chunked\r\n\r\n5;${LONG}`,
  "fields behind the chunks without end": `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\nX: ${LONG}`,
  "a malformed field behind the chunks": `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n`,
};

describe("an answer is refused with", () => {
  for (const [what, text] of Object.entries(BAD)) {
    test(what, () => {
      const malformed = expect.objectContaining({ code: "answer_malformed" }) as Error;
      expect(() => read([bytes(text)])).toThrow(malformed);
      // Long ones are cut coarsely: each byte alone costs a copy of all before it.
      const pieces = text.length < 1_000 ? eachByte(text) : inPieces(text, 997);
      expect(() => read(pieces)).toThrow(malformed);
    });
  }
});

test("an answer that breaks off is not complete", () => {
  for (const text of [
    `${OK}Content-Length: 5\r\n\r\nhell`,
    `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`,
    `${OK}Content-Length: 5\r\n`,
  ]) {
    expect(read([bytes(text)]).complete).toBe(false);
  }
});

test("bytes that cannot become an answer are refused when they come, without the rest of a head", () => {
  const malformed = expect.objectContaining({ code: "answer_malformed" }) as Error;
  for (const text of ["SSH-2.0-x", "S", "\0", "HTTP/1.0", "HTTP/1.1\t", "HTTP/1.1 100 Continue\r\n\r\nS"])
    expect(() => read([bytes(text)]), text).toThrow(malformed);
  expect(() => read(eachByte("HTTP/1.1 100 Continue\r\n\r\nHTTP/2"))).toThrow(malformed);
  for (const text of ["H", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 2"]) expect(read([bytes(text)]).complete, text).toBe(false);
});
