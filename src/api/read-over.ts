import { giveBack } from "../lib/give-back.ts";

/** For how long what is still sent of a request that has its answer already is read over, in milliseconds. */
const READ_OVER_MS = 30_000;

/** Whether the connection is to end with the answer (RFC 9112, section 9.6). */
const endsConnection = ({ method, headers }: Request): boolean =>
  method !== "GET" && /(?:^|,)\s*close\s*(?:,|$)/i.test(headers.get("connection") ?? "");

/**
 * An answer, once its request has been sent to its end where the connection is to end with it: the runtime closes that at once, and who still sends finds it broken
 * (EPIPE) before it reads.
 */
export async function afterRequest(request: Request, answering: Response | Promise<Response>, withinMs = READ_OVER_MS): Promise<Response> {
  const answer = await answering;
  if (endsConnection(request)) await readOver(request.body, withinMs);
  return answer;
}

/** Read what nobody has read, and nobody wants. Whatever goes wrong with it is the end of it. */
async function readOver(body: ReadableStream<Uint8Array> | null, withinMs: number): Promise<void> {
  if (body === null || body.locked) return;
  const reader = body.getReader();
  const late = setTimeout(() => void reader.cancel().catch(() => undefined), withinMs);
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) giveBack(next.value);
  } catch {
    // Who sent it is gone.
  } finally {
    clearTimeout(late);
  }
}
