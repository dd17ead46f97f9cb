import type { Offer } from "./algorithms.ts";

const SSH_MSG_KEXINIT = 20;
/** Lines before the identification (RFC 4253, section 4.2) and the first packet together; a site that says more is not read. */
const MAX_BYTES = 128 * 1024;

/**
 * Reads the other side's first SSH_MSG_KEXINIT (RFC 4253, section 7.1) from the bytes that it sends; it comes before anything is encrypted.
 * It only looks: what it does not understand is somebody else's to refuse.
 */
export class FirstOffer {
  #bytes: Buffer | null = Buffer.alloc(0);
  #offer: Offer | null = null;

  get offer(): Offer | null {
    return this.#offer;
  }

  push(chunk: Buffer): void {
    if (this.#bytes === null) return;
    const bytes = Buffer.concat([this.#bytes, chunk]);
    const packet = firstPacket(bytes);
    if (packet !== null) this.#offer = readKexInit(packet);
    this.#bytes = packet === null && bytes.length <= MAX_BYTES ? bytes : null;
  }
}

/** The first packet from its padding length on, once it is there as a whole: it follows the line that begins with `SSH-`. */
function firstPacket(bytes: Buffer): Buffer | null {
  const start = packetStart(bytes);
  if (start === null || bytes.length < start + 4) return null;
  const end = start + 4 + bytes.readUInt32BE(start);
  return bytes.length < end ? null : bytes.subarray(start + 4, end);
}

function packetStart(bytes: Buffer): number | null {
  for (let line = 0; ; ) {
    const end = bytes.indexOf(0x0a, line);
    if (end < 0) return null;
    if (bytes.toString("latin1", line, line + 4) === "SSH-") return end + 1;
    line = end + 1;
  }
}

/** @param packet from its padding length on */
function readKexInit(packet: Buffer): Offer | null {
  const payload = packet.subarray(1, packet.length - (packet[0] ?? 0));
  if (payload[0] !== SSH_MSG_KEXINIT) return null;
  const lists: string[][] = [];
  // Type and cookie.
  let at = 17;
  for (let left = 4; left > 0; left--) {
    if (at + 4 > payload.length) return null;
    const length = payload.readUInt32BE(at);
    at += 4;
    if (at + length > payload.length) return null;
    lists.push(
      payload
        .toString("latin1", at, at + length)
        .split(",")
        .filter((name) => name !== ""),
    );
    at += length;
  }
  const [kex, serverHostKey, cipherToServer, cipherToClient] = lists as [string[], string[], string[], string[]];
  return { kex, serverHostKey, cipherToServer, cipherToClient };
}
