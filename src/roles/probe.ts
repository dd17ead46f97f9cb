import { isErrno } from "../lib/atomic-file.ts";

/** One round trip to the app on a Unix socket: its duration in milliseconds and its version. Throws what fetch throws. */
export async function probe(socket: string, withinMs: number): Promise<{ roundTripMs: number; version: string | null }> {
  const start = performance.now();
  const answer = await fetch("http://relay/healthz", {
    unix: socket,
    keepalive: false,
    proxy: false,
    signal: AbortSignal.timeout(withinMs),
  } as unknown as RequestInit);
  await answer.arrayBuffer();
  return { roundTripMs: performance.now() - start, version: answer.headers.get("clio-relay-version") };
}

/** Whether a failed fetch means that nobody listens where it went, so that nothing was sent. */
export const nobodyListens = (error: unknown): boolean =>
  isErrno(error, "ENOENT", "ECONNREFUSED", "ENOTDIR", "FailedToOpenSocket", "ConnectionRefused");
