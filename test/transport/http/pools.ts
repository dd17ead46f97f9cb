import { afterEach } from "bun:test";
import net from "node:net";
import path from "node:path";
import { ChannelPool, type ChannelPoolOptions } from "../../../src/transport/http/channel-pool.ts";
import type { ChannelAnswer } from "../../../src/transport/http/http-channel.ts";
import type { ChannelRequest } from "../../../src/transport/http/request-head.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

/** Pools of connections to servers and peers on Unix sockets, which end with each test of the file. */
export function channelPools() {
  const directories = temporaryDirectories();
  const stops: (() => unknown)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  /** A pool of connections to a Unix socket, which counts them. */
  function poolOf(socket: string, options: Partial<ChannelPoolOptions> = {}): { pool: ChannelPool; opened: () => number } {
    let opened = 0;
    const pool = new ChannelPool({
      open: () =>
        new Promise((resolve, reject) => {
          opened++;
          const connection = net.connect(socket);
          connection.once("connect", () => resolve(connection));
          connection.once("error", reject);
        }),
      ...options,
    });
    stops.push(() => pool.close(new Error("the test is over")));
    return { pool, opened: () => opened };
  }

  /** A real HTTP server. */
  function serve(fetch: (request: Request) => Response | Promise<Response>, options: Partial<ChannelPoolOptions> = {}) {
    const socket = path.join(directories(), "http.sock");
    const server = Bun.serve({ unix: socket, fetch, idleTimeout: 0 } as unknown as Bun.Serve.Options<undefined>);
    stops.push(() => server.stop(true));
    return poolOf(socket, options);
  }

  /** A peer that does what the test says with the n-th connection. */
  async function peer(talk: (connection: net.Socket, n: number) => void, options: Partial<ChannelPoolOptions> = {}) {
    const socket = path.join(directories(), "peer.sock");
    let n = 0;
    const connections: net.Socket[] = [];
    const server = net.createServer((connection) => {
      connections.push(connection);
      connection.on("error", () => undefined);
      talk(connection, ++n);
    });
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    stops.push(() => {
      server.close();
      for (const connection of connections) connection.destroy();
    });
    return { ...poolOf(socket, options), connections };
  }
  return { serve, peer };
}

export const request = (target: string, more: Partial<ChannelRequest> = {}): ChannelRequest => ({
  method: "GET",
  target,
  headers: new Headers(),
  body: null,
  ...more,
});

export async function bytesOf({ body }: ChannelAnswer): Promise<Buffer> {
  if (body === null) return Buffer.alloc(0);
  if (body instanceof Uint8Array) return Buffer.from(body);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export const text = async (answer: ChannelAnswer): Promise<string> => String(await bytesOf(answer));
export const answer = (body: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
