/** One connection to an HTTP server on a Unix socket, with one request at a time. */
export interface PlainConnection {
  /** Send a JSON body; the answer's status and body. */
  post(path: string, json: string): Promise<{ readonly status: number; readonly body: string }>;
  /** The same without one. */
  get(path: string): Promise<{ readonly status: number; readonly body: string }>;
  close(): void;
}

/**
 * HTTP/1.1 written by hand. Bun's fetch takes more time for a request than a worker takes for its answer, and runs in a thread of its own beside the
 * one that waits; what is to be measured is the worker.
 */
export async function connectPlain(socketPath: string): Promise<PlainConnection> {
  let received = Buffer.alloc(0);
  let waiting: PromiseWithResolvers<{ status: number; body: string }> | null = null;
  const fail = (error: Error): void => waiting?.reject(error);
  const socket = await Bun.connect({
    unix: socketPath,
    socket: {
      data(_socket, data) {
        received = received.length === 0 ? Buffer.from(data) : Buffer.concat([received, data]);
        const answer = answerIn(received);
        if (answer === null) return;
        received = Buffer.alloc(0);
        waiting?.resolve(answer);
      },
      error: (_socket, error) => fail(error),
      close: () => fail(new Error("the server closed the connection")),
    },
  });
  const exchange = (text: string) => {
    waiting = Promise.withResolvers();
    const request = Buffer.from(text);
    if (socket.write(request) !== request.length) waiting.reject(new Error("the socket takes no whole request"));
    return waiting.promise;
  };
  return {
    post(path, json) {
      const head = `POST ${path} HTTP/1.1\r\nhost: relay\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(json)}\r\n\r\n`;
      return exchange(head + json);
    },
    get: (path) => exchange(`GET ${path} HTTP/1.1\r\nhost: relay\r\n\r\n`),
    close: () => void socket.end(),
  };
}

/** A whole answer, or null while some of it is missing. Answers have a content-length (RFC 9112, section 6.2). */
function answerIn(received: Buffer): { status: number; body: string } | null {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const head = received.toString("latin1", 0, end);
  const length = /^content-length: *(\d+)\r?$/im.exec(head);
  if (length === null) throw new Error(`an answer without a length: ${head}`);
  const begin = end + 4;
  if (received.length < begin + Number(length[1])) return null;
  return { status: Number(head.slice(9, 12)), body: received.toString("utf8", begin) };
}
