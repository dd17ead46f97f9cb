/** A call that says nothing for so long tells its client that it goes on, in milliseconds: many give up what says nothing for a minute. */
const QUIET_MS = 15_000;
const MESSAGE_LENGTH = 500;

/** Params of notifications/progress, without the token. */
export interface Told {
  readonly progress: number;
  readonly message: string;
}

/** What one call tells its client of how far it is, from the beginning of the call to its end. Each number is greater than the last one. */
export class CallProgress {
  #last = 0;
  /** Told since the last step. */
  #between = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #over = false;

  constructor(
    private readonly send: (told: Told) => void,
    private readonly quietMs = QUIET_MS,
  ) {
    this.#wait();
  }

  /** @param step greater than the last one; between two steps there is room for as much as there is to say */
  tell(step: number, message: string): void {
    if (step > this.#last) {
      this.#last = step;
      this.#between = 0;
      this.#say(step, message);
    } else this.#add(message);
  }

  #add(message: string): void {
    this.#between++;
    this.#say(this.#last + this.#between / (this.#between + 1), message);
  }

  #say(progress: number, message: string): void {
    if (this.#over) return;
    this.send({ progress, message: message.slice(0, MESSAGE_LENGTH).toWellFormed() });
    this.#wait();
  }

  #wait(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = setTimeout(() => this.#add("it goes on"), this.quietMs);
  }

  end(): void {
    this.#over = true;
    clearTimeout(this.#timer ?? undefined);
  }
}
