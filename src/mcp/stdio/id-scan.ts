import type { MessageId } from "../listen.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);
/** Bytes of a name or an id that are looked at. */
const LOOKED_AT = 512;

type Part = "name" | "id" | "value";

/**
 * The id of a JSON-RPC message that is not parsed, since it is too long or nested too deeply: who sent it waits for the answer by that. Takes a line's bytes in pieces of any size,
 * and keeps none but those of one name or id.
 */
export class IdScan {
  #depth = 0;
  #quoted = false;
  #escaped = false;
  /** Within the outermost object: what is read. */
  #part: Part = "value";
  #kept: number[] = [];
  #id: MessageId | null = null;

  push(bytes: Uint8Array): void {
    for (const byte of bytes) this.#take(byte);
  }

  /** Null where it has none that an answer may name. */
  get id(): MessageId | null {
    return this.#id;
  }

  #take(byte: number): void {
    const within = this.#depth === 1 && this.#part !== "value";
    if (this.#quoted) {
      if (within) this.#keep(byte);
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) this.#quoted = false;
    } else if (byte === QUOTE) {
      this.#quoted = true;
      if (within) this.#keep(byte);
    } else if (OPENING.has(byte)) {
      this.#depth++;
      this.#begin(this.#depth === 1 ? "name" : "value");
    } else if (CLOSING.has(byte)) {
      if (this.#depth === 1) this.#member();
      this.#depth--;
    } else if (this.#depth === 1) this.#between(byte);
  }

  #between(byte: number): void {
    if (byte === COMMA) {
      this.#member();
      this.#begin("name");
    } else if (byte === COLON && this.#part === "name") this.#begin(this.#read() === "id" ? "id" : "value");
    else if (this.#part !== "value") this.#keep(byte);
  }

  #begin(part: Part): void {
    // A list or an object is no id.
    this.#part = part;
    this.#kept = [];
  }

  #keep(byte: number): void {
    if (this.#kept.length <= LOOKED_AT) this.#kept.push(byte);
  }

  /** The end of a member. */
  #member(): void {
    if (this.#part !== "id") return;
    const id = this.#read();
    this.#id = typeof id === "string" || Number.isSafeInteger(id) ? (id as MessageId) : null;
  }

  #read(): unknown {
    if (this.#kept.length > LOOKED_AT) return null;
    try {
      return JSON.parse(Buffer.from(this.#kept).toString());
    } catch {
      return null;
    }
  }
}

/** The id of a message that is all there. */
export function scannedId(bytes: Uint8Array): MessageId | null {
  const scan = new IdScan();
  scan.push(bytes);
  return scan.id;
}
