import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { LogSegment } from "../../src/domain/log.ts";
import { type FollowOptions, followLog } from "../../src/execution/follow-log.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const temporary = temporaryDirectories();

/** A job as the store and the shim would show it to a follower. */
class Job {
  readonly directory = temporary();
  readonly segments: LogSegment[] = [];
  over = false;
  #wakes = new Set<() => void>();
  #base = 0;

  begin(): void {
    const attempt = this.segments.length + 1;
    fs.mkdirSync(path.join(this.directory, `attempt-${attempt}`));
    this.segments.push({ job_id: "job_a", attempt, stream: "stdout", base: this.#base, length: 0, capture: null });
    this.wake();
  }

  write(text: string | Uint8Array): void {
    fs.appendFileSync(path.join(this.directory, `attempt-${this.segments.length}`, "stdout.log"), text);
  }

  end(over: boolean): void {
    const segment = this.segments.pop()!;
    const file = path.join(this.directory, `attempt-${segment.attempt}`, "stdout.log");
    const kept = fs.existsSync(file) ? fs.statSync(file).size : 0;
    this.#base += kept;
    const capture = { observed: kept, kept, dropped: 0, truncated: null, complete: true };
    this.segments.push({ ...segment, length: kept, capture });
    this.over = over;
    this.wake();
  }

  wake(): void {
    for (const wake of this.#wakes) wake();
  }

  get listeners(): number {
    return this.#wakes.size;
  }

  follow(options: Partial<FollowOptions> = {}): AsyncGenerator<Uint8Array, void> {
    return followLog(
      { directory: this.directory, stream: "stdout" },
      {
        offset: 0,
        segments: async () => [...this.segments],
        ended: async () => this.over,
        subscribe: (wake) => {
          this.#wakes.add(wake);
          return () => this.#wakes.delete(wake);
        },
        // Nothing here waits for a poll, or the test would take that long.
        pollMs: 60_000,
        ...options,
      },
    );
  }
}

async function collect(follower: AsyncGenerator<Uint8Array, void>, onText?: (text: string) => void): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const bytes of follower) {
    expect(bytes.length).toBeWithin(1, 64 * 1024 + 1);
    pieces.push(bytes);
    onText?.(Buffer.concat(pieces).toString("utf8"));
  }
  return Buffer.concat(pieces).toString("utf8");
}

describe("following", () => {
  test("gives what is there, what comes, and ends with the job", async () => {
    const job = new Job();
    job.begin();
    job.write("before ");
    let seen = "";
    const all = collect(job.follow(), (text) => {
      seen = text;
    });
    await eventually(() => seen === "before ", { what: "the first bytes" });
    job.write("during ");
    await eventually(() => seen === "before during ", { what: "bytes that were appended" });
    job.write("last");
    job.end(true);
    expect(await all).toBe("before during last");
    expect(job.listeners).toBe(0);
  });

  test("begins before the first attempt and goes on across attempts", async () => {
    const job = new Job();
    let seen = "";
    const all = collect(job.follow(), (text) => {
      seen = text;
    });
    await eventually(() => job.listeners === 1, { what: "the follower" });
    job.begin();
    job.write("one;");
    await eventually(() => seen === "one;", { what: "the first attempt" });
    job.end(false);
    job.begin();
    job.write("two;");
    await eventually(() => seen === "one;two;", { what: "the second attempt" });
    job.end(false);
    job.begin();
    job.end(false);
    job.begin();
    job.write("four");
    job.end(true);
    expect(await all).toBe("one;two;four");
  });

  test("from an offset waits until there is that much", async () => {
    const job = new Job();
    job.begin();
    job.write("0123");
    let seen = "";
    const all = collect(job.follow({ offset: 6 }), (text) => {
      seen = text;
    });
    job.write("45678");
    await eventually(() => seen === "678", { what: "bytes beyond the offset" });
    job.end(true);
    expect(await all).toBe("678");
    expect(await collect(job.follow({ offset: 6, end: 8 }))).toBe("67");
    expect(await collect(job.follow({ offset: 9 }))).toBe("");
    expect(await collect(job.follow({ offset: 1_000 }))).toBe("");
  });

  test("an ended job gives all of it and ends, without any wake", async () => {
    const job = new Job();
    job.begin();
    job.write("x".repeat(300_000));
    job.end(true);
    expect(await collect(job.follow())).toBe("x".repeat(300_000));
  });

  test("is stopped by its signal, while it waits and while it reads", async () => {
    const job = new Job();
    job.begin();
    const waiting = new AbortController();
    const idle = collect(job.follow({ signal: waiting.signal }));
    await eventually(() => job.listeners === 1, { what: "the follower" });
    waiting.abort();
    expect(await idle).toBe("");

    job.write("x".repeat(1_000_000));
    const reading = new AbortController();
    const some = await collect(job.follow({ signal: reading.signal }), () => reading.abort());
    expect(some.length).toBe(64 * 1024);
    expect(await collect(job.follow({ signal: AbortSignal.abort() }))).toBe("");
    expect(job.listeners).toBe(0);
  });

  test("that nobody reads any more lets go of everything", async () => {
    const job = new Job();
    job.begin();
    job.write("abc");
    const before = fs.readdirSync("/proc/self/fd").length;
    for await (const bytes of job.follow()) {
      expect(bytes.length).toBe(3);
      break;
    }
    expect(job.listeners).toBe(0);
    expect(fs.readdirSync("/proc/self/fd").length).toBeLessThanOrEqual(before);
  });

  test("notices by polling where nothing wakes it", async () => {
    const job = new Job();
    const all = collect(job.follow({ subscribe: () => () => undefined, pollMs: 20 }));
    job.begin();
    job.write("polled");
    job.end(true);
    expect(await all).toBe("polled");
  });

  test("ends before bytes that are no longer there, and goes on behind them when it is told to", async () => {
    const job = new Job();
    job.begin();
    job.write("abcdef");
    job.end(false);
    job.begin();
    job.write("next");
    job.end(true);
    fs.truncateSync(path.join(job.directory, "attempt-1/stdout.log"), 2);
    expect(await collect(job.follow())).toBe("ab");
    expect(await collect(job.follow({ offset: 2 }))).toBe("");
    expect(await collect(job.follow({ offset: 6 }))).toBe("next");
    fs.rmSync(path.join(job.directory, "attempt-1"), { recursive: true });
    expect(await collect(job.follow())).toBe("");
    expect(job.listeners).toBe(0);
  });

  test("several followers of a busy log each see every byte once", async () => {
    const job = new Job();
    job.begin();
    const followers = Array.from({ length: 5 }, () => collect(job.follow()));
    let expected = "";
    for (let i = 0; i < 400; i++) {
      const line = `line ${i}\n`;
      expected += line;
      job.write(line);
      if (i % 20 === 0) await Bun.sleep(1);
    }
    job.end(true);
    for (const follower of followers) expect(await follower).toBe(expected);
  });
});
