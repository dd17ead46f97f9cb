import * as v from "valibot";
import { FRP_MODES, MODES } from "../../config/cluster-entry.ts";
import { LINK_STATES } from "../../domain/link.ts";
import { Count, Id, looseText, recordOf, Sequence, Timestamp, text } from "../../domain/primitives.ts";
import { whole } from "../../domain/query.ts";
import { LedgerEntry } from "../../transport/ledger.ts";

/** What is known of the way to a cluster's worker. */
export const LinkStatus = v.strictObject({
  cluster: Id,
  mode: v.picklist(MODES),
  /** In modes frp-*: which of the ways through a frps carries the link; null without one. */
  carrier: v.optional(v.nullable(v.picklist(FRP_MODES))),
  /** See docs/connection-model.md. Of mode local: up, the worker answered just now; degraded, it is there and does not answer; down, nobody is there. */
  state: v.picklist(LINK_STATES),
  /** When it came into this state. Of mode local, which is looked at when it is asked for: since when it is not answering, else null. */
  since: v.nullable(Timestamp),
  /** Duration of the last round trip, in milliseconds, which may be of before; null when there was none. */
  round_trip_ms: v.nullable(v.number()),
  /** Version of the worker; null while it is not known. */
  worker_version: v.nullable(text(128)),
  detail: v.nullable(looseText(2_000)),
  /** Bytes on the connection since it was made, the session's own included; null without one. */
  bytes_in: v.nullable(Count),
  bytes_out: v.nullable(Count),
  /** SSH connections dialed for this cluster since the one that the link is on; null without a link. */
  ssh_connections_since_bring_up: v.nullable(Count),
  /** Entry of the ledger of the connection that the link is on; null without one. */
  bring_up_seq: v.nullable(Sequence),
  /** The last SSH connections that were dialed for this cluster, oldest first. */
  ledger: v.array(LedgerEntry),
});
export type LinkStatus = v.InferOutput<typeof LinkStatus>;

/** Of mode local who takes longer for a sign of life is as it was known. */
export const LinksQuery = v.strictObject({ patience_ms: v.optional(whole(0, 2_000)) });

export const LinkList = v.strictObject({ links: v.array(LinkStatus) });

/** The most entries of the ledger that a status shows. */
export const LEDGER_SHOWN = 100;

/** What a command that wants a connection has around it. None of it is kept. */
export const AttendedRequest = v.strictObject({
  /** The command, as it is to stand in the ledger. */
  requested_by: text(256),
  /** Whether there is a person at a terminal who can be asked. */
  interactive: v.boolean(),
  /** Working directory. */
  directory: text(4_096),
  /** Socket of the ssh agent; null where there is none. */
  agent_socket: v.nullable(text(4_096)),
  /** ssh configuration in place of the user's and the system's; `none` for none at all; null for theirs. */
  ssh_config: v.nullable(text(4_096)),
  /** Environment, for what ssh_config(5) makes of it. */
  variables: recordOf(text(1_024), looseText(128 * 1024)),
});
export type AttendedRequest = v.InferOutput<typeof AttendedRequest>;

/** A question to the person at the command that began. */
export const PromptEvent = v.strictObject({
  id: Id,
  kind: v.picklist(["host_key", "passphrase", "password", "keyboard_interactive"]),
  /** Safe for a terminal; may have several lines. */
  message: looseText(32 * 1024),
  /** Whether the answer may be shown while it is typed. */
  echo: v.boolean(),
  /** Who asks. */
  host: text(512),
});
export type PromptEvent = v.InferOutput<typeof PromptEvent>;

/** Longest answer, in UTF-16 units. */
export const ANSWER_MAX = 4_096;

/** null: the person does not want to answer. */
export const PromptAnswer = v.strictObject({ answer: v.nullable(looseText(ANSWER_MAX)) });
export const PromptTaken = v.strictObject({ taken: v.literal(true) });

/**
 * What the answer of a route that may need a person consists of, by the name of the message. It ends with `done`, whose data are the result, or `failed`,
 * whose data are a problem document.
 */
export const AttendedEvent = v.variant("event", [
  v.strictObject({ event: v.literal("progress"), data: v.strictObject({ text: looseText(2_000), unfinished: v.optional(v.boolean()) }) }),
  /** To be shown to the person: banners of servers and the like. Safe for a terminal. */
  v.strictObject({ event: v.literal("notice"), data: v.strictObject({ text: looseText(32 * 1024) }) }),
  /** Bytes that are there or on their way, of all; a few times a second at most. */
  v.strictObject({ event: v.literal("transfer"), data: v.strictObject({ bytes: Count, total: Count }) }),
  v.strictObject({ event: v.literal("prompt"), data: PromptEvent }),
  /** Another command does the same already: this is what happens there. */
  v.strictObject({ event: v.literal("joined"), data: v.strictObject({ requested_by: text(256) }) }),
  v.strictObject({ event: v.literal("done"), data: v.unknown() }),
  v.strictObject({ event: v.literal("failed"), data: v.looseObject({ reason: v.string() }) }),
]);
export const ATTENDED_EVENTS: ReadonlySet<string> = new Set(AttendedEvent.options.map(({ entries }) => entries.event.literal));
export type AttendedEvent = v.InferOutput<typeof AttendedEvent>;
