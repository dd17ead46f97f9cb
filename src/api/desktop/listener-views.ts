import * as v from "valibot";
import { ListenerRequest } from "../../config/api-listener.ts";
import { Count, looseText, recordOf, Timestamp, text } from "../../domain/primitives.ts";

/** How the API is served on TCP, or why it is not. */
export const ListenerStatus = v.strictObject({
  /** failed: it is wanted and does not listen, or lets nobody in; it is tried again. */
  state: v.picklist(["stopped", "listening", "failed"]),
  /** null where it does not listen. */
  url: v.nullable(text(512)),
  since: v.nullable(Timestamp),
  /** What was asked for; null while it is stopped. */
  listener: v.nullable(ListenerRequest),
  /** The file that has the token. */
  token_file: text(4_096),
  detail: v.nullable(looseText(2_000)),
  /** Connections by whether they have shown the token; null where they are not counted. */
  connections: v.nullable(v.strictObject({ proven: Count, unproven: Count })),
  connections_max: Count,
  /** What was refused since it listens, by reason. */
  refused: recordOf(text(64), Count),
});
export type ListenerStatus = v.InferOutput<typeof ListenerStatus>;

/** What the desktop's app can do with its listener on TCP. */
export interface ListenerControl {
  status(): ListenerStatus;
  /** @throws RelayError configuration_error where the address, the token or the certificate cannot be used */
  start(request: ListenerRequest): Promise<ListenerStatus>;
  stop(): Promise<ListenerStatus>;
  /** @throws RelayError configuration_error */
  rotate(): Promise<ListenerStatus>;
}
