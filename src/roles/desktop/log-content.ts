import type { ChannelAnswer } from "../../transport/http/http-channel.ts";
import type { ChannelRequest } from "../../transport/http/request-head.ts";
import type { Link } from "../../transport/link.ts";

/** Where the worker says that a log's content begins. */
const OFFSET = "clio-relay-log-offset";
const COUNT = /^\d{1,15}$/;
/** The end of a log that is not longer than this is an answer like any other. */
const SHORT_BYTES = 512 * 1024;

/**
 * GET the content of a log that is asked for from an offset, or from so many bytes before its end: as a transfer where it may be long, and answered as
 * the worker answers it. What is short, and what the worker has to judge, goes to it as it came.
 *
 * @param path of the content @param query what followed it
 * @throws as Link.request
 */
export async function logContent(
  link: Link,
  request: ChannelRequest,
  path: string,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<ChannelAnswer> {
  const start = await startOf(link, request, query, signal);
  if (start !== null) {
    const headers = new Headers(request.headers);
    headers.delete("if-range");
    headers.set("range", `bytes=${start}-`);
    const answer = await link.request({ ...request, target: path, headers }, { signal, bulk: true });
    // Behind the end there is nothing, which is no error for one who asks from an offset.
    if (answer.status !== 416) return asWhole(answer);
  }
  return link.request(request, { signal });
}

/** Null: not to be fetched as a transfer. */
async function startOf(link: Link, request: ChannelRequest, query: URLSearchParams, signal: AbortSignal): Promise<number | null> {
  const names = [...query.keys()].filter((name) => name !== "follow" || query.get(name) !== "false");
  const value = query.get(names[0] ?? "") ?? "";
  if (names.length !== 1 || !COUNT.test(value)) return null;
  if (names[0] === "offset") return Number(value);
  if (names[0] !== "tail" || Number(value) <= SHORT_BYTES) return null;
  const { status, headers } = await link.request({ ...request, method: "HEAD" }, { signal });
  const offset = headers.get(OFFSET) ?? "";
  return status === 200 && COUNT.test(offset) ? Number(offset) : null;
}

function asWhole(answer: ChannelAnswer): ChannelAnswer {
  if (answer.status !== 206) return answer;
  const headers = new Headers(answer.headers);
  headers.delete("content-range");
  return { ...answer, status: 200, headers };
}
