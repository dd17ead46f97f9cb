/** The lines of a stream of UTF-8 text, without their ends, as they come. A last one that has no end is left out. */
export async function* linesOf(stream: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let held = "";
  const decoder = new TextDecoder();
  for await (const piece of stream as AsyncIterable<Uint8Array>) {
    const lines = (held + decoder.decode(piece, { stream: true })).split("\n");
    held = lines.pop() ?? "";
    yield* lines;
  }
}
