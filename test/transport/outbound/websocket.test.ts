import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import net from "node:net";
import fc from "fast-check";
import { applyMask, FrameReader, frameHeader, maskInto, OPCODE } from "../../../src/transport/outbound/websocket/frames.ts";
import { WebSocketStream } from "../../../src/transport/outbound/websocket/stream.ts";
import { eventually } from "../../runner/wait.ts";

/** A frame of a client or of a server. */
function frame(opcode: number, payload: Buffer, masked: boolean): Buffer {
  const mask = masked ? randomBytes(4) : null;
  const body = Buffer.from(payload);
  if (mask !== null) for (const [at, byte] of body.entries()) body[at] = byte ^ mask[at % 4]!;
  return Buffer.concat([frameHeader(opcode, payload.length, mask), body]);
}

function read(masked: boolean, chunks: readonly Buffer[], maxPayload = 1 << 20): { data: Buffer; said: string[] } {
  const parts: Buffer[] = [];
  const said: string[] = [];
  const reader = new FrameReader(
    { masked, maxPayload },
    {
      data: (part) => parts.push(Buffer.from(part)),
      ping: (payload) => said.push(`ping ${payload.toString()}`),
      pong: (payload) => said.push(`pong ${payload.toString()}`),
      close: (code, reason) => said.push(`close ${code} ${reason}`),
    },
  );
  for (const chunk of chunks) reader.push(Buffer.from(chunk));
  return { data: Buffer.concat(parts), said };
}

describe("frames", () => {
  test("whatever the sizes, the mask and the cuts, the bytes come out as they went in", () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 130 }), fc.constantFrom(125, 126, 65_535, 65_536, 70_001)), { maxLength: 6 });
    fc.assert(
      fc.property(
        sizes,
        fc.boolean(),
        fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 20 }),
        (lengths, masked, cuts) => {
          const payloads = lengths.map((length) => randomBytes(length));
          const wire = Buffer.concat(
            payloads.flatMap((payload) => [frame(OPCODE.binary, payload, masked), frame(OPCODE.ping, Buffer.from("x"), masked)]),
          );
          const chunks: Buffer[] = [];
          for (let at = 0, turn = 0; at < wire.length; turn++) {
            const size = cuts[turn % cuts.length]!;
            chunks.push(wire.subarray(at, at + size));
            at += size;
          }
          const { data, said } = read(masked, chunks);
          expect(data.equals(Buffer.concat(payloads))).toBe(true);
          expect(said).toEqual(payloads.map(() => "ping x"));
        },
      ),
      { numRuns: 60 },
    );
  });

  test("a mask goes over bytes wherever in memory and in the message they lie", () => {
    for (let offset = 0; offset < 9; offset++) {
      for (const length of [0, 1, 3, 4, 5, 64, 67]) {
        const mask = randomBytes(4);
        const original = randomBytes(length);
        const place = Buffer.alloc(length + offset + 8);
        const part = place.subarray(offset, offset + length);
        original.copy(part);
        applyMask(part, mask, offset);
        expect(part).toEqual(Buffer.from(original.map((byte, at) => byte ^ mask[(at + offset) % 4]!)));
        expect(place.subarray(offset + length).every((byte) => byte === 0)).toBe(true);
      }
    }
  });

  test("the same into other memory", () => {
    for (const length of [0, 5, 16, 64, 67]) {
      for (let offset = 0; offset < 5; offset++) {
        const mask = randomBytes(4);
        const place = randomBytes(length + offset);
        const from = place.subarray(offset);
        const before = Buffer.from(from);
        const to = Buffer.alloc(length + 4);
        maskInto(to, from, mask);
        expect(to).toEqual(Buffer.concat([Buffer.from(from.map((byte, at) => byte ^ mask[at % 4]!)), Buffer.alloc(4)]));
        expect(from).toEqual(before);
      }
    }
  });

  test("fragments are one stream, control frames between them; what follows a close is not read", () => {
    const [first, middle, last] = [
      frame(OPCODE.binary, Buffer.from("a"), true),
      frame(OPCODE.continuation, Buffer.from("b"), true),
      frame(OPCODE.continuation, Buffer.from("c"), true),
    ];
    first[0]! &= 0x7f;
    middle[0]! &= 0x7f;
    const close = frame(OPCODE.close, Buffer.concat([Buffer.from([0x03, 0xe9]), Buffer.from("bye")]), true);
    const { data, said } = read(true, [first, frame(OPCODE.pong, Buffer.from("p"), true), middle, last, close, Buffer.from("junk")]);
    expect(data.toString()).toBe("abc");
    expect(said).toEqual(["pong p", "close 1001 bye"]);
  });

  const bad = (change: (bytes: Buffer) => void, opcode: number = OPCODE.binary, payload = Buffer.from("x")): Buffer => {
    const bytes = frame(opcode, payload, true);
    change(bytes);
    return bytes;
  };
  const same = (): void => undefined;
  test.each([
    ["text", 1003, bad(same, OPCODE.text)],
    [
      "a reserved bit",
      1002,
      bad((bytes) => {
        bytes[0] = bytes[0]! | 0x40;
      }),
    ],
    ["an opcode that there is not", 1002, bad(same, 3)],
    ["a control opcode that there is not", 1002, bad(same, 11)],
    ["a continuation of nothing", 1002, bad(same, OPCODE.continuation)],
    [
      "a fragmented ping",
      1002,
      bad((bytes) => {
        bytes[0] = bytes[0]! & 0x7f;
      }, OPCODE.ping),
    ],
    ["a long ping", 1002, bad(same, OPCODE.ping, Buffer.alloc(126))],
    ["half a close code", 1002, bad(same, OPCODE.close)],
    ["too long a frame", 1009, bad(same, OPCODE.binary, Buffer.alloc(2_000))],
    ["a length beyond all numbers", 1009, Buffer.from([0x82, 0xff, ...Array.from({ length: 12 }, () => 0xff)])],
    ["no mask", 1002, frame(OPCODE.binary, Buffer.from("x"), false)],
  ])("refuses %s with %d", (_what, closeCode, bytes) => {
    expect(() => read(true, [bytes], 1_000)).toThrow(expect.objectContaining({ closeCode }));
  });
});

