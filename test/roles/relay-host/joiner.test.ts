import { afterAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import net from "node:net";
import path from "node:path";
import { parseRelayUrl } from "../../../src/domain/relay-url.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { systemTimers, type Timers } from "../../../src/lib/waiting/timers.ts";
import { RelayJoiner } from "../../../src/roles/worker/relay-joiner.ts";
import { Ledger } from "../../../src/transport/ledger.ts";
import { encode } from "../../../src/transport/meeting/frames.ts";
import { PREFACE } from "../../../src/transport/meeting/messages.ts";
import { prove } from "../../../src/transport/meeting/proof.ts";
import { type Joining, register } from "../../../src/transport/meeting/register.ts";
import { makeKeyPair } from "../../../src/transport/session/key-pair.ts";
import { signerOf } from "../../../src/transport/session/signer.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { newSigner, TOKEN } from "./place.ts";
import { impostor } from "./raw.ts";

const directory = temporaryDirectory();
const { privateKey } = makeKeyPair("a worker");

/** A relay-host that says, with its `registered` and in one piece, what a test wants it to; and what it then hears. */
async function relayWith(says: readonly Buffer[]): Promise<{ port: number; heard: unknown[]; close: () => void }> {
  const heard: unknown[] = [];
  const relayNonce = randomBytes(32);
  const { port, close } = await impostor((stream, parser) => {
    let greeted = false;
    stream.write(encode({ type: "hello", oldest: 1, newest: 1, nonce: relayNonce }));
    stream.on("data", (chunk: Buffer) => {
      parser.push(greeted ? chunk : chunk.subarray(PREFACE.length));
      greeted = true;
      for (let message = parser.take(); message !== null; message = parser.take()) {
        heard.push(message);
        if (message.type !== "register") continue;
        const { version, room, relay, key, nonce: clientNonce } = message;
        const opened = { version, role: "register", room, relay, relayNonce, clientNonce, key, ticket: Buffer.alloc(0) } as const;
        const { answer } = prove(opened, TOKEN, newSigner());
        stream.write(Buffer.concat([encode({ type: "registered", proof: answer }), ...says]));
      }
    });
  });
  return { port, heard, close };
}

const joining = (join: number, address: string): Buffer =>
  encode({ type: "joining", join, key: newSigner().key, ticket: randomBytes(32), expires: 15_000, pairing: false, address });

function joiner(port: number, lines: string[]): RelayJoiner {
  return new RelayJoiner({
    url: parseRelayUrl(`tcp://127.0.0.1:${port}`),
    place: () => ({ token: TOKEN, surroundings: { variables: {}, caFiles: [] }, version: "test" }),
    cluster: "far",
    hostKey: () => privateKey,
    sessions: { admits: async () => false, serve: async () => undefined, onIdentity: () => () => undefined },
    ledger: new Ledger(path.join(directory.path, `${port}.jsonl`), systemClock),
    clock: systemClock,
    timers: systemTimers,
    log: { info: () => undefined, warn: (line) => void lines.push(line), error: (line) => void lines.push(line) },
  });
}

afterAll(() => directory[Symbol.dispose]?.());

test("a desktop that is asked about in the same breath as the registration is refused at once", async () => {
  const { port, heard, close } = await relayWith([joining(0, "192.0.2.1"), joining(1, "192.0.2.2")]);
  const worker = joiner(port, []);
  await eventually(() => heard.length >= 3);
  expect(heard.slice(1)).toEqual([0, 1].map((join) => ({ type: "refuse", join, reason: "key" })));
  await worker.stop();
  close();
});

test("an address that is none ends the connection, and comes into no log", async () => {
  const { port, heard, close } = await relayWith([joining(0, "\u001b]0;owned\u0007\r\nfake line")]);
  const lines: string[] = [];
  const worker = joiner(port, lines);
  await eventually(() => lines.length > 0);
  expect(lines.join(" ")).not.toMatch(/owned|fake/);
  expect(heard).not.toContainEqual(expect.objectContaining({ type: "refuse" }));
  await worker.stop();
  close();
});

test("a refusal that comes after its registration is over starts nothing", async () => {
  const { port, close } = await relayWith([joining(0, "192.0.2.1")]);
  let waiting = 0;
  const timers: Timers = {
    after(ms, act) {
      waiting++;
      const cancel = systemTimers.after(ms, act);
      let over = false;
      return () => {
        if (!over) waiting--;
        over = true;
        cancel();
      };
    },
  };
  const asked: Joining[] = [];
  const duplex = net.connect({ host: "127.0.0.1", port });
  const relay = { scheme: "tcp", authority: `127.0.0.1:${port}` } as const;
  const options = { relay, token: TOKEN, signer: signerOf(privateKey), timers, onJoining: (one: Joining) => void asked.push(one) };
  const registration = await register(duplex, options);
  const late = await eventually(() => asked[0]);
  duplex.destroy();
  expect(await registration.closed).toMatchObject({ code: "link_down" });
  const before = waiting;
  late.refuse("key");
  expect([before, waiting]).toEqual([0, 0]);
  close();
});
