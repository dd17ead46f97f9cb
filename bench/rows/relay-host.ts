import fs from "node:fs";
import path from "node:path";
import { PLAIN_COPIES } from "../../src/lib/system/plain-copies.ts";
import { linesOf } from "../../test/runner/lines.ts";
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

/** A relay-host that serves, as its unit starts it, and what is measured of it. */
class Measured implements AsyncDisposable {
  private constructor(
    private readonly context: BenchContext,
    private readonly child: Bun.Subprocess<"ignore", "pipe", Bun.BunFile>,
    private readonly log: string,
    private readonly caFile: string,
    readonly urls: { readonly wss: string; readonly tcp: string },
  ) {}

  static async start(context: BenchContext): Promise<Measured> {
    const ca = authority(context.directory);
    const { cert, key } = ca.issue("localhost", "DNS:localhost,IP:127.0.0.1");
    const listen = ["--listen", "--listen-ws", "--listen-tcp"].flatMap((option) => [option, "127.0.0.1:0"]);
    const wide = { CLIO_RELAY_HOST_OPENINGS_PER_KEY: "1000000" };
    const log = path.join(context.directory, "relay-host.log");
    const child = Bun.spawn([context.executable, "relay-host", "serve", ...listen, "--tls-cert", cert, "--tls-key", key, "--json"], {
      env: { ...process.env, ...PLAIN_COPIES, ...wide, CLIO_RELAY_HOST_TOKEN: TOKEN, CLIO_RELAY_HOME: context.directory },
      stdin: "ignore",
      stdout: "pipe",
      stderr: Bun.file(log),
    });
    try {
      const { value } = await linesOf(child.stdout).next();
      const { listening } = JSON.parse(value as string) as { listening: { kind: string; port: number }[] };
      const port = (kind: string): number => listening.find((one) => one.kind === kind)!.port;
      const urls = { wss: `wss://localhost:${port("tls")}`, tcp: `tcp://localhost:${port("tcp")}` };
      return new Measured(context, child, log, ca.file, urls);
    } catch (error) {
      child.kill();
      throw error;
    }
  }

  load(url: string, task: RelayLoad["task"]): Load {
    return new Load(this.context, { url, token: TOKEN, caFile: this.caFile, task });
  }

  /** Resident bytes, once what there was to do is done. */
  async settled(): Promise<number> {
    await Bun.sleep(3_000);
    return residentBytes(this.child.pid);
  }

  /** The same of one that has served before: code is compiled, and what every connection shares is there. */
  async base(): Promise<number> {
    for (const url of [this.urls.wss, this.urls.tcp]) {
      await using first = this.load(url, { kind: "join", times: 20 });
      await first.said();
    }
    return this.settled();
  }

  /** By how many bytes 1,000 workers that wait make it grow. */
  async parked(base: number): Promise<number> {
    const workers = Math.ceil(1_000 * this.context.scale);
    await using idle = this.load(this.urls.wss, { kind: "park", workers });
    await idle.said();
    return ((await this.settled()) - base) * (1_000 / workers);
  }

  /** Bytes per second of one pair, one way. */
  async carried(url: string): Promise<number> {
    await using one = this.load(url, { kind: "send", bytes: Math.ceil(1_000 * MB * this.context.scale) });
    return (await one.said<{ bytes_per_second: number }>()).bytes_per_second;
  }

  /** The most resident bytes while 50 pairs send both ways. */
  async peak(url: string): Promise<number> {
    let peak = 0;
    await using streams = this.load(url, { kind: "stream", pairs: 50 });
    await streams.said();
    for (let i = 0; i < 200 * Math.max(this.context.scale, 0.1); i++) {
      await Bun.sleep(50);
      peak = Math.max(peak, residentBytes(this.child.pid));
    }
    return peak;
  }

  async #joins(): Promise<number[]> {
    await using one = this.load(this.urls.tcp, { kind: "join", times: Math.ceil((200 / ROUNDS) * this.context.scale) });
    return (await one.said<{ samples: number[] }>()).samples;
  }

  /** The median milliseconds of a join, alone and amid strangers, and how many of these are refused in a minute. */
  async joins(): Promise<{ quiet: number; amid: number; refusedPerMinute: number }> {
    const samples = { quiet: [] as number[], amid: [] as number[] };
    let refused = 0;
    let refusing = 0;
    for (let round = 0; round < ROUNDS; round++) {
      samples.quiet.push(...(await this.#joins()));
      await using strangers = this.load(this.urls.tcp, { kind: "refuse", perMinute: 10_000 });
      await strangers.said();
      const began = performance.now();
      // They are there by then.
      await Bun.sleep(1_000);
      samples.amid.push(...(await this.#joins()));
      refusing += performance.now() - began;
      strangers.end();
      refused += (await strangers.said<{ refused: number }>()).refused;
    }
    return {
      quiet: latencyOf(samples.quiet).p50,
      amid: latencyOf(samples.amid).p50,
      refusedPerMinute: (refused / refusing) * 60_000,
    };
  }

  get logBytes(): number {
    return fs.statSync(this.log).size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill();
    await this.child.exited;
  }
}

/** A relay-host's memory with many who wait and with many who are joined; what it carries; and what strangers cost those who are let in. */
export const row: Row = {
  name: "relay-host",
  async run(context: BenchContext): Promise<Result[]> {
    await using host = await Measured.start(context);
    const { wss, tcp } = host.urls;
    const base = await host.base();
    const parked = await host.parked(base);
    await host.settled();
    const carried = { tcp: await host.carried(tcp), wss: await host.carried(wss) };
    const joined = { wss: await host.peak(wss), tcp: await host.peak(tcp) };
    const { quiet, amid, refusedPerMinute } = await host.joins();
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
      { name: "refused ones, in a minute", unit: "", yardstick: null, ours: refusedPerMinute, target: null },
      { name: "the log of all that", unit: "kB", yardstick: null, ours: host.logBytes / 1_000, target: null },
    ];
  },
};
