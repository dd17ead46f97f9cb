import { isRelayError } from "../domain/errors.ts";

/**
 * A body that pulls from its source, so that a slow reader holds the source back. A source that fails breaks the answer off, which is all that
 * a client can be told by then; failures that can be expected (RelayErrors) leave no trace in the process's log.
 */
export function contentBody(source: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const next = await iterator.next();
          if (next.done) controller.close();
          else controller.enqueue(next.value);
        } catch (error) {
          // Bun writes what a body fails with to standard error, with source and stack, unless it is nothing.
          controller.error(isRelayError(error) ? undefined : error);
        }
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
