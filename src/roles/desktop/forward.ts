import { changesSomething } from "../../api/reading-posts.ts";
import { RelayError } from "../../domain/errors.ts";
import { endToEnd } from "../../transport/http/end-to-end.ts";
import { doubtOf } from "../../transport/http/request-head.ts";
import type { Link } from "../../transport/link.ts";
import { clusterBusy, workerHangs } from "../../transport/link-failures.ts";
import { isFull, nobodyListens, whileFull } from "../probe.ts";
import { givingBack, type Watched } from "./giving-back.ts";
import type { LocalWorkers } from "./local-workers.ts";
import { logContent } from "./log-content.ts";

/** When a worker that is connected but silent is asked whether it lives, and how long it has to say so; milliseconds. */
export interface Patience {
  readonly silentMs: number;
  readonly probeMs: number;
}

export const PATIENCE: Patience = { silentMs: 15_000, probeMs: 5_000 };

/** What a request is forwarded with. */
export interface Forwarding {
  readonly cluster: string;
  /** What is asked of the worker, its path and query. */
  readonly target: string;
  readonly request: Request;
  /** Called when its answer has come to its end, also if nobody takes it to there; not where forwarding it throws. */
  readonly over: () => void;
}

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
  { cluster, target, request, over }: Forwarding,
  socket: string,
  workers: Pick<LocalWorkers, "alive">,
  patience: Patience = PATIENCE,
): Promise<Response> {
  const headers = endToEnd(request.headers);
  // The daemon's own name and token.
  for (const name of ["host", "authorization"]) headers.delete(name);
  const hung = new AbortController();
  const watched: Watched = async <T>(work: () => Promise<T>): Promise<T> => {
    let done = false;
    // Who is still waited for when the work is done has no say in what follows.
    const dead = () => done || hung.abort();
    const probing = setInterval(
      () => void workers.alive(socket, patience.probeMs).then((lives) => (lives ? undefined : dead()), dead),
      patience.silentMs,
    );
    return work().finally(() => {
      done = true;
      clearInterval(probing);
    });
  };
  const signal = AbortSignal.any([request.signal, hung.signal]);
  const send = () =>
    fetch(`http://worker${target}`, {
      method: request.method,
      headers,
      body: request.body,
      signal,
      redirect: "manual",
      unix: socket,
      proxy: false,
      // The bytes go on as they are, whatever they are encoded in.
      decompress: false,
      timeout: false,
      // A kept connection may be one that the worker closed meanwhile; only reads can be sent again over another.
      keepalive: request.method === "GET",
    } as unknown as RequestInit);
  try {
    // A body is given to one try only.
    const answer = await watched(() => (request.body === null ? whileFull(signal, send) : send()));
    return new Response(await bodyOf(answer, target, watched, over), { status: answer.status, headers: endToEnd(answer.headers) });
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw failureOf(cluster, error, {
      hung: hung.signal.aborted,
      doubt: doubtOf({ method: request.method, changes: changesSomething(request.method, target) }),
    });
  }
}

/** Answers of up to this go on when they are complete: what is cheap for both sides, and breaks off before an answer of ours has begun. */
const WHOLE_BYTES = 64 * 1024;

async function bodyOf(
  answer: Response,
  target: string,
  watched: Watched,
  over: () => void,
): Promise<ArrayBuffer | ReadableStream<Uint8Array> | null> {
  if (answer.body !== null && isFollowed(target, answer)) return givingBack(answer.body, over);
  const length = answer.headers.get("content-length");
  const whole = answer.body === null || (length !== null && Number(length) <= WHOLE_BYTES);
  if (!whole) return givingBack(answer.body, over, watched);
  const bytes = answer.body === null ? null : await watched(() => answer.arrayBuffer());
  over();
  return bytes;
}

/** Whether an answer may be quiet for as long as its job is. */
const isFollowed = (target: string, { headers }: Response): boolean =>
  headers.get("content-type")?.startsWith("text/event-stream") === true || /[?&]follow=(?:true|1)(?:&|$)/.test(target);

function failureOf(cluster: string, error: unknown, { hung, doubt }: { readonly hung: boolean; readonly doubt: string }): RelayError {
  if (hung) return workerHangs(cluster);
  if (isFull(error)) return clusterBusy(cluster, `as many requests as may wait to be let in by the worker of ${cluster}`);
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
    `the connection to the worker of ${cluster} broke before it answered${doubt}`,
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
export async function forwardOverLink({ target, request, over }: Omit<Forwarding, "cluster">, link: Link): Promise<Response> {
  const { method, headers, body, signal } = request;
  const forwarded = { method, target, headers, body, changes: changesSomething(method, target) };
  const [, path, query = ""] = CONTENT.exec(target) ?? [];
  const partOfLog = path !== undefined && query !== "" && method === "GET" && !headers.has("range");
  const bulk = path !== undefined && (query === "" || headers.has("range"));
  const answer = partOfLog
    ? await logContent(link, forwarded, path, new URLSearchParams(query), signal)
    : await link.request(forwarded, { signal, bulk });
  const content = answer.body instanceof ReadableStream ? givingBack(answer.body, over) : answer.body;
  if (content === answer.body) over();
  return new Response(content as Bun.BodyInit | null, { status: answer.status, headers: answer.headers });
}
