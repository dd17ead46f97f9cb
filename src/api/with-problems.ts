import type { Context, Hono } from "hono";
import { RelayError } from "../domain/errors.ts";
import { problemResponse } from "./problem.ts";

/**
 * Answer unknown routes and failures with problem documents, and mark each answer with the version, unless it carries that of somebody
 * else who gave it.
 *
 * @param report gets failures that are not RelayErrors, for the process's log
 * @param admit throws for a request that may not pass
 * @param routesHint where routes are that somebody may have looked for
 */
export function withProblems(
  app: Hono,
  version: string,
  report: (error: unknown) => void,
  admit?: (c: Context) => void,
  routesHint?: string,
): void {
  const headers = { "clio-relay-version": version };
  app.use(async (c, next) => {
    admit?.(c);
    await next();
    if (!c.res.headers.has("clio-relay-version")) c.res.headers.set("clio-relay-version", version);
  });
  app.notFound((c) =>
    problemResponse(new RelayError("route_not_found", `no route ${c.req.method} ${c.req.path.slice(0, 200)}`, {}, routesHint), headers),
  );
  app.onError((error, c) => {
    // Nobody is left to be answered.
    if (c.req.raw.signal.aborted) return new Response(null, { status: 499 });
    if (!(error instanceof RelayError)) report(error);
    return problemResponse(error, headers);
  });
}
