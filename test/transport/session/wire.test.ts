import { expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { Duplex } from "node:stream";
import { Wire } from "../../../src/transport/session/wire.ts";

/** A Duplex that keeps the chunks that are written, and takes each when it is told to. */
function recorder(): { duplex: Duplex; chunks: Buffer[]; take: () => void } {
  const chunks: Buffer[] = [];
  let done: (() => void) | null = null;
  const duplex = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, taken) {
      chunks.push(Buffer.from(chunk));
      done = taken;
    },
  });
  return { duplex, chunks, take: () => done?.() };
}

test("what is written in one turn goes out as one, in its order", async () => {
  const { duplex, chunks } = recorder();
  const wire = new Wire(duplex);
  for (const part of ["len", "packet", "tag"]) wire.write(Buffer.from(part));
  expect(wire.pending).toBe(12);
  await Promise.resolve();
  expect(chunks.map(String)).toEqual(["lenpackettag"]);
  wire.write(Buffer.from("next"));
  await Promise.resolve();
  expect(wire.bytesOut).toBe(16);
  expect(wire.pending).toBe(16);
  wire.destroy();
});

test("what was written right before the end goes out, and nothing after a destroy", async () => {
  const said = recorder();
  const wire = new Wire(said.duplex);
  wire.write(Buffer.from("good-bye"));
  wire.end();
  expect(said.chunks.map(String)).toEqual(["good-bye"]);
  wire.destroy();
  const cut = recorder();
  const other = new Wire(cut.duplex);
  other.write(Buffer.from("never"));
  other.destroy();
  await Promise.resolve();
  expect(cut.chunks).toEqual([]);
});

test("a drain comes after as much as makes a source wait", async () => {
  const { duplex, take } = recorder();
  const wire = new Wire(duplex);
  wire.established();
  const drained = new Promise<void>((resolve) => wire.once("drain", resolve));
  wire.write(Buffer.alloc(300_000));
  expect(wire.pending).toBe(300_000);
  await Promise.resolve();
  take();
  await drained;
  expect(wire.pending).toBe(0);
  wire.destroy();
});

test("a drain comes also where the system takes everything at once, of which a socket says nothing", async () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "wire-"));
  const file = path.join(directory, "s");
  const server = net.createServer((socket) => socket.resume()).listen(file);
  const socket = net.connect(file);
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  const wire = new Wire(socket);
  const drained = new Promise<void>((resolve) => wire.once("drain", resolve));
  wire.write(Buffer.alloc(100_000));
  expect(wire.pending).toBe(100_000);
  await drained;
  expect(wire.pending).toBe(0);
  wire.destroy();
  server.close();
  fs.rmSync(directory, { recursive: true });
});

test("over a socket every byte comes as it was written, before and after the session is open", async () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "wire-"));
  const file = path.join(directory, "s");
  const hash = new Bun.CryptoHasher("sha256");
  const found = new Bun.CryptoHasher("sha256");
  let accepted: (socket: net.Socket) => void = () => undefined;
  const socket = new Promise<net.Socket>((resolve) => {
    accepted = resolve;
  });
  const server = net.createServer((one) => accepted(one)).listen(file);
  const wire = new Wire(net.connect(file));
  const peer = new Wire(await socket);
  let bytes = 0;
  const total = 400 * 40_000;
  const all = new Promise<void>((resolve) => {
    peer.on("data", (chunk: Buffer) => {
      found.update(chunk);
      bytes += chunk.length;
      if (bytes === total) resolve();
    });
  });
  peer.resume();
  for (let i = 0; i < 400; i++) {
    if (i === 200) for (const one of [wire, peer]) one.established();
    for (const size of [4, 39_980, 16]) {
      const part = Buffer.from(new ArrayBuffer(size)).fill(i % 251);
      hash.update(part);
      wire.write(part);
    }
    // Before, no session says as much.
    if (wire.pending > (i < 200 ? 100_000 : 1_000_000)) await new Promise((resolve) => wire.once("drain", resolve));
  }
  await all;
  expect(found.digest("hex")).toBe(hash.digest("hex"));
  for (const one of [wire, peer]) one.destroy();
  server.close();
  fs.rmSync(directory, { recursive: true });
});

test("before the session is open, who does not take what is said to it is not waited for", async () => {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const accepted = new Promise<net.Socket>((resolve) => server.once("connection", resolve));
  const deaf = net.connect((server.address() as net.AddressInfo).port, "127.0.0.1").pause();
  deaf.on("error", () => undefined);
  const wire = new Wire(await accepted);
  const errors: Error[] = [];
  wire.on("error", (error: Error) => errors.push(error));
  let closed = false;
  wire.on("close", () => {
    closed = true;
  });
  let most = 0;
  for (let turns = 0; turns < 2_000 && !closed; turns++) {
    wire.write(Buffer.alloc(32 * 1024));
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, wire.pending);
  }
  expect([closed, errors.length, most < 512 * 1024]).toEqual([true, 1, true]);
  deaf.destroy();
  server.close();
});
