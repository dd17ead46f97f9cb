import type { BenchContext, Result, Row } from "../row.ts";
import { bareSpawn } from "../yardsticks/bare-spawn.ts";
import { latencyOf } from "../yardsticks/latency.ts";

/** Milliseconds until the executable has printed its version and ended. */
async function timeVersion(executable: string): Promise<number> {
  const begin = performance.now();
  const child = Bun.spawn([executable, "--version"], { stdin: "ignore", stdout: "pipe", stderr: "inherit", env: {} });
  const text = await new Response(child.stdout).text();
  const elapsed = performance.now() - begin;
  if ((await child.exited) !== 0 || !/^\d+\.\d+\.\d+/.test(text)) throw new Error(`--version printed ${JSON.stringify(text)}`);
  return elapsed;
}

/** What a command costs before it does anything: the executable's size and its imports show here. */
export const row: Row = {
  name: "start-up",
  async run({ executable, bun, scale }: BenchContext): Promise<Result[]> {
    const runs = Math.ceil(60 * scale);
    const bare = await bareSpawn(runs, bun);
    await timeVersion(executable);
    const samples: number[] = [];
    for (let i = 0; i < runs; i++) samples.push(await timeVersion(executable));
    const ours = latencyOf(samples);
    return [
      {
        name: "start-up: --version, p50",
        unit: "ms",
        yardstick: { name: "compiled hello", value: bare.hello.p50 },
        ours: ours.p50,
        target: { ratioAtMost: 2 },
      },
    ];
  },
};
