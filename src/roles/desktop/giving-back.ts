import { pulledBody } from "../../api/content-body.ts";
import { RelayError } from "../../domain/errors.ts";
import { giveBack } from "../../lib/system/give-back.ts";

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
  return pulledBody(
    {
      async next() {
        try {
          const { done, value } = await watched(() => reader.read());
          if (!done) return value;
        } catch (error) {
          over();
          throw new RelayError("link_down", "the answer broke off", {}, undefined, { cause: error });
        }
        over();
        return null;
      },
      end(reason) {
        over();
        return reader.cancel(reason);
      },
    },
    giveBack,
  );
}
