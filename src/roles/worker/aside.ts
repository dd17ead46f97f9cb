import type { RelayError } from "../../domain/errors.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";
import { settleUnstarted } from "./settlement.ts";

/**
 * An attempt whose records this worker does not understand. Shim and job are left to a worker that does; what they leave may be given up by a cancel
 * or a repair once nothing of them runs.
 */
export class AsideAttempt {
  #explained = false;
  /** Told once whether giving it up has ended it. */
  #given: PromiseWithResolvers<boolean> | null = null;

  constructor(
    private readonly context: WorkerContext,
    private readonly fence: Fence,
    private readonly cause: RelayError,
    /** Whether anything of it may run. */
    private readonly runs: () => boolean,
  ) {}

  get reason(): string {
    return this.cause.message;
  }

  /** Say why it is kept out; once. */
  async explain(): Promise<void> {
    if (this.#explained) return;
    await this.context.store.quarantine(
      this.fence.job_id,
      `${this.cause.message}; once its processes have ended, it can be canceled, or ended by a repair of the queue`,
    );
    this.#explained = true;
  }

  /** Have the next look end it. Resolves to whether that did. */
  giveUp(): Promise<boolean> {
    this.#given ??= Promise.withResolvers();
    return this.#given.promise;
  }

  /** Nobody looks after it here any more. */
  letGo(): void {
    this.#given?.resolve(false);
    this.#given = null;
  }

  /** End it, when somebody asked for that and nothing of it runs. False otherwise. */
  async end(canceling: boolean): Promise<boolean> {
    const given = this.#given;
    this.#given = null;
    try {
      const over = (canceling || given !== null) && !this.runs();
      if (over) {
        const how = canceling ? "canceled" : "outcome_unknown";
        await settleUnstarted(this.context, this.fence, how, `${this.cause.message}; nothing of it is found running`);
      }
      given?.resolve(over);
      return over;
    } catch (error) {
      given?.resolve(false);
      throw error;
    }
  }
}
