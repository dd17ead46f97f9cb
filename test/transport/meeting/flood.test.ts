import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import net from "node:net";
import { closedBy, growsTo, retryAfter } from "../../../src/transport/meeting/codes.ts";
import { encode, FrameParser } from "../../../src/transport/meeting/frames.ts";
import { accept, join } from "../../../src/transport/meeting/join.ts";
import type { FromRelay } from "../../../src/transport/meeting/messages.ts";
import { prove } from "../../../src/transport/meeting/proof.ts";
import { register } from "../../../src/transport/meeting/register.ts";
import { newSigner, TOKEN } from "../../roles/relay-host/place.ts";
import { impostor } from "../../roles/relay-host/raw.ts";

const MANY = 20_000;
const nonce = randomBytes(32);
const ping = encode({ type: "ping", id: 1 });

interface Heard {
  messages: number;
  close: string | null;
}

/** A relay-host that knows the token, answers an opening, if it does, and then says the same very often. */
async function flooding(answer: (proof: Buffer) => FromRelay | null, flood: (proof: Buffer) => Buffer) {
  const heard: Heard = { messages: 0, close: null };
  const host = await impostor((stream, parser) => {
    let greeted = false;
    stream.write(encode({ type: "hello", oldest: 1, newest: 1, nonce }));
    stream.on("data", (chunk: Buffer) => {
      parser.push(greeted ? chunk : chunk.subarray(chunk.indexOf("\n") + 1));
      greeted = true;
      for (let message = parser.take(); message !== null; message = parser.take()) {
        heard.messages++;
        if (message.type === "close") heard.close = message.code;
        if (!("proof" in message)) continue;
        const { version, type: role, room, relay, key, nonce: clientNonce } = message;
        const ticket = message.type === "accept" ? message.ticket : Buffer.alloc(0);
        const proof = prove({ version, role, room, relay, relayNonce: nonce, clientNonce, key, ticket }, TOKEN, newSigner()).answer;
        const first = answer(proof);
        if (first !== null) stream.write(encode(first));
        const bytes = Buffer.concat(Array.from({ length: 500 }, () => flood(proof)));
        let sent = 0;
        const go = (): void => {
          for (let goesOn = true; goesOn && sent < MANY && !stream.destroyed; sent += 500) goesOn = stream.write(bytes);
          if (sent >= MANY) stream.end();
        };
        stream.on("drain", go);
        go();
      }
    });
  });
  const duplex = net.connect({ host: "127.0.0.1", port: host.port }).on("error", () => undefined);
  const relay = { scheme: "tcp", authority: `127.0.0.1:${host.port}` } as const;
  return { heard, duplex, comer: { relay, token: TOKEN, signer: newSigner() }, close: host.close };
}

const flooded = { code: "meeting_flooded", data: { close: "flooding" } };

describe("a relay-host that says more than it may", () => {
  test.each<[string, (proof: Buffer) => Buffer]>([
    ["pings, without the token", () => ping],
    ["that it is waited", (proof) => encode({ type: "waiting", proof, for: "worker" })],
  ])("to a desktop: %s", async (_, flood) => {
    const { heard, duplex, comer, close } = await flooding(() => null, flood);
    let told = 0;
    const joined = join(duplex, { ...comer, room: randomBytes(32), waitMs: 0, onWaiting: () => void told++ });
    await expect(joined).rejects.toMatchObject(flooded);
    expect([told <= 200, heard.messages <= 202]).toEqual([true, true]);
    close();
  });

  test("to a worker that comes for a desktop", async () => {
    const { heard, duplex, comer, close } = await flooding(
      () => null,
      () => ping,
    );
    await expect(accept(duplex, { ...comer, ticket: randomBytes(32) })).rejects.toMatchObject(flooded);
    expect(heard.messages).toBeLessThanOrEqual(202);
    close();
  });

  test.each<[string, () => Buffer]>([
    ["pings", () => ping],
    [
      "desktops",
      () =>
        encode({
          type: "joining",
          join: 1,
          key: newSigner().key,
          ticket: randomBytes(32),
          expires: 1,
          pairing: false,
          address: "192.0.2.1",
        }),
    ],
  ])("to a worker that is registered: %s", async (_, flood) => {
    const { heard, duplex, comer, close } = await flooding((proof) => ({ type: "registered", proof }), flood);
    let asked = 0;
    const registration = await register(duplex, {
      ...comer,
      onJoining: ({ refuse }) => {
        asked++;
        refuse("key");
      },
    });
    expect(await registration.closed).toMatchObject(flooded);
    expect([asked <= 200, heard.messages <= 202]).toEqual([true, true]);
    close();
  });
});

test("what is beyond the bound is not read, whatever it is; what was asked for does not count", () => {
  let now = 0;
  const parser = new FrameParser("relay", () => now);
  const taken = (count: number): void => {
    for (let i = 0; i < count; i++) expect(parser.take()).toEqual({ type: "ping", id: 1 });
  };
  parser.push(Buffer.concat([...Array.from({ length: 200 }, () => ping), encode({ type: "ping", id: 1 }).fill("x", 4)]));
  taken(200);
  expect(() => parser.take()).toThrow(expect.objectContaining({ code: "meeting_flooded" }));
  const later = new FrameParser("relay", () => now);
  for (let i = 0; i < 3; i++, now += 10_001) {
    later.push(Buffer.concat(Array.from({ length: 200 }, () => ping)));
    for (let j = 0; j < 200; j++) later.take();
  }
  for (let i = 0; i < 400; i++) {
    later.push(ping);
    later.take();
    later.wasAnswer();
  }
  expect(later.held).toBe(0);
  expect(() => later.push(Buffer.alloc(300_000))).toThrow(expect.objectContaining({ code: "meeting_flooded" }));
});

test("a frame that comes byte by byte is put together once", () => {
  const parser = new FrameParser("relay");
  const whole = encode({ type: "waiting", proof: randomBytes(32), for: "worker" });
  for (const [index] of whole.entries()) {
    expect(parser.take()).toBeNull();
    parser.push(whole.subarray(index, index + 1));
  }
  parser.push(Buffer.from("SSH-2.0-"));
  expect(parser.take()).toMatchObject({ type: "waiting" });
  expect(parser.held).toBe(8);
  parser.push(Buffer.from("x\r\n"));
  expect(parser.rest().toString()).toBe("SSH-2.0-x\r\n");
});

test("whoever floods is come to again after ever longer", () => {
  const end = closedBy("flooding", 0);
  expect([retryAfter(end), growsTo(end), growsTo(closedBy("busy", 1_000)), growsTo(new Error("x"))]).toEqual([10_000, 60_000, 0, 0]);
});
