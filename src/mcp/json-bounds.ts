import { RelayError } from "../domain/errors.ts";
import { jsonExcess } from "../lib/text/json-excess.ts";
import { roundedNumber, wouldRound } from "../lib/text/rounded-number.ts";

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

/** What would become another number on its way to a tool; null where nothing would. @param text that the message was parsed from */
export function roundedArgument(message: unknown, text: string): string | null {
  if ((message as { readonly method?: unknown } | null)?.method !== "tools/call") return null;
  const found = roundedNumber(text);
  return found === null ? null : wouldRound(found);
}

/** @throws RelayError payload_too_large where a value takes more than `max` bytes as JSON */
export function refuseLarge(value: unknown, max: number, what: string): void {
  const size = Buffer.byteLength(JSON.stringify(value) ?? "");
  if (size > max)
    throw new RelayError("payload_too_large", `${what} take ${size} bytes, and may take ${max}`, { size_bytes: size, max_bytes: max });
}
