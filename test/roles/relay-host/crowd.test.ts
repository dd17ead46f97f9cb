import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { journal } from "../../../src/roles/relay-host/journal.ts";
import { type JoinOptions, join } from "../../../src/transport/meeting/join.ts";
import { roomOf } from "../../../src/transport/meeting/proof.ts";
import { type RegisterOptions, type Registration, register } from "../../../src/transport/meeting/register.ts";
import type { Ed25519Signer } from "../../../src/transport/session/signer.ts";
import { requireComponent } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { newSigner, Place, type PlaceOptions, TOKEN } from "./place.ts";

const HERE = requireComponent("openssl");
const edge = (options: PlaceOptions = {}): Place => new Place({ ...options, edgeAddressHeader: "X-Forwarded-For" });

/** A desktop that comes from an address; what it ended with, or "joined". */
async function comes(at: Place, address: string, room: Buffer, options: Partial<JoinOptions> = {}): Promise<string> {
  const duplex = await at.dialFrom(address);
  const comer = { relay: at.urls.ws, token: TOKEN, signer: newSigner(), room, waitMs: 0, ...options };
  return join(duplex, comer).then(
    () => "joined",
    (error) => error.data?.close ?? error.code,
  );
}

/** A worker that lets in the keys that it is told. */
async function keeper(at: Place, lets: (key: Buffer) => boolean, options: Partial<RegisterOptions> = {}) {
  const signer = newSigner();
  let asked = 0;
  const registration = await register(await at.dialFrom("203.0.113.1"), {
    relay: at.urls.ws,
    token: TOKEN,
    signer,
    onJoining: ({ key, ticket, refuse }) => {
      asked++;
      if (lets(key)) void at.accept("tcp", signer, ticket).catch(() => undefined);
      else refuse("key");
    },
    ...options,
  });
  let over: unknown = "it is there";
  void registration.closed.then((why) => {
    over = why;
  });
  return { room: roomOf(signer.key), registration, signer, asked: () => asked, over: () => over };
}

describe.skipIf(!HERE)("many who have the token, and no key that is let in", () => {
  let place: Place;
  let friend: Ed25519Signer;
  beforeAll(() => {
    place = edge({ limits: { openingsPerAddress: 100_000 } });
    friend = newSigner();
  });
  afterAll(() => place?.close());

  test("evict no worker, and keep nobody out who comes from elsewhere", async () => {
    const { room, registration, asked, over } = await keeper(place, (key) => key.equals(friend.key));
    const ends: string[] = [];
    for (let round = 0; round < 30; round++) {
      ends.push(...(await Promise.all(Array.from({ length: 10 }, (_, i) => comes(place, `192.0.2.${i}`, room)))));
    }
    expect(new Set(ends)).toEqual(new Set(["refused", "busy"]));
    // Of each address one or two are asked about; the others have been told to stay away.
    expect(asked()).toBeLessThanOrEqual(30);
    expect(over()).toBe("it is there");
    expect(await comes(place, "198.51.100.1", room, { signer: friend })).toBe("joined");
    registration.close();
  });

  test("do not fill a room while its worker is away", async () => {
    const signer = newSigner();
    const room = roomOf(signer.key);
    const squatters: Promise<string>[] = [];
    for (let i = 0; i < 80; i++) squatters.push(comes(place, `192.0.2.${100 + (i % 8)}`, room, { waitMs: 60_000 }));
    await eventually(() => place.relay.gauges().waiting >= 32);
    const waiting = comes(place, "198.51.100.2", room, { signer: friend, waitMs: 60_000 });
    const registration = await eventually(async () => {
      await Bun.sleep(0);
      return place.relay.gauges().waiting === 32
        ? await register(await place.dialFrom("203.0.113.1"), {
            relay: place.urls.ws,
            token: TOKEN,
            signer,
            onJoining: ({ key, ticket, refuse }) =>
              key.equals(friend.key) ? void place.accept("tcp", signer, ticket).catch(() => undefined) : refuse("key"),
          })
        : null;
    });
    expect(await waiting).toBe("joined");
    expect(new Set(await Promise.all(squatters))).toEqual(new Set(["busy", "refused"]));
    registration.close();
  });

  test("a desktop that was let in before is no stranger, also from their address, and after its worker was away", async () => {
    const worker = await keeper(place, (key) => key.equals(friend.key));
    expect(await comes(place, "192.0.2.200", worker.room, { signer: friend })).toBe("joined");
    worker.registration.close();
    await eventually(() => worker.over() === null);
    const again = await register(await place.dialFrom("203.0.113.1"), {
      relay: place.urls.ws,
      token: TOKEN,
      signer: worker.signer,
      onJoining: ({ key, ticket, refuse }) =>
        key.equals(friend.key) ? void place.accept("tcp", worker.signer, ticket).catch(() => undefined) : refuse("key"),
    });
    const ends = await Promise.all(Array.from({ length: 20 }, () => comes(place, "192.0.2.200", worker.room)));
    expect(ends).toContain("busy");
    expect(await comes(place, "192.0.2.200", worker.room, { signer: friend })).toBe("joined");
    again.close();
  });
});

