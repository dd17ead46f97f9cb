import path from "node:path";
import { inAttempt } from "../../execution/own-place.ts";
import { FILES } from "../../execution/spool-records.ts";
import { readRegular } from "../../lib/files/regular-file.ts";
import type { Clock } from "../../lib/waiting/clock.ts";

/** A command that a shim can start is started long before. */
const SLOW_MS = 2_000;
const LOG_MAX_BYTES = 64 * 1024;

/** What a shim says while it has claimed its attempt and no start of the command is known: it may be short of processes or files. */
export class SlowStart {
  #since: number | null = null;

  constructor(
    private readonly clock: Clock,
    private readonly directory: string,
  ) {}

  /** Null for the first two seconds in which that is asked, and where the shim says nothing. */
  get obstacle(): string | null {
    this.#since ??= this.clock.monotonic();
    if (this.clock.monotonic() - this.#since < SLOW_MS) return null;
    const note = lastNote(this.directory);
    return note === null ? null : `no start of the command is known yet; its shim says: ${note}`;
  }
}

function lastNote(directory: string): string | null {
  const found = inAttempt(directory, (place) => readRegular(path.join(place, FILES.shimLog), LOG_MAX_BYTES), "absent");
  if (typeof found === "string") return null;
  // Each line is a time and a note.
  return /^\S+ (.+)$/.exec(found.text.trimEnd().split("\n").at(-1) ?? "")?.[1] ?? null;
}
