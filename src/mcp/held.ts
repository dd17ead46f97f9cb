import { SharedTurns } from "../lib/waiting/shared-turns.ts";

/** Requests that wait for something to happen, at a time. A process sends 256 at most (docs/measured.md): what is answered at once must not stand behind those. */
const HELD = 192;
/** Of these one cluster has three quarters at most, and leaves others room when it does not answer. */
const WEIGHT = 3;

/** How often is looked where one more request must not wait, in milliseconds. */
const LOOK_MS = 3_000;

export const heldTurns = (places = HELD): SharedTurns => new SharedTurns(places, { weight: WEIGHT });

/** Places for requests to a cluster that wait. */
export class Held {
  /** @param lookMs see LOOK_MS */
  constructor(
    private readonly turns: SharedTurns,
    private readonly cluster: string,
    readonly lookMs = LOOK_MS,
  ) {}

  /** @returns how to give the place back; null where the cluster has its share */
  take(): (() => void) | null {
    return this.turns.take(this.cluster);
  }
}
