import { expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { DUPLEXES } from "./duplexes.ts";
import { open, serverOf } from "./peers.ts";

const CHANNELS = 6;
const ANSWERS = 40;
const BYTES = 512 * 1024;

const connect = (file: string): Promise<net.Socket> =>
  new Promise((resolve, reject) => {
    const socket = net.connect({ path: file, allowHalfOpen: true } as net.NetConnectOpts);
    socket.once("connect", () => resolve(socket));
    socket.once("error", reject);
  });

test("channels that share one wire all get their answers, one after the other, whatever holds the wire up", async () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "many-"));
  const file = path.join(directory, "s");
  const answer = Buffer.from(crypto.getRandomValues(new Uint8Array(64 * 1024)).buffer);
  // As an HTTP server does it: for each question an answer of so many bytes, in pieces.
  const source = net.createServer((socket) => {
    socket.on("data", () => {
      for (let sent = 0; sent < BYTES; sent += answer.length) socket.write(answer);
    });
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => source.listen(file, resolve));
  await using ends = await DUPLEXES["a Unix socket"]!(directory);
  const served = serverOf({ connect: () => connect(file) });
  served.server.serve(ends.server);
  const session = await open(ends.client);
  const expected = Buffer.concat(Array.from({ length: BYTES / answer.length }, () => answer));
  const ask = async (): Promise<number> => {
    const channel = await session.openSocket("/");
    let got: Buffer[] = [];
    let bytes = 0;
    let whole: () => void = () => undefined;
    channel.on("data", (chunk: Buffer) => {
      got.push(chunk);
      bytes += chunk.length;
      if (bytes >= BYTES) whole();
    });
    let right = 0;
    for (let i = 0; i < ANSWERS; i++) {
      const complete = new Promise<void>((resolve) => {
        whole = resolve;
      });
      channel.write("?");
      await complete;
      if (Buffer.concat(got).equals(expected)) right++;
      got = [];
      bytes = 0;
    }
    channel.destroy();
    return right;
  };
  expect(await Promise.all(Array.from({ length: CHANNELS }, ask))).toEqual(Array.from({ length: CHANNELS }, () => ANSWERS));
  session.close();
  source.close();
  fs.rmSync(directory, { recursive: true });
});
