import { RelayError } from "../../domain/errors.ts";

/** @param what is too large, as the person wrote it */
export const inputTooLarge = (what: string, size: number, max: number, hint?: string): RelayError =>
  new RelayError("payload_too_large", `${what}: ${size} bytes, and ${max} are allowed`, { size_bytes: size, max_bytes: max }, hint);
