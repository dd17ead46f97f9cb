/** Requests that wait for something to happen, at a time. A process sends 256 at most (docs/measured.md): what is answered at once must not stand behind those. */
const HELD = 192;

/** How often is looked where one more request must not wait, in milliseconds. */
const LOOK_MS = 3_000;

/** Places for requests that wait. */
export class Held {
  #taken = 0;

  /** @param lookMs see LOOK_MS */
  constructor(
    private readonly places = HELD,
    readonly lookMs = LOOK_MS,
  ) {}

  /** @returns how to give the place back; null where all are taken */
  take(): (() => void) | null {
    if (this.#taken >= this.places) return null;
    this.#taken++;
    let mine = true;
    return () => {
      if (mine) this.#taken--;
      mine = false;
    };
  }
}
