import * as v from "valibot";
import { IDENTITY_PATH, Identity, identityOf } from "./identity.ts";
import { Unproven } from "./unproven.ts";

const ANSWER_MS = 10_000;
const MAX_BYTES = 4_096;

/**
 * Have a listener on loopback prove that it knows the token, which it is not told. A port is anybody's once the process that had it is
 * gone, so a client asks before each request.
 *
 * @throws Unproven; what the signal was aborted with
 */
export async function challenge(url: string, token: string, signal: AbortSignal): Promise<void> {
  const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex");
  let answer: unknown;
  try {
    const response = await fetch(`${url}${IDENTITY_PATH}?nonce=${nonce}`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
      redirect: "manual",
      proxy: false,
    } as unknown as RequestInit);
    answer = JSON.parse(await boundedText(response));
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Unproven(`nobody who can prove to be the daemon answers on ${url}`, { cause: error });
  }
  const result = v.safeParse(Identity, answer);
  // The proof is of this one nonce: how long the comparison takes tells nothing that helps with another.
  if (!result.success || !Bun.deepEquals(result.output, identityOf({ token, host: new URL(url).host }, nonce))) {
    throw new Unproven(`whoever answers on ${url} is not the daemon that listened there`);
  }
}

async function boundedText(response: Response): Promise<string> {
  if (response.body === null) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new RangeError(`more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
