import { RelayError } from "../../domain/errors.ts";

/** What is taken of one connection within so many milliseconds before it is joined, by every party (docs/wire.md, Limits). */
const MESSAGES_MAX = 200;
const BYTES_MAX = 256 * 1024;
const WINDOW_MS = 10_000;

/** How long whoever sent more is to stay away, in milliseconds. */
export const FLOODED_MS = WINDOW_MS;

/** Counts what comes on one connection, so that nothing beyond the bound is looked at. */
export class Intake {
  #messages = 0;
  #bytes = 0;
  #since = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds that only go forward */
  constructor(private readonly now: () => number) {}

  /** So many bytes have come. @throws RelayError meeting_flooded */
  bytes(count: number): void {
    const now = this.now();
    if (now - this.#since > WINDOW_MS) {
      this.#since = now;
      this.#messages = 0;
      this.#bytes = 0;
    }
    this.#bytes += count;
    if (this.#bytes > BYTES_MAX) throw flooded(`${BYTES_MAX} bytes`);
  }

  /** A message is about to be read. @throws RelayError meeting_flooded */
  message(): void {
    if (++this.#messages > MESSAGES_MAX) throw flooded(`${MESSAGES_MAX} messages`);
  }

  /** The last message answered what this side had asked: how many there are of these is for this side to say. */
  wasAnswer(): void {
    this.#messages--;
  }
}

const flooded = (most: string): RelayError =>
  new RelayError("meeting_flooded", `more than ${most} of the meeting protocol came within ${WINDOW_MS / 1_000} s`, {
    close: "flooding",
    retry_ms: FLOODED_MS,
  });
