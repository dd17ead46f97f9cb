import { CREDENTIALS, shownToken } from "../../api/listener/bearer.ts";
import { problemResponse } from "../../api/problem.ts";
import { asksForWebSocket, CLOSE, CLOSE_REASON_MAX, tokenParameter } from "../../api/web-socket.ts";
import { RelayError } from "../../domain/errors.ts";
import { frameHeader, OPCODE } from "../../transport/outbound/websocket/frames.ts";
import { acceptOf } from "../../transport/outbound/websocket/upgrade.ts";
import type { RequestHead } from "../sockets/request-head.ts";

/** Whether the head of a request carries a token: in a field or, of one for a WebSocket that has none of these, as a parameter. */
export function showsToken(head: RequestHead, token: string): boolean {
  const get = (name: string): string | null => head.fields.get(name) ?? null;
  const parameter = wantsWebSocket(head) && CREDENTIALS.every((name) => get(name) === null) ? tokenParameter(head.target) : null;
  if (parameter === null) return shownToken({ get }, token) === "right";
  return shownToken({ get: (name) => (name === "authorization" ? `Bearer ${parameter}` : null) }, token) === "right";
}

/** Whether a WebSocket can be made of it, if only to be closed again (RFC 6455, section 4.2.1). */
const wantsWebSocket = ({ method, target, fields }: RequestHead): boolean =>
  asksForWebSocket(method, target, fields.get("upgrade") ?? null) && /^[A-Za-z0-9+/]{22}==$/.test(fields.get("sec-websocket-key") ?? "");

/** The request that a head is of, without its body. @throws where Fetch does not take it */
export const requestOf = ({ method, target, fields }: RequestHead): Request =>
  new Request(`http://127.0.0.1${target}`, { method, headers: [...fields] });

/** An answer's bytes; the connection ends with it. @param head of the request; null where it has none */
export async function answerBytes(response: Response, head: RequestHead | null): Promise<Buffer> {
  if (head !== null && wantsWebSocket(head)) return webSocketRefusal(response, head);
  const body = head?.method === "HEAD" ? new Uint8Array() : await response.bytes();
  const lines = [`HTTP/1.1 ${response.status} ${response.statusText}`, `content-length: ${body.length}`, "connection: close"];
  response.headers.forEach((value, name) => {
    if (name !== "connection" && name !== "content-length") lines.push(`${name}: ${value}`);
  });
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body]);
}

/** A page is not told why a handshake failed, but it is by which code and reason a WebSocket was closed. */
async function webSocketRefusal(response: Response, { fields }: RequestHead): Promise<Buffer> {
  const { reason } = (await response.json()) as { reason?: string };
  const payload = Buffer.alloc(2 + Buffer.byteLength(reason ?? ""));
  payload.writeUInt16BE(CLOSE.refused, 0);
  payload.write(reason ?? "", 2);
  const frame = payload.subarray(0, 2 + CLOSE_REASON_MAX);
  const lines = ["HTTP/1.1 101 Switching Protocols", "upgrade: websocket", "connection: upgrade"];
  lines.push(`sec-websocket-accept: ${acceptOf(fields.get("sec-websocket-key") ?? "")}`);
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), frameHeader(OPCODE.close, frame.length, null), frame]);
}

export const notWellFormed = (): Response =>
  problemResponse(new RelayError("http_request_malformed", "the head of the request is not well-formed"));

/** 429 with the seconds until one is taken again. */
export const tooMany = (what: string, seconds: number): Response =>
  problemResponse(new RelayError("listener_busy", what, { retry_after_seconds: seconds }), { "retry-after": String(seconds) });
