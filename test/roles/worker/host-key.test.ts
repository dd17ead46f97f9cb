import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { Clock } from "../../../src/lib/waiting/clock.ts";
import { hostKey, hostPublicKey, nextHostKey, rotateHostKey, settleHostKey } from "../../../src/roles/worker/host-key.ts";
import { announcedHostKey, hostKeyPrint } from "../../../src/roles/worker/host-key-print.ts";
import { LinkSessions } from "../../../src/roles/worker/link-sessions.ts";
import { fingerprintOf } from "../../../src/transport/session/keys.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { echo } from "../../transport/session/peers.ts";

const directories = temporaryDirectories();
const WEEK = 7 * 86_400;

class Hands implements Clock {
  at = Date.parse("2026-01-01T00:00:00.000Z");
  now = (): number => this.at;
  monotonic = (): number => this.at;
}

function rig() {
  const coreDir = path.join(directories(), "core");
  const clock = new Hands();
  const print = (): string => fingerprintOf(hostPublicKey(coreDir, "test", clock));
  return { coreDir, clock, print, next: path.join(coreDir, "link-next-host-key.json"), present: path.join(coreDir, "link-host-key") };
}

test("an announced key answers from its time on, whether or not somebody has put it in its place by then", async () => {
  const { coreDir, clock, print, next } = rig();
  const old = print();
  const rotation = await rotateHostKey(coreDir, "test", WEEK, clock);
  expect(rotation).toMatchObject({ state: "announced", host_key: old, next_host_key: { switch_at: "2026-01-08T00:00:00.000Z" } });
  const coming = rotation.next_host_key!.fingerprint;
  expect([print(), nextHostKey(coreDir, clock)?.fingerprint]).toEqual([old, coming]);
  expect(announcedHostKey(coreDir, clock.now())).toContain("ssh-ed25519 ");
  expect(fs.statSync(next).mode & 0o777).toBe(0o600);
  clock.at += WEEK * 1_000 - 1;
  expect(print()).toBe(old);
  clock.at += 1;
  expect([print(), nextHostKey(coreDir, clock), announcedHostKey(coreDir, clock.now())]).toEqual([coming, null, null]);
  expect(await settleHostKey(coreDir, clock)).toBe(true);
  expect([print(), hostKeyPrint(coreDir), fs.existsSync(next)]).toEqual([coming, coming, false]);
  expect(await settleHostKey(coreDir, clock)).toBe(false);
});

test("a switch that was cut between its two steps ends the same", async () => {
  const { coreDir, clock, print, next, present } = rig();
  print();
  const { next_host_key } = await rotateHostKey(coreDir, "test", WEEK, clock);
  clock.at += WEEK * 1_000;
  // As it is after the first step: the key is in its place, and still announced.
  fs.writeFileSync(present, hostKey(coreDir, "test", clock), { mode: 0o600 });
  expect([print(), fs.existsSync(next)]).toEqual([next_host_key!.fingerprint, true]);
  expect(await settleHostKey(coreDir, clock)).toBe(true);
  expect([print(), fs.existsSync(next)]).toEqual([next_host_key!.fingerprint, false]);
  // A further rotation begins anew.
  expect(await rotateHostKey(coreDir, "test", 0, clock)).toMatchObject({ state: "switched", previous: next_host_key!.fingerprint });
});

test("of many that rotate at once, one key is announced", async () => {
  const { coreDir, clock, print } = rig();
  print();
  const rotations = await Promise.all(Array.from({ length: 8 }, () => rotateHostKey(coreDir, "test", WEEK, clock)));
  expect(new Set(rotations.map(({ next_host_key }) => next_host_key!.fingerprint)).size).toBe(1);
  expect(rotations.filter(({ state }) => state === "announced")).toHaveLength(1);
});

test("a damaged announcement is an error, and is nobody's key", async () => {
  const { coreDir, clock, print, next } = rig();
  print();
  fs.writeFileSync(next, "{", { mode: 0o600 });
  expect(announcedHostKey(coreDir, clock.now())).toBeNull();
  expect(() => hostKey(coreDir, "test", clock)).toThrow(expect.objectContaining({ code: "configuration_error" }));
});

test("a worker puts the key in its place by itself, and whoever is registered by the old one is told", async () => {
  const { coreDir, clock, print } = rig();
  print();
  const sessions = new LinkSessions({
    coreDir,
    comment: "test",
    clock,
    connect: () => Promise.resolve(echo()),
    onTrouble: (error) => {
      throw error;
    },
  });
  let told = 0;
  sessions.onIdentity(() => told++);
  const { next_host_key } = await rotateHostKey(coreDir, "test", WEEK, clock);
  clock.at += WEEK * 1_000;
  await eventually(() => told === 1, { what: "being told" });
  expect(hostKeyPrint(coreDir)).toBe(next_host_key!.fingerprint);
  await sessions.close();
});