test.skipIf(!HERE)("who is not let in pays for it with its address", async () => {
  const place = edge({ limits: { openingsPerAddress: 13 } });
  const { room, registration } = await keeper(place, () => false);
  for (let i = 0; i < 2; i++) expect(await comes(place, "192.0.2.1", room)).toBe("refused");
  let taken = 0;
  const knocks = async (): Promise<void> => {
    for (; taken < 13; taken++) await place.dialFrom("192.0.2.1");
  };
  await expect(knocks()).rejects.toMatchObject({ code: "relay_host_busy" });
  expect(taken).toBeLessThan(6);
  registration.close();
  await place.close();
});

test.skipIf(!HERE)("one address does not use up what all have together", async () => {
  const place = edge({ limits: { workersPerAddress: 2, joinsPerAddress: 2 } });
  const registers = async (address: string, signer = newSigner()) =>
    register(await place.dialFrom(address), { relay: place.urls.ws, token: TOKEN, signer, onJoining: () => undefined });
  const signer = newSigner();
  await registers("192.0.2.1", signer);
  await registers("192.0.2.1");
  await expect(registers("192.0.2.1")).rejects.toMatchObject({ code: "relay_host_busy" });
  // In its own place.
  await registers("192.0.2.1", signer);
  await registers("192.0.2.2");
  const waits = (address: string) => comes(place, address, roomOf(newSigner().key), { waitMs: 60_000 });
  const waiting = [waits("192.0.2.1"), waits("192.0.2.1")];
  await eventually(() => place.relay.gauges().waiting === 2);
  expect(await waits("192.0.2.1")).toBe("busy");
  waiting.push(waits("192.0.2.2"));
  await eventually(() => place.relay.gauges().waiting === 3);
  await place.close();
  await Promise.all(waiting);
});

test("who registers again and again makes no more lines than a log can bear, and they are counted", () => {
  const lines: string[] = [];
  let now = 0;
  const log = journal({ now: () => 0, monotonic: () => now }, (line) => void lines.push(line));
  for (let i = 0; i < 1_000; i++) log.often("registered", { room: "a" });
  log.often("unregistered", { room: "a" });
  expect(lines.length).toBe(241);
  now += 60_000;
  log.often("registered", { room: "b" });
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({ event: "registered", room: "b", omitted_before: 760 });
});

describe.skipIf(!HERE)("many workers of one token", () => {
  test("from few addresses give way to those of others, and none of them comes back in their place", async () => {
    const place = edge({ limits: { openingsPerAddress: 100_000, workersPerToken: 6 } });
    try {
      const comes = async (address: string): Promise<string | Registration> =>
        register(await place.dialFrom(address), {
          relay: place.urls.ws,
          token: TOKEN,
          signer: newSigner(),
          onJoining: () => undefined,
        }).catch((error) => String(error.data?.close));
      const registered = async (address: string): Promise<Registration> => {
        const worker = await comes(address);
        if (typeof worker === "string") throw new Error(`${address}: ${worker}`);
        return worker;
      };
      const squatters: Registration[] = [];
      for (let i = 0; i < 6; i++) squatters.push(await registered(`192.0.2.${i % 2}`));
      expect(await comes("192.0.2.0")).toBe("busy");
      const honest = [await registered("198.51.100.1"), await registered("198.51.100.2")];
      expect(place.relay.gauges().workers).toBe(6);
      // Of each crowd the one that came last.
      for (const gone of squatters.slice(4))
        expect(await gone.closed).toMatchObject({ code: "relay_host_busy", data: { retry_ms: 60_000 } });
      expect(await comes("192.0.2.0")).toBe("busy");
      expect(await comes("192.0.2.1")).toBe("busy");
      for (const worker of [...honest, ...squatters.slice(0, 4)]) {
        expect(await Promise.race([worker.closed, Bun.sleep(0).then(() => "it is there")])).toBe("it is there");
        worker.close();
      }
      await eventually(() => place.relay.gauges().workers === 0);
      // Who has gone is not counted any more.
      for (let i = 0; i < 6; i++) (await registered("192.0.2.0")).close();
    } finally {
      await place.close();
    }
  });
});
