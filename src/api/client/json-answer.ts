import { LIMITS } from "../../domain/limits.ts";

/** How long the next piece of a JSON document may take, once its answer has begun, in milliseconds. */
const IDLE_MS = 30_000;

/**
 * The JSON document that an answer carries. Whoever answers has it before the answer begins, so that it comes without pauses; one that stops
 * coming is given up.
 *
 * @throws SyntaxError, RangeError beyond `maxBytes`, what the body fails with, or an error after `idleMs` without a byte
 */
export async function jsonAnswer(response: Response, idleMs: number = IDLE_MS, maxBytes: number = LIMITS.answerBytes): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  let giveUp: (why: Error) => void = () => undefined;
  const silence = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  // Where nobody waits any more, it is nobody's failure.
  silence.catch(() => undefined);
  const timer = setTimeout(() => giveUp(new Error(`no byte of the answer for ${idleMs / 1_000} s`)), idleMs);
  try {
    while (reader !== undefined) {
      const { done, value } = await Promise.race([reader.read(), silence]);
      if (done) break;
      size += value.length;
      if (size > maxBytes) throw new RangeError(`it has more than ${maxBytes} bytes`);
      chunks.push(value);
      timer.refresh();
    }
  } catch (error) {
    reader?.cancel().catch(() => undefined);
    throw error;
  } finally {
    clearTimeout(timer);
  }
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
}
