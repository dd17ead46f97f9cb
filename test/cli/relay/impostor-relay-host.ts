import { randomBytes } from "node:crypto";
import net from "node:net";
import type { Duplex } from "node:stream";
import { encode, FrameParser } from "../../../src/transport/meeting/frames.ts";
import { PREFACE } from "../../../src/transport/meeting/messages.ts";
import { check } from "../../../src/transport/meeting/proof.ts";

/** A relay-host that knows the token and joins nobody: whoever comes for a worker gets what `answer` makes of the stream. Over plain TCP. */
export class ImpostorRelayHost implements AsyncDisposable {
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  joins = 0;

  private constructor(
    private readonly token: string,
    private readonly answer: (duplex: Duplex) => void,
  ) {
    this.#server = net.createServer((socket) => this.#serve(socket));
  }

  static async start(token: string, answer: (duplex: Duplex) => void): Promise<ImpostorRelayHost> {
    const host = new ImpostorRelayHost(token, answer);
    await new Promise<void>((resolve) => host.#server.listen(0, "127.0.0.1", resolve));
    return host;
  }

  get url(): string {
    return `tcp://127.0.0.1:${(this.#server.address() as net.AddressInfo).port}`;
  }

  #serve(socket: net.Socket): void {
    this.#sockets.add(socket.on("close", () => this.#sockets.delete(socket)).on("error", () => undefined));
    const nonce = randomBytes(32);
    const parser = new FrameParser("client");
    let preface = PREFACE.length;
    socket.write(encode({ type: "hello", oldest: 1, newest: 1, nonce }));
    const take = (chunk: Buffer): void => {
      const skipped = Math.min(preface, chunk.length);
      preface -= skipped;
      parser.push(chunk.subarray(skipped));
      const opening = parser.take();
      if (opening === null) return;
      socket.off("data", take);
      if (opening.type !== "join") {
        socket.destroy();
        return;
      }
      this.joins++;
      const { version, room, relay, key, proof, signature } = opening;
      const opened = {
        version,
        role: "join",
        room,
        relay,
        relayNonce: nonce,
        clientNonce: opening.nonce,
        key,
        ticket: Buffer.alloc(0),
      } as const;
      const verdict = check(opened, proof, signature, [this.token]);
      if (!("answer" in verdict)) throw new Error(`the opening was refused: ${verdict.refused}`);
      socket.write(encode({ type: "joined", proof: verdict.answer }));
      this.answer(socket);
    };
    socket.on("data", take);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
