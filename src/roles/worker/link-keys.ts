import path from "node:path";
import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import type { LinkClient } from "../../domain/link-keys.ts";
import { KeyTtl } from "../../domain/link-keys.ts";
import { looseText, recordOf, Timestamp, text } from "../../domain/primitives.ts";
import { writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { type Clock, systemClock, timestamp } from "../../lib/waiting/clock.ts";
import { fingerprintOf, lineOfPublicKey, publicKeyFromLine } from "../../transport/session/keys.ts";
import { privateText } from "../own-key.ts";
import { withLinkKeys } from "./link-keys-lock.ts";

const MAX_CLIENTS = 256;
const COMMENT_MAX = 256;
/** Uses are written down this often at most, in milliseconds. */
const USE_EVERY_MS = 60_000;

const Client = v.strictObject({
  /** `ssh-ed25519 BASE64` */
  key: text(1_024),
  comment: looseText(COMMENT_MAX),
  added_at: Timestamp,
  by: v.picklist(["bootstrap", "pairing"]),
  ttl_seconds: v.nullable(KeyTtl),
  expires_at: v.nullable(Timestamp),
});
type Client = v.InferOutput<typeof Client>;
const Clients = v.strictObject({
  schema_version: v.literal("clio-relay.link-clients.v1"),
  clients: v.pipe(v.array(Client), v.maxLength(MAX_CLIENTS)),
});
/** By fingerprint. In a file of its own: what decides who comes in is not written again at each use. */
const Uses = v.strictObject({ schema_version: v.literal("clio-relay.link-uses.v1"), uses: recordOf(v.string(), Timestamp) });

const clientsFile = (coreDir: string): string => path.join(coreDir, "link-clients.json");
const usesFile = (coreDir: string): string => path.join(coreDir, "link-uses.json");

/** Keys of desktops that may come in now, in the format of RFC 4253, section 6.6. @throws RelayError configuration_error */
export const allowedClients = (coreDir: string, clock: Clock = systemClock): readonly Buffer[] =>
  readClients(coreDir)
    .filter((client) => !isExpired(client, clock))
    .map(({ key }) => publicKeyFromLine(key));

/** Keys whose time is over. @throws RelayError configuration_error */
export const expiredClients = (coreDir: string, clock: Clock = systemClock): readonly Buffer[] =>
  readClients(coreDir)
    .filter((client) => isExpired(client, clock))
    .map(({ key }) => publicKeyFromLine(key));

const isExpired = ({ expires_at }: Client, clock: Clock): boolean => expires_at !== null && clock.now() >= Date.parse(expires_at);

/** All that is known of the keys that are let in, sessions aside. @throws RelayError configuration_error */
export function listClients(coreDir: string, clock: Clock = systemClock): LinkClient[] {
  const uses = readUses(coreDir);
  return readClients(coreDir).map((client) => shown(client, uses, clock));
}

function shown(
  { key, comment, added_at, by, expires_at, ttl_seconds }: Client,
  uses: Readonly<Record<string, string>>,
  clock: Clock,
): LinkClient {
  const fingerprint = fingerprintOf(publicKeyFromLine(key));
  const expired = isExpired({ key, comment, added_at, by, expires_at, ttl_seconds }, clock);
  return { fingerprint, comment, added_at, by, expires_at, expired, last_used_at: uses[fingerprint] ?? null, sessions: null };
}

export interface Admitting {
  readonly by: Client["by"];
  /** How long they are let in for, in seconds, from now; null: until they are revoked. Left out: as it is with those that are there, for ever with others. */
  readonly ttlSeconds?: number | null;
  /** Whether the time of those that are there begins anew. */
  readonly renew?: boolean;
  readonly clock?: Clock;
}

/**
 * Let desktops in besides those that may come in already. Lines are as authorized_keys has them.
 *
 * @returns whether anything was changed
 * @throws RelayError configuration_error; state_conflict where another process changes keys
 */
export function allowClients(
  coreDir: string,
  lines: readonly string[],
  { by, ttlSeconds, renew = false, clock = systemClock }: Admitting,
): Promise<boolean> {
  return withLinkKeys(coreDir, () => {
    const before = readClients(coreDir);
    const after = [...before];
    for (const line of lines) {
      const key = lineOfPublicKey(publicKeyFromLine(line));
      const at = after.findIndex((client) => client.key === key);
      const known = after[at];
      const comment = commentOf(line) || (known?.comment ?? "");
      if (known === undefined) after.push({ key, comment, added_at: timestamp(clock), by, ...lifetime(ttlSeconds ?? null, clock) });
      else if (renew || ttlSeconds !== undefined) {
        after[at] = { ...known, comment, ...lifetime(ttlSeconds === undefined ? known.ttl_seconds : ttlSeconds, clock) };
      } else after[at] = { ...known, comment };
    }
    if (Bun.deepEquals(before, after)) return false;
    if (after.length > MAX_CLIENTS) {
      throw new RelayError("configuration_error", `${clientsFile(coreDir)} would have more than ${MAX_CLIENTS} keys`);
    }
    writeClients(coreDir, after);
    return true;
  });
}

const lifetime = (ttl_seconds: number | null, clock: Clock): Pick<Client, "ttl_seconds" | "expires_at"> => ({
  ttl_seconds,
  expires_at: ttl_seconds === null ? null : new Date(clock.now() + ttl_seconds * 1_000).toISOString(),
});

const commentOf = (line: string): string =>
  line
    .trim()
    .split(/\s+/)
    .slice(2)
    .join(" ")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "")
    .slice(0, COMMENT_MAX);

