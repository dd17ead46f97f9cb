import http from "node:http";
import https from "node:https";
import { Readable } from "node:stream";

/** Statuses whose answers have no body (Fetch standard, section 2.2.3). */
const NO_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);

/**
 * As much of `fetch` as the client uses, over node:http, for runtimes whose own one knows no Unix sockets and gives up what is quiet for minutes. Bodies stream, and follow nobody elsewhere.
 *
 * @param init `body` is text or bytes; `unix` is the path of a socket
 */
export function nodeFetch(url: URL, init: RequestInit & { readonly unix?: string }): Promise<Response> {
  return new Promise((resolve, reject) => {
    const { method = "GET", headers, signal, body, unix } = init;
    const request = (url.protocol === "https:" ? https : http).request(url, {
      method,
      headers: headers as Record<string, string>,
      ...(signal == null ? {} : { signal }),
      ...(unix === undefined ? {} : { socketPath: unix }),
    });
    request.once("error", reject);
    request.once("response", (message) => {
      const status = message.statusCode ?? 500;
      const fields = new Headers();
      for (let i = 0; i + 1 < message.rawHeaders.length; i += 2) fields.append(message.rawHeaders[i]!, message.rawHeaders[i + 1]!);
      // Nobody listens any more to what the request still has to say.
      request.on("error", () => undefined);
      const none = NO_BODY.has(status) || method === "HEAD";
      if (none) message.resume();
      resolve(new Response(none ? null : (Readable.toWeb(message) as unknown as ReadableStream<Uint8Array>), { status, headers: fields }));
    });
    request.end(body ?? undefined);
  });
}
