import { afterEach, expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import { Hono } from "hono";
import { afterRequest } from "../../../src/api/read-over.ts";
import { readBytes } from "../../../src/api/request.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { forwardToSocket } from "../../../src/roles/desktop/forward.ts";
import { onTcp, type TcpServer } from "../../../src/roles/desktop/listener.ts";
import { LocalWorkers } from "../../../src/roles/desktop/local-workers.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const directory = temporaryDirectories();
const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

const BODY_BYTES = 16 * 1024 * 1024;

/** A front before a server that answers without having read, that server itself, and one that listens on TCP without a front. */
function refusing(): Record<"front" | "socket" | "plain", net.NetConnectOpts> {
  const socket = path.join(directory(), "front.sock");
  const app = new Hono();
  app.post("/", () => Response.json({ reason: "payload_too_large" }, { status: 413 }));
  const options = { address: { host: "127.0.0.1", port: 0 }, tls: null, socket, token: () => "t0ken", clock: systemClock };
  const onFault = (error: Error) => expect(error).toBeUndefined();
  const [behind, plain] = (["linux", "win32"] as const).map((platform) => onTcp({ ...options, platform, onFault }, () => app));
  ending.push(() => Promise.all([behind!.stop(), plain!.stop()]));
  const at = ({ address: { port } }: TcpServer) => ({ port, host: "127.0.0.1" });
  return { front: at(behind!), socket: { path: socket }, plain: at(plain!) };
}

/** What somebody gets who reads nothing before all of the body is gone. */
async function afterAll(where: net.NetConnectOpts, fields: string): Promise<string> {
  const client = net.connect(where);
  ending.push(() => client.destroy());
  client.pause();
  const head = `POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t0ken\r\n${fields}Content-Length: ${BODY_BYTES}\r\n\r\n`;
  const sent = await new Promise<string>((resolve) => {
    client.once("error", (error) => resolve((error as NodeJS.ErrnoException).code ?? error.message));
    client.write(Buffer.concat([Buffer.from(head), Buffer.alloc(BODY_BYTES)]), () => resolve("sent"));
  });
  const answer = await new Promise<string>((resolve) => {
    let text = "";
    client.on("data", (chunk) => {
      text += String(chunk);
      if (text.includes("}")) resolve(text);
    });
    client.once("close", () => resolve(text));
    client.resume();
  });
  return `${sent}: ${answer.split("\r\n")[0]}`;
}

test.each([
  ["front", "Connection: close\r\n"],
  ["front", ""],
  ["socket", "Connection: keep-alive, close\r\n"],
  ["socket", ""],
  ["plain", "Connection: close\r\n"],
  ["plain", ""],
] as const)("who sends a large body before it reads gets the answer that came meanwhile: %s, %j", async (where, fields) => {
  const to = refusing()[where];
  const got = await Promise.all(Array.from({ length: 3 }, () => afterAll(to, fields)));
  expect(got).toEqual(got.map(() => "sent: HTTP/1.1 413 Payload Too Large"));
});

/** A server that answers so, and reads over for so long. */
function answering(answer: (request: Request) => Response | Promise<Response>, times = PATIENT): string {
  const socket = path.join(directory(), "s");
  const options = { unix: socket, idleTimeout: 0, fetch: (request: Request) => afterRequest(request, answer, times) };
  const server = Bun.serve(options as unknown as Bun.Serve.Options<undefined>);
  ending.push(() => server.stop(true));
  return socket;
}

const PATIENT = { allMs: 30_000, quietMs: 10_000 };
const BRIEF = { allMs: 300, quietMs: 100 };
const CHUNK = `${(64 * 1024).toString(16)}\r\n${"x".repeat(64 * 1024)}\r\n`;
const HEAD = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";

/** The first line of what a connection gets that says this. */
function firstLine(socket: string, say: (client: net.Socket) => void): Promise<string> {
  return new Promise((resolve) => {
    const client = net.connect(socket);
    ending.push(() => client.destroy());
    let text = "";
    client.on("data", (bytes) => (text += String(bytes)));
    client.on("error", () => undefined);
    client.once("close", () => resolve(text.split("\r\n")[0]!));
    say(client);
  });
}

const partly = async (request: Request): Promise<Response> => {
  await readBytes(request, 10).catch(() => undefined);
  return new Response(null, { status: 413 });
};

const forwarded = (socket: string, request: Request): Promise<Response> =>
  forwardToSocket({ cluster: "local", target: "/", request, over: () => undefined }, socket, new LocalWorkers(systemClock));

test.each([
  ["nobody has read", () => new Response(null, { status: 404 })],
  ["was read in part", partly],
  ["goes on to another server", (request: Request) => forwarded(answering(partly), request)],
])("a body that %s is read over; one that stops, or does not end, holds the answer up no longer than it may", async (_, answer) => {
  const status = (await firstLine(answering(answer), (client) => client.write(`${HEAD}${CHUNK.repeat(64)}0\r\n\r\n`))).split(" ")[1];
  expect(["404", "413"]).toContain(status!);
  const socket = answering(answer, BRIEF);
  expect(await firstLine(socket, (client) => client.write(HEAD + CHUNK))).toContain(` ${status} `);
  const endless = await firstLine(socket, (client) => {
    const send = (): void => {
      while (!client.destroyed && client.write(CHUNK));
      client.once("drain", send);
    };
    client.write(HEAD);
    send();
  });
  // The runtime closes it at last; whether the answer gets through then is nobody's promise.
  expect(["", `${status}`]).toContain(endless.split(" ")[1] ?? "");
});

test("what is sent is what is read, and who goes away is gone", async () => {
  const [arrived, left] = [Promise.withResolvers<void>(), Promise.withResolvers<boolean>()];
  const socket = answering(async (request) => {
    request.signal.addEventListener("abort", () => left.resolve(true));
    if (!request.headers.has("content-length")) arrived.resolve();
    return new Response(String((await readBytes(request, 2 ** 20)).byteLength), { status: 200 });
  });
  const answer = await fetch("http://x/", {
    unix: socket,
    method: "POST",
    body: "x".repeat(300_000),
    headers: { connection: "close" },
  } as RequestInit);
  expect([answer.status, await answer.text()]).toEqual([200, "300000"]);
  const client = net.connect(socket);
  client.write(HEAD + CHUNK);
  await arrived.promise;
  client.destroy();
  expect(await left.promise).toBe(true);
});
