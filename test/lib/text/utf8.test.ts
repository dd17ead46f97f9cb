import { expect, test } from "bun:test";
import fc from "fast-check";
import { completeUtf8Length } from "../../../src/lib/text/utf8.ts";

const strict = new TextDecoder("utf-8", { fatal: true });

test("a prefix of valid text that is cut anywhere stays valid, and loses at most 3 bytes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.nat(), (text, at) => {
      const bytes = new TextEncoder().encode(text);
      const cut = bytes.subarray(0, bytes.length === 0 ? 0 : at % (bytes.length + 1));
      const length = completeUtf8Length(cut);
      expect(cut.length - length).toBeLessThanOrEqual(3);
      expect(() => strict.decode(cut.subarray(0, length))).not.toThrow();
    }),
  );
});

test("whole text is complete", () => {
  for (const text of ["", "a", "é", "€", "😀", "a😀"]) {
    const bytes = new TextEncoder().encode(text);
    expect(completeUtf8Length(bytes)).toBe(bytes.length);
  }
});

test("bytes that no continuation can make valid are not waited for", () => {
  for (const bytes of [[0xff], [0x80], [0x80, 0x80, 0x80, 0x80], [0xc0], [0xf8, 0x80]]) {
    expect(completeUtf8Length(new Uint8Array(bytes))).toBe(bytes.length);
  }
});
