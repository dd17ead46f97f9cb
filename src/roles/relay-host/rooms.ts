import { randomBytes } from "node:crypto";
import type { Refusal } from "../../transport/meeting/codes.ts";
import { WORD_BYTES } from "../../transport/meeting/messages.ts";
import { same } from "../../transport/meeting/proof.ts";
import { fingerprintOf } from "../../transport/session/keys.ts";
import { Splice } from "../sockets/splice.ts";
import type { Guest, GuestEvents, GuestMessage, MeetingTimes } from "./guest.ts";
import type { Journal } from "./journal.ts";
import type { Limits } from "./limits.ts";
import type { Metrics } from "./metrics.ts";

/** Desktops of one room about which its worker is asked at a time. */
const MAX_OFFERED = 16;

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
}

/** A worker that waits to be asked. */
class Worker implements GuestEvents {
  /** Numbers of joins of this registration. */
  joins = 0;

  /** @param token by which it is counted */
  constructor(
    readonly guest: Guest,
    readonly token: string,
    readonly room: Room,
    private readonly rooms: Rooms,
  ) {}

  message(message: GuestMessage): void {
    if (message.type === "refuse") this.rooms.refused(this.room, message.join, message.reason);
    else if (message.type === "close") this.guest.destroy();
    else this.guest.dismiss("malformed");
  }

  gone(): void {
    this.rooms.unregistered(this);
  }
}

interface Desktop extends Proven {
  /** Whether it says that its key is that of a pairing code. */
  readonly pairing: boolean;
  /** Until when it waits for a worker to register, on the monotonic clock. */
  readonly until: number;
  readonly ticket: Buffer;
  /** Its number at the worker that was asked last. */
  join: number;
  prevent: () => void;
  /** Takes it off the limits. */
  readonly uncount: () => void;
}

/** One for all rooms in which nobody waits. */
const NOBODY: readonly Desktop[] = [];

const without = (all: readonly Desktop[], one: Desktop): readonly Desktop[] => {
  const left = all.filter((other) => other !== one);
  return left.length === 0 ? NOBODY : left;
};

class Room {
  worker: Worker | null = null;
  /** In the order in which they came. */
  waiting: readonly Desktop[] = NOBODY;
  /** Those about which the worker is being asked, or was. */
  offered: readonly Desktop[] = NOBODY;
  joined = 0;

  constructor(readonly name: string) {}

  get empty(): boolean {
    return this.worker === null && this.waiting.length === 0 && this.offered.length === 0 && this.joined === 0;
  }
}

export interface RoomsContext {
  readonly times: MeetingTimes;
  readonly limits: Limits;
  readonly metrics: Metrics;
  readonly journal: Journal;
  /** The monotonic clock. */
  readonly now: () => number;
}

/** Who waits where, and who is joined with whom. All of it is memory of this process. */
export class Rooms {
  readonly #rooms = new Map<string, Room>();
  readonly #parked = new Set<Guest>();
  readonly #splices = new Set<Splice>();
  #workers = 0;

