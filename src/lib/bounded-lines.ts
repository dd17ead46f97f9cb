const NEWLINE = 0x0a;

/** One line without its end, or that one was too long, which was read over. */
export type Line = { readonly bytes: Uint8Array } | { readonly tooLong: true };

/** Lines of a stream, each of at most `max` bytes, whatever pieces it comes in. */
export async function* linesOf(input: AsyncIterable<Uint8Array>, max: number): AsyncGenerator<Line> {
  let held: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of input) {
    for (let from = 0; from <= chunk.length; ) {
      const end = chunk.indexOf(NEWLINE, from);
      const piece = chunk.subarray(from, end < 0 ? chunk.length : end);
      size += piece.length;
      // What is too long is read over, and not kept.
      if (size > max) held = [];
      else held.push(piece.slice());
      if (end < 0) break;
      yield size > max ? { tooLong: true } : { bytes: Buffer.concat(held) };
      held = [];
      size = 0;
      from = end + 1;
    }
  }
  if (size > 0) yield size > max ? { tooLong: true } : { bytes: Buffer.concat(held) };
}
