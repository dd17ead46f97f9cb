import { RelayError } from "../../domain/errors.ts";
import { giveBack } from "../../lib/give-back.ts";
import { endToEnd } from "../../transport/http/end-to-end.ts";
import type { Link } from "../../transport/link.ts";
import { workerHangs } from "../../transport/link-failures.ts";
import { nobodyListens, probe } from "../probe.ts";
import { logContent } from "./log-content.ts";

/** When a worker that is connected but silent is asked whether it lives, and how long it has to say so; milliseconds. */
export interface Patience {
  readonly silentMs: number;
  readonly probeMs: number;
}

export const PATIENCE: Patience = { silentMs: 15_000, probeMs: 5_000 };

/**
 * Send a request on to the app on a Unix socket. Bodies stream both ways with back-pressure; who goes away on one side is gone
 * on the other; an answer that breaks off breaks off here too.
 *
 * A request may be quiet for as long as it likes (a wait is), but only while the worker answers other requests: one that
 * does not is hung, and the request ends with link_down. So does an answer in its middle, but for what somebody follows, who is told of the silence
 * and waits for as long as it takes.
 *
 * @throws RelayError worker_not_running when nobody listens, link_down when the worker hangs or goes away before it answered
 */
export async function forwardToSocket(
  cluster: string,
  socket: string,
  target: string,
  request: Request,
  patience: Patience = PATIENCE,
): Promise<Response> {
  const headers = endToEnd(request.headers);
  // The daemon's own name and token.
  for (const name of ["host", "authorization"]) headers.delete(name);
  const hung = new AbortController();
  const watched: Watched = async <T>(work: () => Promise<T>): Promise<T> => {
    const probing = setInterval(() => void probe(socket, patience.probeMs).catch(() => hung.abort()), patience.silentMs);
    return work().finally(() => clearInterval(probing));
  };
  try {
    const answer = await watched(() =>
      fetch(`http://worker${target}`, {
        method: request.method,
        headers,
        body: request.body,
        signal: AbortSignal.any([request.signal, hung.signal]),
        redirect: "manual",
        unix: socket,
        proxy: false,
        // The bytes go on as they are, whatever they are encoded in.
        decompress: false,
        timeout: false,
        // A kept connection may be one that the worker closed meanwhile; only reads can be sent again over another.
        keepalive: request.method === "GET",
      } as unknown as RequestInit),
    );
    return new Response(await bodyOf(answer, target, watched), { status: answer.status, headers: endToEnd(answer.headers) });
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw failureOf(cluster, error, hung.signal.aborted);
  }
}

type Watched = <T>(work: () => Promise<T>) => Promise<T>;

/** Answers of up to this go on when they are complete: what is cheap for both sides, and breaks off before an answer of ours has begun. */
const WHOLE_BYTES = 64 * 1024;

function bodyOf(answer: Response, target: string, watched: Watched): Promise<ArrayBuffer> | ReadableStream<Uint8Array> | null {
  if (answer.body === null || isFollowed(target, answer)) return answer.body;
  const length = answer.headers.get("content-length");
  return length !== null && Number(length) <= WHOLE_BYTES ? watched(() => answer.arrayBuffer()) : watchedBody(answer.body, watched);
}

/** Whether an answer may be quiet for as long as its job is. */
const isFollowed = (target: string, { headers }: Response): boolean =>
  headers.get("content-type")?.startsWith("text/event-stream") === true || /[?&]follow=(?:true|1)(?:&|$)/.test(target);

const watchedBody = (body: ReadableStream<Uint8Array>, watched: Watched): ReadableStream<Uint8Array> => givingBack(body, watched);

/** A body whose pieces are given back when they have been written. */
function givingBack(body: ReadableStream<Uint8Array>, watched: Watched = (work) => work()): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let given: Uint8Array = new Uint8Array();
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          // Who asks for more has written the piece before, which is nobody else's.
          giveBack(given);
          const { done, value } = await watched(() => reader.read());
          if (done) return controller.close();
          given = value;
          controller.enqueue(value);
        } catch {
          // Bun writes what a body fails with to standard error, with source and stack, unless it is nothing.
          controller.error(undefined);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

function failureOf(cluster: string, error: unknown, hung: boolean): RelayError {
  if (hung) return workerHangs(cluster);
  if (nobodyListens(error)) {
    return new RelayError(
      "worker_not_running",
      `no worker is running for ${cluster}`,
      { cluster },
      `clio-relay worker start --cluster ${cluster}`,
    );
  }
  return new RelayError(
    "link_down",
    `the connection to the worker of ${cluster} broke before it answered; whether it took the request on is not known`,
    { cluster },
    undefined,
    { cause: error },
  );
}

/** Content that a worker serves and that may be long: of artifacts and of logs as they are now, by ranges, and what a link is measured by; the path, and what is asked of a log. */
const CONTENT = /^(\/(?:link|artifacts\/[^/?]+|jobs\/[^/?]+\/logs\/[^/?]+)\/content)(?:\?(.*))?$/s;

/**
 * The same over a cluster's link.
 *
 * @throws as Link.request
 */
export async function forwardOverLink(link: Link, target: string, request: Request): Promise<Response> {
  const { method, headers, body, signal } = request;
  const forwarded = { method, target, headers, body };
  const [, path, query = ""] = CONTENT.exec(target) ?? [];
  const partOfLog = path !== undefined && query !== "" && method === "GET" && !headers.has("range");
  const bulk = path !== undefined && (query === "" || headers.has("range"));
  const answer = partOfLog
    ? await logContent(link, forwarded, path, new URLSearchParams(query), signal)
    : await link.request(forwarded, { signal, bulk });
  const content = answer.body instanceof ReadableStream ? givingBack(answer.body) : answer.body;
  return new Response(content as Bun.BodyInit | null, { status: answer.status, headers: answer.headers });
}
