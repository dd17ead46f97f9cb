/** The bytes of an answer's body as they come; none where it has no body. */
export const bodyBytes = ({ body }: Pick<Response, "body">): AsyncIterable<Uint8Array> =>
  (body ?? []) as unknown as AsyncIterable<Uint8Array>;
