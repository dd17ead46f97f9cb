import type { Fence } from "../store.ts";

/**
 * The attempts that this process has claimed or taken over, and has neither ended nor voided yet: somebody here looks after each, and goes by what
 * the claim said.
 */
export class HeldAttempts {
  readonly #attempts = new Map<string, number>();

  /** Whether an attempt of the job is held. */
  has(jobId: string): boolean {
    return this.#attempts.has(jobId);
  }

  /** The write that gives an attempt out holds it, so that nothing that is committed with it sees it free. A write that is refused holds nothing. */
  async from<T>(write: (hold: (fence: Fence) => void) => Promise<T>): Promise<T> {
    const held: Fence[] = [];
    const hold = (fence: Fence): void => {
      if (this.#attempts.get(fence.job_id) === fence.attempt) return;
      this.#attempts.set(fence.job_id, fence.attempt);
      held.push(fence);
    };
    try {
      return await write(hold);
    } catch (error) {
      for (const fence of held) this.#drop(fence);
      throw error;
    }
  }

  /** The write that ends an attempt lets go of it, when it is committed. */
  async until<T>(fence: Fence, write: Promise<T>): Promise<T> {
    const ended = await write;
    this.#drop(fence);
    return ended;
  }

  /** The next attempt of the job may be held by now, which is another one. */
  #drop({ job_id, attempt }: Fence): void {
    if (this.#attempts.get(job_id) === attempt) this.#attempts.delete(job_id);
  }
}
