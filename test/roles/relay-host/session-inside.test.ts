import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import net from "node:net";
import type { Duplex } from "node:stream";
import { parseRelayUrl } from "../../../src/domain/relay-url.ts";
import { accept, join } from "../../../src/transport/meeting/join.ts";
import { roomOf } from "../../../src/transport/meeting/proof.ts";
import { type Registration, register } from "../../../src/transport/meeting/register.ts";
import type { ClientSession } from "../../../src/transport/session/client-channels.ts";
import { makeKeyPair, publicKeyOf } from "../../../src/transport/session/key-pair.ts";
import { SessionServer } from "../../../src/transport/session/session-server.ts";
import { signerOf } from "../../../src/transport/session/signer.ts";
import { openWorkerSession } from "../../../src/transport/session/worker-session.ts";
import { requireComponent } from "../../runner/components.ts";
import { echo } from "../../transport/session/peers.ts";
import { bytesOf, Place, TOKEN } from "./place.ts";
import { type Change, Tap } from "./tap.ts";

const HOST = makeKeyPair("the worker");
const USER = makeKeyPair("the desktop");
const [hostKey, userKey] = [publicKeyOf(HOST.privateKey), publicKeyOf(USER.privateKey)];

const HERE = requireComponent("openssl");

let place: Place;
let tap: Tap;
let registration: Registration;
beforeAll(async () => {
  if (!HERE) return;
  place = new Place();
  tap = await Tap.before(place.urls.tcp.port);
  const server = new SessionServer({ hostKey: HOST.privateKey, allowedKeys: () => [userKey], connect: async () => echo() });
  const signer = signerOf(HOST.privateKey);
  const relay = parseRelayUrl(`tcp://localhost:${tap.port}`);
  registration = await register(dial(), {
    relay,
    token: TOKEN,
    signer,
    onJoining: ({ ticket }) => void accept(dial(), { relay, token: TOKEN, signer, ticket }).then((duplex) => server.serve(duplex)),
  });
});
afterAll(async () => {
  if (!HERE) return;
  registration.close();
  tap.close();
  await place.close();
});

const dial = (): Duplex => net.connect({ host: "127.0.0.1", port: tap.port, noDelay: true }).on("error", () => undefined);

async function link(): Promise<ClientSession> {
  const duplex = await join(dial(), {
    relay: parseRelayUrl(`tcp://localhost:${tap.port}`),
    token: TOKEN,
    signer: signerOf(USER.privateKey),
    room: roomOf(hostKey),
    waitMs: 10_000,
  });
  const { session } = await openWorkerSession(duplex, { workerKeys: [hostKey], privateKey: USER.privateKey }, { cluster: "far" });
  return session;
}

/** What is sent comes back; how much of it did, until it was whole or the channel broke, and whether all of that is right. */
async function roundTrip(session: ClientSession, bytes: Buffer): Promise<{ got: number; right: boolean }> {
  const channel = await session.openSocket("/worker");
  channel.on("error", () => undefined);
  channel.write(bytes);
  const chunks: Buffer[] = [];
  let got = 0;
  await new Promise<void>((resolve) => {
    channel.on("data", (chunk: Buffer) => {
      chunks.push(Buffer.from(chunk));
      got += chunk.length;
      if (got >= bytes.length) resolve();
    });
    channel.on("close", resolve);
  });
  channel.destroy();
  const all = Buffer.concat(chunks);
  return { got, right: all.equals(bytes.subarray(0, all.length)) };
}

test.skipIf(!HERE)("what a relay-host handles has nothing in it of what is said, and no token", async () => {
  const secrets = {
    job: "the-text-of-a-job-which-nobody-else-may-read",
    header: "Idempotency-Key: a-key-of-somebody",
    apiToken: "Authorization: Bearer api-token-0123456789abcdef",
    runtimeToken: "runtime-token-fedcba9876543210",
  };
  const session = await link();
  const said = Buffer.from(
    `POST /jobs HTTP/1.1\r\n${secrets.header}\r\n${secrets.apiToken}\r\n\r\n{"argv":["${secrets.job}","${secrets.runtimeToken}"]}`,
  );
  expect(await roundTrip(session, said)).toEqual({ got: said.length, right: true });
  session.close();
  await session.closed;

  const handled = Buffer.concat([tap.kept, Buffer.from(place.lines.join("")), Buffer.from(await place.metrics())]);
  // It is there: both sides' first lines, and what the relay-host is told.
  expect(handled.toString("latin1").match(/SSH-2\.0-ClioRelay/g)?.length).toBeGreaterThanOrEqual(4);
  expect(handled.includes(userKey.toString("base64"))).toBe(true);
  for (const secret of [...Object.values(secrets), "POST /jobs", TOKEN, USER.privateKey.split("\n")[2]!, HOST.privateKey.split("\n")[2]!]) {
    for (const form of [Buffer.from(secret), Buffer.from(Buffer.from(secret).toString("base64").replace(/=+$/, "").slice(0, -2))]) {
      expect([secret, handled.includes(form)]).toEqual([secret, false]);
    }
  }
});

