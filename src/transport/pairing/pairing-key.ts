import { createPrivateKey, createPublicKey, hkdfSync, sign } from "node:crypto";
import { sshEd25519 } from "../session/keys.ts";
import type { Ed25519Signer } from "../session/signer.ts";
import type { PairingCode } from "./code.ts";

/** The PrivateKeyInfo of an ed25519 key up to its 32 bytes (RFC 8410, section 7). */
const PKCS8_ED25519 = Buffer.from("302e020100300506032b657004220420", "hex");

/** The key that whoever has the code has: ed25519, its seed by HKDF (RFC 5869) of the secret. See docs/wire.md, Pairing. */
export function pairingKey({ secret, hostPrint }: Pick<PairingCode, "secret" | "hostPrint">): Ed25519Signer {
  const seed = Buffer.from(hkdfSync("sha256", secret, hostPrint, "clio-relay pairing key 1", 32));
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, seed]), format: "der", type: "pkcs8" });
  seed.fill(0);
  // Its last 32 bytes are the key (RFC 8410, section 4).
  const spki = createPublicKey(key).export({ format: "der", type: "spki" });
  return { key: sshEd25519(spki.subarray(-32)), sign: (data) => sign(null, data, key) };
}
