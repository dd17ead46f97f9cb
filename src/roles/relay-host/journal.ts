import { type Clock, timestamp } from "../../lib/clock.ts";
import { Rates } from "../sockets/quota.ts";

export type Fields = Readonly<Record<string, string | number | boolean | null>>;

/** What a relay-host says: one JSON object a line, `at`, `level`, `event` and what belongs to that. Addresses and fingerprints; never a token, a ticket or what is joined. */
export interface Journal {
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  /** The same for what strangers can bring about as often as they like: 60 lines a minute, and how many were left out. */
  refused(fields: Fields): void;
}

const PER_MINUTE = 60;

export function journal(clock: Clock, write: (line: string) => void): Journal {
  const rates = new Rates(PER_MINUTE, () => clock.monotonic());
  let omitted = 0;
  const say = (level: "info" | "warn", event: string, fields: Fields = {}): void =>
    write(`${JSON.stringify({ at: timestamp(clock), level, event, ...fields })}\n`);
  return {
    info: (event, fields) => say("info", event, fields),
    warn: (event, fields) => say("warn", event, fields),
    refused(fields) {
      if (!rates.take("refused")) {
        omitted++;
        return;
      }
      say("warn", "refused", omitted === 0 ? fields : { ...fields, omitted_before: omitted });
      omitted = 0;
    },
  };
}
