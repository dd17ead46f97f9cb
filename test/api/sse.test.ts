import { describe, expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import fc from "fast-check";
import { readSse, type SseMessage } from "../../src/api/client/sse-reader.ts";
import { type OutgoingMessage, sseResponse, waker } from "../../src/api/sse.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { Notifier } from "../../src/lib/waiting/notifier.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const directory = temporaryDirectories();

const collect = async (stream: ReadableStream<Uint8Array>): Promise<SseMessage[]> => Array.fromAsync(readSse(stream));

function chunked(text: string, sizes: number[]): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  let turn = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      const size = Math.max(1, sizes[turn++ % sizes.length]!);
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
}

describe("readSse", () => {
  test("joins data lines, keeps id, skips comments", async () => {
    expect(await collect(chunked(": hello\n\nid: 7\nevent: e\ndata: a\ndata: b\n\n", [1]))).toEqual([
      { event: "e", data: "a\nb", id: "7" },
    ]);
  });

  test("drops a message that the end cuts off", async () => {
    expect(await collect(chunked("data: a\n\ndata: b\n", [3]))).toEqual([{ event: "message", data: "a", id: null }]);
  });

  test("what the writer sends arrives, however it is cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue(), { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
        async (values, sizes) => {
          async function* messages(): AsyncGenerator<OutgoingMessage> {
            for (const [i, data] of values.entries()) yield { event: "e", id: i + 1, data };
          }
          const response = sseResponse({ messages, signal: new AbortController().signal, clock: systemClock });
          const received = await collect(chunked(await response.text(), sizes));
          expect(received.map((m) => m.data)).toEqual(values.map((value) => JSON.stringify(value)));
          expect(received.map((m) => m.id)).toEqual(values.map((_, i) => String(i + 1)));
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("the length of a message is bounded", () => {
  const read = (text: string, sizes: number[]) => Array.fromAsync(readSse(chunked(text, sizes), 20));

  test("whether it is one line or many, and not what comes before and behind it", async () => {
    for (const text of [`data: ${"x".repeat(30)}`, "data: 01234\n".repeat(9), `: ${"x".repeat(30)}`]) {
      const reading = read(text, [1, 3]);
      await expect(reading).rejects.toBeInstanceOf(RangeError);
    }
    expect(await read("data: 0123456789\n\n".repeat(9), [1, 3, 50])).toHaveLength(9);
    expect(await read("data: 0\r\ndata: 1\r\n\r\n".repeat(9), [1])).toEqual(Array(9).fill({ event: "message", data: "0\n1", id: null }));
  });
});

describe("sseResponse", () => {
  test("a reader that goes away ends the source", async () => {
    let ended = false;
    async function* messages(): AsyncGenerator<OutgoingMessage> {
      try {
        for (let i = 1; ; i++) yield { event: "e", id: i, data: i };
      } finally {
        ended = true;
      }
    }
    const response = sseResponse({ messages, signal: new AbortController().signal, clock: systemClock });
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
    expect(ended).toBe(true);
  });

  test("a slow reader holds the source back", async () => {
    let made = 0;
    async function* messages(): AsyncGenerator<OutgoingMessage> {
      for (;;) yield { event: "e", id: ++made, data: "x".repeat(1000) };
    }
    const response = sseResponse({ messages, signal: new AbortController().signal, clock: systemClock });
    const reader = response.body!.getReader();
    await reader.read();
    await new Promise((resolve) => setImmediate(resolve));
    expect(made).toBeLessThan(5);
    await reader.cancel();
  });
});

test("a client that does not read is read no further for, and cut", async () => {
  let [made, left] = [0, 0];
  async function* messages(): AsyncGenerator<OutgoingMessage> {
    try {
      for (;;) yield { event: "e", id: ++made, data: "x".repeat(8_000) };
    } finally {
      left++;
    }
  }
  const unix = path.join(directory(), "s");
  const answer = (request: Request) => sseResponse({ messages, signal: request.signal, clock: systemClock, stalledMs: 500 });
  const server = Bun.serve({ unix, idleTimeout: 0, fetch: answer } as unknown as Bun.Serve.Options<undefined>);
  const client = net.connect(unix);
  try {
    client.on("error", () => undefined);
    client.pause();
    client.write("GET / HTTP/1.1\r\nHost: relay\r\n\r\n");
    await eventually(() => left === 1, { what: "the end of the stream" });
    expect(made * 8_000).toBeLessThan(16 * 1024 * 1024);
    client.resume();
    await eventually(() => client.destroyed, { what: "the end of the connection" });
  } finally {
    client.destroy();
    await server.stop(true);
  }
});

describe("waker", () => {
  test("a notification between looking and waiting is not lost", async () => {
    const notifier = new Notifier<"t">();
    const change = waker((listener) => notifier.subscribe("t", listener), new AbortController().signal);
    notifier.notify("t");
    await change.wait();
    let woken = false;
    const second = change.wait().then(() => {
      woken = true;
    });
    await Promise.resolve();
    expect(woken).toBe(false);
    notifier.notify("t");
    await second;
    change.close();
    expect(notifier.size).toBe(0);
  });

  test("an aborted signal wakes, also when it was aborted before", async () => {
    const controller = new AbortController();
    controller.abort();
    const change = waker(() => () => undefined, controller.signal);
    await change.wait();
    change.close();
    expect(controller.signal.aborted).toBe(true);
  });
});
