import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type net from "node:net";
import { OPCODE } from "../../../src/transport/outbound/websocket/frames.ts";
import { requireComponent } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { newSigner, Place, TOKEN } from "./place.ts";
import { frameOf, opening, rawTcp, upgradeRequest } from "./raw.ts";

/** For so long nothing is read by whoever was answered: its machine is busy, or the path is long. */
const AWAY_MS = 2_200;
const WRONG = "another-token-0123456789abcdefghij";

const ask = (what: string, token = TOKEN): string => `GET /${what} HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n\r\n`;

/** A connection whose bytes are read late: what came in the end, and how that ended. */
class LateReader {
  text = "";
  readonly ended: Promise<string>;

  constructor(readonly socket: net.Socket) {
    socket.pause();
    socket.on("data", (chunk: Buffer) => {
      this.text += chunk.toString();
    });
    this.ended = new Promise((resolve) => {
      socket.once("end", () => resolve("end"));
      socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      socket.once("close", () => resolve("closed"));
    });
    // A listener for data has it flow.
    socket.pause();
  }

  /** @returns the status of the answer, and the end */
  async heard(): Promise<readonly [status: string, end: string]> {
    this.socket.resume();
    const end = await this.ended;
    return [this.text.slice(9, 12), end];
  }
}

describe.skipIf(!requireComponent("openssl"))("what is said last", () => {
  let place: Place;
  beforeAll(() => {
    place = new Place();
  });
  afterAll(() => place.close());

  test("waits for whoever reads it late, and is not reset: answers, and the code of a close", async () => {
    const readers = await Promise.all(
      [ask("metrics"), ask("metrics", WRONG), ask("elsewhere"), "this is no request\r\n\r\n"].map(async (request) => {
        const reader = new LateReader(await place.socket("ws"));
        reader.socket.write(request);
        return reader;
      }),
    );
    const upgraded = new LateReader(await place.socket("ws"));
    upgraded.socket.write(Buffer.concat([Buffer.from(upgradeRequest()), frameOf(OPCODE.binary, Buffer.alloc(8, 0xff))]));
    const client = rawTcp(await place.socket("tcp"));
    client.send(opening(await client.next(), { signer: newSigner(), relay: place.urls.tcp.authority, token: WRONG }));
    client.stream.pause();
    await Bun.sleep(AWAY_MS);
    expect(await Promise.all(readers.map((reader) => reader.heard()))).toEqual([
      ["200", "end"],
      ["401", "end"],
      ["404", "end"],
      ["400", "end"],
    ]);
    expect(readers[0]!.text).toContain("\nprocess_resident_memory_bytes ");
    upgraded.socket.resume();
    expect(await eventually(() => upgraded.text.includes("malformed"))).toBe(true);
    upgraded.socket.destroy();
    client.stream.resume();
    expect(await client.closed()).toBe("token");
  });
});

test.skipIf(!requireComponent("openssl"))(
  "whoever has said it in time is heard, also where the relay-host was held up meanwhile",
  async () => {
    const held = new Place({ times: { opening: 1_000 } });
    const reader = new LateReader(await held.socket("ws"));
    await eventually(() => held.relay.gauges().strangers === 1);
    reader.socket.write(ask("metrics"));
    // Nothing of this process runs, as where a machine sleeps or has more to do than it can.
    Bun.sleepSync(1_500);
    expect(await reader.heard()).toEqual(["200", "end"]);
    await held.close();
  },
);
