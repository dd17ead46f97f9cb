import { type KnownKey, knownKeys } from "./file.ts";

/** Whose key it is, and where keys are known from. */
export interface HostNames {
  /** The name in known_hosts. */
  readonly name: string;
  /** For another port than 22 without an alias: the bare name, whose key is as good. */
  readonly bare: string | null;
  readonly files: readonly string[];
}

/**
 * What the files say of a server's key. `revoked` and `changed` name the line that says so. `certified`: only a certificate authority is known for the
 * host. `new`: nothing is.
 */
export type Judgement = { readonly kind: "known" | "new" } | { readonly kind: "revoked" | "changed" | "certified"; readonly by: KnownKey };

/**
 * Compare a server's key with what is known, in the order of OpenSSH: a revoked key is refused whoever has it besides; a key that
 * is there is known; otherwise another one, of whatever type, makes it a changed one (the server was asked for the types that are known).
 *
 * @throws RelayError local_file_unusable
 */
export function judge(key: Buffer, { name, bare, files }: HostNames): Judgement {
  const judgement = compare(key, knownKeys(name, files));
  if (judgement.kind !== "new" || bare === null) return judgement;
  // As ssh does: a key that is known for the host without its port will do, and one that is not says nothing.
  const without = compare(key, knownKeys(bare, files));
  return without.kind === "known" || without.kind === "revoked" ? without : judgement;
}

function compare(key: Buffer, known: readonly KnownKey[]): Judgement {
  const revoked = known.find((one) => one.marker === "revoked" && one.key.equals(key));
  if (revoked !== undefined) return { kind: "revoked", by: revoked };
  const plain = known.filter(({ marker }) => marker === "none");
  if (plain.some((one) => one.key.equals(key))) return { kind: "known" };
  if (plain[0] !== undefined) return { kind: "changed", by: plain[0] };
  const authority = known.find(({ marker }) => marker === "cert-authority");
  return authority === undefined ? { kind: "new" } : { kind: "certified", by: authority };
}

/** Host key algorithms with those first of whose type a key is known: a server with several keys is to show one that can be compared. */
export function preferKnown(algorithms: readonly string[], { name, bare, files }: HostNames): string[] {
  const known = [...knownKeys(name, files), ...(bare === null ? [] : knownKeys(bare, files))].filter(({ marker }) => marker === "none");
  const types = new Set(known.map(({ type }) => type));
  const has = (algorithm: string): boolean => types.has(/^rsa-sha2-/.test(algorithm) ? "ssh-rsa" : algorithm);
  return [...algorithms.filter(has), ...algorithms.filter((algorithm) => !has(algorithm))];
}
