import { giveBack } from "../../lib/give-back.ts";

/** Keeps an eye on work while it is waited for. */
export type Watched = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * The body of an answer that is sent by the runtime's server: a piece's memory, which is nobody else's, is given back when it has been written.
 *
 * @param over called at its end, which may be early
 * @param watched has each wait for more of it
 */
export function givingBack(
  body: ReadableStream<Uint8Array>,
  over: () => void,
  watched: Watched = (work) => work(),
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let given: Uint8Array = new Uint8Array();
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          // Who asks for more has written the piece before, which is nobody else's.
          giveBack(given);
          const { done, value } = await watched(() => reader.read());
          if (done) {
            over();
            return controller.close();
          }
          given = value;
          controller.enqueue(value);
        } catch {
          over();
          // Bun writes what a body fails with to standard error, with source and stack, unless it is nothing.
          controller.error(undefined);
        }
      },
      cancel(reason) {
        over();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
