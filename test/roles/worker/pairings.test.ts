import { afterEach, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { PairingCodeMade } from "../../../src/domain/link-keys.ts";
import type { Clock } from "../../../src/lib/waiting/clock.ts";
import { hostKey, hostPublicKey } from "../../../src/roles/worker/host-key.ts";
import { allowClients, listClients, revokeClient } from "../../../src/roles/worker/link-keys.ts";
import { LinkSessions } from "../../../src/roles/worker/link-sessions.ts";
import { type PairingCode, readCode } from "../../../src/transport/pairing/code.ts";
import { pairOver } from "../../../src/transport/pairing/pair.ts";
import { pairingKey } from "../../../src/transport/pairing/pairing-key.ts";
import { pairUser } from "../../../src/transport/session/admission-words.ts";
import { openClientSession } from "../../../src/transport/session/client-session.ts";
import { type KeyPair, makeKeyPair } from "../../../src/transport/session/key-pair.ts";
import { fingerprintOf, publicKeyFromLine } from "../../../src/transport/session/keys.ts";
import { SessionServer } from "../../../src/transport/session/session-server.ts";
import { openWorkerSession } from "../../../src/transport/session/worker-session.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { pairOfDuplexes } from "../../transport/session/duplexes.ts";
import { echo, readAll, STRANGER, steps, USER } from "../../transport/session/peers.ts";

const RELAY = "wss://relay.example.edu";
const directories = temporaryDirectories();
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** What a promise is rejected with. */
const refusal = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.unreachable(),
    (error: unknown) => error,
  );

/** Time that goes when it is told to. */
class Hands implements Clock {
  at = Date.parse("2026-01-01T00:00:00.000Z");
  now = (): number => this.at;
  monotonic = (): number => this.at;
}

function rig(coreDir = path.join(directories(), "core")) {
  const clock = new Hands();
  const troubles: unknown[] = [];
  const sessions = new LinkSessions({
    coreDir,
    comment: "test",
    clock,
    connect: () => Promise.resolve(echo()),
    onTrouble: (error) => troubles.push(error),
  });
  stops.push(() => sessions.close());
  const pipe = () => {
    const { client, server } = pairOfDuplexes();
    void sessions.serve(server);
    return client;
  };
  const make = async (ttlSeconds: number | null = null): Promise<PairingCodeMade> =>
    (await sessions.pairings()).make({ cluster: "far", hostKey: hostKey(coreDir, "test"), relayHost: RELAY, ttlSeconds });
  const pair = (code: Pick<PairingCode, "secret" | "hostPrint"> | string, key: KeyPair = USER, comment = "ada@desk") =>
    pairOver(pipe(), { code: typeof code === "string" ? readCode(code) : code, privateKey: key.privateKey, comment });
  const connect = (key: KeyPair = USER) =>
    openWorkerSession(pipe(), { workerKeys: [hostPublicKey(coreDir, "test")], privateKey: key.privateKey }, { cluster: "far" });
  return { coreDir, clock, sessions, troubles, pipe, make, pair, connect };
}

const guess = (code: string): Pick<PairingCode, "secret" | "hostPrint"> => ({
  ...readCode(code),
  secret: crypto.getRandomValues(Buffer.alloc(16)),
});
const printOf = ({ publicLine }: KeyPair): string => fingerprintOf(publicKeyFromLine(publicLine));

test("a code lets a desktop's key in for good: written down before it is told so, and the session goes on as any other", async () => {
  const { coreDir, make, pair, connect } = rig();
  expect(await refusal(connect())).toMatchObject({ code: "authentication_failed" });
  const made = await make(3_600);
  expect(made).toMatchObject({ cluster: "far", relay_host: RELAY, expires_at: "2026-01-01T00:10:00.000Z" });
  const { session, workerKey } = await pair(made.code);
  expect(workerKey.equals(hostPublicKey(coreDir, "test"))).toBe(true);
  expect(listClients(coreDir)).toEqual([
    expect.objectContaining({ fingerprint: printOf(USER), comment: "ada@desk", by: "pairing", expires_at: "2026-01-01T01:00:00.000Z" }),
  ]);
  const channel = await session.openSocket("/");
  channel.end("back");
  expect((await readAll(channel)).toString()).toBe("back");
  session.close();
  (await connect()).session.close();
  expect(await refusal(connect(STRANGER))).toMatchObject({ code: "authentication_failed" });
});

test("a code is used once: another desktop that comes later is told so, and is not let in", async () => {
  const { coreDir, make, pair } = rig();
  const { code } = await make();
  (await pair(code)).session.close();
  expect(await refusal(pair(code, STRANGER))).toMatchObject({ code: "pairing_refused", data: { reason: "used" } });
  expect(await refusal(pair(code))).toMatchObject({ code: "pairing_refused", data: { reason: "used" } });
  expect(listClients(coreDir).map(({ fingerprint }) => fingerprint)).toEqual([printOf(USER)]);
});

