import { timingSafeEqual } from "node:crypto";
import { SUBPROTOCOL } from "../../transport/meeting/messages.ts";
import { acceptOf } from "../../transport/outbound/websocket/upgrade.ts";
import { hasWord, type RequestHead } from "../sockets/request-head.ts";

/** What becomes of a request. */
export type Reply =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly body: string;
      readonly type?: string;
      readonly headers?: readonly string[];
    }
  | { readonly kind: "upgrade"; readonly head: string };

/** What the front has to know to answer. */
export interface FrontContext {
  readonly tokens: readonly string[];
  readonly draining: () => boolean;
  /** Text of /metrics. */
  readonly metrics: () => string;
}

const REASONS: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  401: "Unauthorized",
  404: "Not Found",
  405: "Method Not Allowed",
  426: "Upgrade Required",
  429: "Too Many Requests",
  503: "Service Unavailable",
};
const KEY = /^[A-Za-z0-9+/]{22}==$/;

const answer = (status: number, body: string, headers: readonly string[] = []): Reply => ({
  kind: "answer",
  status,
  body: `${body}\n`,
  headers,
});
/** RFC 6750, section 3. */
const unauthorized = (): Reply => answer(401, "a valid token is required", ["WWW-Authenticate: Bearer"]);

/** Answer a request: /healthz, /metrics and the upgrade at /meet, each as the last segment of whatever path an edge leads there. */
export function reply(head: RequestHead, context: FrontContext): Reply {
  const place = head.path.slice(head.path.lastIndexOf("/") + 1);
  if (place !== "healthz" && place !== "metrics" && place !== "meet") return answer(404, "there is nothing here");
  if (head.method !== "GET") return answer(405, "only GET", ["Allow: GET"]);
  if (hasBody(head)) return answer(400, "a body where none is taken");
  if (place === "healthz") return context.draining() ? answer(503, "draining") : answer(200, "ok");
  const token = shown(head, context.tokens);
  if (place === "metrics") {
    if (token !== "known") return unauthorized();
    return { kind: "answer", status: 200, body: context.metrics(), type: "text/plain; version=0.0.4; charset=utf-8" };
  }
  if (token === "wrong") return unauthorized();
  if (context.draining()) return answer(503, "draining", ["Retry-After: 2"]);
  return upgrade(head);
}

const hasBody = ({ fields }: RequestHead): boolean => fields.has("transfer-encoding") || (fields.get("content-length") ?? "0") !== "0";

/** Whether a token was shown, and whether it is one that is known. Each is compared, in constant time. */
function shown(head: RequestHead, tokens: readonly string[]): "none" | "known" | "wrong" {
  const field = head.fields.get("authorization");
  if (field === undefined) return "none";
  const token = /^Bearer +(\S{1,512})$/i.exec(field)?.[1] ?? "";
  const digest = (text: string): Uint8Array => new Bun.CryptoHasher("sha256").update(text).digest();
  const given = digest(token);
  const matches = tokens.filter((one) => timingSafeEqual(digest(one), given));
  return matches.length > 0 ? "known" : "wrong";
}

/** RFC 6455, section 4.2.1. */
function upgrade(head: RequestHead): Reply {
  const key = head.fields.get("sec-websocket-key") ?? "";
  const fits =
    hasWord(head, "connection", "upgrade") &&
    hasWord(head, "upgrade", "websocket") &&
    head.fields.get("sec-websocket-version") === "13" &&
    KEY.test(key) &&
    hasWord(head, "sec-websocket-protocol", SUBPROTOCOL);
  if (!fits) {
    return answer(426, `WebSocket, version 13, with the subprotocol ${SUBPROTOCOL}`, [
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      `Sec-WebSocket-Protocol: ${SUBPROTOCOL}`,
    ]);
  }
  const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${acceptOf(key)}`];
  return { kind: "upgrade", head: `${[...lines, `Sec-WebSocket-Protocol: ${SUBPROTOCOL}`].join("\r\n")}\r\n\r\n` };
}

/** An answer's bytes; the connection ends with it. */
export function answerBytes({
  status,
  body,
  type = "text/plain; charset=utf-8",
  headers = [],
}: Extract<Reply, { kind: "answer" }>): Buffer {
  const lines = [
    `HTTP/1.1 ${status} ${REASONS[status] ?? ""}`,
    `Content-Type: ${type}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    "Connection: close",
    ...headers,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** 429 with the seconds until one is taken again. */
export const tooMany = (waitMs: number): Buffer =>
  answerBytes({ kind: "answer", status: 429, body: "too many\n", headers: [`Retry-After: ${Math.ceil(waitMs / 1_000)}`] });

/** 400. */
export const notHttp = (): Buffer => answerBytes({ kind: "answer", status: 400, body: "this is no request\n" });
