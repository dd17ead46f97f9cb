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
  /** Whether anything is another than before when it is done; what its method says, unless it is said. */
  readonly changes?: boolean;
  /** Sizes the receiving window of the connection while the answer comes, where that is ours. */
  readonly flow?: Flow;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TARGET = /^\/[\x21-\x7e]*$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** RFC 9110, section 9.2.1. */
const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

export const isSafe = (method: string): boolean => SAFE.has(method);

/** What is said behind why a request got no answer. */
export const doubtOf = ({ method, changes = !isSafe(method) }: Pick<ChannelRequest, "method" | "changes">): string =>
  // Of one that only reads nothing is taken on.
  changes ? "; whether the request was taken on is not known" : "";

/**
 * The bytes before the body.
 *
 * @throws RelayError http_request_malformed when a part would be read as more than itself
 */
export function requestHead({ method, target, headers, instead = {}, body, upgrade }: ChannelRequest): Buffer {
  if (!TOKEN.test(method) || !TARGET.test(target)) throw new RelayError("http_request_malformed", "the request line is not well-formed");
  let head = `${method} ${target} HTTP/1.1\r\nhost: worker\r\n`;
  let names = "";
  let values = "";
  const add = (name: string, value: string): void => {
    names += name;
    values += value;
    head += `${name}: ${value}\r\n`;
  };
  const goesOn = endToEndFilter(headers.get("connection"));
  headers.forEach((value, name) => {
    if (goesOn(name) && name !== "host" && name !== "content-length" && !Object.hasOwn(instead, name)) add(name, value);
  });
  for (const [name, value] of Object.entries(instead)) if (value !== "") add(name, value);
  // All at once: none of them may have what would end it.
  if ((names !== "" && !TOKEN.test(names)) || !VALUE.test(values))
    throw new RelayError("http_request_malformed", "a field of the request is not well-formed");
  const length = bodyLength({ headers, body });
  head += upgrade === undefined ? "connection: keep-alive\r\n" : `connection: upgrade\r\nupgrade: ${upgrade}\r\n`;
  if (length !== null) head += `content-length: ${length}\r\n`;
  else if (body !== null) head += "transfer-encoding: chunked\r\n";
  return Buffer.from(`${head}\r\n`, "latin1");
}

/** How long the body is; null where there is none, or where that is not known before its end. */
export function bodyLength({ headers, body }: Pick<ChannelRequest, "headers" | "body">): number | null {
  if (body instanceof Uint8Array) return body.length;
  const said = body === null ? null : headers.get("content-length");
  return said !== null && /^\d{1,15}$/.test(said) ? Number(said) : null;
}
