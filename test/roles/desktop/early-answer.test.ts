import { afterEach, expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import { Hono } from "hono";
import { afterRequest } from "../../../src/api/read-over.ts";
import { readBytes } from "../../../src/api/request.ts";
import { serveOnSocket } from "../../../src/api/socket-server.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { Front } from "../../../src/roles/desktop/front.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const directory = temporaryDirectories();
const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

const BODY_BYTES = 16 * 1024 * 1024;

/** A front before a server that answers without having read, and that server itself. */
function refusing(): Record<"port" | "socket", net.NetConnectOpts> {
  const socket = path.join(directory(), "front.sock");
  const app = new Hono();
  app.post("/", () => Response.json({ reason: "payload_too_large" }, { status: 413 }));
  const server = serveOnSocket(app, socket);
  const front = new Front({
    address: { host: "127.0.0.1", port: 0 },
    tls: null,
    socket,
    token: () => "t0ken",
    answer: () => new Response(null, { status: 401 }),
    clock: systemClock,
    onFault: (error) => expect(error).toBeUndefined(),
  });
  ending.push(async () => {
    front.close();
    await server.stop(0);
    await front.drain(0);
  });
  return { port: { port: front.address.port, host: "127.0.0.1" }, socket: { path: socket } };
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
  ["port", "Connection: close\r\n"],
  ["port", ""],
  ["socket", "Connection: keep-alive, close\r\n"],
  ["socket", ""],
] as const)(
  "who sends a large body to a %s before it reads gets the answer that came meanwhile (%j)",
  async (where, fields) => {
    const to = refusing()[where];
    const got = await Promise.all(Array.from({ length: 8 }, () => afterAll(to, fields)));
    expect(got).toEqual(got.map(() => "sent: HTTP/1.1 413 Payload Too Large"));
  },
  20_000,
);

test("a body that is read in part is read over, too, and one that does not end holds the answer up no longer than it may", async () => {
  const socket = path.join(directory(), "s");
  const answers = [
    async (request: Request) => {
      await readBytes(request, 10).catch(() => undefined);
      return new Response(null, { status: 413 });
    },
    () => new Response(null, { status: 404 }),
  ];
  const server = Bun.serve({
    unix: socket,
    idleTimeout: 0,
    fetch: (request: Request) => afterRequest(request, answers[request.url.endsWith("/part") ? 0 : 1]!(request), 100),
  } as unknown as Bun.Serve.Options<undefined>);
  ending.push(() => server.stop(true));
  const chunk = `${(64 * 1024).toString(16)}\r\n${"x".repeat(64 * 1024)}\r\n`;
  const asked = (target: string, body: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const client = net.connect(socket);
      ending.push(() => client.destroy());
      let text = "";
      client.on("data", (bytes) => (text += String(bytes)));
      client.once("error", reject);
      client.once("close", () => resolve(text.split("\r\n")[0]!));
      client.write(`POST ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
    });
  expect(await asked("/part", `${chunk.repeat(64)}0\r\n\r\n`)).toBe("HTTP/1.1 413 Payload Too Large");
  expect(await asked("/none", chunk)).toBe("HTTP/1.1 404 Not Found");
}, 20_000);
