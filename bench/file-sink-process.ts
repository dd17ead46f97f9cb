/**
 * What takes a file as one stream and no more: `file-sink-process.ts SOCKET FILE LINK` writes the body of each PUT to the file, flushes it and answers; anything
 * else it answers with the document LINK, by which a link takes it for a worker. Prints `up` when it listens.
 */
import fs from "node:fs";

const [socket, file, link] = process.argv.slice(2) as [string, string, string];

Bun.serve({
  unix: socket,
  idleTimeout: 0,
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  async fetch(request: Request) {
    if (request.method !== "PUT") return new Response(link, { headers: { "content-type": "application/json" } });
    const handle = await fs.promises.open(file, "w");
    try {
      let bytes = 0;
      for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
        for (let at = 0; at < chunk.length; ) at += (await handle.write(chunk, at)).bytesWritten;
        bytes += chunk.length;
      }
      await handle.sync();
      return new Response(String(bytes));
    } finally {
      await handle.close();
      fs.rmSync(file);
    }
  },
} as unknown as Bun.Serve.Options<undefined>);
console.log("up");
