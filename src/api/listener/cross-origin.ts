import type { Context, Hono } from "hono";
import { type Access, admit } from "./access.ts";

/** What a page may read of an answer besides what it always may (Fetch standard, section 3.2). */
const EXPOSED = "clio-relay-version, content-range, etag, location, retry-after, www-authenticate";
const PREFLIGHT_SECONDS = 600;

/**
 * Tell browsers that pages of the allowed origins may read the answers (Fetch standard, section 3.2, CORS protocol), and answer their preflights, which carry no token. Others are told
 * nothing, and refused by `admit`. To be called before anything else is added to the app.
 */
export function crossOrigin(app: Hono, access: Access): void {
  if (access.origins.size === 0) return;
  app.use(async (c, next) => {
    const origin = c.req.header("origin");
    const allowed = origin !== undefined && access.origins.has(origin);
    if (allowed && isPreflight(c)) {
      admit(access, c.req.raw, true);
      return preflightAnswer(c, origin);
    }
    await next();
    c.res.headers.append("vary", "origin");
    if (!allowed) return undefined;
    c.res.headers.set("access-control-allow-origin", origin);
    c.res.headers.set("access-control-expose-headers", EXPOSED);
    return undefined;
  });
}

const isPreflight = (c: Context): boolean => c.req.method === "OPTIONS" && c.req.header("access-control-request-method") !== undefined;

function preflightAnswer(c: Context, origin: string): Response {
  const asked = c.req.header("access-control-request-headers");
  const network = c.req.header("access-control-request-private-network") === "true";
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
      ...(asked === undefined ? {} : { "access-control-allow-headers": asked }),
      ...(network ? { "access-control-allow-private-network": "true" } : {}),
      "access-control-max-age": String(PREFLIGHT_SECONDS),
      vary: "origin, access-control-request-headers",
    },
  });
}
