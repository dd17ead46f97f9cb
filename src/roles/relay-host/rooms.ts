import { randomBytes } from "node:crypto";
import type { Refusal } from "../../transport/meeting/codes.ts";
import { WORD_BYTES } from "../../transport/meeting/messages.ts";
import { same } from "../../transport/meeting/proof.ts";
import { fingerprintOf } from "../../transport/session/keys.ts";
import { Splice } from "../sockets/splice.ts";
import { Turns } from "../sockets/turns.ts";
import type { Guest, MeetingTimes } from "./guest.ts";
import type { Journal } from "./journal.ts";
import type { Limits } from "./limits.ts";
import type { Metrics } from "./metrics.ts";
import { type Desktop, type Proven, Room, type Standing, Worker, type WorkerEvents } from "./room.ts";
import { WorkerPlaces } from "./worker-places.ts";

/** Rooms without anybody in them of which it is remembered whom their worker has let in. */
const MAX_REMEMBERED = 4_096;
/** How long a worker stays away that had to go for one of an address with fewer, in milliseconds. */
const OUSTED_MS = 60_000;

export interface RoomsContext {
  readonly times: MeetingTimes;
  readonly limits: Limits;
  readonly metrics: Metrics;
  readonly journal: Journal;
  /** The monotonic clock. */
  readonly now: () => number;
}

/** Who waits where, and who is joined with whom. All of it is memory of this process. */
export class Rooms implements WorkerEvents {
  readonly #rooms = new Map<string, Room>();
  readonly #parked = new Set<Guest>();
  readonly #splices = new Set<Splice>();
  /** Whom the workers of rooms that are empty now have let in; of more, those that became empty first are forgotten. */
  readonly #remembered = new Map<string, ReadonlySet<string>>();
  /** Rooms whose worker may not be asked as often as it would be. */
  readonly #rationed = new Set<Room>();
  readonly #places = new WorkerPlaces();
  readonly #turns: Turns;
  #workers = 0;

