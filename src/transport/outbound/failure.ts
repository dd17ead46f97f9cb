import { type ErrorCode, type ErrorData, isRelayError, RelayError } from "../../domain/errors.ts";

/** The parts of a way out, in the order in which they are gone through. */
export const LAYERS = ["dns", "tcp", "proxy", "tls", "http_upgrade", "relay_handshake"] as const;
export type Layer = (typeof LAYERS)[number];

/** A failure of one layer, which is in the data as `layer`. */
export const layerFailure = (
  layer: Layer,
  code: ErrorCode,
  message: string,
  { data = {}, hint, cause }: { data?: ErrorData; hint?: string | undefined; cause?: unknown } = {},
): RelayError => new RelayError(code, message, { layer, ...data }, hint, { cause });

/** The layer at which a way out failed; null where the error is of something else. */
export function layerOf(error: unknown): Layer | null {
  const layer = isRelayError(error) ? error.data["layer"] : undefined;
  return LAYERS.find((one) => one === layer) ?? null;
}
