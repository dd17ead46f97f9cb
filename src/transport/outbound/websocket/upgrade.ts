import { createHash, randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { isRelayError, type RelayError } from "../../../domain/errors.ts";
import type { RelayUrl } from "../../../domain/relay-url.ts";
import { type AnswerHead, parseHead } from "../../http/head.ts";
import { RETRY_MAX_MS } from "../../meeting/codes.ts";
import { layerFailure } from "../failure.ts";
import { readHead } from "../read-head.ts";
import { WebSocketStream } from "./stream.ts";

/** RFC 6455, section 1.3. */
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** What a server answers to a key. */
export const acceptOf = (key: string): string => createHash("sha1").update(`${key}${GUID}`).digest("base64");

export interface UpgradeRequest {
  readonly url: RelayUrl;
  /** The subprotocol that is wanted (RFC 6455, section 1.9): the server must take it. */
  readonly protocol: string;
  /** Sent as `Authorization: Bearer`; null: none. */
  readonly token: string | null;
  /** Of this program, for the other side's log. */
  readonly version: string;
  readonly signal: AbortSignal;
}

/**
 * Make a WebSocket of a connection (RFC 6455, section 4.1), without extensions.
 *
 * @throws RelayError relay_token_refused; relay_host_busy and shutting_down, with `retry_after` in seconds where the server says it, each with the data of a MeetingEnd; upgrade_refused with its
 *   status and where it would have led; the signal's reason
 */
export async function openWebSocket(stream: Duplex, request: UpgradeRequest): Promise<WebSocketStream> {
  const { url, protocol, token, version, signal } = request;
  const key = randomBytes(16).toString("base64");
  const secure = url.scheme === "wss";
  const host = url.port === (secure ? 443 : 80) ? url.authority.replace(/:\d+$/, "") : url.authority;
  const lines = [
    `GET ${url.prefix}/meet HTTP/1.1`,
    `Host: ${host}`,
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Key: ${key}`,
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Protocol: ${protocol}`,
    `User-Agent: clio-relay/${version}`,
    ...(token === null ? [] : [`Authorization: Bearer ${token}`]),
  ];
  stream.write(`${lines.join("\r\n")}\r\n\r\n`);
  const head = await answerOf(stream, url, signal);
  if (head.status !== 101) throw refusal(url, head);
  const field = (name: string): string | undefined => head.fields.find(([one]) => one === name)?.[1];
  const tokens = (name: string): string[] =>
    (field(name) ?? "")
      .toLowerCase()
      .split(",")
      .map((one) => one.trim());
  const fits =
    tokens("upgrade").includes("websocket") &&
    tokens("connection").includes("upgrade") &&
    field("sec-websocket-accept") === acceptOf(key) &&
    field("sec-websocket-protocol") === protocol &&
    field("sec-websocket-extensions") === undefined;
  if (!fits) throw failed(url, "it agrees to something else than what was asked for", { status: 101 });
  return new WebSocketStream(stream, "client");
}

async function answerOf(stream: Duplex, url: RelayUrl, signal: AbortSignal): Promise<AnswerHead> {
  try {
    const answer = await readHead(stream, signal);
    if (answer === "ended") throw failed(url, "it closed the connection without an answer", {});
    if (answer === "too_long") throw failed(url, "what it answers is no head of HTTP", {});
    return parseHead(answer.text);
  } catch (error) {
    signal.throwIfAborted();
    if (isRelayError(error, "upgrade_refused")) throw error;
    const why = isRelayError(error) ? error.message : `the connection broke (${(error as NodeJS.ErrnoException).code ?? "unknown"})`;
    throw failed(url, why, {}, undefined, error);
  }
}

const failed = (url: RelayUrl, why: string, data: Record<string, unknown>, hint?: string, cause?: unknown): RelayError =>
  layerFailure("http_upgrade", "upgrade_refused", `${url.text} makes no WebSocket: ${why}`, {
    data: { relay_host: url.text, ...data },
    hint,
    cause,
  });

function refusal(url: RelayUrl, { status, fields }: AnswerHead): RelayError {
  const field = (name: string): string | undefined => fields.find(([one]) => one === name)?.[1];
  const after = field("retry-after");
  const seconds = after !== undefined && /^\d{1,6}$/.test(after) ? Number(after) : null;
  const data = { relay_host: url.text, status, ...(seconds === null ? {} : { retry_after: seconds }) };
  const known = { 401: "relay_token_refused", 429: "relay_host_busy", 503: "shutting_down" } as const;
  if (status === 401 || status === 429 || status === 503) {
    const retry_ms = status === 401 ? RETRY_MAX_MS : Math.min((seconds ?? 0) * 1_000, RETRY_MAX_MS);
    return layerFailure("http_upgrade", known[status], `${url.text} answers with status ${status}`, { data: { ...data, retry_ms } });
  }
  const location = field("location");
  const where = location === undefined ? "" : `, and points to ${location.replace(/[?#].*$/s, "").slice(0, 200)}`;
  return failed(url, `it answers with status ${status}${where}`, data, HINTS[status]);
}

const HINTS: Readonly<Record<number, string>> = {
  403: "an edge before it may want to let this client in",
  404: "the path before /meet has to be the one that the edge hands on to the relay-host",
  426: "something on the way takes the upgrade off: an edge has to hand on Upgrade and Connection",
  502: "the edge answers, and the relay-host behind it does not",
  504: "the edge answers, and the relay-host behind it does not",
};