/** Least characters by which a key can be named. */
const NAME_LEAST = 6;

/**
 * Let a key in no longer. Sessions are not this function's concern.
 *
 * @param named its fingerprint, with or without `SHA256:`, or a beginning of it that no other has
 * @throws RelayError not_found, usage where it could be several; configuration_error; state_conflict where another process changes keys
 */
export function revokeClient(coreDir: string, named: string, clock: Clock = systemClock): Promise<LinkClient> {
  return withLinkKeys(coreDir, () => {
    const before = readClients(coreDir);
    const wanted = named.replace(/^SHA256:/i, "");
    const meant =
      wanted.length < NAME_LEAST ? [] : before.filter(({ key }) => fingerprintOf(publicKeyFromLine(key)).slice(7).startsWith(wanted));
    const [one, ...others] = meant;
    if (one === undefined) {
      throw new RelayError(
        "not_found",
        wanted.length < NAME_LEAST
          ? `a key is named by its fingerprint, or by ${NAME_LEAST} or more characters of its beginning`
          : "no key with that fingerprint is let in",
        {},
        "clio-relay worker keys list",
      );
    }
    if (others.length > 0)
      throw new RelayError("usage", `${meant.length} keys begin so; name one in full`, {}, "clio-relay worker keys list");
    writeClients(
      coreDir,
      before.filter((client) => client !== one),
    );
    return shown(one, readUses(coreDir), clock);
  });
}

/** Write down that a key was used now, unless that was done a moment ago. What cannot be written is not worth refusing anybody for. */
export function recordUse(coreDir: string, key: Buffer, clock: Clock = systemClock): void {
  const fingerprint = fingerprintOf(key);
  const known = new Set(listClients(coreDir, clock).map((client) => client.fingerprint));
  const uses = readUses(coreDir);
  const last = uses[fingerprint];
  const since = last === undefined ? Number.POSITIVE_INFINITY : clock.now() - Date.parse(last);
  if (since >= 0 && since < USE_EVERY_MS) return;
  const kept = Object.fromEntries(Object.entries({ ...uses, [fingerprint]: timestamp(clock) }).filter(([name]) => known.has(name)));
  writeFileAtomic(usesFile(coreDir), `${JSON.stringify({ schema_version: "clio-relay.link-uses.v1", uses: kept })}\n`, { durable: false });
}

function readClients(coreDir: string): readonly Client[] {
  const file = clientsFile(coreDir);
  const content = privateText(file);
  if (content === null) return [];
  const result = v.safeParse(Clients, parsed(content));
  if (result.success && result.output.clients.every(({ key }) => isKey(key))) return result.output.clients;
  throw new RelayError(
    "configuration_error",
    `${file} is no list of keys; nobody is let in`,
    { path: file },
    "remove it, and let the desktops in anew",
  );
}

function isKey(line: string): boolean {
  try {
    return publicKeyFromLine(line).length > 0;
  } catch {
    return false;
  }
}

const writeClients = (coreDir: string, clients: readonly Client[]): void =>
  writeFileAtomic(clientsFile(coreDir), `${JSON.stringify({ schema_version: "clio-relay.link-clients.v1", clients }, null, 2)}\n`);

function readUses(coreDir: string): Readonly<Record<string, string>> {
  try {
    const result = v.safeParse(Uses, parsed(privateText(usesFile(coreDir)) ?? ""));
    return result.success ? result.output.uses : {};
  } catch {
    // Nothing is decided by it.
    return {};
  }
}

function parsed(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return null;
  }
}
