import { type ErrorCode, isRelayError, RelayError } from "../../domain/errors.ts";
import { FLOODED_MS } from "./intake.ts";

/** Codes of `close` (docs/wire.md, Codes of close). */
export const CLOSE_CODES = [
  "version",
  "malformed",
  "flooding",
  "timeout",
  "token",
  "key",
  "name",
  "proof",
  "busy",
  "draining",
  "absent",
  "silent",
  "refused",
  "superseded",
  "ticket",
  "done",
] as const;
export type CloseCode = (typeof CLOSE_CODES)[number];

/** Why a worker does not let a desktop in. */
export const REFUSALS = ["key", "busy", "draining"] as const;
export type Refusal = (typeof REFUSALS)[number];

interface Meaning {
  readonly error: ErrorCode;
  readonly text: string;
  /** Milliseconds until the next try, at the least; what the relay-host says may be more. */
  readonly retry: number;
}

/** Nobody is kept away for longer, whatever is said: who says it need not have proven anything yet. */
export const RETRY_MAX_MS = 60_000;
const MINUTE = RETRY_MAX_MS;
const meaning = (error: ErrorCode, text: string, retry = 0): Meaning => ({ error, text, retry });

const MEANINGS: Readonly<Record<CloseCode, Meaning>> = {
  version: meaning("version_mismatch", "the relay-host speaks no version of the meeting protocol that this program speaks", MINUTE),
  malformed: meaning("meeting_malformed", "the relay-host did not understand what it was sent"),
  flooding: meaning("meeting_flooded", "more came than the meeting protocol allows", FLOODED_MS),
  timeout: meaning("link_down", "the relay-host was not answered in time"),
  token: meaning("relay_token_refused", "the relay-host does not know the token", MINUTE),
  key: meaning("meeting_key_refused", "the relay-host refused the proof of the key", MINUTE),
  name: meaning("meeting_key_refused", "the relay-host has another name than the one that was dialed", MINUTE),
  proof: meaning("relay_host_unproven", "who answered does not know the relay-host's token", MINUTE),
  busy: meaning("relay_host_busy", "the relay-host is at one of its limits", 1_000),
  draining: meaning("shutting_down", "the relay-host is shutting down"),
  absent: meaning("worker_absent", "the worker has not registered at this relay-host"),
  silent: meaning("worker_absent", "the worker did not come to the relay-host when it was asked to"),
  refused: meaning("join_refused", "the worker does not let this desktop's key in", MINUTE),
  superseded: meaning("meeting_superseded", "another worker with the same key has registered at the relay-host", 30_000),
  ticket: meaning("link_down", "the ticket is over, or the desktop has gone"),
  done: meaning("link_down", "the relay-host ended the connection"),
};

const REFUSED: Readonly<Record<Refusal, Meaning>> = {
  key: MEANINGS.refused,
  busy: meaning("relay_host_busy", "the worker takes no more desktops now", 1_000),
  draining: meaning("shutting_down", "the worker is shutting down", 1_000),
};

/** Data of an error that a meeting ended with. */
export interface MeetingEnd {
  /** The code on the wire; absent where there was none. */
  readonly close?: CloseCode;
  /** Milliseconds until the next try, at the least. */
  readonly retry_ms: number;
}

/** What a `close` of the relay-host means to the client that got it. Its data are a MeetingEnd. */
export function closedBy(code: CloseCode, retry: number, refusal: Refusal = "key"): RelayError {
  const { error, text, retry: least } = code === "refused" ? REFUSED[refusal] : MEANINGS[code];
  return new RelayError(error, text, { close: code, retry_ms: Math.min(Math.max(retry, least), RETRY_MAX_MS) } satisfies MeetingEnd);
}

/** Refusals of the session inside that only a person can put right. */
const FOR_A_PERSON = ["host_key_changed", "key_expired", "authentication_failed"] as const;

/** The least delay before a meeting is tried again, in milliseconds, after whatever it ended with. */
export const retryAfter = (error: unknown): number => {
  const ms = error instanceof RelayError ? error.data["retry_ms"] : undefined;
  if (typeof ms === "number") return ms;
  return FOR_A_PERSON.some((code) => isRelayError(error, code)) ? RETRY_MAX_MS : 0;
};

/** Up to what that delay doubles each time that it ends so again, in milliseconds; 0: it stays. */
export const growsTo = (error: unknown): number => (isRelayError(error, "meeting_flooded") ? RETRY_MAX_MS : 0);
