import { giveBack } from "../../lib/system/give-back.ts";

const BLOCK = 64 * 1024;
/** Blocks that are kept for the next who waits: 4 MiB. */
const SPARE_MAX = 64;

const spare: Buffer[] = [];

interface Piece {
  readonly block: Buffer;
  from: number;
  to: number;
}

/**
 * Bytes that wait to be taken, copied into blocks of one size which all connections share. (Memory of any size, taken and given back thousands of times a second, leaves twice
 * as much resident as is in use.)
 */
export class WaitingBytes {
  length = 0;
  #pieces: Piece[] = [];

  push(bytes: Uint8Array): void {
    this.length += bytes.length;
    for (let at = 0; at < bytes.length; ) {
      let last = this.#pieces.at(-1);
      if (last === undefined || last.to === BLOCK) {
        last = { block: spare.pop() ?? Buffer.allocUnsafeSlow(BLOCK), from: 0, to: 0 };
        this.#pieces.push(last);
      }
      const taken = Math.min(BLOCK - last.to, bytes.length - at);
      last.block.set(bytes.subarray(at, at + taken), last.to);
      last.to += taken;
      at += taken;
    }
  }

  /** Hand on what waits until not all of a piece is taken. @param take how many bytes it took */
  drain(take: (bytes: Buffer) => number): void {
    for (let first = this.#pieces[0]; first !== undefined; first = this.#pieces[0]) {
      const taken = take(first.block.subarray(first.from, first.to));
      first.from += taken;
      this.length -= taken;
      if (first.from < first.to) return;
      this.#pieces.shift();
      release(first.block);
    }
  }

  clear(): void {
    for (const { block } of this.#pieces) release(block);
    this.#pieces = [];
    this.length = 0;
  }
}

function release(block: Buffer): void {
  if (spare.length < SPARE_MAX) spare.push(block);
  else giveBack(block);
}