test("of several desktops that come with one code at once, one gets in", async () => {
  const { coreDir, make, pair } = rig();
  const { code } = await make();
  const desktops = Array.from({ length: 8 }, () => makeKeyPair("desk"));
  const outcomes = await Promise.allSettled(desktops.map((key) => pair(code, key)));
  const won = outcomes.flatMap((outcome, index) => (outcome.status === "fulfilled" ? [printOf(desktops[index]!)] : []));
  expect(won).toHaveLength(1);
  expect(listClients(coreDir).map(({ fingerprint }) => fingerprint)).toEqual(won);
  for (const outcome of outcomes) {
    if (outcome.status === "fulfilled") outcome.value.session.close();
    else expect(outcome.reason).toMatchObject({ code: "pairing_refused", data: { reason: "used" } });
  }
});

test("a code that is ten minutes old lets nobody in, and says why to whoever has it", async () => {
  const { coreDir, clock, make, pair } = rig();
  const { code } = await make();
  clock.at += 10 * 60_000;
  expect(await refusal(pair(code))).toMatchObject({ code: "pairing_refused", data: { reason: "expired" } });
  expect(listClients(coreDir)).toEqual([]);
});

test("five guesses end the code; whoever guesses learns nothing, whoever has it is told", async () => {
  const { coreDir, make, pair } = rig();
  const { code } = await make();
  for (let tried = 0; tried < 4; tried++)
    expect(await refusal(pair(guess(code), STRANGER))).toMatchObject({ code: "pairing_refused", data: { reason: "unknown" } });
  const second = await make();
  // A new code has its own five.
  expect(await refusal(pair(code))).toMatchObject({ data: { reason: "unknown" } });
  for (let tried = 0; tried < 4; tried++)
    expect(await refusal(pair(guess(second.code), STRANGER))).toMatchObject({ code: "pairing_refused" });
  expect(await refusal(pair(second.code))).toMatchObject({ code: "pairing_refused", data: { reason: "tries" } });
  expect(listClients(coreDir)).toEqual([]);
});

test("four guesses do not", async () => {
  const { make, pair } = rig();
  const { code } = await make();
  for (let tried = 0; tried < 4; tried++) expect(await refusal(pair(guess(code), STRANGER))).toMatchObject({ code: "pairing_refused" });
  (await pair(code)).session.close();
});

test("the code of a worker that was started again is not known", async () => {
  const before = rig();
  const { code } = await before.make();
  const after = rig(before.coreDir);
  expect(await refusal(after.pair(code))).toMatchObject({ code: "pairing_refused", data: { reason: "unknown" } });
  expect(listClients(before.coreDir)).toEqual([]);
});

test("somebody with another host key, who stands between the two, is refused before anything is proven", async () => {
  const { make, coreDir } = rig();
  const { code } = await make();
  const attempts: string[] = [];
  const between = new SessionServer({
    hostKey: STRANGER.privateKey,
    allowedKeys: () => {
      attempts.push("asked");
      return [];
    },
    pairing: { fate: () => (attempts.push("proof") > 0 ? "open" : null), failed: () => undefined, admit: () => Promise.resolve(true) },
    connect: () => Promise.resolve(echo()),
  });
  stops.push(() => between.close());
  const { client, server } = pairOfDuplexes();
  between.serve(server);
  expect(await refusal(pairOver(client, { code: readCode(code), privateKey: USER.privateKey, comment: "" }))).toMatchObject({
    code: "host_key_changed",
    data: { fingerprint: printOf(STRANGER) },
  });
  expect(attempts).toEqual([]);
  expect(listClients(coreDir)).toEqual([]);
});

test("the proof holds for the desktop that the user's name gives, and not without its own signature", async () => {
  const { make, pipe, pair, coreDir } = rig();
  const { code } = await make();
  const pairing = pairingKey(readCode(code));
  const secret = { publicKey: pairing.key, sign: async (data: Buffer) => pairing.sign(data) };
  const attempt = (user: string, keys: Parameters<typeof steps>) =>
    openClientSession(pipe(), { user, algorithms: "own", verifyHostKey: () => true, authenticate: steps(...keys) });
  const refused = { code: "authentication_failed" };
  // The pairing key alone, twice, or with a key that is another than the name's.
  const named = pairUser(printOf(USER), "");
  expect(await refusal(attempt(named, [{ method: "publickey", signer: secret }]))).toMatchObject(refused);
  expect(
    await refusal(
      attempt(named, [
        { method: "publickey", signer: secret },
        { method: "publickey", signer: secret },
      ]),
    ),
  ).toMatchObject(refused);
  expect(
    await refusal(
      attempt(named, [
        { method: "publickey", signer: secret },
        { method: "publickey", key: STRANGER.privateKey },
      ]),
    ),
  ).toMatchObject(refused);
  // The name of the pairing key itself does not make it a desktop.
  expect(await refusal(attempt("clio-relay", [{ method: "publickey", signer: secret }]))).toMatchObject(refused);
  expect(await refusal(attempt("pair.", [{ method: "publickey", signer: secret }]))).toMatchObject(refused);
  expect(listClients(coreDir)).toEqual([]);
  (await pair(code)).session.close();
});

