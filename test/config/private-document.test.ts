import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { readPrivateDocument } from "../../src/config/private-document.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const temporary = temporaryDirectories();
const Document = v.strictObject({ room: v.strictObject({ secret: v.pipe(v.string(), v.minLength(8)) }) });
const env = { uid: process.getuid!(), platform: process.platform };

test("a document is what its schema says, or is refused without a word of what is in it", () => {
  const file = path.join(temporary(), "document.json");
  const read = () => readPrivateDocument(Document, file, 1_000, env, "this writes it");
  expect(read()).toBeNull();
  const put = (text: string): void => fs.writeFileSync(file, text, { mode: 0o600 });
  put('{"room":{"secret":"long enough"}}');
  expect(read()).toEqual({ room: { secret: "long enough" } });
  for (const [text, words] of [
    ['{"room":{"secret":"short"}}', "does not fit: room.secret"],
    ['"a secret"', "does not fit: the document"],
    ["a secret", "is not JSON"],
  ] as const) {
    put(text);
    expect(read).toThrow(expect.objectContaining({ code: "configuration_error", message: `${file} ${words}`, hint: "this writes it" }));
  }
  fs.chmodSync(file, 0o644);
  expect(read).toThrow("open to other users");
});
