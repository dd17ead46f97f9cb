import fs from "node:fs";
import { Hono } from "hono";
import { type SocketServer, serveOnSocket } from "../../../src/api/socket-server.ts";

/** An app that answers as a worker does where forwarding is concerned, and remembers what it was asked. */
export interface WorkerLike {
  readonly seen: { method: string; url: string; headers: Record<string, string>; body: string }[];
  /** Requests whose client went away. */
  readonly aborted: string[];
  /** Bytes that /endless made. */
  produced(): number;
  /** How often it was asked whether it lives. */
  probed(): number;
  stop(): Promise<void>;
}

export function startWorkerLike(socket: string): WorkerLike {
  const seen: WorkerLike["seen"] = [];
  const aborted: string[] = [];
  let produced = 0;
  let probed = 0;
  const app = new Hono();
  app.use(async (c, next) => {
    c.req.raw.signal.addEventListener("abort", () => aborted.push(new URL(c.req.url).pathname));
    await next();
  });
  app.get("/healthz", () => {
    probed++;
    return Response.json({ ok: true }, { headers: { "clio-relay-version": "9.9.9" } });
  });
  app.get("/quiet", () => new Promise<Response>(() => undefined));
  app.get(
    "/problem",
    () => new Response('{"reason":"job_not_found"}', { status: 404, headers: { "content-type": "application/problem+json" } }),
  );
  app.get(
    "/part",
    () => new Response("hello", { status: 206, headers: { etag: '"x"', "content-range": "bytes 0-4/10", "clio-relay-version": "9.9.9" } }),
  );
  app.get("/none", () => new Response(null, { status: 304, headers: { etag: '"x"' } }));
  app.get("/packed", () => new Response(Bun.gzipSync(Buffer.from("hello")), { headers: { "content-encoding": "gzip" } }));
  app.get("/two", () => {
    let step = 0;
    return new Response(
      new ReadableStream({
        async pull(controller) {
          if (step++ === 0) controller.enqueue(Buffer.from("data: 1\n\n"));
          else await new Promise(() => undefined);
        },
      }),
      { headers: { "content-type": "text/event-stream" } },
    );
  });
  app.get(
    "/endless",
    () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            produced += 65_536;
            controller.enqueue(new Uint8Array(65_536));
          },
        }),
      ),
  );
  // Each piece is another one.
  app.get("/numbered", () => {
    let piece = 0;
    return new Response(
      new ReadableStream({
        pull(controller) {
          if (piece === 256) return controller.close();
          controller.enqueue(new Uint8Array(65_536 + piece).fill(piece++));
        },
      }),
    );
  });
  app.post("/count", async (c) => {
    let bytes = 0;
    for await (const chunk of (c.req.raw.body ?? []) as unknown as AsyncIterable<Uint8Array>) bytes += chunk.length;
    return Response.json({ bytes });
  });
  app.all("*", async (c) => {
    const { method, url, headers } = c.req.raw;
    seen.push({ method, url, headers: Object.fromEntries(headers), body: await c.req.text() });
    return Response.json({ ok: true }, { status: 201, headers: { "x-own": "1" } });
  });
  const server: SocketServer = serveOnSocket(app, socket);
  return { seen, aborted, produced: () => produced, probed: () => probed, stop: () => server.stop(0) };
}

/**
 * A socket where somebody accepts connections and never says a word, as a stopped process does; or begins an answer to each request that is no probe, and says no
 * more. `probed` resolves when it is asked whether it lives.
 *
 * @param begun the beginning of an answer, by the request's head
 */
export function startHung(
  socket: string,
  begun?: (head: string) => string | Promise<string>,
): { readonly probed: Promise<void>; stop(): void } {
  fs.rmSync(socket, { force: true });
  const probed = Promise.withResolvers<void>();
  const server = Bun.listen({
    unix: socket,
    socket: {
      data(peer, data) {
        const head = String(data);
        if (head.startsWith("GET /healthz")) probed.resolve();
        else if (begun !== undefined) void Promise.resolve(begun(head)).then((text) => peer.write(text));
      },
    },
  });
  return { probed: probed.promise, stop: () => server.stop(true) };
}