test("what cannot be written down lets nobody in, and the code is used up", async () => {
  const { make, pair, coreDir, connect } = rig();
  const { code } = await make();
  fs.writeFileSync(path.join(coreDir, "link-clients.json"), "not a list", { mode: 0o600 });
  expect(await refusal(pair(code))).toMatchObject({ code: "pairing_refused" });
  fs.rmSync(path.join(coreDir, "link-clients.json"));
  expect(await refusal(pair(code))).toMatchObject({ data: { reason: "used" } });
  expect(await refusal(connect())).toMatchObject({ code: "authentication_failed" });
});

test("a join is let through for keys that are let in or have expired, and for the code's own where it says it is for a pairing", async () => {
  const { make, sessions, coreDir, clock, pair } = rig();
  const { code } = await make();
  const key = pairingKey(readCode(code)).key;
  await allowClients(coreDir, [USER.publicLine], { by: "bootstrap", ttlSeconds: 60, clock });
  expect(await sessions.admits(publicKeyFromLine(USER.publicLine), false)).toBe(true);
  expect(await sessions.admits(publicKeyFromLine(STRANGER.publicLine), false)).toBe(false);
  expect(await sessions.admits(key, false)).toBe(false);
  expect(await sessions.admits(key, true)).toBe(true);
  clock.at += 60_000;
  expect(await sessions.admits(publicKeyFromLine(USER.publicLine), false)).toBe(true);
  for (let tried = 0; tried < 5; tried++) expect(await sessions.admits(publicKeyFromLine(STRANGER.publicLine), true)).toBe(false);
  expect(await refusal(pair(code))).toMatchObject({ data: { reason: "tries" } });
});

test("a key that is revoked ends its session at once, and comes in no more", async () => {
  const { coreDir, sessions, connect, make, pair } = rig();
  (await pair((await make()).code)).session.close();
  await allowClients(coreDir, [STRANGER.publicLine], { by: "bootstrap" });
  const [gone, stays] = [(await connect()).session, (await connect(STRANGER)).session];
  const channel = await gone.openSocket("/");
  const broken = new Promise((resolve) => channel.once("close", resolve));
  expect(sessions.counts().size).toBe(2);
  await revokeClient(coreDir, printOf(USER));
  expect(sessions.enforce()).toBe(1);
  expect(await gone.closed).toMatchObject({ code: "link_down" });
  await broken;
  expect(await refusal(connect())).toMatchObject({ code: "authentication_failed" });
  expect(await stays.roundTrip()).toBeGreaterThan(0);
});

test("a key that another process has revoked ends its session, too", async () => {
  const { coreDir, connect } = rig();
  await allowClients(coreDir, [USER.publicLine], { by: "bootstrap" });
  const { session } = await connect();
  await revokeClient(coreDir, printOf(USER));
  expect(await session.closed).toMatchObject({ code: "link_down" });
});

test("a key whose time is over ends its session, and is refused as expired until its time begins anew", async () => {
  const { coreDir, clock, connect } = rig();
  const admit = (options: { ttlSeconds?: number | null; renew?: boolean }) =>
    allowClients(coreDir, [USER.publicLine], { by: "bootstrap", clock, ...options });
  await admit({ ttlSeconds: 60 });
  const { session } = await connect();
  clock.at += 60_000;
  expect(await session.closed).toMatchObject({ code: "link_down" });
  expect(await refusal(connect())).toMatchObject({ code: "key_expired" });
  expect(await admit({})).toBe(false);
  expect(await refusal(connect())).toMatchObject({ code: "key_expired" });
  expect(await admit({ renew: true })).toBe(true);
  (await connect()).session.close();
  expect(listClients(coreDir, clock)[0]!.expires_at).toBe("2026-01-01T00:02:00.000Z");
  await admit({ ttlSeconds: null });
  expect(listClients(coreDir, clock)[0]!.expires_at).toBeNull();
});

test("a list of keys that is damaged lets nobody in, is told once, and ends no session that is there", async () => {
  const { coreDir, connect, troubles } = rig();
  await allowClients(coreDir, [USER.publicLine], { by: "bootstrap" });
  const { session } = await connect();
  const file = path.join(coreDir, "link-clients.json");
  const before = fs.readFileSync(file);
  fs.writeFileSync(file, "[]");
  expect(await refusal(connect())).toMatchObject({ code: "authentication_failed" });
  await eventually(() => troubles.length > 0, { what: "being told" });
  // Long enough for it to be looked at once more.
  await Bun.sleep(1_500);
  expect(troubles).toEqual([expect.objectContaining({ code: "configuration_error" })]);
  expect(await session.roundTrip()).toBeGreaterThan(0);
  fs.writeFileSync(file, before);
  (await connect()).session.close();
});

test("the secret of a code is in no file of the worker", async () => {
  const { coreDir, make, pair } = rig();
  const { code } = await make();
  const { secret } = readCode(code);
  (await pair(code)).session.close();
  const names = fs.readdirSync(coreDir);
  expect(names).toContain("link-clients.json");
  for (const name of names) {
    const content = fs.readFileSync(path.join(coreDir, name));
    for (const form of [secret, secret.toString("hex"), secret.toString("base64"), code.split("@")[0]!])
      expect(content.includes(form)).toBe(false);
  }
});
