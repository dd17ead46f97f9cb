import type { Fence, Notice } from "../../queue/store.ts";

/** Characters that an obstacle has at most. */
export const OBSTACLE_MAX = 2_000;

/** What keeps an attempt from going on, for the job's status; and for its history, where it is kept from starting. */
export class Obstacle {
  #message: string | null = null;
  #told = false;

  constructor(
    private readonly fence: Fence,
    private readonly notice: (notice: Notice) => Promise<void>,
  ) {}

  get message(): string | null {
    return this.#message;
  }

  /** @param waits whether the attempt waits for its start, which its history says once */
  async set(message: string | null, waits: boolean): Promise<void> {
    this.#message = message === null ? null : message.slice(0, OBSTACLE_MAX);
    if (message === null || !waits || this.#told) return;
    const said = `Attempt ${this.fence.attempt} has not started yet: ${message}`.slice(0, OBSTACLE_MAX);
    await this.notice({ about: "start", event: { event_type: "execution.delayed", level: "warning", message: said } });
    this.#told = true;
  }
}
