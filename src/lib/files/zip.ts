import { pipeline, Readable } from "node:stream";
import { constants, crc32, createDeflateRaw, deflateRawSync } from "node:zlib";

/** A file of an archive. */
export interface ZipEntry {
  /** Path with `/` between its parts. */
  readonly name: string;
  /** Bytes that `bytes` gives, exactly. */
  readonly size: number;
  readonly modified: Date;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** A field of 32 bits that is at its largest says that the real value is in the ZIP64 extra field. */
const FULL_32 = 0xffff_ffff;
const FULL_16 = 0xffff;
/** Sizes and places from here on have 64 bits; below it, deflate cannot make more than 32 bits of a file. */
const ZIP64_FROM = 0xff00_0000;
const VERSION = 20;
const VERSION_ZIP64 = 45;
/** Sizes and checksum follow the content (bit 3), and names are UTF-8 (bit 11). */
const FLAGS = 0x0808;
const DEFLATE = 8;
const MADE_BY_UNIX = 3 << 8;
const REGULAR_FILE = (0o100_644 << 16) >>> 0;

/** As much of a file is looked at before it is known how to compress it; a smaller one is compressed in one go. */
const SAMPLE_BYTES = 64 * 1024;
const PIECE_BYTES = 64 * 1024;

interface Written {
  readonly name: Buffer;
  readonly time: number;
  readonly offset: number;
  readonly crc: number;
  readonly compressed: number;
  readonly size: number;
  readonly large: boolean;
}

/**
 * A ZIP archive as a stream (APPNOTE.TXT 6.3.10), in memory that depends on the number of its files only: of each, what the directory at the
 * end says of it is kept. Files and archives of more than 4 GiB have ZIP64 records.
 *
 * @param zip64From size or place in bytes from which on ZIP64 records are used
 * @throws RangeError where a file has another size than was said; what the source of a file fails with
 */
export const zip = (entries: AsyncIterable<ZipEntry> | Iterable<ZipEntry>, zip64From: number = ZIP64_FROM): AsyncGenerator<Uint8Array> =>
  joined(archive(entries, zip64From));

/** The same bytes in pieces that are worth a write. */
async function* joined(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    held.push(piece);
    bytes += piece.length;
    if (bytes < PIECE_BYTES) continue;
    yield Buffer.concat(held);
    held = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(held);
}

async function* archive(entries: AsyncIterable<ZipEntry> | Iterable<ZipEntry>, zip64From: number): AsyncGenerator<Uint8Array> {
  const directory: Written[] = [];
  let offset = 0;
  for await (const entry of entries) {
    const head = { name: Buffer.from(entry.name.toWellFormed()), time: dosTime(entry.modified) };
    const large = entry.size >= zip64From;
    const count = { crc: 0, size: 0, compressed: 0 };
    const header = localHeader(head, large);
    yield header;
    for await (const piece of deflated(counted(entry, count), entry.size)) {
      count.compressed += piece.length;
      yield piece;
    }
    const end = descriptor(count, large);
    yield end;
    directory.push({ ...head, ...count, offset, large: large || offset >= zip64From });
    offset += header.length + count.compressed + end.length;
  }
  let length = 0;
  for (const file of directory) {
    const record = directoryRecord(file);
    length += record.length;
    yield record;
  }
  yield endOfDirectory(directory.length, offset, length, directory.length >= FULL_16 || offset + length >= zip64From);
}

async function* counted(entry: ZipEntry, count: { crc: number; size: number }): AsyncGenerator<Uint8Array> {
  for await (const piece of entry.bytes) {
    count.crc = crc32(piece, count.crc);
    count.size += piece.length;
    if (count.size > entry.size) break;
    yield piece;
  }
  if (count.size !== entry.size) throw new RangeError(`${entry.name} has not the ${entry.size} bytes that were said`);
}

/**
 * Raw deflate (RFC 1951) of a stream, held back by whoever reads it. What begins like noise goes into blocks as it is, since looking for what
 * repeats in it costs more time than anything else here.
 */
async function* deflated(bytes: AsyncGenerator<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  if (size <= SAMPLE_BYTES) {
    yield deflateRawSync(Buffer.concat(await Array.fromAsync(bytes)));
    return;
  }
  const first = await bytes.next();
  const level = first.done || repeats(first.value) ? constants.Z_DEFAULT_COMPRESSION : constants.Z_NO_COMPRESSION;
  const all = async function* (): AsyncGenerator<Uint8Array> {
    if (!first.done) yield first.value;
    yield* bytes;
  };
  // What goes wrong on the way in comes out of the reading.
  yield* pipeline(Readable.from(all(), { objectMode: false }), createDeflateRaw({ level }), () => undefined);
}

function repeats(piece: Uint8Array): boolean {
  const sample = piece.subarray(0, SAMPLE_BYTES);
  return deflateRawSync(sample, { level: constants.Z_BEST_SPEED }).length < 0.9 * sample.length;
}

/** Date and time of MS-DOS, in UTC: two seconds is the least difference, 1980 the first year. */
function dosTime(date: Date): number {
  const year = Math.min(Math.max(date.getUTCFullYear(), 1980), 2107);
  const day = ((year - 1980) << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate();
  const time = (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1);
  return day * 0x1_0000 + time;
}

/** A record of little-endian fields: of 2, 4 or 8 bytes each. */
function record(...fields: readonly (readonly [bytes: 2 | 4 | 8, value: number])[]): Buffer {
  const buffer = Buffer.alloc(fields.reduce((sum, [bytes]) => sum + bytes, 0));
  let at = 0;
  for (const [bytes, value] of fields) {
    if (bytes === 8) buffer.writeBigUInt64LE(BigInt(value), at);
    else buffer.writeUIntLE(value, at, bytes);
    at += bytes;
  }
  return buffer;
}

/** 4.3.7 */
function localHeader({ name, time }: Pick<Written, "name" | "time">, large: boolean): Buffer {
  const extra = large ? record([2, 1], [2, 16], [8, 0], [8, 0]) : Buffer.alloc(0);
  const size = large ? FULL_32 : 0;
  const fixed = record(
    [4, 0x0403_4b50],
    [2, large ? VERSION_ZIP64 : VERSION],
    [2, FLAGS],
    [2, DEFLATE],
    [4, time],
    [4, 0],
    [4, size],
    [4, size],
    [2, name.length],
    [2, extra.length],
  );
  return Buffer.concat([fixed, name, extra]);
}

/** 4.3.9 */
const descriptor = ({ crc, compressed, size }: Pick<Written, "crc" | "compressed" | "size">, large: boolean): Buffer =>
  record([4, 0x0807_4b50], [4, crc], [large ? 8 : 4, compressed], [large ? 8 : 4, size]);

/** 4.3.12; what does not fit into 32 bits in an extra field (4.5.3). */
function directoryRecord({ name, time, offset, crc, compressed, size, large }: Written): Buffer {
  const extra = large ? record([2, 1], [2, 24], [8, size], [8, compressed], [8, offset]) : Buffer.alloc(0);
  const short = (value: number): number => (large ? FULL_32 : value);
  const fixed = record(
    [4, 0x0201_4b50],
    [2, MADE_BY_UNIX | VERSION_ZIP64],
    [2, large ? VERSION_ZIP64 : VERSION],
    [2, FLAGS],
    [2, DEFLATE],
    [4, time],
    [4, crc],
    [4, short(compressed)],
    [4, short(size)],
    [2, name.length],
    [2, extra.length],
    [2, 0],
    [2, 0],
    [2, 0],
    [4, REGULAR_FILE],
    [4, short(offset)],
  );
  return Buffer.concat([fixed, name, extra]);
}

/** 4.3.14 to 4.3.16 */
function endOfDirectory(count: number, offset: number, length: number, large: boolean): Buffer {
  const [count16, length32, offset32] = large ? [FULL_16, FULL_32, FULL_32] : [count, length, offset];
  const end = record([4, 0x0605_4b50], [2, 0], [2, 0], [2, count16], [2, count16], [4, length32], [4, offset32], [2, 0]);
  if (!large) return end;
  const end64 = record(
    [4, 0x0606_4b50],
    [8, 44],
    [2, MADE_BY_UNIX | VERSION_ZIP64],
    [2, VERSION_ZIP64],
    [4, 0],
    [4, 0],
    [8, count],
    [8, count],
    [8, length],
    [8, offset],
  );
  const locator = record([4, 0x0706_4b50], [4, 0], [8, offset + length], [4, 1]);
  return Buffer.concat([end64, locator, end]);
}
