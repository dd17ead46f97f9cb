import { expect, test } from "bun:test";
import fs from "node:fs";
import { hostPublicKey } from "../../../src/roles/worker/host-key.ts";
import { hostKeyFile, hostKeyPrint } from "../../../src/roles/worker/host-key-print.ts";

import { fingerprintOf } from "../../../src/transport/session/keys.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";

test("the fingerprint of the worker's key is there once the key is; what is no key has none", () => {
  using core = temporaryDirectory();
  expect(hostKeyPrint(core.path)).toBeNull();
  const print = fingerprintOf(hostPublicKey(core.path, "worker"));
  expect(print).toStartWith("SHA256:");
  expect(hostKeyPrint(core.path)).toBe(print);
  const whole = fs.readFileSync(hostKeyFile(core.path), "utf8");
  for (const text of ["", "no key", whole.slice(0, 90), Buffer.from("openssh-key-v1\0\xff\xff\xff\xff", "latin1").toString("base64")]) {
    fs.writeFileSync(hostKeyFile(core.path), text);
    expect(hostKeyPrint(core.path)).toBeNull();
  }
});
