import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import type { RelayScheme } from "../../../src/domain/relay-url.ts";
import { roomOf } from "../../../src/transport/meeting/proof.ts";
import type { Ed25519Signer } from "../../../src/transport/session/signer.ts";
import { requireComponent } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { bytesOf, newSigner, Place } from "./place.ts";
import { opening, type RawClient, rawTcp } from "./raw.ts";

const MiB = 1024 * 1024;
/** What one direction holds at most (docs/wire.md, Joined), with the heads of its frames (RFC 6455, section 5.2: 14 bytes at most). */
const HELD_MAX = 576 * 1024 + 64 * 14;
const HERE = requireComponent("openssl");

/** What is waited for is short, and only that: on a busy machine everything else takes its time, too. */
let place: Place;
let watchful: Place;
beforeAll(() => {
  if (!HERE) return;
  place = new Place();
  watchful = new Place({ times: { ping: 100, fresh: 50, silence: 4_000, answer: 3_000 } });
});
afterAll(() => Promise.all([place?.close(), watchful?.close()]));

/** Write until the relay-host holds something, and takes nothing for a while; how many bytes were taken from us. */
async function writeUntilHeld({ relay }: Place, stream: Duplex, bytes: Buffer): Promise<number> {
  let taken = 0;
  const piece = 256 * 1024;
  while (taken < bytes.length) {
    const more = stream.write(bytes.subarray(taken, taken + piece));
    taken += Math.min(piece, bytes.length - taken);
    if (more) continue;
    const drained = new Promise<boolean>((resolve) => stream.once("drain", () => resolve(true)));
    while (!(await Promise.race([drained, Bun.sleep(200).then(() => false)]))) if (relay.gauges().held_bytes > 0) return taken;
  }
  return taken;
}

describe.skipIf(!HERE)("a side that does not read", () => {
  test.each([["wss"], ["tcp"]] as const)("over %s stops the other one; what it has not read is kept, and it is little", async (scheme) => {
    const { signer, streams, registration } = await place.worker(scheme);
    const desktop = await place.join(scheme, signer.key);
    const worker = await eventually(() => streams[0]);
    for (const [from, to] of [
      [desktop, worker],
      [worker, desktop],
    ] as const) {
      to.pause();
      // More than the kernel may hold on both ways.
      const bytes = randomBytes(64 * MiB);
      const taken = await writeUntilHeld(place, from, bytes);
      expect(taken).toBeLessThan(bytes.length);
      const { held_bytes } = place.relay.gauges();
      expect(held_bytes).toBeGreaterThan(0);
      expect(held_bytes).toBeLessThanOrEqual(HELD_MAX);
      from.write(bytes.subarray(taken));
      const got = await bytesOf(to, bytes.length);
      expect(got.equals(bytes)).toBe(true);
    }
    desktop.destroy();
    registration.close();
  });

  test("for ever: the pair is ended, and nobody else is held up", async () => {
    const own = new Place({ times: { stuck: 1_200 } });
    const { signer, streams, registration } = await own.worker("tcp");
    const [stuck, other] = [await own.join("tcp", signer.key), await own.join("tcp", signer.key)];
    const [behindStuck, behindOther] = await eventually(() => (streams.length === 2 ? streams : null));
    behindStuck!.pause();
    const gone = new Promise((resolve) => stuck.once("close", resolve));
    await Promise.race([gone, writeUntilHeld(own, stuck, Buffer.alloc(64 * MiB))]);
    const beats = setInterval(() => other.write("x"), 100);
    await gone;
    clearInterval(beats);
    other.write("!");
    await eventually(async () => (await bytesOf(behindOther!, 1)).includes("!"));
    expect(own.relay.gauges().joins).toBe(1);
    other.destroy();
    registration.close();
    await own.close();
  });
});

async function parked(scheme: RelayScheme, signer: Ed25519Signer): Promise<RawClient> {
  const client = rawTcp(await watchful.socket(scheme));
  client.send(opening(await client.next(), { signer, relay: watchful.urls[scheme].authority }));
  expect(await client.next()).toMatchObject({ type: "registered" });
  return client;
}

