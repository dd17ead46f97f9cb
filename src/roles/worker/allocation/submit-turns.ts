/** Leave to submit; it may have to be waited for. */
export interface SubmitTurn {
  readonly granted: boolean;
  /** Once it is over, or not wanted any more. Repeated calls change nothing. */
  release(): void;
}

interface Held extends SubmitTurn {
  granted: boolean;
  released: boolean;
  readonly onGranted: () => void;
}

/**
 * Lets so many submissions be under way at a time, so that a full queue overwhelms no login node and no scheduler. A turn is taken before the intention to submit is
 * recorded: a worker that is killed leaves no more submissions in doubt than were under way.
 */
export class SubmitTurns {
  #inside = 0;
  readonly #waiting: Held[] = [];

  constructor(private readonly atOnce: number) {}

  /** @param onGranted told when it is granted later */
  take(onGranted: () => void): SubmitTurn {
    const turn: Held = { granted: this.#inside < this.atOnce, released: false, onGranted, release: () => this.#release(turn) };
    if (turn.granted) this.#inside++;
    else this.#waiting.push(turn);
    return turn;
  }

  #release(turn: Held): void {
    if (turn.released) return;
    turn.released = true;
    if (!turn.granted) {
      this.#waiting.splice(this.#waiting.indexOf(turn), 1);
      return;
    }
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#inside--;
      return;
    }
    next.granted = true;
    next.onGranted();
  }
}
