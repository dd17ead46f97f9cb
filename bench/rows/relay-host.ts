import fs from "node:fs";
import path from "node:path";
import { PLAIN_COPIES } from "../../src/lib/plain-copies.ts";
import { authority } from "../../test/transport/outbound/certificates.ts";
import { residentBytes } from "../installation.ts";
import type { RelayLoad } from "../relay-load-process.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { latencyOf } from "../yardsticks/latency.ts";

const MB = 1_000_000;
/** In how many turns joins are measured alone and amid others: what else a machine does changes by the minute. */
const ROUNDS = 4;
const TOKEN = "token-of-the-benchmark-0123456789abcdef";

/** What a load process says, line by line. */
class Load implements AsyncDisposable {
  readonly #child;
  readonly #lines: AsyncIterator<string>;

  constructor(context: BenchContext, load: RelayLoad) {
    this.#child = Bun.spawn([context.bun, path.join(import.meta.dir, "../relay-load-process.ts"), JSON.stringify(load)], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
    this.#lines = linesOf(this.#child.stdout);
  }

  async said<T>(): Promise<T> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error("the load ended early");
    return JSON.parse(value) as T;
  }

  end(): void {
    void this.#child.stdin.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill();
    await this.#child.exited;
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let text = "";
  for await (const piece of stream as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(piece).toString();
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
  }
}

/** A relay-host's memory with many who wait and with many who are joined; what it carries; and what strangers cost those who are let in. */
export const row: Row = {
  name: "relay-host",
  async run(context: BenchContext): Promise<Result[]> {
    const ca = authority(context.directory);
    const { cert, key } = ca.issue("localhost", "DNS:localhost,IP:127.0.0.1");
    const wide = { CLIO_RELAY_HOST_OPENINGS_PER_KEY: "1000000" };
    const listen = [
      "--listen",
      "127.0.0.1:0",
      "--tls-cert",
      cert,
      "--tls-key",
      key,
      "--listen-ws",
      "127.0.0.1:0",
      "--listen-tcp",
      "127.0.0.1:0",
    ];
    const child = Bun.spawn([context.executable, "relay-host", "serve", ...listen, "--json"], {
      // As its unit starts it.
      env: { ...process.env, ...PLAIN_COPIES, ...wide, CLIO_RELAY_HOST_TOKEN: TOKEN, CLIO_RELAY_HOME: context.directory },
      stdin: "ignore",
      stdout: "pipe",
      stderr: Bun.file(path.join(context.directory, "relay-host.log")),
    });
    try {
      const { value } = await linesOf(child.stdout).next();
      const { listening } = JSON.parse(value as string) as { listening: { kind: string; port: number }[] };
      const port = (kind: string): number => listening.find((one) => one.kind === kind)!.port;
      const urls = { wss: `wss://localhost:${port("tls")}`, tcp: `tcp://localhost:${port("tcp")}` };
      const load = (url: string, task: RelayLoad["task"]): Load => new Load(context, { url, token: TOKEN, caFile: ca.file, task });
      const settled = async (): Promise<number> => {
        await Bun.sleep(3_000);
        return residentBytes(child.pid);
      };

      // One that has served before: code is compiled, and what every connection shares is there.
      for (const url of [urls.wss, urls.tcp]) {
        await using first = load(url, { kind: "join", times: 20 });
        await first.said();
      }
      const base = await settled();
      const workers = Math.ceil(1_000 * context.scale);
      let parked = 0;
      {
        await using idle = load(urls.wss, { kind: "park", workers });
        await idle.said();
        parked = ((await settled()) - base) * (1_000 / workers);
      }
      await settled();
      const send = async (url: string): Promise<number> => {
        await using one = load(url, { kind: "send", bytes: Math.ceil(1_000 * MB * context.scale) });
        return (await one.said<{ bytes_per_second: number }>()).bytes_per_second;
      };
      const carried = { tcp: await send(urls.tcp), wss: await send(urls.wss) };
      const peakOf = async (url: string): Promise<number> => {
        let peak = 0;
        await using streams = load(url, { kind: "stream", pairs: 50 });
        await streams.said();
        for (let i = 0; i < 200 * Math.max(context.scale, 0.1); i++) {
          await Bun.sleep(50);
          peak = Math.max(peak, residentBytes(child.pid));
        }
        return peak;
      };
      const joined = { wss: await peakOf(urls.wss), tcp: await peakOf(urls.tcp) };
      const joins = async (): Promise<number[]> => {
        await using one = load(urls.tcp, { kind: "join", times: Math.ceil((200 / ROUNDS) * context.scale) });
        return (await one.said<{ samples: number[] }>()).samples;
      };
      const samples = { quiet: [] as number[], amid: [] as number[] };
      let refused = 0;
      let refusing = 0;
      for (let round = 0; round < ROUNDS; round++) {
        samples.quiet.push(...(await joins()));
        await using strangers = load(urls.tcp, { kind: "refuse", perMinute: 10_000 });
        await strangers.said();
        const began = performance.now();
        // They are there by then.
        await Bun.sleep(1_000);
        samples.amid.push(...(await joins()));
        refusing += performance.now() - began;
        strangers.end();
        refused += (await strangers.said<{ refused: number }>()).refused;
      }
      const [quiet, amid] = [latencyOf(samples.quiet).p50, latencyOf(samples.amid).p50];
      const log = fs.statSync(path.join(context.directory, "relay-host.log")).size;
      return [
        { name: "relay-host, resident", unit: "MB", yardstick: null, ours: base / MB, target: null },
        { name: "… growth by 1,000 parked workers (wss)", unit: "MB", yardstick: null, ours: parked / MB, target: { atMost: 20 } },
        { name: "… with 50 pairs that send both ways (wss)", unit: "MB", yardstick: null, ours: joined.wss / MB, target: { atMost: 100 } },
        { name: "… the same, tcp", unit: "MB", yardstick: null, ours: joined.tcp / MB, target: { atMost: 100 } },
        { name: "one pair, one way, tcp", unit: "MB/s", yardstick: null, ours: carried.tcp / MB, target: null },
        { name: "one pair, one way, wss", unit: "MB/s", yardstick: null, ours: carried.wss / MB, target: null },
        {
          name: "join, amid refused ones",
          unit: "ms",
          yardstick: { name: "join, alone", value: quiet },
          ours: amid,
          target: { ratioAtMost: 2 },
        },
        { name: "refused ones, in a minute", unit: "", yardstick: null, ours: (refused / refusing) * 60_000, target: null },
        { name: "the log of all that", unit: "kB", yardstick: null, ours: log / 1_000, target: null },
      ];
    } finally {
      child.kill();
      await child.exited;
    }
  },
};
