import { createHash } from "node:crypto";
import path from "node:path";
import { readSmallFile } from "../../lib/files/regular-file.ts";

/** Of the worker's private key, beside its queue. */
export const hostKeyFile = (coreDir: string): string => path.join(coreDir, "link-host-key");

/** Of the one that takes its place, for as long as it waits. */
export const nextHostKeyFile = (coreDir: string): string => path.join(coreDir, "link-next-host-key.json");

const MAX_BYTES = 16 * 1024;
const MAGIC = "openssh-key-v1\0";

/**
 * Fingerprint of the key by which the worker's own sessions are known, as ssh-keygen -l prints it; null where it has none yet, or what lies there is
 * none. The public half stands before the private one (OpenSSH PROTOCOL.key), so that nothing of the protocol has to be loaded for this.
 */
export function hostKeyPrint(coreDir: string): string | null {
  try {
    const text = readSmallFile(hostKeyFile(coreDir), MAX_BYTES) ?? "";
    const bytes = Buffer.from(text.replace(/-----[^-]+-----|\s/g, ""), "base64");
    if (bytes.toString("latin1", 0, MAGIC.length) !== MAGIC) return null;
    let at = MAGIC.length;
    const string = (): Buffer => {
      const end = at + 4 + bytes.readUInt32BE(at);
      const value = bytes.subarray(at + 4, end);
      at = end;
      return value;
    };
    // cipher, derivation of its key, options of that; then how many keys there are
    for (let skipped = 0; skipped < 3; skipped++) string();
    at += 4;
    const key = string();
    if (at > bytes.length) return null;
    return `SHA256:${createHash("sha256").update(key).digest("base64").replace(/=+$/, "")}`;
  } catch {
    // Who is asked who it is answers, whatever lies there; sessions say what is wrong with it.
    return null;
  }
}

/** The announced key as a line of authorized_keys; null where there is none, or what lies there is none, or its time has come. */
export function announcedHostKey(coreDir: string, now: number): string | null {
  try {
    const text = readSmallFile(nextHostKeyFile(coreDir), MAX_BYTES);
    const next: unknown = text === null ? null : JSON.parse(text);
    if (next === null || typeof next !== "object" || !("public_key" in next && "switch_at" in next)) return null;
    const { public_key, switch_at } = next;
    return typeof public_key === "string" && typeof switch_at === "string" && now < Date.parse(switch_at) ? public_key : null;
  } catch {
    // As above.
    return null;
  }
}