describe.skipIf(!HERE)("a connection that is parked", () => {
  test("is pinged, and lives for as long as it answers", async () => {
    const client = await parked("tcp", newSigner());
    for (let i = 0; i < 3; i++) {
      const ping = await client.next();
      expect(ping).toMatchObject({ type: "ping", id: i });
      client.send({ type: "pong", id: i });
    }
    client.send({ type: "ping", id: 77 });
    expect(await client.next()).toEqual({ type: "pong", id: 77 });
    expect(watchful.relay.gauges().workers).toBe(1);
    // From here on it is silent.
    const rest: unknown[] = [];
    for (let message = await client.next(); message !== "ended"; message = await client.next()) rest.push(message.type);
    expect(new Set(rest)).toEqual(new Set(["ping"]));
    await eventually(() => watchful.relay.gauges().workers === 0);
  });

  test("is pinged before it is used: a worker that is gone is noticed, and the desktop meets the next one", async () => {
    const signer = newSigner();
    const gone = await parked("tcp", signer);
    await Bun.sleep(60);
    const waited: string[] = [];
    const joined = watchful.join("ws", signer.key, { waitMs: 20_000, onWaiting: (what) => waited.push(what) });
    expect(await gone.next()).toMatchObject({ type: "ping" });
    await eventually(() => waited[0] === "worker");
    const { registration, streams } = await watchful.worker("ws", signer);
    const desktop = await joined;
    desktop.write("met");
    expect((await bytesOf(await eventually(() => streams[0]), 3)).toString()).toBe("met");
    desktop.destroy();
    registration.close();
  });

  test("a desktop that waits and is gone is noticed before the worker is asked", async () => {
    const signer = newSigner();
    const desktop = rawTcp(await watchful.socket("tcp"));
    desktop.send(
      opening(await desktop.next(), {
        role: "join",
        signer: newSigner(),
        room: roomOf(signer.key),
        wait: 20_000,
        relay: watchful.urls.tcp.authority,
      }),
    );
    expect(await desktop.next()).toMatchObject({ type: "waiting", for: "worker" });
    await Bun.sleep(60);
    const { registration, seen } = await watchful.worker("tcp", signer);
    for (let message = await desktop.next(); ; message = await desktop.next()) {
      if (message !== "ended" && message.type === "ping") continue;
      expect(message).toMatchObject({ type: "close", code: "timeout" });
      break;
    }
    expect(seen).toEqual([]);
    registration.close();
  });

  test("a worker that is asked and does not come", async () => {
    const signer = newSigner();
    const hasty = new Place({ times: { ticket: 400 } });
    const registration = await hasty.register("tcp", signer);
    await expect(hasty.join("tcp", signer.key)).rejects.toMatchObject({ code: "worker_absent", data: { close: "silent" } });
    registration.close();
    await hasty.close();
  });

  test("the same key supersedes; what was joined stays, and who is asked for is asked of the new one", async () => {
    const { signer, streams, registration } = await place.worker("tcp");
    const before = await place.join("tcp", signer.key);
    const worker = await eventually(() => streams[0]);
    const deaf = await place.register("tcp", signer);
    expect(await registration.closed).toMatchObject({ code: "meeting_superseded", data: { close: "superseded", retry_ms: 30_000 } });
    // Asked of one that does nothing, and again of the next.
    const waited: string[] = [];
    const joining = place.join("tcp", signer.key, { onWaiting: (what) => waited.push(what) });
    await eventually(() => waited.includes("admission"));
    const next = await place.worker("tcp", signer);
    const after = await joining;
    expect(await deaf.closed).toMatchObject({ code: "meeting_superseded" });
    after.write("new");
    before.write("old");
    expect((await bytesOf(worker, 3)).toString()).toBe("old");
    expect((await bytesOf(await eventually(() => next.streams[0]), 3)).toString()).toBe("new");
    for (const one of [before, after]) one.destroy();
    next.registration.close();
  });
});

test.skipIf(!HERE)(
  "draining: who waits is sent away to come again, what is joined ends when it is quiet, nobody new is taken",
  async () => {
    const own = new Place();
    const { signer, streams, registration } = await own.worker("wss");
    const desktop = await own.join("tcp", signer.key);
    const worker = await eventually(() => streams[0]);
    const waiting = own.join("tcp", newSigner().key, { waitMs: 60_000 });
    waiting.catch(() => undefined);
    await eventually(() => own.relay.gauges().waiting === 1);
    const health = await own.socket("ws");
    health.write("GET /healthz HTTP/1.1\r\n");
    const bytes = randomBytes(8 * MiB);
    const beats: Buffer[] = [];
    desktop.write(bytes);
    const beating = setInterval(() => {
      const beat = randomBytes(1_000);
      beats.push(beat);
      desktop.write(beat);
    }, 50);
    const drained = own.relay.drain();
    health.write("\r\n");
    expect((await bytesOf(health)).toString()).toMatch(/^HTTP\/1\.1 503 [\s\S]*draining/);
    await expect(waiting).rejects.toMatchObject({ code: "shutting_down", data: { close: "draining" } });
    expect(await registration.closed).toMatchObject({ code: "shutting_down" });
    await expect(own.socket("tcp")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    const all = bytesOf(worker);
    await eventually(() => beats.length >= 12);
    expect(own.relay.gauges().joins).toBe(1);
    clearInterval(beating);
    await drained;
    expect((await all).equals(Buffer.concat([bytes, ...beats]))).toBe(true);
    expect(own.relay.gauges()).toMatchObject({ joins: 0, workers: 0, waiting: 0, draining: 1 });
    await own.close();
  },
);
