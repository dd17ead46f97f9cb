import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type Latency, latencyOf, wallClock } from "./latency.ts";

export interface BareFollow {
  /** From just before a line is appended by one process until another has read it. */
  readonly latency: Latency;
}

/**
 * What following a file costs without any relay: one process appends lines, another is woken by inotify(7) and
 * reads them. The floor under every figure about following a log.
 *
 * @param lines how many lines are appended
 * @param pauseMs mean pause between two lines
 */
export async function bareFollow(lines: number, pauseMs = 5): Promise<BareFollow> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "bare-follow-"));
  const file = path.join(directory, "log");
  fs.writeFileSync(file, "");
  const fd = fs.openSync(file, "r");
  let wake = Promise.withResolvers<void>();
  const watcher = fs.watch(directory, () => wake.resolve());
  const writer = Bun.spawn([process.execPath, import.meta.path, "--write", file, String(lines), String(pauseMs)], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
  });
  let dead = false;
  void writer.exited.then(() => {
    dead = true;
    wake.resolve();
  });
  try {
    const samples: number[] = [];
    const buffer = Buffer.alloc(64 * 1024);
    let offset = 0;
    let rest = "";
    while (samples.length < lines) {
      const wasDead = dead;
      wake = Promise.withResolvers<void>();
      const count = fs.readSync(fd, buffer, 0, buffer.length, offset);
      if (count === 0) {
        if (wasDead) throw new Error(`the writer ended after ${samples.length} of ${lines} lines`);
        await wake.promise;
        continue;
      }
      const now = wallClock();
      offset += count;
      const parts = (rest + buffer.toString("latin1", 0, count)).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) samples.push(now - Number(part));
    }
    return { latency: latencyOf(samples) };
  } finally {
    watcher.close();
    fs.closeSync(fd);
    writer.kill();
    await writer.exited;
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

async function write(file: string, lines: number, pauseMs: number): Promise<void> {
  const fd = fs.openSync(file, "a");
  await Bun.sleep(200);
  for (let i = 0; i < lines; i++) {
    fs.writeSync(fd, `${wallClock()}\n`);
    await Bun.sleep(pauseMs * (0.5 + Math.random()));
  }
  fs.closeSync(fd);
}

if (import.meta.main) {
  const [mode, file, lines, pauseMs] = process.argv.slice(2);
  if (mode === "--write" && file !== undefined) await write(file, Number(lines), Number(pauseMs));
  else console.log(JSON.stringify(await bareFollow(Number(mode ?? 500)), null, 2));
}
