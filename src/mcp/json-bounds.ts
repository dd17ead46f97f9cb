import { RelayError } from "../domain/errors.ts";
import { jsonExcess } from "../lib/json-excess.ts";

/** What a client's JSON has at most. */
export const JSON_BOUNDS = {
  /** One message. */
  messageBytes: 1024 * 1024,
  /** The arguments of one call. */
  argumentBytes: 512 * 1024,
  /** One round of answers to what a task asks for. */
  roundBytes: 256 * 1024,
  depth: 64,
  values: 100_000,
} as const;

/** What is too much about a client's JSON text, before it is parsed; null where nothing is. */
export const tooMuch = (bytes: Uint8Array): string | null => jsonExcess(bytes, JSON_BOUNDS);

/** @throws RelayError payload_too_large where a value takes more than `max` bytes as JSON */
export function refuseLarge(value: unknown, max: number, what: string): void {
  const size = Buffer.byteLength(JSON.stringify(value) ?? "");
  if (size > max)
    throw new RelayError("payload_too_large", `${what} take ${size} bytes, and may take ${max}`, { size_bytes: size, max_bytes: max });
}
