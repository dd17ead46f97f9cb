import { afterEach, expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import { Hono } from "hono";
import { afterRequest } from "../../../src/api/read-over.ts";
import { readBytes } from "../../../src/api/request.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { onTcp, type TcpServer } from "../../../src/roles/desktop/listener.ts";
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
] as const)(
  "who sends a large body before it reads gets the answer that came meanwhile: %s, %j",
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
