import { eventually } from "../../test/runner/wait.ts";
import { type Installation, install, residentBytes } from "../installation.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { type Latency, latencyOf, wallClock } from "../yardsticks/latency.ts";

const JOBS = 100;
const FOLLOWERS_PER_JOB = 10;
/** Between two events of a job, in milliseconds. */
const EVERY_MS = 1_000;

/** How long after its record's time each progress event came to a follower, in milliseconds. */
class Follower {
  #rest = "";
  #socket: { end(): void } | null = null;
  began = false;

  constructor(readonly lags: number[]) {}

  /** HTTP by hand: Bun's fetch has a bound of its own on how many there may be at once. */
  async follow(unix: string, route: string): Promise<this> {
    this.#socket = await Bun.connect({
      unix,
      socket: {
        open: (socket) => void socket.write(`GET ${route} HTTP/1.1\r\nhost: relay\r\n\r\n`),
        data: (_socket, bytes) => this.#data(bytes.toString("latin1")),
      },
    });
    return this;
  }

  #data(text: string): void {
    const now = wallClock();
    this.began = true;
    const messages = (this.#rest + text).split("\n\n");
    this.#rest = messages.pop()!;
    for (const message of messages) {
      const at = message.includes('"progress.updated"') && /"created_at":"([^"]*)"/.exec(message);
      if (at) this.lags.push(now - Date.parse(at[1]!));
    }
  }

  leave(): void {
    this.#socket?.end();
  }
}

async function following(relay: Installation, unix: string, prefix: string, jobs: readonly string[], rounds: number): Promise<Latency> {
  const lags: number[] = [];
  const followers: Follower[] = [];
  try {
    for (const job of jobs) {
      const route = `${prefix}/jobs/${job}/events/sse`;
      const some = Array.from({ length: FOLLOWERS_PER_JOB }, () => new Follower(lags).follow(unix, route));
      followers.push(...(await Promise.all(some)));
      // Faster than they are taken, they would be refused (listen(2), backlog).
      await eventually(() => followers.slice(-FOLLOWERS_PER_JOB).every(({ began }) => began), { timeoutMs: 60_000, everyMs: 2 });
    }
    await Bun.sleep(1_000);
    // What came before the last of them was there is not what is measured.
    lags.length = 0;
    for (let round = 0; round < rounds; round++) {
      const next = performance.now() + EVERY_MS;
      for (const [index, job] of jobs.entries()) {
        await relay.worker.recordProgress(job, { current: round });
        const due = next - EVERY_MS + ((index + 1) * EVERY_MS) / jobs.length;
        if (performance.now() < due) await Bun.sleep(due - performance.now());
      }
    }
    const wanted = jobs.length * FOLLOWERS_PER_JOB * rounds;
    await eventually(() => lags.length >= wanted, { timeoutMs: 60_000, what: `${wanted} events, of which ${lags.length} came` });
    if (lags.length !== wanted) throw new Error(`${lags.length} of ${wanted} events came`);
    return latencyOf(lags);
  } finally {
    for (const follower of followers) follower.leave();
  }
}

/** A thousand who follow a hundred jobs, of which each has an event a second. */
export const row: Row = {
  name: "followers",
  async run(context: BenchContext): Promise<Result[]> {
    await using relay = await install(context);
    const jobs: string[] = [];
    // Two run, and the others wait behind them: what is followed is the record.
    for (let i = 0; i < JOBS; i++) {
      const { job_id } = await relay.worker.submit({ cluster: "local", kind: "command", spec: { argv: ["sleep", "1000"], workdir: "/" } });
      jobs.push(job_id);
    }
    const rounds = Math.max(3, Math.ceil(15 * context.scale));
    let peak = 0;
    const look = setInterval(() => {
      peak = Math.max(peak, residentBytes(relay.workerPid));
    }, 50);
    let straight: Latency;
    let through: Latency;
    try {
      straight = await following(relay, relay.paths.workerSocket("local"), "", jobs, rounds);
      through = await following(relay, relay.paths.desktopSocket, "/clusters/local", jobs, rounds);
    } finally {
      clearInterval(look);
    }
    const desktop = residentBytes(await relay.desktopPid());
    for (const job of jobs) await relay.worker.cancel(job);
    await relay.worker.wait(jobs[0]!, { timeout_seconds: 30 });
    return [
      { name: "1,000 followers, event lag p99", unit: "ms", yardstick: null, ours: straight.p99, target: { atMost: 250 } },
      { name: "the same through the desktop", unit: "ms", yardstick: null, ours: through.p99, target: { atMost: 250 } },
      { name: "worker with 1,000 followers, resident", unit: "MB", yardstick: null, ours: peak / 1_000_000, target: { atMost: 250 } },
      { name: "desktop with 1,000 followers, resident", unit: "MB", yardstick: null, ours: desktop / 1_000_000, target: null },
    ];
  },
};
