import { afterEach, expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import { Hono } from "hono";
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

/** A front before a server that answers without having read. */
function refusing(): number {
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
  return front.address.port;
}

/** What somebody gets who reads nothing before all of the body is gone. */
async function afterAll(port: number, fields: string): Promise<string> {
  const client = net.connect(port, "127.0.0.1");
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

test.each(["Connection: close\r\n", ""])(
  "who sends a large body before it reads gets the answer that came meanwhile (%j)",
  async (fields) => {
    const port = refusing();
    const got = await Promise.all(Array.from({ length: 8 }, () => afterAll(port, fields)));
    expect(got).toEqual(got.map(() => "sent: HTTP/1.1 413 Payload Too Large"));
  },
  20_000,
);
