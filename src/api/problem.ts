import { type ErrorCode, errorRule, hintOf, RelayError } from "../domain/errors.ts";
import { LIMITS } from "../domain/limits.ts";

/** Problem document of RFC 9457 with the members that every failure of clio-relay carries. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly schema_version: "clio-relay.error.v1";
  readonly reason: ErrorCode;
  readonly retryable: boolean;
  readonly hint?: string;
  readonly [extension: string]: unknown;
}

const RESERVED = new Set([
  "type",
  "title",
  "status",
  "detail",
  "instance",
  "schema_version",
  "reason",
  "retryable",
  "hint",
  "truncated_members",
  "envelope_overflow",
]);

/** Bytes that members of a failure leave to the names of those that are left out. */
const NAMES_BYTES = 512;
const HINT_LENGTH = 512;

/**
 * The problem document of a failure, at most LIMITS.problemBytes as JSON: members of the failure that do not fit are left out and named in `truncated_members`; a detail
 * that does not fit is cut, which `envelope_overflow` says. An error that is not a RelayError shows nothing of itself.
 */
export function problemOf(error: unknown): Problem {
  const failure =
    error instanceof RelayError ? error : new RelayError("internal_error", "an unexpected failure; the log of the process has it");
  const base = baseOf(failure);
  const extensions: Record<string, unknown> = {};
  const left: string[] = [];
  let room = LIMITS.problemBytes - NAMES_BYTES - bytesOf(base);
  for (const [key, value] of Object.entries(failure.data)) {
    if (RESERVED.has(key)) continue;
    const cost = bytesOf({ [key]: value });
    if (cost > room) left.push(key);
    else {
      extensions[key] = value;
      room -= cost;
    }
  }
  return { ...base, ...extensions, ...(left.length > 0 ? { truncated_members: firstNames(left) } : {}) };
}

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? "");

function baseOf(failure: RelayError): Problem {
  const rule = errorRule(failure.code);
  const hint = hintOf(failure);
  const withDetail = (detail: string, cut: boolean): Problem => ({
    type: `urn:clio-relay:error:${failure.code}`,
    title: rule.title,
    status: rule.http,
    detail,
    schema_version: "clio-relay.error.v1",
    reason: failure.code,
    retryable: rule.retryable,
    ...(hint === undefined ? {} : { hint: hint.slice(0, HINT_LENGTH).toWellFormed() }),
    ...(cut ? { envelope_overflow: true } : {}),
  });
  let detail = failure.message.slice(0, LIMITS.problemDetailLength).toWellFormed();
  let problem = withDetail(detail, false);
  // Characters can take six bytes each.
  while (bytesOf(problem) > LIMITS.problemBytes - NAMES_BYTES && detail !== "") {
    detail = detail.slice(0, Math.floor(detail.length * 0.75)).toWellFormed();
    problem = withDetail(detail, true);
  }
  return problem;
}

/** As many names as their place has room for. */
function firstNames(names: readonly string[]): string[] {
  const given = names.slice(0, 16);
  while (given.length > 0 && bytesOf({ truncated_members: given }) > NAMES_BYTES) given.pop();
  return given;
}

/** Whoever meets these keeps no connection: what its request still has to send is not waited for. */
const CLOSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["authentication_required", "host_refused", "request_timeout"]);

/** Headers that HTTP wants with a failure (RFC 9110, sections 10.2.1, 11.6.1, 14.4 and 15.5.22; RFC 9112, section 9.6). */
function headersOf(error: unknown): Record<string, string> {
  return { ...fieldsOf(error), ...(error instanceof RelayError && CLOSING.has(error.code) ? { connection: "close" } : {}) };
}

function fieldsOf(error: unknown): Record<string, string> {
  if (!(error instanceof RelayError)) return {};
  const { allowed, size_bytes } = error.data;
  if (error.code === "method_not_allowed" && Array.isArray(allowed)) return { allow: allowed.join(", ") };
  if (error.code === "range_not_satisfiable" && typeof size_bytes === "number") return { "content-range": `bytes */${size_bytes}` };
  if (error.code === "upgrade_required") return { upgrade: "websocket", connection: "upgrade" };
  if (error.code === "authentication_required") return { "www-authenticate": 'Bearer realm="clio-relay"' };
  return {};
}

/** The same as an HTTP answer. */
export function problemResponse(error: unknown, headers: Record<string, string> = {}): Response {
  const problem = problemOf(error);
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { ...headers, ...headersOf(error), "content-type": "application/problem+json" },
  });
}
