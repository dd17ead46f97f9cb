import * as v from "valibot";
import { looseText, text } from "./primitives.ts";

export const FRP_PROTOCOLS = ["wss", "websocket", "tcp"] as const;

/** A name or an address, as a configuration of frp has it. */
const HOST_NAME = /^[A-Za-z0-9:](?:[A-Za-z0-9._:-]{0,252}[A-Za-z0-9])?$/;
const HostName = v.pipe(v.string(), v.regex(HOST_NAME, "must be the name or the address of a host"));
/** Whether the server of frp may be said so. */
export const isFrpServer = (text: string): boolean => HOST_NAME.test(text);
const STUN_SERVER = /^[A-Za-z0-9._-]{1,253}:\d{1,5}$/;
/** Whether a STUN server may be said so: HOST:PORT. */
export const isStunServer = (text: string): boolean => STUN_SERVER.test(text);
const Port = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65_535));

/** Where a frps is, and how it is spoken to. What is secret about it is the room's. */
export const FRP_SERVER = {
  server_addr: HostName,
  server_port: v.optional(Port, 443),
  protocol: v.optional(v.picklist(FRP_PROTOCOLS), "wss"),
  /** HOST:PORT of the STUN server for the direct way; null: the one that frp comes with. */
  stun_server: v.optional(v.nullable(v.pipe(v.string(), v.regex(STUN_SERVER, "must be HOST:PORT"))), null),
} as const;
const FrpPlace = v.strictObject(FRP_SERVER);
export type FrpPlace = v.InferOutput<typeof FrpPlace>;

/** A secret of frp: whatever frp takes, but no control characters, and not so much that it would be a file by mistake. */
const FrpSecret = v.pipe(text(1_024), v.regex(/^[^\p{Cc}]+$/u, "must be on one line"));

/** Longest file of certification authorities, in UTF-16 units. */
export const CA_MAX = 64 * 1024;

/** What is secret about a cluster's way through a frps, on both sides. */
export const FrpRoom = v.strictObject({
  schema_version: v.literal("clio-relay.frp-room.v1"),
  /** What the proxies are called after: 32 hexadecimal digits. */
  name: v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/)),
  /** Of frps; null: it wants none. */
  token: v.nullable(FrpSecret),
  /** Of the proxies: what a visitor has to know. */
  secret: FrpSecret,
  /** Certification authorities in PEM for wss, in place of those that everybody trusts; null: those. */
  ca: v.nullable(looseText(CA_MAX)),
});
export type FrpRoom = v.InferOutput<typeof FrpRoom>;

/** What a worker offers at a frps. */
export const FrpOffering = v.strictObject({
  server: FrpPlace,
  /** Whether the direct way is offered, too. */
  direct: v.boolean(),
  room: FrpRoom,
  /** The program: absolute, or below `~/`. */
  frpc: text(4_096),
});
export type FrpOffering = v.InferOutput<typeof FrpOffering>;