/** Two ends of a WebSocket over a real connection, upgraded already. */
async function pair(): Promise<{ near: WebSocketStream; far: WebSocketStream; wires: [net.Socket, net.Socket]; end(): void }> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const accepted = new Promise<net.Socket>((resolve) => server.once("connection", resolve));
  const near = net.connect((server.address() as net.AddressInfo).port, "127.0.0.1");
  const far = await accepted;
  server.close();
  const ends = { near: new WebSocketStream(near, "client"), far: new WebSocketStream(far, "server") };
  for (const stream of [ends.near, ends.far]) stream.on("error", () => undefined);
  return { ...ends, wires: [near, far], end: () => void [near, far].map((wire) => wire.destroy()) };
}
const closed = (stream: WebSocketStream): Promise<void> =>
  stream.destroyed ? Promise.resolve() : new Promise((resolve) => stream.once("close", resolve));

describe("a stream over it", () => {
  test.each(["near", "far"] as const)("a reader that stops holds the writer up (%s reads)", async (reader) => {
    const both = await pair();
    const [to, from] = reader === "near" ? [both.near, both.far] : [both.far, both.near];
    const chunk = Buffer.alloc(64 * 1024, 7);
    let written = 0;
    let stopped = false;
    const fill = (): void => {
      for (let more = true; more && written < 200e6; written += chunk.length) more = from.write(chunk);
      stopped = true;
    };
    from.on("drain", fill);
    fill();
    let before = -1;
    await eventually(
      () => {
        const still = stopped && written === before;
        before = written;
        return still;
      },
      { everyMs: 100, what: "a writer that waits" },
    );
    // What the two kernels' buffers hold, and little more.
    expect(written).toBeLessThan(16e6);
    expect(to.readableLength).toBeLessThanOrEqual(512 * 1024);
    from.removeListener("drain", fill);
    let came = 0;
    to.on("data", (part: Buffer) => {
      came += part.length;
    });
    from.end();
    await closed(to);
    expect(came).toBe(written);
    both.end();
  });

  test("end closes both directions after what was written, and says so; both sides see it as an end", async () => {
    const both = await pair();
    const came: Buffer[] = [];
    both.far.on("data", (part: Buffer) => came.push(part));
    const ended = new Promise<void>((resolve) => both.far.once("end", resolve));
    both.near.write(Buffer.alloc(300_000, 1));
    both.near.end("last");
    await ended;
    both.near.resume();
    await Promise.all([closed(both.near), closed(both.far)]);
    expect(Buffer.concat(came).toString("latin1", 300_000)).toBe("last");
    expect(both.far.closedBy).toEqual({ code: 1_000, reason: "" });
    expect(both.near.closedBy?.code).toBe(1_000);
    expect(both.near.errored).toBeNull();
    both.end();
  });

  test("a connection that is cut is an error, and never an end", async () => {
    for (const how of ["destroy", "end"] as const) {
      const both = await pair();
      let ended = false;
      both.near.on("end", () => {
        ended = true;
      });
      both.near.resume();
      both.wires[1][how]();
      await closed(both.near);
      expect(ended).toBe(false);
      expect(both.near.errored).not.toBeNull();
      both.end();
    }
  });

  test("what does not follow the protocol ends it with the code for that; a ping is answered", async () => {
    const both = await pair();
    const said: string[] = [];
    const reader = new FrameReader(
      { masked: true, maxPayload: 1_000 },
      {
        data: () => undefined,
        ping: () => undefined,
        pong: (payload) => said.push(`pong ${payload.toString()}`),
        close: (code) => said.push(`close ${code}`),
      },
    );
    const raw = both.wires[1];
    raw.removeAllListeners("data");
    raw.on("data", (chunk: Buffer) => reader.push(chunk));
    raw.resume();
    both.near.resume();
    raw.write(frame(OPCODE.ping, Buffer.from("hi"), false));
    await eventually(() => said.includes("pong hi"));
    raw.write(frame(OPCODE.text, Buffer.from("hi"), false));
    await closed(both.near);
    expect(both.near.errored?.message).toContain("text");
    await eventually(() => said.includes("close 1003"));
    both.end();
  });
});
