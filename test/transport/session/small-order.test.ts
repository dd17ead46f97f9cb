import { expect, test } from "bun:test";
import { createPublicKey, verify } from "node:crypto";
import { sshEd25519, verifiesEd25519 } from "../../../src/transport/session/keys.ts";

const SPKI = Buffer.from("302a300506032b6570032100", "hex");
const IDENTITY = Buffer.from(`01${"00".repeat(31)}`, "hex");
/** A signature that nobody has made: the neutral element, and 0. */
const FORGED = Buffer.concat([IDENTITY, Buffer.alloc(32)]);

/** Whether the library takes the forged signature for some text. */
function taken(point: Buffer): Buffer | null {
  const key = createPublicKey({ key: Buffer.concat([SPKI, point]), format: "der", type: "spki" });
  for (let i = 0; i < 200; i++) if (verify(null, Buffer.from(`text ${i}`), key, FORGED)) return Buffer.from(`text ${i}`);
  return null;
}

test("a key that is a point of small order is nobody's, and its signatures none", () => {
  const points = [
    "00".repeat(32),
    IDENTITY.toString("hex"),
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    `ec${"ff".repeat(30)}7f`,
    `ed${"ff".repeat(30)}7f`,
    `ee${"ff".repeat(30)}7f`,
  ].flatMap((hex) => {
    const signed = Buffer.from(hex, "hex");
    signed[31]! |= 0x80;
    return [Buffer.from(hex, "hex"), signed];
  });
  let forgeable = 0;
  for (const point of points) {
    const text = taken(point);
    if (text !== null) forgeable++;
    expect(verifiesEd25519(sshEd25519(point), text ?? Buffer.from("text"), FORGED)).toBe(false);
  }
  // The library by itself takes them, so that this is worth asking.
  expect(forgeable).toBeGreaterThan(4);
});
