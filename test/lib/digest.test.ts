import { expect, test } from "bun:test";
import fc from "fast-check";
import { canonicalJson, sha256Hex } from "../../src/lib/digest.ts";

test("canonical JSON sorts members by UTF-16 units and has no white space", () => {
  expect(canonicalJson({ b: [1, { d: null, c: "é" }], a: true, "\u20ac": 1, A: 0 })).toBe(
    '{"A":0,"a":true,"b":[1,{"c":"é","d":null}],"€":1}',
  );
});

test("strings are written as JSON.stringify writes them, whatever is in them", () => {
  for (let unit = 0; unit < 0x250; unit++) {
    const text = `a${String.fromCharCode(unit)}b`;
    expect(canonicalJson({ [text]: [text] })).toBe(JSON.stringify({ [text]: [text] }));
  }
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => expect(canonicalJson(text)).toBe(JSON.stringify(text))));
});

test("members without a value are left out, values without a JSON form refused", () => {
  expect(canonicalJson({ a: undefined, b: 1 })).toBe('{"b":1}');
  for (const value of [[() => 1], [undefined], new Array(1), { a: Symbol("a") }]) expect(() => canonicalJson(value)).toThrow(TypeError);
});

test("the order in which members were written does not matter", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
      const reversed = Object.fromEntries(Object.entries(object).reverse());
      expect(canonicalJson(reversed)).toBe(canonicalJson(object));
      expect(JSON.parse(canonicalJson(object))).toEqual(JSON.parse(JSON.stringify(object)));
    }),
  );
});

test("SHA-256 of the empty string and of bytes", () => {
  expect(sha256Hex("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect(sha256Hex(new Uint8Array([97, 98, 99]))).toBe(sha256Hex("abc"));
});
