import { randomOf } from "../runner/soak.ts";

const FILL = ["a", "Z", "9", " ", "é", "€", "😀", "\r", "\t"];

const seedOf = (key: string): number => Number(Bun.hash(key) & 0xffffffffn);

/**
 * At least so many bytes of text whose every line says whose it is and where it stands: a piece that is missing, doubled or another's is
 * found, wherever a log was cut. The same for the same key; lines differ in length, and characters take one to four bytes.
 */
export function pattern(key: string, bytes: number): Buffer {
  const random = randomOf(seedOf(key));
  const lines: string[] = [];
  for (let at = 0; at < bytes; ) {
    const fill = FILL[Math.floor(random() * FILL.length)]!.repeat(Math.floor(random() * 60));
    const line = `${key} ${String(at).padStart(9, "0")} ${fill}\n`;
    lines.push(line);
    at += Buffer.byteLength(line);
  }
  return Buffer.from(lines.join(""));
}

/** What is wrong with bytes that should be these; null when they are. `whole` false: a shorter piece from the beginning will do. */
export function difference(actual: Uint8Array, expected: Uint8Array, whole = true): string | null {
  const length = Math.min(actual.length, expected.length);
  if (Buffer.compare(actual.subarray(0, length), expected.subarray(0, length)) !== 0) {
    let at = 0;
    while (actual[at] === expected[at]) at++;
    const piece = (bytes: Uint8Array): string => JSON.stringify(Buffer.from(bytes.subarray(at, at + 40)).toString());
    return `differs at byte ${at}: ${piece(actual)} instead of ${piece(expected)}`;
  }
  if (actual.length > expected.length || (whole && actual.length < expected.length)) return `${actual.length} bytes of ${expected.length}`;
  return null;
}
