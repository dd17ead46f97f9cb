import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import { Rates } from "../sockets/quota.ts";

export type Fields = Readonly<Record<string, string | number | boolean | null>>;

/** What a relay-host says: one JSON object a line, `at`, `level`, `event` and what belongs to that. Addresses and fingerprints; never a token, a ticket or what is joined. */
export interface Journal {
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  /** What those who have the token can bring about as often as they like: 240 lines a minute of each event, and how many were left out. `info` when `level` is left out. */
  often(event: string, fields: Fields, level?: Level): void;
  /** The same for what strangers can: 60 lines. */
  refused(fields: Fields): void;
}

type Level = "info" | "warn";

const STRANGERS_PER_MINUTE = 60;
const OTHERS_PER_MINUTE = 240;

/** @param write gets a line, and what stands for so many lines that nobody took */
export function journal(clock: Clock, write: (line: string, omittedLine: (count: number) => string) => void): Journal {
  const now = (): number => clock.monotonic();
  const strangers = new Rates(STRANGERS_PER_MINUTE, now);
  const others = new Rates(OTHERS_PER_MINUTE, now);
  const omitted = new Map<string, number>();
  const line = (level: Level, event: string, fields: Fields = {}): string =>
    `${JSON.stringify({ at: timestamp(clock), level, event, ...fields })}\n`;
  const say = (level: Level, event: string, fields?: Fields): void =>
    write(line(level, event, fields), (count) => line("warn", "omitted", { lines: count }));
  const rationed = (rates: Rates, level: Level, event: string, fields: Fields): void => {
    const before = omitted.get(event) ?? 0;
    if (!rates.take(event)) {
      omitted.set(event, before + 1);
      return;
    }
    omitted.delete(event);
    say(level, event, before === 0 ? fields : { ...fields, omitted_before: before });
  };
  return {
    info: (event, fields) => say("info", event, fields),
    warn: (event, fields) => say("warn", event, fields),
    often: (event, fields, level = "info") => rationed(others, level, event, fields),
    refused: (fields) => rationed(strangers, "warn", "refused", fields),
  };
}
