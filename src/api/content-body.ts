import { isRelayError } from "../domain/errors.ts";
import { giveBack } from "../lib/system/give-back.ts";

/** Content of up to this is read before it is answered: what fails then is an answer of its own, and the length is said. */
const AT_ONCE_BYTES = 512 * 1024;

/**
 * The body of an answer with `bytes` bytes of content, for the runtime's server and nobody else: a piece's memory is given back when it has been sent.
 *
 * @param source gives pieces whose memory is nobody else's
 * @throws what the source fails with, where the content is small; a source that gives more is broken off
 */
export async function contentOf(
  source: AsyncIterable<Uint8Array>,
  bytes: number,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>> {
  if (bytes > AT_ONCE_BYTES) return contentBody(atMost(source, bytes), giveBack);
  const pieces = await Array.fromAsync(atMost(source, bytes));
  return pieces.length === 1 ? (pieces[0] as Uint8Array<ArrayBuffer>) : Buffer.concat(pieces);
}

/** A source that goes on without end would fill the disk of whoever asked. */
async function* atMost(source: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let left = bytes;
  for await (const piece of source) {
    left -= piece.length;
    if (left < 0) throw new Error(`there is more content than the ${bytes} bytes that were said`);
    yield piece;
  }
}

/** A body that pulls from its source. @param sent as of pulledBody */
export function contentBody(source: AsyncIterable<Uint8Array>, sent?: (piece: Uint8Array) => void): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  return pulledBody(
    {
      async next() {
        const { done, value } = await iterator.next();
        return done ? null : value;
      },
      end: async () => iterator.return?.(),
    },
    sent,
  );
}

/** Gives the pieces of a body, each when it is asked for. */
export interface Pieces {
  /** The next; null behind the last. */
  next(): Promise<Uint8Array | null>;
  /** Nobody wants any more of them. */
  end(reason: unknown): Promise<unknown>;
}

/**
 * A body that asks for a piece when the one before has been written, so that a slow reader holds its source back. A source that fails breaks the answer off, which is
 * all that a client can be told by then; failures that can be expected (RelayErrors) leave no trace in the process's log.
 *
 * @param sent told of each piece but the last when it has been written
 */
export function pulledBody(pieces: Pieces, sent: (piece: Uint8Array) => void = () => undefined): ReadableStream<Uint8Array> {
  let last: Uint8Array = new Uint8Array();
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          // Who asks for more has written the piece before.
          sent(last);
          const next = await pieces.next();
          if (next === null) return controller.close();
          last = next;
          controller.enqueue(last);
        } catch (error) {
          // Bun writes what a body fails with to standard error, with source and stack, unless it is nothing.
          controller.error(isRelayError(error) ? undefined : error);
        }
      },
      async cancel(reason) {
        await pieces.end(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
