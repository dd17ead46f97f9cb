import { RelayError } from "../../../domain/errors.ts";

/** The longest frame that ssh takes from a client of its control socket (CHANNEL_MUX_MAX_PACKET of OpenSSH); none of its own is longer. */
const MAX_FRAME = 256 * 1024;

/** A field of a message: a byte, a number of 4 bytes, or a string with its length before it (RFC 4251, section 5). */
export type Field = { readonly byte: number } | number | string | Buffer;

function bytesOf(field: Field): Buffer {
  if (typeof field === "number") {
    const number = Buffer.allocUnsafe(4);
    number.writeUInt32BE(field);
    return number;
  }
  if (typeof field === "object" && !Buffer.isBuffer(field)) return Buffer.from([field.byte]);
  const text = Buffer.from(field);
  return Buffer.concat([bytesOf(text.length), text]);
}

/** A message with its length before it. */
export function frame(...fields: readonly Field[]): Buffer {
  return bytesOf(Buffer.concat(fields.map(bytesOf)));
}

/** Reads the fields of a message one after the other. */
export class Fields {
  #at = 0;

  constructor(private readonly bytes: Buffer) {}

  #take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.bytes.length) throw malformed("a message ended in the middle of a field");
    const taken = this.bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  byte(): number {
    return this.#take(1)[0]!;
  }

  uint32(): number {
    return this.#take(4).readUInt32BE();
  }

  string(): Buffer {
    return this.#take(this.uint32());
  }
}

/** Cuts what comes from a control socket into messages. */
export class FrameSplitter {
  #pending: Buffer[] = [];
  #length = 0;

  /** @throws RelayError answer_malformed */
  *push(chunk: Buffer): Generator<Buffer> {
    this.#pending.push(chunk);
    this.#length += chunk.length;
    for (;;) {
      const head = this.#peek(4);
      if (head === null) return;
      const size = head.readUInt32BE();
      if (size > MAX_FRAME) throw malformed(`a message of ${size} bytes is longer than any`);
      const whole = this.#peek(4 + size);
      if (whole === null) return;
      const first = this.#pending[0]!.subarray(4 + size);
      if (first.length > 0) this.#pending[0] = first;
      else this.#pending.shift();
      this.#length -= 4 + size;
      yield whole.subarray(4);
    }
  }

  /** The first bytes, joined only as far as they have to be. */
  #peek(length: number): Buffer | null {
    if (this.#length < length) return null;
    if (this.#pending[0]!.length < length) this.#pending = [Buffer.concat(this.#pending)];
    return this.#pending[0]!.subarray(0, length);
  }
}

const malformed = (what: string): RelayError => new RelayError("answer_malformed", `ssh's control socket: ${what}`);
