import type { CloseCode } from "../../transport/meeting/codes.ts";
import { type FromClient, NEWEST_VERSION, OLDEST_VERSION, type OpeningMessage } from "../../transport/meeting/messages.ts";
import { check } from "../../transport/meeting/proof.ts";
import { fingerprintOf } from "../../transport/session/keys.ts";
import type { Carrier } from "../sockets/carrier.ts";
import type { Farewells } from "./farewells.ts";
import { Guest, type GuestHost } from "./guest.ts";
import { REFUSED_COST } from "./limits.ts";
import type { Rooms, RoomsContext } from "./rooms.ts";

const NOTHING = Buffer.alloc(0);

export interface ReceptionContext extends RoomsContext {
  readonly tokens: readonly string[];
  /** `HOST:PORT` by which this relay-host is dialed; empty: any. */
  readonly names: readonly string[];
  readonly rooms: Rooms;
  readonly farewells: Farewells;
}

/** Whence a connection came. */
export interface Origin {
  readonly address: string;
  /** By what the address is counted; null: not at all. */
  readonly addressKey: string | null;
  /** Told when it has said who it is, or is gone. */
  readonly known: () => void;
}

/** Takes connections whose carrier is ready, hears who they are, and leads them to their room. */
export class Reception {
  #draining = false;
  readonly #host: GuestHost;

  constructor(private readonly context: ReceptionContext) {
    const { metrics, journal, farewells } = context;
    this.#host = {
      dismissed: ({ address }, code) => {
        metrics.add("refused_total", code);
        if (code !== "absent" && code !== "draining" && code !== "superseded") journal.refused({ code, address });
      },
      leaves: (carrier, addressKey) => farewells.bid(carrier, addressKey),
    };
  }

  /** @param context whence it came, and what shows when it is known */
  receive(carrier: Carrier, origin: Origin): void {
    const { times, now } = this.context;
    const { address, addressKey } = origin;
    const guest = new Guest(carrier, address, addressKey, times, now, this.#host, (one) => ({
      message: (message) => this.#open(one, origin, message),
      gone: origin.known,
    }));
    if (this.#draining) guest.dismiss("draining", this.#later());
    else guest.greet();
  }

  #later(): number {
    return Math.floor(Math.random() * 2_000);
  }

  #open(guest: Guest, origin: Origin, message: FromClient): void {
    if (message.type === "close") {
      guest.destroy();
      return;
    }
    if (this.#draining && message.type !== "accept") {
      guest.dismiss("draining", this.#later());
      return;
    }
    if (!("proof" in message)) {
      guest.dismiss("malformed");
      return;
    }
    const { limits, metrics, rooms } = this.context;
    const verdict = this.#judge(guest, message);
    if ("refused" in verdict) {
      if (origin.addressKey !== null) limits.addressRates.fine(origin.addressKey, REFUSED_COST);
      guest.dismiss(verdict.refused);
      return;
    }
    const key = fingerprintOf(message.key);
    const room = message.room.toString("hex");
    // Who comes for a desktop that was counted is not counted again: else desktops could use up what their worker may come.
    const asked = message.type === "accept" && rooms.expects(room, message.ticket);
    if (!asked && !limits.keyRates.take(key)) {
      guest.dismiss("busy", limits.keyRates.wait(key));
      return;
    }
    origin.known();
    metrics.add("openings_total", message.type);
    const proven = { guest, ...verdict, key: message.key, room, addressKey: origin.addressKey };
    if (message.type === "register") rooms.register(proven);
    else if (message.type === "join") rooms.join(proven, message.wait, message.pairing);
    else void rooms.accept(proven, message.ticket);
  }

  /** What is cheap to look at comes first. */
  #judge(guest: Guest, message: OpeningMessage): { refused: CloseCode } | { token: number; answer: Buffer } {
    const { tokens, names } = this.context;
    const { version, relay, room, key, nonce, signature, proof } = message;
    if (version < OLDEST_VERSION || version > NEWEST_VERSION) return { refused: "version" };
    if (names.length > 0 && !names.includes(relay)) return { refused: "name" };
    const opened = {
      version,
      role: message.type,
      room,
      relay,
      relayNonce: guest.takeNonce(),
      clientNonce: nonce,
      key,
      ticket: message.type === "accept" ? message.ticket : NOTHING,
    };
    return check(opened, proof, signature, tokens);
  }

  /** From here on nobody is taken. */
  drain(): void {
    this.#draining = true;
  }
}
