import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { acceptFor, closePayload, FrameReader, FrameViolation, frame, frameHead, OPCODE } from "../../../src/transport/websocket/frames.ts";
import { mask } from "../../../src/transport/websocket/mask.ts";

interface Seen {
  readonly data: Buffer[];
  readonly pings: string[];
  readonly closes: number[];
}

function reading(from: "client" | "server"): { reader: FrameReader; seen: Seen } {
  const seen: Seen = { data: [], pings: [], closes: [] };
  const reader = new FrameReader(from, {
    data: (bytes) => void seen.data.push(Buffer.from(bytes)),
    ping: (payload) => void seen.pings.push(payload.toString()),
    close: (code) => void seen.closes.push(code),
  });
  return { reader, seen };
}

const KEY = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

describe("frames of RFC 6455", () => {
  test("the examples of sections 1.3 and 5.7", () => {
    expect(acceptFor("dGhlIHNhbXBsZSBub25jZQ==")).toBe("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    const masked = Buffer.from([0x48, 0x65, 0x6c, 0x6c, 0x6f]);
    mask(masked, KEY);
    expect(masked).toEqual(Buffer.from([0x7f, 0x9f, 0x4d, 0x51, 0x58]));
    expect(frameHead(OPCODE.binary, 256)).toEqual(Buffer.from([0x82, 0x7e, 0x01, 0x00]));
    expect(frameHead(OPCODE.binary, 65_536)).toEqual(Buffer.from([0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]));
    expect(frame(OPCODE.ping, Buffer.from("Hello"), KEY)).toEqual(
      Buffer.from([0x89, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]),
    );
  });

  test("masking is the same from any place in memory and in the frame", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 300 }),
        fc.uint8Array({ minLength: 4, maxLength: 4 }),
        fc.nat(7),
        fc.nat(9),
        (bytes, key, place, at) => {
          const memory = new Uint8Array(bytes.length + place);
          memory.set(bytes, place);
          const view = memory.subarray(place);
          mask(view, key, at);
          expect([...view]).toEqual([...bytes].map((byte, i) => byte ^ key[(at + i) % 4]!));
        },
      ),
    );
  });

  test("whatever is written in pieces is read, however it is cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 12 }),
        fc.array(fc.nat(50), { minLength: 1, maxLength: 20 }),
        fc.boolean(),
        (messages, cuts, fromClient) => {
          const { reader, seen } = reading(fromClient ? "client" : "server");
          const key = fromClient ? KEY : null;
          const wire = Buffer.concat(
            messages.flatMap((one, i) => [frame(OPCODE.binary, one, key), frame(OPCODE.ping, Buffer.from(`${i}`), key)]),
          );
          for (let at = 0, i = 0; at < wire.length; i++) {
            const next = at + cuts[i % cuts.length]! + 1;
            reader.push(Buffer.from(wire.subarray(at, next)));
            at = next;
          }
          expect(Buffer.concat(seen.data)).toEqual(Buffer.concat(messages));
          expect(seen.pings).toEqual(messages.map((_, i) => `${i}`));
        },
      ),
    );
  });

  test("fragments are one stream, with control frames between them; nothing comes after a close", () => {
    const { reader, seen } = reading("server");
    const first = frame(OPCODE.binary, Buffer.from("one "));
    first[0]! &= 0x7f;
    reader.push(first);
    reader.push(frame(OPCODE.pong, Buffer.from("unasked")));
    reader.push(frame(OPCODE.ping, Buffer.from("between")));
    reader.push(frame(OPCODE.continuation, Buffer.from("two")));
    reader.push(Buffer.concat([frame(OPCODE.close, closePayload(1001)), frame(OPCODE.binary, Buffer.from("late"))]));
    expect(Buffer.concat(seen.data).toString()).toBe("one two");
    expect(seen.pings).toEqual(["between"]);
    expect(seen.closes).toEqual([1001]);
  });

  test.each<[string, Buffer, number]>([
    ["an unmasked frame of a client", frame(OPCODE.binary, Buffer.from("x")), 1002],
    ["a text message", frame(OPCODE.text, Buffer.from("x"), KEY), 1003],
    ["a reserved bit", Buffer.from([0xc2, 0x80, 0, 0, 0, 0]), 1002],
    ["an unknown opcode", Buffer.from([0x83, 0x80, 0, 0, 0, 0]), 1002],
    ["an unknown control opcode", Buffer.from([0x8b, 0x80, 0, 0, 0, 0]), 1002],
    ["a continuation of nothing", frame(OPCODE.continuation, Buffer.from("x"), KEY), 1002],
    ["a fragmented ping", Buffer.from([0x09, 0x80, 0, 0, 0, 0]), 1002],
    ["a ping of 126 bytes", frame(OPCODE.ping, Buffer.alloc(126), KEY), 1002],
    ["a close of one byte", frame(OPCODE.close, Buffer.alloc(1), KEY), 1002],
    ["a length beyond all numbers", Buffer.from([0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0]), 1002],
  ])("%s is a violation", (_, bytes, code) => {
    const { reader, seen } = reading("client");
    let violation: unknown = null;
    try {
      reader.push(bytes);
    } catch (error) {
      violation = error;
    }
    expect(violation).toBeInstanceOf(FrameViolation);
    expect((violation as FrameViolation).closeCode).toBe(code);
    expect(seen.data).toEqual([]);
  });
});
