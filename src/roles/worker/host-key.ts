import fs from "node:fs";
import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import type { NextHostKey, Rotation } from "../../domain/link-keys.ts";
import { Timestamp, text } from "../../domain/primitives.ts";
import { makePrivateDirectory, writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { type Clock, systemClock, timestamp } from "../../lib/waiting/clock.ts";
import { makeKeyPair, publicKeyOf } from "../../transport/session/key-pair.ts";
import { fingerprintOf, lineOfPublicKey } from "../../transport/session/keys.ts";
import { ownKey, privateText } from "../own-key.ts";
import { hostKeyFile, nextHostKeyFile } from "./host-key-print.ts";
import { withLinkKeys } from "./link-keys-lock.ts";

/** The key that follows, complete before anybody is told of it. */
const Next = v.strictObject({
  schema_version: v.literal("clio-relay.next-host-key.v1"),
  private_key: text(8_192),
  /** A line of authorized_keys, for readers that have no use for the private half. */
  public_key: text(1_024),
  since: Timestamp,
  switch_at: Timestamp,
});
type Next = v.InferOutput<typeof Next>;

/**
 * The worker's private key in sessions of its own, in the format of OpenSSH; made where there is none. Of several that make one at once, one is the key.
 * From its time on it is the one that was announced.
 *
 * @throws RelayError configuration_error where something else lies in its place, or others may read it
 */
export function hostKey(coreDir: string, comment: string, clock: Clock = systemClock): string {
  const next = readNext(coreDir);
  return next !== null && isDue(next, clock) ? next.private_key : ownKey(hostKeyFile(coreDir), comment);
}

/** The public half, in the format of RFC 4253, section 6.6. @throws RelayError configuration_error */
export const hostPublicKey = (coreDir: string, comment: string, clock: Clock = systemClock): Buffer =>
  publicKeyOf(hostKey(coreDir, comment, clock));

/** What is announced of the key that follows; null where none does. @throws RelayError configuration_error */
export function nextHostKey(coreDir: string, clock: Clock = systemClock): (NextHostKey & { readonly line: string }) | null {
  const next = readNext(coreDir);
  return next === null || isDue(next, clock) ? null : announced(next);
}

const announced = ({ private_key, since, switch_at }: Next): NextHostKey & { readonly line: string } => {
  const key = publicKeyOf(private_key);
  return { fingerprint: fingerprintOf(key), since, switch_at, line: lineOfPublicKey(key) };
};

const isDue = ({ switch_at }: Next, clock: Clock): boolean => clock.now() >= Date.parse(switch_at);

/**
 * Make a new key, which answers after the overlap; with an overlap of 0, at once. What was announced before and still waits is that key.
 *
 * @throws RelayError configuration_error, state_conflict where another process changes keys
 */
export function rotateHostKey(coreDir: string, comment: string, overlapSeconds: number, clock: Clock = systemClock): Promise<Rotation> {
  return withLinkKeys(coreDir, () => {
    switchWhereDue(coreDir, clock);
    const waiting = readNext(coreDir);
    const before = fingerprintOf(publicKeyOf(ownKey(hostKeyFile(coreDir), comment)));
    if (waiting !== null && overlapSeconds > 0) {
      const { line: _line, ...next } = announced(waiting);
      return { state: "pending", host_key: before, previous: null, next_host_key: next };
    }
    const switchAt = new Date(clock.now() + overlapSeconds * 1_000).toISOString();
    const next = { ...(waiting ?? newKey(comment, clock)), switch_at: switchAt };
    writeFileAtomic(nextHostKeyFile(coreDir), `${JSON.stringify(next)}\n`);
    const { line: _line, ...shown } = announced(next);
    if (!switchWhereDue(coreDir, clock)) return { state: "announced", host_key: before, previous: null, next_host_key: shown };
    return { state: "switched", host_key: shown.fingerprint, previous: before, next_host_key: null };
  });
}

function newKey(comment: string, clock: Clock): Next {
  const { privateKey, publicLine } = makeKeyPair(comment);
  const now = timestamp(clock);
  return { schema_version: "clio-relay.next-host-key.v1", private_key: privateKey, public_key: publicLine, since: now, switch_at: now };
}

/** Put the announced key in the place of the one before, which is gone then, once its time has come. Repeated after a crash, it ends the same. */
export const settleHostKey = (coreDir: string, clock: Clock = systemClock): Promise<boolean> =>
  withLinkKeys(coreDir, () => switchWhereDue(coreDir, clock));

function switchWhereDue(coreDir: string, clock: Clock): boolean {
  const next = readNext(coreDir);
  if (next === null || !isDue(next, clock)) return false;
  writeFileAtomic(hostKeyFile(coreDir), next.private_key);
  fs.rmSync(nextHostKeyFile(coreDir), { force: true });
  return true;
}

function readNext(coreDir: string): Next | null {
  makePrivateDirectory(coreDir);
  const file = nextHostKeyFile(coreDir);
  const content = privateText(file);
  if (content === null) return null;
  let document: unknown = null;
  try {
    document = JSON.parse(content);
  } catch {
    // Refused below, as every other text.
  }
  const result = v.safeParse(Next, document);
  if (!result.success) throw new RelayError("configuration_error", `${file} is no key that was announced`, { path: file });
  return result.output;
}
