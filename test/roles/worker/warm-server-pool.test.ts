import { expect, test } from "bun:test";
import type { McpReuse } from "../../../src/domain/mcp-call.ts";
import type { ShimProcess } from "../../../src/execution/launcher.ts";
import { WarmServers } from "../../../src/roles/worker/engines/mcp/warm-servers.ts";

const REUSE: McpReuse = { idle_seconds: 60, max_calls: 3, max_memory_bytes: Number.MAX_SAFE_INTEGER };

/** A shim that only notes what it is told. */
class Told implements ShimProcess {
  readonly pid = process.pid;
  readonly lines: string[] = [];
  dismissed = false;
  readonly #end = Promise.withResolvers<void>();
  readonly exited = this.#end.promise;
  lives = true;

  async say(line: string): Promise<boolean> {
    if (this.lives) this.lines.push(line);
    return this.lives;
  }

  tell = this.say;

  dismiss(): void {
    this.dismissed = true;
  }

  kill(): void {
    this.lives = false;
    this.#end.resolve();
  }
}

function pool() {
  const shims: Told[] = [];
  const clocks: { ms: number; run: (() => void) | null }[] = [];
  const timers = {
    after(ms: number, run: () => void) {
      const clock: (typeof clocks)[number] = { ms, run };
      clocks.push(clock);
      return () => {
        clock.run = null;
      };
    },
  };
  const keep = async (args: readonly string[]) => {
    expect(args).toEqual(["__mcp-pool", "/spool"]);
    const shim = new Told();
    shims.push(shim);
    return shim;
  };
  return { shims, clocks, warm: new WarmServers({ keep }, "/spool", timers) };
}

test("one call at a time, of the same key, as often as it may be", async () => {
  const { shims, warm } = pool();
  const first = await warm.launch("a", "/1");
  const second = await warm.launch("a", "/2");
  expect(shims.map(({ lines }) => lines)).toEqual([["/1"], ["/2"]]);
  first.release(REUSE);
  first.release(REUSE);
  await first.exited;
  const third = await warm.launch("a", "/3");
  (await warm.launch("b", "/4")).release(REUSE);
  expect(shims.map(({ lines }) => lines)).toEqual([["/1", "/3"], ["/2"], ["/4"]]);
  third.release(REUSE);
  (await warm.launch("a", "/5")).release(REUSE);
  expect(shims[0]).toMatchObject({ lines: ["/1", "/3", "/5"], dismissed: true });
  second.release(null);
  expect(shims.map(({ dismissed }) => dismissed)).toEqual([true, true, false]);
});

test("who has waited long enough, or longest of too many, is let go of", async () => {
  const { shims, clocks, warm } = pool();
  (await warm.launch("a", "/1")).release(REUSE);
  expect(clocks.at(-1)!.ms).toBe(60_000);
  clocks.at(-1)!.run!();
  expect(shims[0]!.dismissed).toBe(true);
  for (let at = 0; at < 9; at++) (await warm.launch(`k${at}`, `/k${at}`)).release(REUSE);
  expect(shims.slice(1).map(({ dismissed }) => dismissed)).toEqual([true, ...Array(8).fill(false)]);
  // Nothing of it goes on by a clock of before.
  (await warm.launch("k8", "/again")).release(REUSE);
  expect(clocks.filter(({ run }) => run !== null)).toHaveLength(8);
});

test("one that has ended, or takes no word any more, is passed over", async () => {
  const { shims, warm } = pool();
  const first = await warm.launch("a", "/1");
  first.release(REUSE);
  shims[0]!.kill();
  await shims[0]!.exited;
  (await warm.launch("a", "/2")).release(REUSE);
  shims[1]!.lives = false;
  const third = await warm.launch("a", "/3");
  expect(shims.map(({ lines }) => lines)).toEqual([["/1"], ["/2"], ["/3"]]);
  // An attempt of one that ends before it has claimed it is over at once.
  shims[2]!.kill();
  await third.exited;
  expect(shims).toHaveLength(3);
});
