import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { connect as connectTls } from "node:tls";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { BEARER, fronts, head, type Raw } from "./fronts.ts";

const { behind, connect, ending } = fronts();
const directory = temporaryDirectories();

/** Sockets of this process: both ends of each connection are in it. */
const sockets = (): number => fs.readdirSync("/proc/self/fd").length;
const answersOf = (raw: Raw): number => raw.text().split("HTTP/1.1 200 ").length - 1;

async function ask(raw: Raw, line = "GET /owner HTTP/1.1", body = ""): Promise<void> {
  const before = raw.text().length;
  raw.socket.write(head(line, BEARER, ...(body === "" ? [] : [`Content-Length: ${body.length}`])) + body);
  await eventually(() =>
    raw
      .text()
      .slice(before)
      .endsWith(body === "" ? "served" : `${body}\r\n0\r\n\r\n`),
  );
}

test("connections that wait for their next request hold one descriptor each, and are served when it comes", async () => {
  const { front } = await behind({ bounds: { descriptors: 20 } });
  const before = sockets();
  const all: Raw[] = [];
  for (let n = 0; n < 12; n++) {
    all.push(await connect(front.address.port));
    await ask(all[n]!);
  }
  // A client's own and the front's of each, and two more of each that is joined: 15 of 20 at most.
  await eventually(() => sockets() - before <= 12 + 15);
  for (let round = 0; round < 3; round++) for (const raw of all) await ask(raw);
  for (const raw of all) await ask(raw, "POST /echo HTTP/1.1", "a body");
  expect(all.map(answersOf)).toEqual(new Array<number>(12).fill(5));
  expect(front.connections).toEqual({ unproven: 0, proven: 12 });
  for (const raw of all.slice(0, 6)) raw.socket.end();
  for (const raw of all.slice(6)) raw.socket.destroy();
  await eventually(() => front.connections.proven === 0);
  await eventually(() => sockets() <= before);
});

test("who is set aside is asked for the token again, in TLS, too", async () => {
  const place = directory();
  const [cert, key] = [path.join(place, "cert.pem"), path.join(place, "key.pem")];
  const made = spawnSync("openssl", [
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-keyout",
    key,
    "-out",
    cert,
    "-subj",
    "/CN=localhost",
    "-days",
    "2",
  ]);
  expect(made.status).toBe(0);
  const secret = { cert: fs.readFileSync(cert, "utf8"), key: fs.readFileSync(key, "utf8") };
  for (const tls of [null, secret]) {
    const { front } = await behind({ bounds: { descriptors: 5 }, asks: true, tls });
    const open = async (): Promise<{ socket: net.Socket; text: () => string }> => {
      const at = { port: front.address.port, host: "127.0.0.1" };
      const socket = tls === null ? net.connect(at) : connectTls({ ...at, rejectUnauthorized: false });
      ending.push(() => socket.destroy());
      let text = "";
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1");
      });
      socket.on("error", () => undefined);
      socket.write(head("GET /owner HTTP/1.1", BEARER));
      await eventually(() => text.endsWith("served"));
      return { socket, text: () => text };
    };
    const [first, second, third] = [await open(), await open(), await open()];
    expect(front.connections.proven).toBe(3);
    first.socket.write(head("GET /owner HTTP/1.1", "Authorization: Bearer other"));
    await eventually(() => first.text().includes("HTTP/1.1 401 "));
    second.socket.write(head("GET /owner HTTP/1.1"));
    await eventually(() => second.text().includes("HTTP/1.1 401 "));
    third.socket.write(head("GET /owner HTTP/1.1", BEARER));
    await eventually(() => third.text().split("served").length === 3);
  }
});

test("what is under way is never set aside, and who cannot be served for want of descriptors is told so", async () => {
  const refused: string[] = [];
  const { front, aborted } = await behind({ bounds: { descriptors: 8 }, onRefused: (why) => refused.push(why) });
  const waiting = await connect(front.address.port);
  await ask(waiting);
  const streams: Raw[] = [];
  for (let n = 0; n < 2; n++) {
    streams.push(await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER)));
    await eventually(() => streams[n]!.text().includes("first\n"));
  }
  // Seven are taken: two streams, and one that is set aside.
  const one = await connect(front.address.port, head("GET /owner HTTP/1.1", BEARER));
  await one.closed;
  expect(one.text()).toStartWith("HTTP/1.1 429 ");
  waiting.socket.write(head("GET /owner HTTP/1.1", BEARER));
  await waiting.closed;
  expect(waiting.text()).toContain("HTTP/1.1 429 ");
  expect(waiting.text()).toContain('"reason":"listener_busy"');
  expect(refused).toEqual(["connections", "connections"]);
  expect([streams.map((raw) => raw.isClosed()), aborted]).toEqual([[false, false], []]);
  streams[0]!.socket.destroy();
  await eventually(() => front.connections.proven === 1);
  await ask(await connect(front.address.port));
});

test("who is set aside ends with all others, and at once where the front ends", async () => {
  const { front } = await behind({ bounds: { descriptors: 5 } });
  const [first, second, third] = [await connect(front.address.port), await connect(front.address.port), await connect(front.address.port)];
  for (const raw of [first, second, third]) await ask(raw);
  front.endProven();
  for (const raw of [first, second, third]) await raw.closed;
  expect(front.connections.proven).toBe(0);
  const [again, other] = [await connect(front.address.port), await connect(front.address.port)];
  for (const raw of [again, other]) await ask(raw);
  front.close();
  // `again` has been set aside: nothing is due on it, and nobody waits for it.
  const drained = front.drain(60_000);
  await again.closed;
  other.socket.destroy();
  await drained;
});
