import fs from "node:fs";

const PIECE = 1024 * 1024;

/** Digest of a regular file, piece by piece. @throws the system's error */
export function hashOf(file: string, algorithm: "sha256" | "sha512", encoding: "hex" | "base64" | "base64url"): string {
  const hasher = new Bun.CryptoHasher(algorithm);
  const fd = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  try {
    const piece = Buffer.allocUnsafe(PIECE);
    for (let count = -1; count !== 0; ) {
      count = fs.readSync(fd, piece, 0, PIECE, null);
      hasher.update(piece.subarray(0, count));
    }
  } finally {
    fs.closeSync(fd);
  }
  return hasher.digest(encoding);
}
