import path from "node:path";
import { followedLines } from "../followed-lines.ts";
import { install } from "../installation.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { bareFollow } from "../yardsticks/bare-follow.ts";

const WRITER = `
const lines = Number(process.argv[2]);
const fs = require("node:fs");
for (let i = 0; i < lines; i++) {
  await Bun.sleep(2.5 + Math.random() * 5);
  fs.writeSync(1, (performance.timeOrigin + performance.now()) + "\\n");
}
`;

/** From a job's write of a line until a follower behind the desktop has it. */
export const row: Row = {
  name: "follow",
  async run(context: BenchContext): Promise<Result[]> {
    const lines = Math.ceil(600 * context.scale);
    const bare = await bareFollow(lines);
    await using relay = await install(context);
    const script = path.join(context.directory, "writer.ts");
    await Bun.write(script, WRITER);
    const job = await relay.worker.submit({
      cluster: "local",
      kind: "command",
      spec: { argv: [context.executable, script, String(lines)], env: { BUN_BE_BUN: "1" }, workdir: "/" },
    });
    const response = await relay.desktop.logContent(job.job_id, "stdout", { follow: true });
    const ours = await followedLines(response, lines);
    return [
      {
        name: "write to follower, p99",
        unit: "ms",
        yardstick: { name: "bare inotify reader", value: bare.latency.p99 },
        ours: ours.p99,
        target: { atMost: 30 },
      },
      {
        name: "write to follower, p50",
        unit: "ms",
        yardstick: { name: "bare inotify reader", value: bare.latency.p50 },
        ours: ours.p50,
        target: null,
      },
    ];
  },
};
