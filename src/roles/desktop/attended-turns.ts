import type { AttendedRequest } from "../../api/desktop/link-views.ts";
import { RelayError } from "../../domain/errors.ts";
import { settled } from "../../transport/settled.ts";
import { type Attended, AttendedRun } from "./attended-run.ts";
import { type Follow, following } from "./attended-stream.ts";

/** How long whoever comes waits for the end of something else, in milliseconds: one who went away a moment ago may not be known to be gone. */
const LEAVING_MS = 1_000;

type Work = (attended: Attended) => Promise<unknown>;

interface Turn {
  /** What is done; the same is joined. */
  readonly what: string;
  readonly run: AttendedRun;
}

/** The one command at a time that works on a cluster's connection, those who join it, and those who come after it. */
export class AttendedTurns {
  #current: Turn | null = null;

  /** @param report gets failures that are not RelayErrors */
  constructor(
    private readonly cluster: string,
    private readonly report: (error: unknown) => void,
    private readonly leavingMs = LEAVING_MS,
  ) {}

  /**
   * Do something that may need a person. Who asks for the same while it is done joins in, and does it where the one who began goes away.
   *
   * @param client aborted when whoever asks goes away, be it before anything is told
   * @throws RelayError state_conflict while something else is done
   */
  async take(what: string, request: AttendedRequest, work: Work, client: AbortSignal): Promise<Follow> {
    let current = this.#current;
    if (current !== null && current.what !== what) {
      await left(current.run, this.leavingMs);
      current = this.#current;
    }
    if (current === null || current.run.givenUp.aborted) {
      const run = this.#begin(what, request, work, current?.run ?? null);
      if (client.aborted) run.leave();
      client.addEventListener("abort", () => run.leave(), { once: true });
      return following(run, true);
    }
    if (current.what === what) return this.#joined(current.run, () => this.take(what, request, work, client));
    const { requestedBy } = current.run;
    throw new RelayError("state_conflict", `${requestedBy} is at work on ${this.cluster}; try again when it is done`, {
      cluster: this.cluster,
      requested_by: requestedBy,
    });
  }

  #begin(what: string, request: AttendedRequest, work: Work, before: AttendedRun | null): AttendedRun {
    // One that was given up is not joined, nor is there any more to be said of it; but two are not at work at a time.
    const inTurn: Work = async (attended) => {
      if (before !== null) await settled(before.over, attended.attending.signal);
      return work(attended);
    };
    const run = new AttendedRun(request.requested_by, request.interactive, inTurn, this.report);
    this.#current = { what, run };
    void run.over.then(() => {
      if (this.#current?.run === run) this.#current = null;
    });
    return run;
  }

  #joined(run: AttendedRun, again: () => Promise<Follow>): Follow {
    return async function* (signal) {
      for await (const event of following(run, false)(signal)) {
        if (event.event === "failed" && run.wasLeft && !signal.aborted) {
          yield* (await again())(signal);
          return;
        }
        yield event;
      }
    };
  }

  /** @returns false when there is no such question, or no longer */
  answer(id: string, answer: string | null): boolean {
    return this.#current?.run.answer(id, answer) ?? false;
  }

  /** Nobody is to wait for what is done now. */
  giveUp(why: RelayError): void {
    this.#current?.run.giveUp(why);
  }
}

/** Until a run is given up or over, within a time. */
function left(run: AttendedRun, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  run.givenUp.addEventListener("abort", () => resolve(), { once: true });
  void run.over.then(resolve);
  return promise.finally(() => clearTimeout(timer));
}
