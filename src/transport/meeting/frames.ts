import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { Intake } from "./intake.ts";
import { FromClient, FromRelay, type Message } from "./messages.ts";

/** Longest message of each party, in bytes (docs/wire.md, Frames). */
const MAX_BYTES = { client: 4_096, relay: 16_384 } as const;
const PREFIX = 4;
const NOTHING = Buffer.alloc(0);

interface Sent {
  readonly client: FromClient;
  readonly relay: FromRelay;
}
export type Party = keyof Sent;

const SCHEMAS = { client: FromClient, relay: FromRelay } as const;
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** A message as its frame. */
export function encode(message: Message): Buffer {
  const members = Object.entries(message).map(([name, value]) => [name, Buffer.isBuffer(value) ? value.toString("base64") : value]);
  const body = Buffer.from(JSON.stringify(Object.fromEntries(members)));
  const whole = Buffer.allocUnsafe(PREFIX + body.length);
  whole.writeUInt32BE(body.length);
  body.copy(whole, PREFIX);
  return whole;
}

const malformed = (why: string): RelayError => new RelayError("meeting_malformed", why);

/** Takes the frames of one party out of what comes from it, one at a time, so that nothing behind the last one is touched. */
export class FrameParser<P extends Party> {
  #held: Buffer = NOTHING;
  /** What came behind it, not yet put together: a frame may come byte by byte. */
  #behind: Buffer[] | null = null;
  /** Bytes that were pushed and not taken. */
  held = 0;
  readonly #intake: Intake;

  /** @param now milliseconds that only go forward */
  constructor(
    private readonly party: P,
    now: () => number = () => performance.now(),
  ) {
    this.#intake = new Intake(now);
  }

  /** @throws RelayError meeting_flooded */
  push(chunk: Buffer): void {
    this.#intake.bytes(chunk.length);
    this.held += chunk.length;
    if (this.#held.length === 0) this.#held = chunk;
    else if (this.#behind === null) this.#behind = [chunk];
    else this.#behind.push(chunk);
  }

  /** The message that was taken last answers what was asked here, and does not count. */
  wasAnswer(): void {
    this.#intake.wasAnswer();
  }

  /** What is held, where it is as long as that; else null. */
  #whole(length: number): Buffer | null {
    if (this.held < length) return null;
    if (this.#held.length < length) {
      this.#held = Buffer.concat([this.#held, ...(this.#behind ?? [])]);
      this.#behind = null;
    }
    return this.#held;
  }

  /**
   * The next message; null where it has not come to its end.
   *
   * @throws RelayError meeting_malformed; meeting_flooded, with the message unread
   */
  take(): Sent[P] | null {
    const length = this.#whole(PREFIX)?.readUInt32BE(0);
    if (length === undefined) return null;
    if (length < 2 || length > MAX_BYTES[this.party]) throw malformed(`a frame of ${length} bytes`);
    const held = this.#whole(PREFIX + length);
    if (held === null) return null;
    this.#intake.message();
    this.held -= PREFIX + length;
    // A view of nothing would keep all of what it is a view of.
    this.#held = held.length === PREFIX + length ? NOTHING : held.subarray(PREFIX + length);
    return parse(this.party, held.subarray(PREFIX, PREFIX + length));
  }

  /** Everything behind the messages that were taken; the parser is done with. */
  rest(): Buffer {
    const rest = this.#whole(this.held) ?? NOTHING;
    this.#held = NOTHING;
    this.held = 0;
    return rest;
  }
}

function parse<P extends Party>(party: P, bytes: Buffer): Sent[P] {
  let data: unknown;
  try {
    data = JSON.parse(UTF8.decode(bytes));
  } catch {
    throw malformed("a frame that is no JSON in UTF-8");
  }
  const result = v.safeParse(SCHEMAS[party], data);
  if (result.success) return result.output as Sent[P];
  // What came is not repeated: it may be anything, and goes into logs.
  const [issue] = result.issues;
  throw malformed(`${v.getDotPath(issue) ?? "a message"} is not ${issue.expected ?? "as it has to be"}`.slice(0, 200));
}
