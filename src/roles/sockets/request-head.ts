import { fieldOf } from "../../transport/http/head.ts";

/** Longest head of a request (docs/wire.md, Limits). */
export const HEAD_MAX = 16 * 1024;
const END = "\r\n\r\n";
const REQUEST_LINE = /^([A-Z]{1,32}) (\/[\x21-\x7e]*) HTTP\/1\.1$/;

/** The head of an HTTP/1.1 request (RFC 9112, section 3). */
export interface RequestHead {
  readonly method: string;
  /** Path and query, as they came. */
  readonly target: string;
  /** Path, without a query. */
  readonly path: string;
  /** By name in lower case; several of a name joined as RFC 9110, section 5.3, has it. */
  readonly fields: ReadonlyMap<string, string>;
  /** Bytes of it, the empty line included. */
  readonly length: number;
}

/** The head at the beginning of what came: null where it is not all there, "malformed" where it never will be one. */
export function requestHead(bytes: Buffer): RequestHead | null | "malformed" {
  const end = bytes.indexOf(END);
  if (end < 0) return bytes.length > HEAD_MAX ? "malformed" : null;
  if (end > HEAD_MAX) return "malformed";
  const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const request = REQUEST_LINE.exec(first);
  if (request === null) return "malformed";
  const fields = new Map<string, string>();
  for (const line of lines) {
    const field = fieldOf(line);
    if (field === null) return "malformed";
    const [name, value] = field;
    const before = fields.get(name);
    fields.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return { method: request[1]!, target: request[2]!, path: request[2]!.split("?")[0]!, fields, length: end + END.length };
}

/** Whether one of a field's comma-separated values is this word, in any case. */
export const hasWord = (head: RequestHead, name: string, word: string): boolean =>
  (head.fields.get(name) ?? "").split(",").some((one) => one.trim().toLowerCase() === word);

/**
 * Whether a request names one host and says where its body ends in one way only (RFC 9112, sections 3.2 and 6.3). Of any other, whoever is on the way and whoever answers
 * may not see the same requests.
 */
export function isFramed({ fields }: RequestHead): boolean {
  const [length, coding] = [fields.get("content-length"), fields.get("transfer-encoding")];
  // Several fields are joined by commas, and no host has one.
  if (fields.get("host")?.includes(",") !== false) return false;
  if (coding !== undefined) return length === undefined && coding.trim().toLowerCase() === "chunked";
  return length === undefined || (/^\d+$/.test(length.trim()) && Number.isSafeInteger(Number(length)));
}
