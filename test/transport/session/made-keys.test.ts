import { expect, test } from "bun:test";
import { makeKeyPair, publicKeyOf } from "../../../src/transport/session/key-pair.ts";
import { lineOfPublicKey, publicKeyFromLine, verifiesEd25519 } from "../../../src/transport/session/keys.ts";
import { openPrivateKey } from "../../../src/transport/session/private-key.ts";

// One of some hundred keys has a byte 0 at an end, which is easily lost.
test("every key that is made can be read, has its full length, and signs", async () => {
  const data = Buffer.from("data");
  const wrong: string[] = [];
  for (let count = 0; count < 1_500; count++) {
    const { privateKey, publicLine } = makeKeyPair("a key");
    const key = publicKeyFromLine(publicLine);
    const signer = openPrivateKey(privateKey);
    const signature = (await signer?.sign(data, undefined)) ?? Buffer.alloc(0);
    const signs = verifiesEd25519(key, data, signature);
    if (!signs || !publicKeyOf(privateKey).equals(key)) wrong.push(lineOfPublicKey(key));
  }
  expect(wrong).toEqual([]);
});
