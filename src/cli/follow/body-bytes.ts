import { RelayError } from "../../domain/errors.ts";

/** The bytes of an answer's body as they come; none where it has no body. @throws RelayError link_down where it breaks off, whatever the runtime calls that */
export async function* bodyBytes({ body }: Pick<Response, "body">): AsyncGenerator<Uint8Array> {
  try {
    yield* (body ?? []) as unknown as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw new RelayError("link_down", "the connection broke", {}, undefined, { cause: error });
  }
}
