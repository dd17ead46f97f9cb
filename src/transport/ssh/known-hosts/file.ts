import { RelayError } from "../../../domain/errors.ts";
import { readRegular } from "../../../lib/files/regular-file.ts";
import { typeOf } from "../../session/keys.ts";
import { fitsHostList } from "../patterns.ts";

/** What a line of known_hosts says of a key (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). */
export interface KnownKey {
  readonly marker: "none" | "cert-authority" | "revoked";
  /** `ssh-ed25519` and so on. */
  readonly type: string;
  /** In the format of RFC 4253, section 6.6. */
  readonly key: Buffer;
  readonly file: string;
  readonly line: number;
}

const MAX_BYTES = 16 * 1024 * 1024;
const MARKERS: Readonly<Record<string, KnownKey["marker"]>> = { "@cert-authority": "cert-authority", "@revoked": "revoked" };

/**
 * The keys that some files have for a name: a host's, `[host]:port` for other ports than 22, or a HostKeyAlias. Files that are missing have none;
 * lines that are not understood are passed over, as ssh does.
 *
 * @throws RelayError local_file_unusable for a file that cannot be read: what it would have said is not known
 */
export function knownKeys(name: string, files: readonly string[]): KnownKey[] {
  return files.flatMap((file) => {
    const found = readFile(file);
    return found.split("\n").flatMap((text, index) => {
      const key = keyOf(text, name);
      return key === null ? [] : [{ ...key, file, line: index + 1 }];
    });
  });
}

function readFile(file: string): string {
  const unusable = (why: string, cause?: unknown): RelayError =>
    new RelayError(
      "local_file_unusable",
      `${file} ${why}, so it is not known which keys of servers are trusted`,
      { path: file },
      undefined,
      { cause },
    );
  let found: ReturnType<typeof readRegular>;
  try {
    found = readRegular(file, MAX_BYTES, "follow");
  } catch (error) {
    throw unusable("cannot be read", error);
  }
  if (found === "absent") return "";
  if (found === "not_a_file") return file === "/dev/null" ? "" : raise(unusable("is not a regular file"));
  if (found === "too_large") throw unusable(`has more than ${MAX_BYTES} bytes`);
  return found.text;
}

function raise(error: Error): never {
  throw error;
}

function keyOf(text: string, name: string): Omit<KnownKey, "file" | "line"> | null {
  const fields = text.trim().split(/[ \t]+/);
  if (fields[0] === "" || fields[0]!.startsWith("#")) return null;
  let marker: KnownKey["marker"] = "none";
  if (fields[0]!.startsWith("@")) {
    const known = MARKERS[fields.shift()!];
    if (known === undefined) return null;
    marker = known;
  }
  const [names, type, base64] = fields;
  if (names === undefined || type === undefined || base64 === undefined || !isNamed(names, name)) return null;
  const key = Buffer.from(base64, "base64");
  return typeOf(key) === type ? { marker, type, key } : null;
}

/** Whether the first field of a line means a name: a list of patterns, or `|1|SALT|HASH`, HMAC-SHA1 of the name. */
function isNamed(names: string, name: string): boolean {
  if (!names.startsWith("|")) return fitsHostList(name, names);
  const [, scheme, salt, hash] = names.split("|");
  if (scheme !== "1" || salt === undefined || hash === undefined) return false;
  const expected = Buffer.from(hash, "base64");
  return expected.length === 20 && hashOf(name, Buffer.from(salt, "base64")).equals(expected);
}

const hashOf = (name: string, salt: Buffer): Buffer => new Bun.CryptoHasher("sha1", salt).update(name).digest() as Buffer;

/** A name that the file does not show: what HashKnownHosts asks for. */
export function hashedName(name: string): string {
  const salt = Buffer.from(crypto.getRandomValues(new Uint8Array(20)));
  return `|1|${salt.toString("base64")}|${hashOf(name, salt).toString("base64")}`;
}
