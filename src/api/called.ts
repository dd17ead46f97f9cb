import type { Context } from "hono";

const LABEL = /;\s*cluster=([a-z0-9][a-z0-9_-]{0,127})\s*(?:;|$)/;

/**
 * What a request means by a cluster's name: the worker's own, or the one under which the desktop at the other end of the link knows it
 * (`Clio-Relay-Client: VERSION; protocol=N; cluster=NAME`), which is a label of that desktop's.
 *
 * @returns the worker's own name for these two; any other as it is
 */
export function ownName(c: Context, own: string, said: string): string {
  return said === LABEL.exec(c.req.header("clio-relay-client") ?? "")?.[1] ? own : said;
}
