import { expect, test } from "bun:test";
import path from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

const ROUNDS = 8;

test("a process that is killed while it writes loses nothing that it had acknowledged", async () => {
  using directory = temporaryDirectory();
  const acknowledged: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const child = Bun.spawn([process.execPath, path.join(import.meta.dir, "submitting-child.ts"), directory.path, "0", "die"], {
      stdout: "pipe",
      stderr: "inherit",
    });
    // At a moment of no particular place: after so many acknowledgements and a fraction of a commit.
    const enough = 20 + Math.floor(Math.random() * 200);
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true });
      if (text.split("\n").length > enough && !child.killed) {
        await Bun.sleep(Math.random() * 3);
        child.kill("SIGKILL");
      }
    }
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
    const ids = text.split("\n").slice(0, -1);
    expect(ids.length).toBeGreaterThanOrEqual(enough);
    acknowledged.push(...ids);

    const store = openQueue(directory.path, { clock: systemClock, activeJobsMax: 1_000_000, leaseSeconds: 120 });
    for (const id of acknowledged) expect((await store.job(id)).state).toBe("queued");
    expect((await store.audit({ deep: true })).findings).toEqual([]);
    await store.close();
  }
  expect(new Set(acknowledged).size).toBe(acknowledged.length);
}, 60_000);
