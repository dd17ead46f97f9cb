import * as v from "valibot";
import { type ErrorCode, RelayError } from "../domain/errors.ts";
import { LIMITS } from "../domain/limits.ts";
import { roundedNumber, wouldRound } from "../lib/text/rounded-number.ts";
import { parsedInUnicode } from "../lib/text/unicode-json.ts";
import { Deadlines } from "../lib/waiting/deadlines.ts";

const MAX_DEPTH = 64;
const MAX_ISSUES = 20;
/** How long the body of a request may take to come, in milliseconds. */
const BODY_MS = 120_000;
const bodies = new Deadlines(250);

/**
 * Read a JSON body of at most `maxBytes`; the bound is checked before, and while, anything is kept. Lone halves of surrogate pairs are U+FFFD.
 *
 * @throws RelayError payload_too_large, http_request_malformed; request_validation_failed where an integer in it would be rounded; request_timeout when it has not come to its end within `withinMs`
 */
export async function readJsonBody(
  request: Request,
  maxBytes: number = LIMITS.requestBodyBytes,
  withinMs: number = BODY_MS,
): Promise<unknown> {
  const text = decode(await readBytes(request, maxBytes, withinMs));
  if (text === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RelayError("http_request_malformed", "the body is not JSON");
  }
  if (nestsTooDeep(value)) throw new RelayError("http_request_malformed", `the body is nested more than ${MAX_DEPTH} deep`);
  const rounded = roundedNumber(text);
  if (rounded !== null)
    throw new RelayError("request_validation_failed", wouldRound(rounded), {
      issues: [{ path: rounded.name, message: "an integer beyond 2^53" }],
    });
  // What is kept of it has to be readable in every language.
  return parsedInUnicode(value, text);
}

/** Read a body of at most `maxBytes` as it is. @throws RelayError payload_too_large, request_timeout */
export async function readBytes(request: Request, maxBytes: number, withinMs: number = BODY_MS): Promise<ArrayBuffer | Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) throw tooLarge(maxBytes);
  const body: Promise<ArrayBuffer | Uint8Array> = declared === null ? readBounded(request.body, maxBytes) : request.arrayBuffer();
  const late = () => new RelayError("request_timeout", `the body did not come to its end within ${withinMs / 1_000} s`);
  return bodies.within(body, withinMs, late);
}

const tooLarge = (maxBytes: number) =>
  new RelayError("payload_too_large", `the body may hold at most ${maxBytes} bytes`, { max_bytes: maxBytes });

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** JSON is UTF-8 (RFC 8259, section 8.1); what is not would silently become another argument or name. */
function decode(bytes: ArrayBuffer | Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new RelayError("http_request_malformed", "the body is not UTF-8");
  }
}

async function readBounded(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<Uint8Array> {
  if (body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Whether JSON data nests deeper than a reader may go. Looks level by level, so that the data cannot exhaust the stack. */
function nestsTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap((item) => (item !== null && typeof item === "object" ? Object.values(item) : []));
  }
  return false;
}

/**
 * Check data against a schema; refused with `issues: [{path, message}]`.
 *
 * @param codeOf the reason, by where the first issue is
 */
export function parse<S extends v.GenericSchema>(
  schema: S,
  value: unknown,
  where: string,
  codeOf: (path: string) => ErrorCode = () => "request_validation_failed",
): v.InferOutput<S> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const issues = result.issues.slice(0, MAX_ISSUES).map((issue) => ({ path: v.getDotPath(issue) ?? "", message: messageOf(issue) }));
  const first = issues[0]!;
  throw new RelayError(codeOf(first.path), `${where}${first.path === "" ? "" : ` ${first.path}`}: ${first.message}`, {
    issues,
    issue_count: result.issues.length,
  });
}

/** Of a member or parameter that there is none of, or that is left out, the schema's own words say neither. */
function messageOf(issue: v.BaseIssue<unknown>): string {
  if (issue.path?.at(-1)?.origin !== "key" || (issue.type !== "strict_object" && issue.type !== "object")) return issue.message;
  if (issue.expected === "never") return "there is none of that name";
  return issue.received === "undefined" ? "is missing" : issue.message;
}

/** Query parameters as an object: a parameter given several times becomes an array. */
export function queryObject(url: string): Record<string, string | string[]> {
  const start = url.indexOf("?");
  // Without a prototype, whose members would be taken for parameters.
  const query: Record<string, string | string[]> = Object.create(null);
  if (start < 0) return query;
  for (const [key, value] of new URLSearchParams(url.slice(start))) {
    const present = query[key];
    query[key] = present === undefined ? value : Array.isArray(present) ? [...present, value] : [present, value];
  }
  return query;
}
