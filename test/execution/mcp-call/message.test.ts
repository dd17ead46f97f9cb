import { expect, test } from "bun:test";
import fc from "fast-check";
import { messagesOf } from "../../../src/execution/mcp-call/message.ts";

const of = (text: string | Uint8Array) => messagesOf(typeof text === "string" ? Buffer.from(text) : text);

test("what is a message of JSON-RPC 2.0 is read, batches included", () => {
  expect(of('{"jsonrpc":"2.0","id":1,"result":{}}')).toEqual({ messages: [{ jsonrpc: "2.0", id: 1, result: {} }], damaged: null });
  expect(of('[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":"x","error":{}}]')?.messages).toHaveLength(2);
  expect(of('{"jsonrpc":"2.0","id":1}')?.messages).toEqual([{ jsonrpc: "2.0", id: 1 }]);
  for (const none of [
    "",
    " ",
    "null",
    "1",
    "[]",
    "[1]",
    "{}",
    '{"jsonrpc":"1.0","id":1,"result":{}}',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","method":1}',
    '{"jsonrpc":"2.0","method":"a","params":[]}',
    "Listening…",
  ])
    expect([none, of(none)]).toEqual([none, null]);
});

test("what is not UTF-8, or nested deeply, is said to be damaged where it may be an answer", () => {
  const bytes = Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"a":"?"}}');
  bytes[bytes.indexOf("?")] = 0xff;
  expect(of(bytes)).toMatchObject({ messages: [{ id: 1 }], damaged: "it is not UTF-8" });
  expect(of(`{"jsonrpc":"2.0","id":1,"result":{"a":${"[".repeat(300)}${"]".repeat(300)}}}`)).toMatchObject({
    messages: [],
    damaged: expect.any(String),
  });
  expect(of("[".repeat(300))).toBeNull();
});

test("no line is read as a message that is none, and none ends the reader", () => {
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string(), fc.json()), (line) => {
      const read = of(line);
      expect(read === null || read.messages.every(({ jsonrpc }) => jsonrpc === "2.0")).toBe(true);
    }),
    { numRuns: 300 },
  );
});
