import type { LinkStatus } from "../../api/desktop/link-views.ts";
import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import { within } from "../../lib/waiting/within.ts";
import { nobodyListens, probe } from "../probe.ts";

/** A question that nobody has answered for so long is asked anew, in milliseconds. */
const QUESTION_MS = 10_000;

type Sign = Awaited<ReturnType<typeof probe>>;

interface Question {
  /** Of the monotonic clock. */
  readonly at: number;
  readonly answer: Promise<Sign>;
  readonly over: AbortController;
}

/** What is known of a worker from before. */
interface Known {
  readonly sign: Sign | null;
  /** When it answered last. */
  readonly answeredAt: string | null;
  /** When the first question was asked that it has not answered; null: it has answered. */
  readonly silentSince: string | null;
}

const NOTHING: Known = { sign: null, answeredAt: null, silentSince: null };

/** Workers of this machine: each is asked for a sign of life by one question at a time, however many want to know. */
export class LocalWorkers {
  readonly #questions = new Map<string, Question>();
  readonly #known = new Map<string, Known>();

  constructor(private readonly clock: Clock) {}

  /** Whether a worker answers within so many milliseconds. @throws what fetch throws where nobody is there */
  alive(socket: string, ms: number): Promise<boolean> {
    return within(this.#ask(socket).answer, ms);
  }

  /** How it is: as it says itself, or, where it has taken longer than `ms` for that, as it was known, and since when it is silent. */
  async state(cluster: string, socket: string, ms: number): Promise<LinkStatus> {
    const question = this.#ask(socket);
    const base = { ...NEVER_LINKED, cluster, ledger: [] };
    try {
      if (await within(question.answer, Math.max(0, question.at + ms - this.clock.monotonic()))) {
        const { roundTripMs, version } = await question.answer;
        return { ...base, state: "up", round_trip_ms: Math.round(roundTripMs * 1_000) / 1_000, worker_version: version };
      }
    } catch (error) {
      if (nobodyListens(error)) return { ...base, state: "down", detail: "no worker is running" };
    }
    const { sign, answeredAt, silentSince } = this.#known.get(socket) ?? NOTHING;
    return {
      ...base,
      state: "degraded",
      since: silentSince,
      round_trip_ms: sign === null ? null : Math.round(sign.roundTripMs * 1_000) / 1_000,
      worker_version: sign?.version ?? null,
      detail: `the worker is not answering, since ${silentSince}; ${answeredAt === null ? "it has not answered before" : `what is said of it is of ${answeredAt}`}`,
    };
  }

  #ask(socket: string): Question {
    const asked = this.#questions.get(socket);
    if (asked !== undefined) return asked;
    const known = this.#known.get(socket) ?? NOTHING;
    this.#known.set(socket, { ...known, silentSince: known.silentSince ?? timestamp(this.clock) });
    const over = new AbortController();
    const answer = probe(socket, QUESTION_MS, over.signal);
    const question = { at: this.clock.monotonic(), answer, over };
    this.#questions.set(socket, question);
    answer.then(
      (sign) => this.#known.set(socket, { sign, answeredAt: timestamp(this.clock), silentSince: null }),
      (error: unknown) => nobodyListens(error) && this.#known.delete(socket),
    );
    const settled = () => this.#questions.delete(socket);
    answer.then(settled, settled);
    return question;
  }

  close(): void {
    for (const { over } of this.#questions.values()) over.abort();
  }
}

/** What a worker of this machine has none of. */
const NEVER_LINKED = {
  mode: "local",
  since: null,
  round_trip_ms: null,
  worker_version: null,
  detail: null,
  bytes_in: null,
  bytes_out: null,
  ssh_connections_since_bring_up: null,
  bring_up_seq: null,
} as const;
