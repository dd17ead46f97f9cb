import { randomBytes } from "node:crypto";
import net from "node:net";
import type { Duplex } from "node:stream";
import { encode, FrameParser } from "../../../src/transport/meeting/frames.ts";
import { type FromClient, type FromRelay, type OpeningMessage, PREFACE, SUBPROTOCOL } from "../../../src/transport/meeting/messages.ts";
import { prove, roomOf } from "../../../src/transport/meeting/proof.ts";
import { frameHeader } from "../../../src/transport/outbound/websocket/frames.ts";
import type { Ed25519Signer } from "../../../src/transport/session/signer.ts";
import { TOKEN } from "./place.ts";

/** A client that says whatever a test wants it to. */
export class RawClient {
  #at = 0;
  /** Whatever comes, and however much. */
  readonly #parser = new FrameParser("relay", () => (this.#at += 3_600_000));
  readonly #messages: (FromRelay | "ended")[] = [];
  #wake: () => void = () => undefined;

  constructor(readonly stream: Duplex) {
    stream.on("data", (chunk: Buffer) => {
      this.#parser.push(chunk);
      for (let message = this.#parser.take(); message !== null; message = this.#parser.take()) this.#put(message);
    });
    for (const end of ["end", "close", "error"]) stream.on(end, () => this.#put("ended"));
  }

  #put(message: FromRelay | "ended"): void {
    this.#messages.push(message);
    this.#wake();
  }

  /** What the relay-host says next; "ended" when that is nothing. */
  async next(): Promise<FromRelay | "ended"> {
    while (this.#messages.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#messages.shift()!;
  }

  send(message: FromClient): void {
    this.stream.write(encode(message));
  }

  /** The code of the `close` that comes next; "ended" for an end without one. */
  async closed(): Promise<string> {
    const message = await this.next();
    if (message === "ended") return message;
    return message.type === "close" ? message.code : `not closed, but ${message.type}`;
  }
}

export interface Opening {
  readonly role?: OpeningMessage["type"];
  readonly signer: Ed25519Signer;
  readonly token?: string;
  /** Another room than that of the key. */
  readonly room?: Buffer;
  readonly relay: string;
  readonly ticket?: Buffer;
  readonly wait?: number;
  /** What is changed in it after it was signed. */
  readonly instead?: Partial<OpeningMessage>;
}

/** The opening that fits a `hello`, but for what a test wants to be wrong. */
export function opening(
  hello: FromRelay | "ended",
  { role = "register", signer, token = TOKEN, room, relay, ticket, wait, instead }: Opening,
): OpeningMessage {
  if (hello === "ended" || hello.type !== "hello") throw new Error("no hello came");
  const nonce = randomBytes(32);
  const wanted = room ?? roomOf(signer.key);
  const opened = {
    version: 1,
    role,
    room: wanted,
    relay,
    relayNonce: hello.nonce,
    clientNonce: nonce,
    key: signer.key,
    ticket: ticket ?? Buffer.alloc(0),
  };
  const { signature, proof } = prove(opened, token, signer);
  const kind = role === "join" ? { wait: wait ?? 0 } : role === "accept" ? { ticket } : {};
  return { type: role, version: 1, relay, nonce, key: signer.key, room: wanted, signature, proof, ...kind, ...instead } as OpeningMessage;
}

/** Begin on a TCP carrier. */
export function rawTcp(socket: net.Socket): RawClient {
  socket.write(PREFACE);
  return new RawClient(socket);
}

/** A relay-host that is none: says what a test wants it to. */
export async function impostor(
  script: (stream: net.Socket, parser: FrameParser<"client">) => void,
): Promise<{ port: number; close: () => void }> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    script(socket, new FrameParser("client"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Asks for the WebSocket of a meeting. */
export function upgradeRequest(...more: string[]): string {
  const lines = ["GET /meet HTTP/1.1", "Upgrade: websocket", "Connection: upgrade", "Sec-WebSocket-Version: 13", ...more];
  const ours = [`Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`, `Sec-WebSocket-Protocol: ${SUBPROTOCOL}`];
  return `${[...lines, ...ours].join("\r\n")}\r\n\r\n`;
}

/** A client's frame, masked with nothing. */
export const frameOf = (opcode: number, payload = Buffer.alloc(0)): Buffer =>
  Buffer.concat([frameHeader(opcode, payload.length, Buffer.alloc(4)), payload]);
