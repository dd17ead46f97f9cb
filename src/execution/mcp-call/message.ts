import type { JsonObject } from "../../domain/primitives.ts";
import { jsonExcess } from "../../lib/text/json-excess.ts";

/** A message of JSON-RPC 2.0, as far as it matters who it is for. */
export interface Message {
  readonly jsonrpc: "2.0";
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: JsonObject;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Levels of a message; its values are bounded by its bytes. */
const BOUNDS = { depth: 256, values: Number.MAX_SAFE_INTEGER };

export const isObject = (value: unknown): value is JsonObject => value !== null && typeof value === "object" && !Array.isArray(value);

/**
 * Messages of one line: one, or those of a batch (2025-03-26). `damaged`: they could be read, but the line is not UTF-8, or nested deeper than it is taken.
 *
 * @returns null for a line that is no message
 */
export function messagesOf(line: Uint8Array): { readonly messages: readonly Message[]; readonly damaged: string | null } | null {
  const excess = jsonExcess(line, BOUNDS);
  if (excess !== null) return looksLikeAnswer(line) ? { messages: [], damaged: excess } : null;
  let parsed: unknown;
  let damaged: string | null = null;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(line));
  } catch {
    try {
      parsed = JSON.parse(new TextDecoder().decode(line));
      damaged = "it is not UTF-8";
    } catch {
      return null;
    }
  }
  const messages = Array.isArray(parsed) ? parsed : [parsed];
  return messages.length > 0 && messages.every(isMessage) ? { messages, damaged } : null;
}

const looksLikeAnswer = (line: Uint8Array): boolean => line[0] === 0x7b;

function isMessage(value: unknown): value is Message {
  if (!isObject(value) || value["jsonrpc"] !== "2.0") return false;
  const { method, params } = value;
  if (method !== undefined) return typeof method === "string" && (params === undefined || params === null || isObject(params));
  // One that has neither a result nor an error answers a request all the same, and wrongly.
  return "id" in value;
}
