import { expect, test } from "bun:test";
import { hostPrintOf, newPairingCode, readCode, writeCode } from "../../../src/transport/pairing/code.ts";
import { pairingKey } from "../../../src/transport/pairing/pairing-key.ts";
import { verifiesEd25519 } from "../../../src/transport/session/keys.ts";
import { HOST, publicKey, STRANGER } from "../session/peers.ts";

const RELAY = "wss://relay.example.edu:8443/below";

test("a code says its secret, the worker's fingerprint and the relay-host, on one line of groups", () => {
  const code = newPairingCode(publicKey(HOST), RELAY);
  const line = writeCode(code);
  expect(line).toMatch(/^clio1(?:-[0-9A-HJKMNP-TV-Z]{4}){21}@wss:\/\/relay\.example\.edu:8443\/below$/);
  const read = readCode(line);
  expect(read.secret.equals(code.secret)).toBe(true);
  expect(read.hostPrint.equals(hostPrintOf(publicKey(HOST)))).toBe(true);
  expect(read.relayHost).toBe(RELAY);
  expect(code.secret.length * 8).toBeGreaterThanOrEqual(128);
  expect(newPairingCode(publicKey(HOST), RELAY).secret.equals(code.secret)).toBe(false);
});

test("a code is read as people copy it: small letters, blanks, no hyphens, letters that look like digits", () => {
  const code = newPairingCode(publicKey(HOST), RELAY);
  const line = writeCode(code);
  const [groups, address] = line.split("@") as [string, string];
  for (const typed of [
    ` ${line}\r\n`,
    `${groups.toLowerCase()}@${address}`,
    `${groups.replaceAll("-", " - ").replace("clio1 - ", "clio1-")} @ ${address}`,
    `${groups.replaceAll("-", "").toLowerCase()}@${address}`,
    `CLIO-1${groups.slice(6)}@${address}`,
    `clio1-${groups.slice(6).replaceAll("-", "").replaceAll("0", "o").replaceAll("1", "l")}@${address}`,
  ]) {
    expect(readCode(typed).secret.equals(code.secret)).toBe(true);
  }
});

test("each single wrong character, each swap of neighbours and each change of the address is found before anything is dialed", () => {
  const line = writeCode({ secret: Buffer.alloc(16, 7), hostPrint: hostPrintOf(publicKey(HOST)), relayHost: RELAY });
  const wrong = new Set<string>();
  for (let at = 6; at < line.length; at++) {
    const one = line[at]!;
    for (const other of ["0", "1", "A", "Z", "q", ".", "!"]) if (other !== one) wrong.add(line.slice(0, at) + other + line.slice(at + 1));
    if (at + 1 < line.length) wrong.add(line.slice(0, at) + line[at + 1]! + one + line.slice(at + 2));
    wrong.add(line.slice(0, at) + line.slice(at + 1));
  }
  const canonical = (text: string): string =>
    text.slice(0, text.indexOf("@")).replaceAll("-", "").toUpperCase() + text.slice(text.indexOf("@"));
  let refused = 0;
  for (const text of wrong) {
    // A hyphen less or elsewhere is the same code.
    if (canonical(text) === canonical(line)) continue;
    expect(() => readCode(text)).toThrow(expect.objectContaining({ code: "pairing_code_invalid" }));
    refused++;
  }
  expect(refused).toBeGreaterThan(500);
});

test.each([
  "",
  "clio1-",
  "@",
  `clio1-@${RELAY}`,
  "x".repeat(100_000),
  "password",
  "clio2-AAAA@wss://relay",
  "clio1-ABCD@no address",
  `clio1-${"0".repeat(84)}`,
])("%p is no code, and the error does not repeat it", (text) => {
  try {
    readCode(text);
    expect.unreachable();
  } catch (error) {
    expect(error).toMatchObject({ code: "pairing_code_invalid" });
    if (text.length > 8) expect(String(error)).not.toContain(text);
  }
});

test("both sides make the same key of a code, and another of any other", async () => {
  const code = newPairingCode(publicKey(HOST), RELAY);
  const [one, two] = [pairingKey(code), pairingKey(readCode(writeCode(code)))];
  expect(one.key.equals(two.key)).toBe(true);
  const data = Buffer.from("what is signed");
  expect(verifiesEd25519(one.key, data, two.sign(data))).toBe(true);
  expect(pairingKey({ ...code, hostPrint: hostPrintOf(publicKey(STRANGER)) }).key.equals(one.key)).toBe(false);
  // RFC 5869 with SHA-256 over fixed input: what another implementation would make of it.
  const fixed = pairingKey({ secret: Buffer.alloc(16, 1), hostPrint: Buffer.alloc(32, 2) });
  expect(fixed.key.subarray(-32).toString("hex")).toBe(await publicByWebCrypto());
});

/** The same by WebCrypto. */
async function publicByWebCrypto(): Promise<string> {
  const material = await crypto.subtle.importKey("raw", Buffer.alloc(16, 1), "HKDF", false, ["deriveBits"]);
  const info = new TextEncoder().encode("clio-relay pairing key 1");
  const seed = await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: Buffer.alloc(32, 2), info }, material, 256);
  const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.from(seed)]);
  const key = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", true, ["sign"]);
  const { x } = (await crypto.subtle.exportKey("jwk", key)) as { x: string };
  return Buffer.from(x, "base64url").toString("hex");
}
