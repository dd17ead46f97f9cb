import { giveBack } from "../lib/system/give-back.ts";

/** For how long what is still sent of a request that has its answer already is read over, and how long it may stop meanwhile; milliseconds. */
const READ_OVER = { allMs: 30_000, quietMs: 1_000 };

/** Whether the connection is to end with the answer (RFC 9112, section 9.6). */
const endsConnection = ({ method, headers }: Request): boolean =>
  method !== "GET" && /(?:^|,)\s*close\s*(?:,|$)/i.test(headers.get("connection") ?? "");

/**
 * Answer a request, and where the connection is to end with that, not before the request has been sent to its end: the runtime closes the connection at once, and who still
 * sends finds it broken (EPIPE) before it reads.
 */
export async function afterRequest(
  request: Request,
  answer: (request: Request) => Response | Promise<Response>,
  times: typeof READ_OVER = READ_OVER,
): Promise<Response> {
  if (!endsConnection(request) || request.body === null) return answer(request);
  const body = new ReadOverBody(request.body);
  const response = await answer(new Request(request, { body: body.stream, duplex: "half" } as RequestInit));
  await body.readOver(times);
  return response;
}

/** A body of which is read over what whoever wanted it has not read, however he left it. */
class ReadOverBody {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #reader: { read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }> };

  constructor(body: ReadableStream<Uint8Array>) {
    const reader = body.getReader();
    this.#reader = reader;
    this.stream = new ReadableStream(
      {
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Whatever goes wrong with it is the end of it. */
  async readOver({ allMs, quietMs }: typeof READ_OVER): Promise<void> {
    const until = performance.now() + allMs;
    const late = Promise.withResolvers<null>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      while (performance.now() < until) {
        clearTimeout(timer);
        timer = setTimeout(() => late.resolve(null), quietMs);
        const next = await Promise.race([this.#reader.read(), late.promise]);
        if (next === null || next.value === undefined) return;
        giveBack(next.value);
      }
    } catch {
      // Who sent it is gone.
    } finally {
      clearTimeout(timer);
    }
  }
}
