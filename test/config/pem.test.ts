import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { readPem } from "../../src/config/pem.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const directory = temporaryDirectories();

const written = (text: string, mode: number): string => {
  const file = path.join(directory(), "some.pem");
  fs.writeFileSync(file, text);
  fs.chmodSync(file, mode);
  return file;
};
const block = (what: string): string => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`;

test("a private key is read where not every user can read it, and a certificate whoever can", () => {
  for (const mode of [0o600, 0o400, 0o640]) {
    expect(readPem(written(block("EC PRIVATE KEY"), mode), "PRIVATE KEY")).toContain("PRIVATE KEY-----");
  }
  expect(readPem(written(block("CERTIFICATE"), 0o644), "CERTIFICATE")).toContain("CERTIFICATE-----");
  for (const mode of [0o644, 0o604, 0o606]) {
    const file = written(block("PRIVATE KEY"), mode);
    const refused = { code: "configuration_error", data: { path: file }, hint: `chmod 600 ${file}` };
    expect(() => readPem(file, "PRIVATE KEY")).toThrow(expect.objectContaining(refused));
  }
});

test("what is not there, or is something else, is refused by name", () => {
  const file = written(block("CERTIFICATE"), 0o600);
  for (const [place, words] of [
    [file, "has no PRIVATE KEY in PEM"],
    [path.join(directory(), "none"), "is not there"],
  ] as const) {
    const message = expect.stringContaining(words);
    expect(() => readPem(place, "PRIVATE KEY")).toThrow(expect.objectContaining({ code: "configuration_error", message }));
  }
});
