/** Names of RFC 8332, 8731, 5656, 8268, 5647 and of OpenSSH, in the order of preference. */
export interface Algorithms {
  readonly kex: readonly string[];
  readonly serverHostKey: readonly string[];
  readonly cipher: readonly string[];
}

const KEX_OWN = ["curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256"];

/** AES-GCM authenticates what it encrypts; and it is what this runtime does fast. */
const CIPHER = ["aes128-gcm@openssh.com", "aes256-gcm@openssh.com"];

export const ALGORITHMS: Readonly<Record<"own" | "site", Algorithms>> = {
  /** Between a client and a server of ours. */
  own: { kex: KEX_OWN, serverHostKey: ["ssh-ed25519"], cipher: CIPHER },
  /** With the sshd of a site. */
  site: {
    kex: [
      ...KEX_OWN,
      "ecdh-sha2-nistp384",
      "ecdh-sha2-nistp521",
      "diffie-hellman-group16-sha512",
      "diffie-hellman-group18-sha512",
      "diffie-hellman-group14-sha256",
      "diffie-hellman-group-exchange-sha256",
    ],
    serverHostKey: ["ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-512", "rsa-sha2-256"],
    cipher: CIPHER,
  },
};

/** What the other side offers, as far as it matters here. */
export interface Offer {
  readonly kex: readonly string[];
  readonly serverHostKey: readonly string[];
  readonly cipherToServer: readonly string[];
  readonly cipherToClient: readonly string[];
}

/** The first kind of algorithm of which the two sides have none in common; null where they have one of each. */
export function nothingInCommon(ours: Algorithms, theirs: Offer): { readonly kind: string; readonly offered: readonly string[] } | null {
  const kinds: readonly [string, readonly string[], readonly string[]][] = [
    ["key exchange", ours.kex, theirs.kex],
    ["host key", ours.serverHostKey, theirs.serverHostKey],
    ["cipher", ours.cipher, theirs.cipherToServer],
    ["cipher", ours.cipher, theirs.cipherToClient],
  ];
  for (const [kind, have, offered] of kinds) if (!offered.some((name) => have.includes(name))) return { kind, offered };
  return null;
}