describe.skipIf(!HERE)("a relay-host that", () => {
  const size = 600_000;
  /** Do something to one chunk, once so many bytes have gone up. */
  const once = (after: number, what: (chunk: Buffer) => readonly Buffer[]): Change => {
    let passed = 0;
    let done = false;
    return (chunk, way) => {
      if (way === "up") passed += chunk.length;
      if (done || way === "down" || passed < after || chunk.length < 1_000) return [chunk];
      done = true;
      return what(chunk);
    };
  };
  const flipped = (chunk: Buffer): Buffer => {
    chunk[Math.floor(chunk.length / 2)]! ^= 1;
    return chunk;
  };

  test.each<[string, (chunk: Buffer) => readonly Buffer[]]>([
    ["changes a bit", (chunk) => [flipped(chunk)]],
    ["says something twice", (chunk) => [chunk, chunk]],
    ["leaves something out", () => []],
    ["swaps two halves", (chunk) => [chunk.subarray(chunk.length / 2), chunk.subarray(0, chunk.length / 2)]],
    ["puts something in", (chunk) => [randomBytes(64), chunk]],
  ])("%s: the session ends, and nothing wrong has come", async (_, what) => {
    const session = await link();
    tap.change = once(100_000, what);
    const { got, right } = await roundTrip(session, randomBytes(size));
    tap.change = (chunk) => [chunk];
    expect(right).toBe(true);
    expect(got).toBeLessThan(size);
    expect(await session.closed).toMatchObject({ code: "link_down" });
  });

  test("cuts it short: a cut is no end", async () => {
    const session = await link();
    let passed = 0;
    tap.change = (chunk, way) => {
      if (way === "up") passed += chunk.length;
      if (passed > 200_000) throw new Error("cut");
      return [chunk];
    };
    const { got, right } = await roundTrip(session, randomBytes(size));
    tap.change = (chunk) => [chunk];
    expect([right, got < size]).toEqual([true, true]);
    expect(await session.closed).toMatchObject({ code: "link_down" });
  });

  test("delays everything, in pieces of any size: all of it comes", async () => {
    const session = await link();
    tap.change = async (chunk) => {
      await Bun.sleep(1);
      const at = 1 + Math.floor(Math.random() * (chunk.length - 1));
      return [chunk.subarray(0, at), chunk.subarray(at)];
    };
    expect(await roundTrip(session, randomBytes(size))).toEqual({ got: size, right: true });
    tap.change = (chunk) => [chunk];
    session.close();
    expect(await session.closed).toBeNull();
  });

  test("joins a desktop with another worker: it is told that the key is another", async () => {
    const other = makeKeyPair("another worker");
    const signer = signerOf(other.privateKey);
    const server = new SessionServer({ hostKey: other.privateKey, allowedKeys: () => [userKey], connect: async () => echo() });
    const elsewhere = await place.register("tcp", signer, {
      onJoining: ({ ticket }) => void place.accept("tcp", signer, ticket).then((duplex) => server.serve(duplex)),
    });
    const duplex = await place.join("tcp", signer.key, { signer: signerOf(USER.privateKey) });
    const opened = openWorkerSession(duplex, { workerKeys: [hostKey], privateKey: USER.privateKey }, { cluster: "far" });
    await expect(opened).rejects.toMatchObject({ code: "host_key_changed" });
    elsewhere.close();
  });

  test("lies about who wants to come in: the session asks the desktop's own key", async () => {
    const stranger = makeKeyPair("a stranger");
    // As the worker would admit whoever the relay-host names.
    const duplex = await place.join("tcp", hostKey, { signer: signerOf(USER.privateKey), room: roomOf(hostKey) });
    const opened = openWorkerSession(duplex, { workerKeys: [hostKey], privateKey: stranger.privateKey }, { cluster: "far" });
    await expect(opened).rejects.toMatchObject({ code: "authentication_failed" });
    expect((await bytesOf(duplex).catch(() => Buffer.alloc(0))).length).toBe(0);
  });
});
