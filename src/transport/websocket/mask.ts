/** Whether the first byte of a word is its lowest one. */
const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/**
 * Mask, or unmask, bytes where they lie (RFC 6455, section 5.3).
 *
 * @param key 4 bytes
 * @param at the place of the first byte in its frame's payload
 */
export function mask(bytes: Uint8Array, key: Uint8Array, at = 0): void {
  const { length } = bytes;
  const unaligned = Math.min(length, (4 - (bytes.byteOffset % 4)) % 4);
  for (let i = 0; i < unaligned; i++) bytes[i]! ^= key[(at + i) % 4]!;
  const words = (length - unaligned) >> 2;
  if (words > 0) {
    const turned = new Uint8Array(4);
    for (let i = 0; i < 4; i++) turned[i] = key[(at + unaligned + i) % 4]!;
    const word = new DataView(turned.buffer).getInt32(0, LITTLE_ENDIAN);
    const view = new Int32Array(bytes.buffer, bytes.byteOffset + unaligned, words);
    for (let i = 0; i < words; i++) view[i]! ^= word;
  }
  for (let i = unaligned + words * 4; i < length; i++) bytes[i]! ^= key[(at + i) % 4]!;
}
