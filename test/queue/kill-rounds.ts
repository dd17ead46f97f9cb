import { expect } from "bun:test";
import path from "node:path";
import { self } from "../../src/lib/system/process-identity.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { type OwnedQueue, openOwnedQueue } from "../../src/queue/owned-queue.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

/** Own and open a queue as a worker does; damage is refused. */
export const ownQueue = (directory: string): OwnedQueue =>
  openOwnedQueue(directory, {
    ownership: { identity: self(), endpointId: "endpoint_me", takeOver: false, confirmHostDead: false, clock: systemClock },
    queue: { clock: systemClock, activeJobsMax: 1_000_000, leaseSeconds: 120 },
    repair: false,
  });

/**
 * Kill an owner that writes, again and again, at moments of no particular place. The next owner takes over what was left, or somebody looks first and
 * closes it in order: nobody is ever refused, and nothing that was acknowledged is gone.
 */
export async function killRounds(rounds: number): Promise<void> {
  using directory = temporaryDirectory();
  const acknowledged: string[] = [];
  for (let round = 1; round <= rounds; round++) {
    acknowledged.push(...(await killedInTheMiddle(directory.path)));
    if (Math.random() < 0.5 && round < rounds) continue;
    const queue = ownQueue(directory.path);
    for (const id of acknowledged) expect((await queue.store.job(id)).state).toBe("queued");
    expect((await queue.store.audit({ deep: true })).findings).toEqual([]);
    await queue.close();
  }
  expect(new Set(acknowledged).size).toBe(acknowledged.length);
}

/** The ids that a process had acknowledged when it was killed. */
async function killedInTheMiddle(directory: string): Promise<string[]> {
  const child = Bun.spawn([process.execPath, path.join(import.meta.dir, "submitting-child.ts"), directory, "0", "die"], {
    stdout: "pipe",
    stderr: "inherit",
  });
  // After so many acknowledgements and a fraction of a commit.
  const enough = 1 + Math.floor(Math.random() * 200);
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
  return ids;
}
