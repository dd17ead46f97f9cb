import type { Refusal } from "../../transport/meeting/codes.ts";
import { fingerprintOf } from "../../transport/session/keys.ts";
import type { Guest, GuestEvents, GuestMessage } from "./guest.ts";

/** Desktops of one room about which its worker is asked at a time, and how many of these may be strangers. */
const MAX_OFFERED = 16;
const MAX_STRANGERS_OFFERED = 8;
/** Desktops that are remembered as let in. */
const MAX_KNOWN = 64;

/** A guest that has proven who it is. */
export interface Proven {
  readonly guest: Guest;
  /** Which token it showed. */
  readonly token: number;
  /** Its public key. */
  readonly key: Buffer;
  /** Hexadecimal. */
  readonly room: string;
  /** What shows it that the token is known here. */
  readonly answer: Buffer;
  /** By what its address is counted; null: not at all. */
  readonly addressKey: string | null;
}

export interface Desktop extends Proven {
  /** Whether it says that its key is that of a pairing code. */
  readonly pairing: boolean;
  /** Whether the worker has never let its key in, as far as is known here. */
  readonly stranger: boolean;
  /** Until when it waits for a worker to register, on the monotonic clock. */
  readonly until: number;
  readonly ticket: Buffer;
  /** Its number at the worker that was asked last. */
  join: number;
  prevent: () => void;
  /** Takes it off the limits. */
  readonly uncount: () => void;
}

/** One for all rooms in which nobody waits, and one for those that have let nobody in. */
const NOBODY: readonly Desktop[] = [];
const NONE: ReadonlySet<string> = new Set();

const without = (all: readonly Desktop[], one: Desktop): readonly Desktop[] => {
  const left = all.filter((other) => other !== one);
  return left.length === 0 ? NOBODY : left;
};

/** A door: the worker behind it, and the desktops before it. There are thousands, most of them empty but for the worker. */
export class Room {
  worker: Worker | null = null;
  /** In the order in which they came. */
  waiting: readonly Desktop[] = NOBODY;
  /** Those about which the worker is being asked, or was. */
  offered: readonly Desktop[] = NOBODY;
  joined = 0;

  /** @param known fingerprints of keys that the worker has let in, those of last time last */
  constructor(
    readonly name: string,
    public known: ReadonlySet<string> = NONE,
  ) {}

  get empty(): boolean {
    return this.worker === null && this.waiting.length === 0 && this.offered.length === 0 && this.joined === 0;
  }

  isKnown(key: Buffer): boolean {
    return this.known.size > 0 && this.known.has(fingerprintOf(key));
  }

  /** The worker has let a key in. */
  letIn(key: Buffer): void {
    const print = fingerprintOf(key);
    this.known = new Set([...[...this.known].filter((one) => one !== print), print].slice(-MAX_KNOWN));
  }

  /** The worker has not let a key in, which it may have before. */
  keptOut(key: Buffer): void {
    if (this.isKnown(key)) this.known = new Set([...this.known].filter((one) => one !== fingerprintOf(key)));
  }

  wait(desktop: Desktop): void {
    this.waiting = [...this.waiting, desktop];
  }

  offer(desktop: Desktop): void {
    this.waiting = without(this.waiting, desktop);
    this.offered = [...this.offered, desktop];
  }

  leave(desktop: Desktop): void {
    this.waiting = without(this.waiting, desktop);
    this.offered = without(this.offered, desktop);
  }

  /**
   * Who is next for the worker to be asked about: whom it has let in before; of strangers, those of an address about which it is asked least now, and of these the one of best standing.
   * Null: nobody yet.
   */
  next(standing: Standing): Desktop | null {
    if (this.worker === null || this.waiting.length === 0 || this.offered.length >= MAX_OFFERED) return null;
    const known = this.waiting.find(({ stranger }) => !stranger);
    if (known !== undefined) return known;
    const offered = new Map<string | null, number>();
    for (const { stranger, addressKey } of this.offered) if (stranger) offered.set(addressKey, (offered.get(addressKey) ?? 0) + 1);
    if ([...offered.values()].reduce((sum, count) => sum + count, 0) >= MAX_STRANGERS_OFFERED) return null;
    return first(this.waiting, (one) => [-(offered.get(one.addressKey) ?? 0), standing(one)]);
  }

  /** Whether there is a place for one more stranger; and who has to go for it: the one of worst standing that waits, where that is worse than the newcomer's. */
  placeFor(
    newcomer: Pick<Desktop, "addressKey">,
    places: number,
    standing: Standing,
  ): { readonly free: boolean; readonly instead: Desktop | null } {
    const strangers = this.waiting.filter(({ stranger }) => stranger);
    if (strangers.length + this.offered.filter(({ stranger }) => stranger).length < places) return { free: true, instead: null };
    const worst = first(strangers, (one) => [-standing(one)]);
    const goes = worst !== null && standing(worst) < standing(newcomer);
    return { free: goes, instead: goes ? worst : null };
  }
}

/** How well a stranger's address has behaved; more is better. */
export type Standing = (stranger: Pick<Desktop, "addressKey">) => number;

/** The first of those with the highest rank; null where there is none. */
function first(desktops: readonly Desktop[], rank: (one: Desktop) => readonly number[]): Desktop | null {
  let best: { readonly one: Desktop; readonly ranks: readonly number[] } | null = null;
  for (const one of desktops) {
    const ranks = rank(one);
    const differs = ranks.findIndex((value, at) => value !== (best?.ranks[at] ?? Number.NEGATIVE_INFINITY));
    if (best === null || (differs >= 0 && ranks[differs]! > best.ranks[differs]!)) best = { one, ranks };
  }
  return best?.one ?? null;
}

/** What becomes of a worker that waits to be asked. */
export interface WorkerEvents {
  refused(room: Room, join: number, reason: Refusal): void;
  unregistered(worker: Worker): void;
}

/** A worker that waits to be asked. */
export class Worker implements GuestEvents {
  /** Numbers of joins of this registration. */
  joins = 0;
  /** How often it was asked and has not answered. */
  asked = 0;

  /** @param uncount takes it off the limits */
  constructor(
    readonly guest: Guest,
    readonly uncount: () => void,
    readonly room: Room,
    private readonly events: WorkerEvents,
  ) {}

  message(message: GuestMessage): void {
    if (message.type === "refuse") {
      if (this.asked > 0) {
        this.asked--;
        this.guest.wasAnswer();
      }
      this.events.refused(this.room, message.join, message.reason);
    } else if (message.type === "close") this.guest.destroy();
    else this.guest.dismiss("malformed");
  }

  gone(): void {
    this.events.unregistered(this);
  }
}
