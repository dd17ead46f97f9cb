/** Bytes that may wait for a client before its stream is cut. */
const UNTAKEN = 4 * 1024 * 1024;

/** A comment of an event stream (HTML standard, section 9.2). */
const COMMENT = new TextEncoder().encode(":\n\n");

/**
 * An event stream that is there before there is anything to say: the head of an answer goes out with the first bytes of its body, and clients wait for it. A client that does not
 * take what it is sent loses its stream, and not this process its memory. Any other answer is as it was.
 */
export function live(response: Response, untaken = UNTAKEN): Response {
  if (response.body === null || !(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) return response;
  const reader: Source = response.body.getReader();
  const cancel = (reason: unknown): void => void reader.cancel(reason).catch(() => undefined);
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(COMMENT);
        void forward(reader, controller);
      },
      cancel,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: untaken }),
  );
  return new Response(body, { status: response.status, headers: response.headers });
}

type Source = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

async function forward(reader: Source, controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      controller.enqueue(next.value);
      if ((controller.desiredSize ?? 1) <= 0) throw new Error("the client does not take what it is sent");
    }
    controller.close();
  } catch (error) {
    reader.cancel(error).catch(() => undefined);
    try {
      controller.error(error);
    } catch {
      // It is over already.
    }
  }
}
