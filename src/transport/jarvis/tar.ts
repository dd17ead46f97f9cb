/** POSIX.1-2017, pax: the ustar interchange format, with a record of extended headers for names that do not fit. Everything but names and contents is fixed. */

const BLOCK = 512;
/** The name field of ustar. */
const NAME_BYTES = 100;

/** A regular file as an archive has it: its header, and its content up to a full block. */
export function tarFile(name: string, content: Uint8Array, executable: boolean): Uint8Array[] {
  const long = Buffer.byteLength(name) > NAME_BYTES;
  const before = long ? entry("x", "pax", paxRecord("path", name), 0o644) : [];
  return [...before, ...entry("0", long ? "long" : name, content, executable ? 0o755 : 0o644)];
}

/** What ends an archive. */
export const tarEnd = (): Uint8Array => Buffer.alloc(2 * BLOCK);

function entry(type: "0" | "x", name: string, content: Uint8Array, mode: number): Uint8Array[] {
  const rest = content.length % BLOCK;
  return [header(type, name, content.length, mode), content, ...(rest === 0 ? [] : [Buffer.alloc(BLOCK - rest)])];
}

function header(type: "0" | "x", name: string, size: number, mode: number): Uint8Array {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, digits: number) =>
    void block.write(`${value.toString(8).padStart(digits, "0")}\0`, at, "latin1");
  block.write(name, 0, NAME_BYTES, "utf8");
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(0, 136, 11);
  block.write("        ", 148, "latin1");
  block.write(type, 156, "latin1");
  block.write("ustar\u000000", 257, "latin1");
  block.write(
    `${block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, "0")}\0 `,
    148,
    "latin1",
  );
  return block;
}

/** `LENGTH KEYWORD=VALUE`, where the length counts itself. */
function paxRecord(keyword: string, value: string): Uint8Array {
  const rest = Buffer.byteLength(` ${keyword}=${value}\n`);
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length++;
  return Buffer.from(`${length} ${keyword}=${value}\n`);
}
