/**
 * A program that answers as a relay-host does, and says as much as a connection takes: `bun flooding-relay-host-process.ts TOKEN|-`. Without a token it sends pings behind each opening; with it, workers are registered
 * first and asked about desktops. Over plain TCP, on a port that it prints.
 */
import { randomBytes } from "node:crypto";
import net from "node:net";
import { encode, FrameParser } from "../../../src/transport/meeting/frames.ts";
import type { OpeningMessage } from "../../../src/transport/meeting/messages.ts";
import { PREFACE } from "../../../src/transport/meeting/messages.ts";
import { prove } from "../../../src/transport/meeting/proof.ts";
import { makeKeyPair } from "../../../src/transport/session/key-pair.ts";
import { sshEd25519 } from "../../../src/transport/session/keys.ts";
import { signerOf } from "../../../src/transport/session/signer.ts";

const token = process.argv[2]!;
const signer = signerOf(makeKeyPair("nobody").privateKey);
const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index));
const PINGS = Buffer.concat(times(2_000, (id) => encode({ type: "ping", id })));
const JOININGS = Buffer.concat(
  times(300, (join) =>
    encode({
      type: "joining",
      join,
      key: sshEd25519(randomBytes(32)),
      ticket: randomBytes(32),
      expires: 15_000,
      pairing: false,
      address: "192.0.2.1",
    }),
  ),
);

const server = net.createServer((socket) => {
  socket.on("error", () => undefined);
  const relayNonce = randomBytes(32);
  const parser = new FrameParser("client");
  let skip = PREFACE.length;
  socket.write(encode({ type: "hello", oldest: 1, newest: 1, nonce: relayNonce }));
  const flood = (bytes: Buffer): void => {
    socket.removeAllListeners("data").resume();
    const go = (): void => {
      while (!socket.destroyed && socket.write(bytes));
    };
    socket.on("drain", go);
    go();
  };
  socket.on("data", (chunk: Buffer) => {
    parser.push(chunk.subarray(skip));
    skip = Math.max(0, skip - chunk.length);
    const opening = parser.take() as OpeningMessage | null;
    if (opening === null) return;
    if (token === "-" || opening.type !== "register") return flood(PINGS);
    const { version, room, relay, key, nonce: clientNonce } = opening;
    const opened = { version, role: "register", room, relay, relayNonce, clientNonce, key, ticket: Buffer.alloc(0) } as const;
    socket.write(encode({ type: "registered", proof: prove(opened, token, signer).answer }));
    flood(JOININGS);
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as net.AddressInfo).port));
