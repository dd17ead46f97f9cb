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
 * host. `new`: no key of this type; `others` are known keys of other types.
 */
export type Judgement =
  | { readonly kind: "known" }
  | { readonly kind: "revoked" | "changed" | "certified"; readonly by: KnownKey }
  | { readonly kind: "new"; readonly others: readonly KnownKey[] };

/**
 * Compare a server's key with what is known, in the order of OpenSSH: a revoked key is refused whoever has it besides; a key that
 * is there is known; another key of the same type is a changed one.
 *
 * @throws RelayError local_file_unusable
 */
export function judge(key: Buffer, type: string, { name, bare, files }: HostNames): Judgement {
  const judgement = compare(key, type, knownKeys(name, files));
  if (judgement.kind !== "new" || bare === null) return judgement;
  // As ssh does: a key that is known for the host without its port will do, and one that is not says nothing.
  const without = compare(key, type, knownKeys(bare, files));
  return without.kind === "known" || without.kind === "revoked" ? without : judgement;
}

function compare(key: Buffer, type: string, known: readonly KnownKey[]): Judgement {
  const revoked = known.find((one) => one.marker === "revoked" && one.key.equals(key));
  if (revoked !== undefined) return { kind: "revoked", by: revoked };
  const plain = known.filter(({ marker }) => marker === "none");
  if (plain.some((one) => one.key.equals(key))) return { kind: "known" };
  const other = plain.find((one) => one.type === type);
  if (other !== undefined) return { kind: "changed", by: other };
  const authority = known.find(({ marker }) => marker === "cert-authority");
  if (authority !== undefined && plain.length === 0) return { kind: "certified", by: authority };
  return { kind: "new", others: plain };
}

/** Host key algorithms with those first of whose type a key is known: a server with several keys is to show one that can be compared. */
export function preferKnown(algorithms: readonly string[], { name, bare, files }: HostNames): string[] {
  const known = [...knownKeys(name, files), ...(bare === null ? [] : knownKeys(bare, files))].filter(({ marker }) => marker === "none");
  const types = new Set(known.map(({ type }) => type));
  const has = (algorithm: string): boolean => types.has(/^rsa-sha2-/.test(algorithm) ? "ssh-rsa" : algorithm);
  return [...algorithms.filter(has), ...algorithms.filter((algorithm) => !has(algorithm))];
}
