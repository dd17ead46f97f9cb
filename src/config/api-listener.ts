import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import { text } from "../domain/primitives.ts";
import { fsyncDirectory, makePrivateDirectory, writeFileAtomic } from "../lib/files/atomic-file.ts";
import type { Environment } from "./environment.ts";
import type { Paths } from "./paths.ts";
import { readPrivateDocument } from "./private-document.ts";

const MAX_BYTES = 64 * 1024;
const SCHEMA = "clio-relay.api-listener.v1";

/** The port on which programs expect the API. */
export const API_PORT = 8_765;

/** An address in digits, without brackets, or a name (RFC 1123, section 2.1). */
export const LISTEN_HOST = /^(?:[0-9A-Fa-f:.]{2,45}|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)$/;
/** What a Host field may say (RFC 9110, section 7.2): a name or an address; without a port, whatever the port. */
export const ALLOWED_HOST = /^(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)(?::[0-9]{1,5})?$/;
/** A serialized origin (RFC 6454, section 6.1) other than `null`. */
export const ALLOWED_ORIGIN = /^https?:\/\/(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)(?::[0-9]{1,5})?$/;

const AbsolutePath = v.pipe(
  text(4_096),
  v.check((file) => path.isAbsolute(file), "must be an absolute path"),
);

/** How the API is to be served on TCP. */
export const ListenerRequest = v.strictObject({
  /** The address to listen on, or a name of one. */
  host: v.optional(v.pipe(v.string(), v.regex(LISTEN_HOST, "must be an address or a name")), "127.0.0.1"),
  /** 0: one that is free; it is kept from then on. */
  port: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(65_535)), API_PORT),
  /** The private file with the token; null: the installation's own. */
  token_file: v.optional(v.nullable(AbsolutePath), null),
  /** Files in PEM; null: without TLS. */
  tls: v.optional(v.nullable(v.strictObject({ cert_file: AbsolutePath, key_file: AbsolutePath })), null),
  /** Whether something before it speaks TLS, and nobody else comes to this port. */
  behind_proxy: v.optional(v.boolean(), false),
  allow_hosts: v.optional(
    v.pipe(v.array(v.pipe(v.string(), v.regex(ALLOWED_HOST, "must be a name, or name and port"))), v.maxLength(64)),
    [],
  ),
  allow_origins: v.optional(v.pipe(v.array(v.pipe(v.string(), v.regex(ALLOWED_ORIGIN, "must be an origin"))), v.maxLength(64)), []),
});
export type ListenerRequest = v.InferOutput<typeof ListenerRequest>;
export type ListenerRequestInput = v.InferInput<typeof ListenerRequest>;

const Kept = v.strictObject({ schema_version: v.literal(SCHEMA), listener: ListenerRequest });

type Owner = Pick<Environment, "uid" | "platform">;

/** What is to be served after each start of the daemon; null: nothing. @throws RelayError configuration_error when the file cannot be used */
export function readListener(paths: Pick<Paths, "listenerFile">, env: Owner): ListenerRequest | null {
  return readPrivateDocument(Kept, paths.listenerFile, MAX_BYTES, env)?.listener ?? null;
}

export function writeListener(paths: Pick<Paths, "listenerFile">, listener: ListenerRequest): void {
  makePrivateDirectory(path.dirname(paths.listenerFile));
  writeFileAtomic(paths.listenerFile, `${JSON.stringify({ schema_version: SCHEMA, listener }, null, 2)}\n`);
}

export function removeListener({ listenerFile }: Pick<Paths, "listenerFile">): void {
  if (fs.lstatSync(listenerFile, { throwIfNoEntry: false }) === undefined) return;
  fs.rmSync(listenerFile);
  fsyncDirectory(path.dirname(listenerFile));
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/i;

/** Whether only programs of this machine come to an address. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/** @throws RelayError configuration_error where a token would cross a network in the clear */
export function checkListener({ host, tls, behind_proxy }: ListenerRequest): void {
  if (isLoopback(host) || tls !== null || behind_proxy) return;
  throw new RelayError(
    "configuration_error",
    `${host} can be reached over the network, and without TLS whoever is on the way reads the token`,
    { host },
    "--tls-cert FILE --tls-key FILE; or --behind-proxy, where something before it speaks TLS and nobody else comes to this port",
  );
}
