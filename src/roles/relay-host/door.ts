import { isIP } from "node:net";
import { PREFACE } from "../../transport/meeting/messages.ts";
import type { Carrier, SocketCarrier } from "../sockets/carrier.ts";
import { addressKey } from "../sockets/quota.ts";
import { type RequestHead, requestHead } from "../sockets/request-head.ts";
import type { Stranger, Strangers } from "../sockets/strangers.ts";
import type { Farewells } from "./farewells.ts";
import { answerBytes, type FrontContext, notHttp, reply, tooMany } from "./front.ts";
import type { Limits } from "./limits.ts";
import type { Reception } from "./reception.ts";
import { WebSocketCarrier } from "./web-socket-carrier.ts";

/** What a listener takes: HTTP with the upgrade, the bare stream behind its preface, or whichever of them comes. */
export type Speech = "http" | "stream" | "either";

export interface DoorContext {
  readonly front: FrontContext;
  readonly limits: Limits;
  readonly reception: Reception;
  readonly strangers: Strangers;
  readonly farewells: Farewells;
  readonly now: () => number;
}

/** Whence a connection came. */
export interface Peer {
  readonly address: string;
  /** Field, in lower case, in which an edge says whence a request came, where only the edge can come; null: the peer is whence it came. */
  readonly edgeAddressHeader: string | null;
}

/** A connection that was taken: its carrier's first bytes say what it is, and lead it on. */
export class Visitor implements Stranger {
  readonly since: number;
  #held: Buffer = Buffer.alloc(0);

  /** @param addressKey by what the peer is counted; null: not at all, or not before the edge has said whence it came */
  constructor(
    private readonly carrier: SocketCarrier,
    private readonly peer: Peer,
    readonly addressKey: string | null,
    private readonly speech: Speech,
    private readonly context: DoorContext,
  ) {
    this.since = context.now();
    context.strangers.add(this);
    carrier.sink = {
      data: (chunk) => this.#read(chunk),
      drain: () => undefined,
      end: () => carrier.destroy(),
      close: () => context.strangers.remove(this),
    };
  }

  destroy(): void {
    this.carrier.destroy();
  }

  #read(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk]);
    const held = this.#held;
    const begins = held.subarray(0, PREFACE.length).equals(PREFACE.subarray(0, held.length));
    if (this.speech !== "http" && begins) {
      if (held.length >= PREFACE.length)
        this.#enter(this.carrier, this.carrier, held.subarray(PREFACE.length), this.peer.address, this.addressKey);
    } else if (this.speech === "stream") this.carrier.destroy();
    else this.#http(held);
  }

  #http(held: Buffer): void {
    const head = requestHead(held);
    if (head === null) return;
    if (head === "malformed") {
      this.#answer(notHttp(), this.addressKey);
      return;
    }
    const [address, key] = this.#whence(head);
    const { limits } = this.context;
    if (key !== null && key !== this.addressKey) {
      const many = limits.connections.of(key) >= limits.max.connectionsPerAddress;
      if (many || !limits.addressRates.take(key)) {
        this.#answer(tooMany(many ? 10_000 : limits.addressRates.wait(key)), key);
        return;
      }
      limits.countConnection(this.carrier, key);
      this.context.strangers.recount(this, key);
    }
    const answer = reply(head, this.context.front);
    if (answer.kind === "answer") {
      if (answer.status === 401 && key !== null) limits.addressRates.fine(key, 4);
      this.#answer(answerBytes(answer), key);
      return;
    }
    this.carrier.write(Buffer.from(answer.head, "latin1"));
    this.#enter(new WebSocketCarrier(this.carrier), this.carrier, held.subarray(head.length), address, key);
  }

  /** Whence a request came, and by what that is counted. */
  #whence(head: RequestHead): readonly [string, string | null] {
    const { address, edgeAddressHeader } = this.peer;
    if (edgeAddressHeader === null) return [address, this.addressKey];
    const last = head.fields.get(edgeAddressHeader)?.split(",").at(-1)?.trim() ?? "";
    // Without the field it is not the edge that came, or one that names nobody.
    const whence = isIP(last) === 0 ? address : last;
    return [whence, addressKey(whence)];
  }

  #answer(bytes: Buffer, addressKey: string | null): void {
    this.carrier.write(bytes);
    this.context.strangers.remove(this);
    this.context.farewells.bid(this.carrier, addressKey);
  }

  /** @param rest what came behind, as the socket's own carrier has it */
  #enter(carrier: Carrier, inner: Carrier, rest: Buffer, address: string, key: string | null): void {
    this.#held = Buffer.alloc(0);
    this.context.reception.receive(carrier, { address, addressKey: key, known: () => this.context.strangers.remove(this) });
    if (rest.length > 0) inner.sink.data(rest);
  }
}
