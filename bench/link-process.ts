/**
 * A desktop's part of a link by itself: brings it up as its argument says, and serves the worker on a local socket. Prints `up` with the bring-ups that it
 * made, in milliseconds.
 */
import fs from "node:fs";
import net from "node:net";
import { Link } from "../src/transport/link.ts";
import { type ClientSessionOptions, openClientSession } from "../src/transport/session/client-session.ts";
import { publicKeyFromLine } from "../src/transport/session/keys.ts";

/** How the process is to reach the worker. */
export interface LinkProcessOptions {
  /** Of an sshd, or the worker's link socket. */
  readonly to: { readonly port: number } | { readonly path: string };
  readonly user: string;
  readonly algorithms: "own" | "site";
  /** Line of the host's public key. */
  readonly hostKey: string;
  readonly keyFile: string;
  /** The worker's socket there, and ours here. */
  readonly remote: string;
  readonly local: string;
  readonly bringUps: number;
}

async function main(options: LinkProcessOptions): Promise<void> {
  const key = fs.readFileSync(options.keyFile, "utf8");
  const hostKey = publicKeyFromLine(options.hostKey);
  const link = new Link({ cluster: "local", version: "bench", afterDrop: "authorization_required" });
  const bringUp = async (signal: AbortSignal) => {
    const where = "port" in options.to ? { ...options.to, host: "127.0.0.1", noDelay: true } : options.to;
    const socket = net.connect(where as net.NetConnectOpts);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    const identity: ClientSessionOptions = {
      user: options.user,
      algorithms: options.algorithms,
      verifyHostKey: (found) => found.equals(hostKey),
      authenticate: () => ({ method: "publickey", key }),
      signal,
    };
    const session = await openClientSession(socket, identity);
    return { session, open: (one?: AbortSignal) => session.openSocket(options.remote, one) };
  };
  const times: number[] = [];
  for (let i = 0; i < options.bringUps; i++) {
    if (i > 0) await link.disconnect();
    const began = performance.now();
    await link.connect(bringUp, { cluster: "local" });
    times.push(performance.now() - began);
  }
  Bun.serve({
    unix: options.local,
    idleTimeout: 0,
    async fetch(request: Request) {
      const target = request.url.slice(request.url.indexOf("/", 8));
      const asked = { method: request.method, target, headers: request.headers, body: request.body };
      const { status, headers, body } = await link.request(asked, { signal: request.signal, bulk: target.endsWith("/content") });
      return new Response(body as Blob | null, { status, headers });
    },
  } as unknown as Bun.Serve.Options<undefined>);
  console.log(`up ${JSON.stringify(times)}`);
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as LinkProcessOptions);
