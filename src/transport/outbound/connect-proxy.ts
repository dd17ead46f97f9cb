import type { Duplex } from "node:stream";
import { isRelayError, type RelayError } from "../../domain/errors.ts";
import { type AnswerHead, parseHead } from "../http/head.ts";
import { layerFailure } from "./failure.ts";
import type { ProxyServer } from "./proxy-choice.ts";
import { readHead } from "./read-head.ts";

/**
 * Ask a proxy for a tunnel (CONNECT, RFC 9110, section 9.3.6). What the stream carries from here on is the target's.
 *
 * @throws RelayError proxy_failed: what the proxy has said instead, with its status; the signal's reason
 */
export async function openTunnel(stream: Duplex, proxy: ProxyServer, host: string, port: number, signal: AbortSignal): Promise<void> {
  const authority = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`, ...authorization(proxy), "", ""];
  stream.write(lines.join("\r\n"));
  let head: AnswerHead;
  try {
    const answer = await readHead(stream, signal);
    if (answer === "ended") throw failed(proxy, authority, "it closed the connection without an answer");
    if (answer === "too_long") throw failed(proxy, authority, "what it answers is no head of HTTP");
    // Some proxies still say HTTP/1.0 here, and mean the same.
    head = parseHead(answer.text.replace(/^HTTP\/1\.0 /, "HTTP/1.1 "));
  } catch (error) {
    signal.throwIfAborted();
    if (isRelayError(error, "proxy_failed")) throw error;
    throw failed(proxy, authority, isRelayError(error) ? error.message : `the connection broke (${codeOf(error)})`, { cause: error });
  }
  if (head.status >= 200 && head.status < 300) return;
  throw refusal(proxy, authority, head);
}

function authorization({ credentials }: ProxyServer): string[] {
  return credentials === null ? [] : [`Proxy-Authorization: Basic ${Buffer.from(credentials, "utf8").toString("base64")}`];
}

function refusal(proxy: ProxyServer, authority: string, { status, fields }: AnswerHead): RelayError {
  const data = { status };
  if (status !== 407) return failed(proxy, authority, `it answers with status ${status}`, { data });
  const schemes = fields.filter(([name]) => name === "proxy-authenticate").map(([, value]) => value.split(/[\s,]/)[0] ?? "");
  const basic = schemes.some((scheme) => scheme.toLowerCase() === "basic");
  if (basic || schemes.length === 0) {
    const what = proxy.credentials === null ? "it wants a user and a password" : "it does not take the user and password that it was given";
    return failed(proxy, authority, what, { data, hint: "HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT" });
  }
  return failed(proxy, authority, `it wants to be shown who asks by ${schemes.join(" or ")}, and only Basic is known`.slice(0, 500), {
    data,
    hint: "a local proxy that speaks it, such as cntlm or px, can stand between",
  });
}

const failed = (proxy: ProxyServer, authority: string, why: string, more: Parameters<typeof layerFailure>[3] = {}): RelayError =>
  layerFailure("proxy", "proxy_failed", `the proxy ${proxy.text} makes no connection to ${authority}: ${why}`, {
    ...more,
    data: { proxy: proxy.text, ...more.data },
  });

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "unknown";
