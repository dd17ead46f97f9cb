import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { metadataOf } from "../../src/cli/json-option.ts";
import { readLocalText } from "../../src/cli/local-file.ts";
import { RelayError } from "../../src/domain/errors.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { capturedIo } from "./captured-io.ts";

const temporary = temporaryDirectories();

const refusal = (work: () => unknown): [string, string] => {
  try {
    work();
  } catch (error) {
    if (error instanceof RelayError) return [error.code, error.message];
    throw error;
  }
  throw new Error("nothing was refused");
};

test("a file of metadata that cannot be used is refused as one", () => {
  const cwd = temporary();
  const io = capturedIo({ cwd });
  const read = (name: string) => metadataOf(io, { "metadata-json": undefined, "metadata-json-file": name });
  fs.writeFileSync(path.join(cwd, "fits"), `{"a":"${"x".repeat(1024 * 1024 - 8)}"}`);
  expect(Object.keys(read("fits"))).toEqual(["a"]);
  fs.writeFileSync(path.join(cwd, "large"), " ".repeat(1024 * 1024 + 1));
  expect(refusal(() => read("large"))).toEqual(["payload_too_large", "--metadata-json-file large holds 1048577 bytes, more than 1048576"]);
  expect(refusal(() => read("none"))).toEqual(["local_file_missing", "--metadata-json-file none: there is no such file"]);
  expect(refusal(() => read("."))).toEqual(["local_file_unusable", "--metadata-json-file .: that is a directory"]);
  fs.writeFileSync(path.join(cwd, "binary"), new Uint8Array([0xff, 0xfe]));
  expect(refusal(() => read("binary"))).toEqual(["local_file_unusable", "--metadata-json-file binary is not UTF-8 text"]);
  fs.writeFileSync(path.join(cwd, "list"), "[]");
  expect(refusal(() => read("list"))).toEqual(["usage", "list holds no JSON object"]);
});

test("what is not there and was meant for standard input says how that is named", () => {
  const io = capturedIo({ cwd: temporary() });
  const hintOf = (given: string): string | undefined => {
    try {
      return readLocalText(io, `--script ${given}`, given, 1_000);
    } catch (error) {
      expect(error).toMatchObject({ code: "local_file_missing", message: `--script ${given}: there is no such file` });
      return (error as RelayError).hint;
    }
  };
  expect([hintOf("-"), hintOf("./-")]).toEqual(["/dev/stdin is standard input", undefined]);
});

test("what says no size before is read to its bound, and no further", () => {
  const io = capturedIo();
  expect(refusal(() => readLocalText(io, "--script /dev/zero", "/dev/zero", 1_000))).toEqual([
    "payload_too_large",
    "--script /dev/zero holds more than 1000 bytes",
  ]);
  expect(readLocalText(io, "x", "/dev/null", 1_000)).toBe("");
  expect(readLocalText(io, "x", "/proc/self/comm", 1_000)).not.toBe("");
});