  constructor(private readonly context: RoomsContext) {
    this.#turns = new Turns(() => {
      let held = 0;
      for (const splice of this.#splices) held += splice.heldShortly;
      return held;
    }, context.now);
  }

  get workers(): number {
    return this.#workers;
  }

  get waiting(): number {
    return this.#parked.size - this.#workers;
  }

  get splices(): ReadonlySet<Splice> {
    return this.#splices;
  }

  #room(name: string): Room {
    const known = this.#rooms.get(name);
    if (known !== undefined) return known;
    const room = new Room(name, this.#remembered.get(name));
    this.#remembered.delete(name);
    this.#rooms.set(name, room);
    return room;
  }

  #tidy(room: Room): void {
    if (!room.empty || this.#rooms.get(room.name) !== room) return;
    this.#rooms.delete(room.name);
    if (room.known.size === 0) return;
    this.#remembered.set(room.name, room.known);
    if (this.#remembered.size > MAX_REMEMBERED) this.#remembered.delete(this.#remembered.keys().next().value!);
  }

  /** A worker, whose key is the room's. */
  register({ guest, token, room: name, answer, key, addressKey }: Proven): void {
    const { metrics, journal } = this.context;
    const room = this.#room(name);
    const before = room.worker;
    const uncount = this.#placeOfWorker(token, addressKey, before !== null);
    if (uncount === null) {
      this.#tidy(room);
      guest.dismiss("busy", 5_000);
      return;
    }
    this.#workers++;
    this.#parked.add(guest);
    const leave = (): void => {
      uncount();
      this.#places.remove(worker, token, addressKey);
    };
    const worker: Worker = new Worker(guest, leave, room, this);
    this.#places.add(worker, token, addressKey);
    room.worker = worker;
    guest.events = worker;
    if (before !== null) {
      metrics.add("superseded_total");
      before.guest.dismiss("superseded");
    }
    journal.often("registered", { room: name, key: fingerprintOf(key), address: guest.address, superseded: before !== null });
    guest.send({ type: "registered", proof: answer });
    // Whoever was asked before may be gone without having heard.
    for (const desktop of room.offered) if (desktop.join >= 0) this.#ask(worker, desktop);
    this.#advance(room);
  }

  /** A place for a worker, where there is one, or where somebody's of an address that has many; null: none. @returns the way to take it back */
  #placeOfWorker(token: number, addressKey: string | null, supersedes: boolean): (() => void) | null {
    const { limits } = this.context;
    const free = limits.worker(token, addressKey, supersedes);
    const instead = free === null ? this.#places.insteadOf(token, addressKey) : null;
    if (instead === null) return free;
    instead.guest.dismiss("busy", OUSTED_MS);
    return limits.worker(token, addressKey, supersedes);
  }

  /** A worker's control connection is gone. */
  unregistered(worker: Worker): void {
    const { guest, uncount, room } = worker;
    uncount();
    this.#workers--;
    this.#parked.delete(guest);
    if (room.worker !== worker) return;
    room.worker = null;
    this.context.journal.often("unregistered", { room: room.name });
    for (const { guest: desktop, answer: proof } of room.waiting) desktop.send({ type: "waiting", proof, for: "worker" });
    this.#tidy(room);
  }

  #ask(worker: Worker, desktop: Desktop): void {
    const { guest, key, ticket, pairing } = desktop;
    desktop.join = worker.joins++;
    worker.asked++;
    worker.guest.send({
      type: "joining",
      join: desktop.join,
      key,
      ticket,
      expires: this.context.times.ticket,
      pairing,
      address: guest.address.slice(0, 64),
    });
  }

  /** The worker does not let a desktop in. */
  refused(room: Room, join: number, reason: Refusal): void {
    for (const desktop of room.offered) {
      if (desktop.join !== join) continue;
      if (reason === "key") {
        this.context.limits.keptOut(room.name, desktop.addressKey);
        room.keptOut(desktop.key);
      }
      desktop.guest.dismiss("refused", 0, reason);
      return;
    }
  }

  /** A desktop that wants to meet the worker of a room. */
  join(proven: Proven, waitMs: number, pairing: boolean): void {
    const { guest, token, room: name, key, addressKey } = proven;
    const { limits, now } = this.context;
    const room = this.#room(name);
    if (room.worker === null && waitMs === 0) {
      this.#tidy(room);
      guest.dismiss("absent");
      return;
    }
    const stranger = !room.isKnown(key);
    const { waitFor, instead } = stranger ? this.#placeOfStranger(room, addressKey) : { waitFor: 0, instead: null };
    const uncount = waitFor > 0 ? null : limits.join(token, name, key.toString("hex"), addressKey);
    if (uncount === null) {
      this.#tidy(room);
      guest.dismiss("busy", Math.max(1_000, waitFor));
      return;
    }
    const desktop: Desktop = {
      ...proven,
      pairing,
      stranger,
      until: now() + waitMs,
      ticket: randomBytes(WORD_BYTES),
      join: -1,
      prevent: () => undefined,
      uncount,
    };
    this.#parked.add(guest);
    guest.events = {
      message: (message) => (message.type === "close" ? guest.destroy() : guest.dismiss("malformed")),
      gone: () => {
        this.#forget(room, desktop);
        uncount();
        this.#advance(room);
        this.#tidy(room);
      },
    };
    this.#wait(room, desktop);
    instead?.guest.dismiss("busy", 1_000);
    this.#advance(room);
  }

  #standing(room: Room): Standing {
    return ({ addressKey }) => this.context.limits.standing(room.name, addressKey);
  }

  /** Milliseconds that a stranger has to stay away; 0 where it may wait here, and who has to go for it. */
  #placeOfStranger(room: Room, addressKey: string | null): { readonly waitFor: number; readonly instead: Desktop | null } {
    const { limits } = this.context;
    const waitFor = limits.stranger(room.name, addressKey);
    if (waitFor > 0) return { waitFor, instead: null };
    const { free, instead } = room.placeFor({ addressKey }, Math.ceil(limits.max.joinsPerRoom / 2), this.#standing(room));
    return { waitFor: free ? 0 : 1_000, instead };
  }

  #wait(room: Room, desktop: Desktop): void {
    const { now, times } = this.context;
    const left = Math.max(desktop.until - now(), room.worker === null ? 0 : times.ticket);
    if (left <= 0) {
      desktop.guest.dismiss("absent");
      return;
    }
    room.wait(desktop);
    desktop.prevent();
    const timer = setTimeout(() => desktop.guest.dismiss(room.worker === null ? "absent" : "busy", 1_000), left);
    desktop.prevent = () => clearTimeout(timer);
    if (room.worker === null) desktop.guest.send({ type: "waiting", proof: desktop.answer, for: "worker" });
  }

  /** Take a desktop out of the room, as one that waits. */
  #forget(room: Room, desktop: Desktop): void {
    desktop.prevent();
    this.#parked.delete(desktop.guest);
    room.leave(desktop);
  }

  #advance(room: Room): void {
    this.#rationed.delete(room);
    const standing = this.#standing(room);
    for (let desktop = room.next(standing); desktop !== null && room.worker !== null; desktop = room.next(standing)) {
      if (!this.context.limits.ask(room.name, desktop.stranger)) {
        this.#rationed.add(room);
        return;
      }
      desktop.prevent();
      room.offer(desktop);
      void this.#offer(room, room.worker, desktop);
    }
  }

  /** Ask the worker about a desktop, once both are known to be there. */
  async #offer(room: Room, worker: Worker, desktop: Desktop): Promise<void> {
    const { times } = this.context;
    const [asked, asks] = await Promise.all([worker.guest.alive(), desktop.guest.alive()]);
    if (!asks) {
      this.context.limits.keptOut(room.name, desktop.addressKey);
      desktop.guest.dismiss("timeout");
    }
    if (!asked) worker.guest.dismiss("timeout");
    if (desktop.guest.over) return;
    if (room.worker !== worker) {
      room.leave(desktop);
      this.#wait(room, desktop);
      this.#advance(room);
      return;
    }
    const timer = setTimeout(() => desktop.guest.dismiss("silent"), times.ticket);
    desktop.prevent = () => clearTimeout(timer);
    desktop.guest.send({ type: "waiting", proof: desktop.answer, for: "admission" });
    this.#ask(worker, desktop);
  }

  #asked(room: Room | undefined, ticket: Buffer): Desktop | undefined {
    return room?.offered.find((one) => one.join >= 0 && same(one.ticket, ticket));
  }

  /** Whether the worker of a room was asked about a desktop by a ticket that still holds. */
  expects(room: string, ticket: Buffer): boolean {
    return this.#asked(this.#rooms.get(room), ticket) !== undefined;
  }

  /** A worker that comes for a desktop. */
  async accept({ guest, room: name, answer }: Proven, ticket: Buffer): Promise<void> {
    const room = this.#rooms.get(name);
    const desktop = this.#asked(room, ticket);
    if (room === undefined || desktop === undefined) {
      guest.dismiss("ticket");
      return;
    }
    if (room.worker !== null) room.worker.asked--;
    // Once only.
    desktop.prevent();
    desktop.join = -1;
    desktop.ticket.fill(0);
    guest.events = { message: () => guest.dismiss("malformed"), gone: () => desktop.guest.dismiss("silent") };
    if (!(await desktop.guest.alive())) {
      desktop.guest.dismiss("timeout");
      guest.dismiss("ticket");
      return;
    }
    // It may have answered and gone in one breath.
    if (desktop.guest.over) guest.dismiss("ticket");
    if (guest.over) return;
    desktop.guest.send({ type: "joined", proof: desktop.answer });
    guest.send({ type: "joined", proof: answer });
    this.#splice(room, desktop, guest);
  }

  #splice(room: Room, desktop: Desktop, worker: Guest): void {
    const { metrics, journal, now } = this.context;
    const [near, far] = [desktop.guest.leave(), worker.leave()];
    if (near === null || far === null) {
      near?.destroy();
      far?.destroy();
      desktop.guest.dismiss("malformed");
      worker.dismiss("malformed");
      if (near !== null) {
        this.#forget(room, desktop);
        desktop.uncount();
        this.#advance(room);
        this.#tidy(room);
      }
      return;
    }
    this.#forget(room, desktop);
    room.joined++;
    room.letIn(desktop.key);
    metrics.add("joined_total");
    const begun = now();
    const about = { room: room.name, key: fingerprintOf(desktop.key), address: desktop.guest.address };
    journal.often("joined", about);
    this.#splices.add(
      new Splice(
        [near, far],
        now,
        (splice) => {
          this.#splices.delete(splice);
          room.joined--;
          desktop.uncount();
          const [toWorker, toDesktop] = splice.bytes;
          metrics.add("bytes_total", "worker", toWorker);
          metrics.add("bytes_total", "desktop", toDesktop);
          journal.often("parted", { ...about, seconds: Math.round((now() - begun) / 1_000), to_worker: toWorker, to_desktop: toDesktop });
          this.#tidy(room);
        },
        { turns: this.#turns },
      ),
    );
    this.#advance(room);
  }

  /** Ping who was not spoken to for a while; give up who is silent; end pairs on which nothing moves. To be called about once a second. */
  look(): void {
    const { times, now } = this.context;
    const at = now();
    for (const guest of this.#parked) {
      if (at - guest.heardAt > times.silence) guest.destroy();
      else if (at - guest.sentAt > times.ping) void guest.probe();
    }
    for (const room of [...this.#rationed]) this.#advance(room);
    for (const splice of this.#splices) if (splice.quietFor() > (splice.held > 0 ? times.stuck : times.idle)) splice.destroy();
  }

  /** Send everybody away who waits. Not all at once come back that way. */
  dismissAll(withinMs: number): void {
    for (const guest of this.#parked) guest.dismiss("draining", Math.floor(Math.random() * withinMs));
  }

  /** Break everything off. */
  destroyAll(): void {
    for (const guest of this.#parked) guest.destroy();
    for (const splice of this.#splices) splice.destroy();
  }
}
