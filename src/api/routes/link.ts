import { randomBytes } from "node:crypto";
import { LinkInfo } from "../../domain/link.ts";
import { contentBody } from "../content-body.ts";
import { json, type Operation, operation } from "../operation.ts";
import type { WorkerServices } from "../worker-services.ts";

/** What there is to measure a way by, in bytes, made of pieces of random ones: nothing on the way can make it shorter. */
const CONTENT_BYTES = 32 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;

/** What a desktop asks first on every new link, and then as a sign of life; and content to see how fast a link is. */
export const linkRoutes = (services: WorkerServices): Operation[] => [
  operation({
    method: "get",
    path: "/link",
    id: "linkInfo",
    summary: "Who answers, and which protocols it speaks",
    answer: { kind: "json", schema: LinkInfo },
    handler: () => json(services.link),
  }),
  operation({
    method: "get",
    path: "/link/content",
    id: "linkContent",
    summary: "Random bytes, 32 MiB, by which to see how fast the way here is",
    answer: { kind: "bytes" },
    handler: ({ c }) =>
      new Response(c.req.raw.method === "HEAD" ? null : contentBody(pieces()), {
        headers: { "content-type": "application/octet-stream", "content-length": String(CONTENT_BYTES), "cache-control": "no-store" },
      }),
  }),
];

async function* pieces(): AsyncGenerator<Uint8Array> {
  const piece = randomBytes(PIECE_BYTES);
  for (let left = CONTENT_BYTES; left > 0; left -= piece.length) yield piece;
}