  constructor(private readonly context: RoomsContext) {}

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
    const room = new Room(name);
    this.#rooms.set(name, room);
    return room;
  }

  #tidy(room: Room): void {
    if (room.empty) this.#rooms.delete(room.name);
  }

  /** A worker, whose key is the room's. */
  register({ guest, token, room: name, answer, key }: Proven): void {
    const { limits, metrics, journal } = this.context;
    const room = this.#room(name);
    const before = room.worker;
    const count = `${token}`;
    if (before === null && limits.workers.of(count) >= limits.max.workersPerToken) {
      this.#tidy(room);
      guest.dismiss("busy", 5_000);
      return;
    }
    limits.workers.add(count);
    this.#workers++;
    this.#parked.add(guest);
    const worker = new Worker(guest, count, room, this);
    room.worker = worker;
    guest.events = worker;
    if (before !== null) {
      metrics.add("superseded_total");
      before.guest.dismiss("superseded");
    }
    journal.info("registered", { room: name, key: fingerprintOf(key), address: guest.address, superseded: before !== null });
    guest.send({ type: "registered", proof: answer });
    // Whoever was asked before may be gone without having heard.
    for (const desktop of room.offered) if (desktop.join >= 0) this.#ask(worker, desktop);
    this.#advance(room);
  }

  /** A worker's control connection is gone. */
  unregistered(worker: Worker): void {
    const { guest, token, room } = worker;
    this.context.limits.workers.remove(token);
    this.#workers--;
    this.#parked.delete(guest);
    if (room.worker !== worker) return;
    room.worker = null;
    this.context.journal.info("unregistered", { room: room.name });
    for (const { guest: desktop, answer: proof } of room.waiting) desktop.send({ type: "waiting", proof, for: "worker" });
    this.#tidy(room);
  }

  #ask(worker: Worker, desktop: Desktop): void {
    const { guest, key, ticket, pairing } = desktop;
    desktop.join = worker.joins++;
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
      desktop.guest.dismiss("refused", 0, reason);
      return;
    }
  }

  /** A desktop that wants to meet the worker of a room. */
  join(proven: Proven, waitMs: number, pairing: boolean): void {
    const { guest, token, room: name, key } = proven;
    const { limits, now } = this.context;
    const room = this.#room(name);
    if (room.worker === null && waitMs === 0) {
      this.#tidy(room);
      guest.dismiss("absent");
      return;
    }
    const uncount = limits.join(token, name, key.toString("hex"));
    if (uncount === null) {
      this.#tidy(room);
      guest.dismiss("busy", 1_000);
      return;
    }
    const desktop: Desktop = {
      ...proven,
      pairing,
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
    this.#advance(room);
  }

  #wait(room: Room, desktop: Desktop): void {
    const { now, times } = this.context;
    const left = Math.max(desktop.until - now(), room.worker === null ? 0 : times.ticket);
    if (left <= 0) {
      desktop.guest.dismiss("absent");
      return;
    }
    room.waiting = [...room.waiting, desktop];
    desktop.prevent();
    const timer = setTimeout(() => desktop.guest.dismiss(room.worker === null ? "absent" : "busy", 1_000), left);
    desktop.prevent = () => clearTimeout(timer);
    if (room.worker === null) desktop.guest.send({ type: "waiting", proof: desktop.answer, for: "worker" });
  }

  /** Take a desktop out of the room, as one that waits. */
  #forget(room: Room, desktop: Desktop): void {
    desktop.prevent();
    this.#parked.delete(desktop.guest);
    room.offered = without(room.offered, desktop);
    room.waiting = without(room.waiting, desktop);
  }

  #advance(room: Room): void {
    while (room.worker !== null && room.waiting.length > 0 && room.offered.length < MAX_OFFERED) {
      const desktop = room.waiting[0]!;
      desktop.prevent();
      room.waiting = without(room.waiting, desktop);
      room.offered = [...room.offered, desktop];
      void this.#offer(room, room.worker, desktop);
    }
  }

  /** Ask the worker about a desktop, once both are known to be there. */
  async #offer(room: Room, worker: Worker, desktop: Desktop): Promise<void> {
    const { times } = this.context;
    const [asked, asks] = await Promise.all([worker.guest.alive(), desktop.guest.alive()]);
    if (!asks) desktop.guest.dismiss("timeout");
    if (!asked) worker.guest.dismiss("timeout");
    if (desktop.guest.over) return;
    if (room.worker !== worker) {
      room.offered = without(room.offered, desktop);
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
    metrics.add("joined_total");
    const begun = now();
    const about = { room: room.name, key: fingerprintOf(desktop.key), address: desktop.guest.address };
    journal.info("joined", about);
    this.#splices.add(
      new Splice([near, far], now, (splice) => {
        this.#splices.delete(splice);
        room.joined--;
        desktop.uncount();
        const [toWorker, toDesktop] = splice.bytes;
        metrics.add("bytes_total", "worker", toWorker);
        metrics.add("bytes_total", "desktop", toDesktop);
        journal.info("parted", { ...about, seconds: Math.round((now() - begun) / 1_000), to_worker: toWorker, to_desktop: toDesktop });
        this.#tidy(room);
      }),
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
