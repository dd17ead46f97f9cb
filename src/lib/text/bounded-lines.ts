const NEWLINE = 0x0a;
const FIRST_BYTES = 1024;

/** One line without its end, or that one was too long, which was read over. */
export type Line = { readonly bytes: Uint8Array } | { readonly tooLong: true };

/** Told of what is read over: the pieces of a line that is too long, from its beginning on. */
export type ReadOver = (piece: Uint8Array, isFirst: boolean) => void;

/** Lines of a stream, each of at most `max` bytes, whatever pieces it comes in: a line takes at most twice its bytes. */
export async function* linesOf(input: AsyncIterable<Uint8Array>, max: number, readOver?: ReadOver): AsyncGenerator<Line> {
  const line = new GrowingLine(max, readOver);
  for await (const chunk of input) {
    for (let from = 0; from <= chunk.length; ) {
      const end = chunk.indexOf(NEWLINE, from);
      line.add(chunk.subarray(from, end < 0 ? chunk.length : end));
      if (end < 0) break;
      yield line.take();
      from = end + 1;
    }
  }
  if (line.size > 0) yield line.take();
}

/** A line of which not everything has come. What is too long is read over, and not kept. */
class GrowingLine {
  #held = new Uint8Array(0);
  size = 0;

  constructor(
    private readonly max: number,
    private readonly readOver?: ReadOver,
  ) {}

  add(piece: Uint8Array): void {
    const size = this.size + piece.length;
    if (size > this.max) {
      const isFirst = this.size <= this.max;
      if (isFirst) this.readOver?.(this.#held.subarray(0, this.size), true);
      this.readOver?.(piece, false);
      this.#held = new Uint8Array(0);
    } else {
      if (size > this.#held.length) this.#grow(size);
      this.#held.set(piece, this.size);
    }
    this.size = size;
  }

  take(): Line {
    const line = this.size > this.max ? ({ tooLong: true } as const) : { bytes: this.#held.slice(0, this.size) };
    this.size = 0;
    // One that was long is not held for those that follow.
    if (this.#held.length > FIRST_BYTES) this.#held = new Uint8Array(0);
    return line;
  }

  #grow(size: number): void {
    const larger = new Uint8Array(Math.min(this.max, Math.max(size, 2 * this.#held.length, FIRST_BYTES)));
    larger.set(this.#held.subarray(0, this.size));
    this.#held = larger;
  }
}
