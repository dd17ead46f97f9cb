import { expect, test } from "bun:test";
import fc from "fast-check";
import { IdScan, scannedId } from "../../src/mcp/stdio/id-scan.ts";

const of = (text: string) => scannedId(Buffer.from(text));

test("a message's own id is found wherever it stands, and no other one", () => {
  for (const [text, id] of [
    ['{"id":1,"method":"a"}', 1],
    ['{"method":"a","params":{"id":2,"x":[{"id":3}]},"id":4}', 4],
    ['{ "id" : "a,b}\\"c" , "x":1 }', 'a,b}"c'],
    ['{"params":"\\"id\\":9","id":-5}', -5],
    ['{"i\\u0064":6}', 6],
    ['{"id":1,"id":2}', 2],
    ['{"id":7', null],
    ['{"id":null}', null],
    ['{"id":{"id":1}}', null],
    ['{"id":[1]}', null],
    ['{"id":1.5}', null],
    ['{"id":1e400}', null],
    ['{"x":{"id":1}}', null],
    ['[{"id":1}]', null],
    ["", null],
    ["id", null],
    [`{"id":"${"x".repeat(600)}"}`, null],
  ] as const)
    expect([text, of(text)]).toEqual([text, id]);
});

test("in pieces as in one, and for any message as a parser reads it", () => {
  const id = fc.oneof(fc.string({ maxLength: 80 }), fc.integer());
  fc.assert(
    fc.property(id, fc.json(), fc.boolean(), fc.nat(), (wanted, params, first, at) => {
      const member = `"id":${JSON.stringify(wanted)}`;
      const bytes = Buffer.from(first ? `{${member},"params":${params}}` : `{"params":${params},${member}}`);
      const scan = new IdScan();
      scan.push(bytes.subarray(0, at % bytes.length));
      scan.push(bytes.subarray(at % bytes.length));
      expect(scan.id).toEqual((JSON.parse(bytes.toString()) as { id: string | number }).id);
    }),
  );
});
