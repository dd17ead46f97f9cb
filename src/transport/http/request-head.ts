import { RelayError } from "../../domain/errors.ts";
import type { Flow } from "../receive-window.ts";
import { endToEndFilter } from "./end-to-end.ts";

/** A request for the other side of a channel. */
export interface ChannelRequest {
  readonly method: string;
  /** Path and query, in origin form (RFC 9112, section 3.2.1). */
  readonly target: string;
  /** Fields of which the end-to-end ones are sent; those of framing and of the connection are added here. */
  readonly headers: Headers;
  /** Fields, in lower case, that are sent in place of those of the same name. An empty value: not sent. */
  readonly instead?: Readonly<Record<string, string>>;
  readonly body: ReadableStream<Uint8Array> | Uint8Array | null;
  /** Asks for another protocol by this name (RFC 9110, section 7.8). */
  readonly upgrade?: string;
  /** Sizes the receiving window of the connection while the answer comes, where that is ours. */
  readonly flow?: Flow;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TARGET = /^\/[\x21-\x7e]*$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** RFC 9110, section 9.2.1. */
const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

export const isSafe = (method: string): boolean => SAFE.has(method);

/**
 * The bytes before the body.
 *
 * @throws RelayError http_request_malformed when a part would be read as more than itself
 */
export function requestHead({ method, target, headers, instead = {}, body, upgrade }: ChannelRequest): Buffer {
  if (!TOKEN.test(method) || !TARGET.test(target)) throw new RelayError("http_request_malformed", "the request line is not well-formed");
  const lines = [`${method} ${target} HTTP/1.1`, "host: worker"];
  const add = (name: string, value: string): void => {
    if (!TOKEN.test(name) || !VALUE.test(value))
      throw new RelayError("http_request_malformed", "a field of the request is not well-formed");
    lines.push(`${name}: ${value}`);
  };
  const goesOn = endToEndFilter(headers.get("connection"));
  headers.forEach((value, name) => {
    if (goesOn(name) && name !== "host" && name !== "content-length" && !Object.hasOwn(instead, name)) add(name, value);
  });
  for (const [name, value] of Object.entries(instead)) if (value !== "") add(name, value);
  const length = bodyLength({ headers, body });
  lines.push(upgrade === undefined ? "connection: keep-alive" : `connection: upgrade\r\nupgrade: ${upgrade}`);
  if (length !== null) lines.push(`content-length: ${length}`);
  else if (body !== null) lines.push("transfer-encoding: chunked");
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

/** How long the body is; null where there is none, or where that is not known before its end. */
export function bodyLength({ headers, body }: Pick<ChannelRequest, "headers" | "body">): number | null {
  if (body instanceof Uint8Array) return body.length;
  const said = body === null ? null : headers.get("content-length");
  return said !== null && /^\d{1,15}$/.test(said) ? Number(said) : null;
}
