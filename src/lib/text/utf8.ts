/**
 * Length of the longest prefix that does not end inside a UTF-8 sequence (RFC 3629). Invalid bytes count as complete:
 * only a sequence that more bytes could still complete is cut off, so at most 3 bytes are.
 */
export function completeUtf8Length(bytes: Uint8Array): number {
  const end = bytes.length;
  for (let back = 1; back <= 3 && back <= end; back++) {
    const byte = bytes[end - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 && byte <= 0xf4 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return byte < 0xf5 && needed > back ? end - back : end;
  }
  return end;
}
