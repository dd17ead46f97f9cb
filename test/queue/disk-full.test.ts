import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { isRelayError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import type { QueueStore } from "../../src/queue/store.ts";
import { ManualClock } from "../contract/queue-store/manual-clock.ts";
import { command, endpointOf, ROOMY, refused, settlement } from "../contract/queue-store/scene.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

const OPTIONS = { clock: systemClock, activeJobsMax: 1_000_000, leaseSeconds: 120 };

/** A file system of its own with room for this many KiB. */
function smallDisk(kib: number): Disposable & { readonly path: string } {
  const directory = temporaryDirectory();
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${kib}k`, "tmpfs", directory.path]);
  if (mounted.status !== 0) throw new Error(`mount: ${mounted.stderr.toString()}`);
  return {
    path: directory.path,
    [Symbol.dispose]() {
      spawnSync("umount", [directory.path]);
      directory[Symbol.dispose]();
    },
  };
}

/** Fill the disk up to its last `left` KiB. Returns the way to free it again. */
function fill(directory: string, left: number): () => void {
  const file = path.join(directory, "ballast");
  const { bavail, bsize } = fs.statfsSync(directory);
  fs.writeFileSync(file, Buffer.alloc(Math.max(0, bavail * bsize - left * 1_024)));
  return () => fs.rmSync(file);
}

/** Submit large jobs until one is refused. Returns the ids of those that were taken. */
async function submitUntilRefused(store: QueueStore): Promise<string[]> {
  const submission = command({ metadata: { blob: "x".repeat(20_000) } });
  const taken: string[] = [];
  for (let i = 0; i < 10_000; i++) {
    try {
      taken.push((await store.submit(submission, "workload")).job.job_id);
    } catch (error) {
      if (!isRelayError(error, "storage_admission_refused")) throw error;
      return taken;
    }
  }
  throw new Error("the disk never became full");
}

describeWith("tmpfs", "a full disk", () => {
  test("refuses what has no room, keeps what was taken, and goes on when there is room again", async () => {
    using disk = smallDisk(8_192);
    const directory = path.join(disk.path, "core");
    let store = openQueue(directory, OPTIONS);
    const free = fill(disk.path, 512);
    const taken = await submitUntilRefused(store);
    expect(taken.length).toBeGreaterThan(0);
    await refused(store.submit(command({ metadata: { blob: "x".repeat(20_000) } }), "workload"), "storage_admission_refused");
    for (const id of taken) expect((await store.job(id)).state).toBe("queued");
    expect((await store.stats()).active).toBe(taken.length);

    free();
    const after = await store.submit(command(), "workload");
    expect((await store.stats()).active).toBe(taken.length + 1);
    expect((await store.audit({ deep: true })).findings).toEqual([]);
    await store.close();
    store = openQueue(directory, OPTIONS);
    for (const id of [...taken, after.job.job_id]) expect((await store.job(id)).state).toBe("queued");
    expect((await store.audit({ deep: true })).findings).toEqual([]);
    await store.close();
  });

  test("refuses everybody in a batch alike, and leaves nothing of it", async () => {
    using disk = smallDisk(8_192);
    const store = openQueue(path.join(disk.path, "core"), OPTIONS);
    const { job } = await store.submit(command(), "workload");
    const free = fill(disk.path, 256);
    const big = () => store.submit(command({ metadata: { blob: "y".repeat(200_000) } }), "workload");
    const results = await Promise.allSettled([
      store.appendEvents(job.job_id, [{ event_type: "execution.adopted", message: "in the same batch" }]),
      ...Array.from({ length: 8 }, big),
    ]);
    const kept = results.filter(({ status }) => status === "fulfilled").length;
    for (const result of results) {
      if (result.status === "rejected") expect(isRelayError(result.reason, "storage_admission_refused")).toBe(true);
    }
    expect(kept).toBeLessThan(results.length);
    expect((await store.stats()).active).toBe(1 + results.slice(1).filter(({ status }) => status === "fulfilled").length);
    free();
    expect((await store.audit({ deep: true })).findings).toEqual([]);
    await store.appendEvents(job.job_id, [{ event_type: "execution.adopted", message: "afterwards" }]);
    expect((await store.audit({ deep: true })).findings).toEqual([]);
    await store.close();
  });

  test("an attempt that could not be settled can be settled later", async () => {
    using disk = smallDisk(8_192);
    const clock = new ManualClock();
    const store = openQueue(path.join(disk.path, "core"), { ...OPTIONS, clock });
    await store.registerEndpoint(endpointOf("endpoint_1", clock));
    const { job } = await store.submit(command(), "workload");
    await store.claim("endpoint_1", ROOMY);
    const free = fill(disk.path, 512);
    await submitUntilRefused(store);
    const fence = { job_id: job.job_id, attempt: 1 };
    const events = [{ event_type: "execution.timeout" as const, message: "x", payload: { blob: "z".repeat(200_000) } }];
    await refused(store.settle(fence, settlement(clock, "completed", { events })), "storage_admission_refused");
    expect((await store.job(job.job_id)).state).toBe("leased");
    free();
    expect((await store.settle(fence, settlement(clock, "completed", { events }))).state).toBe("succeeded");
    expect((await store.audit({ deep: true })).findings).toEqual([]);
    await store.close();
  });

  test("a queue that has no room to be made is refused, and leaves nothing that looks like one", () => {
    using disk = smallDisk(1_024);
    const directory = path.join(disk.path, "core");
    const free = fill(disk.path, 24);
    let error: unknown;
    try {
      openQueue(directory, OPTIONS);
    } catch (thrown) {
      error = thrown;
    }
    expect(isRelayError(error, "storage_admission_refused")).toBe(true);
    expect(fs.existsSync(path.join(directory, "queue.db"))).toBe(false);
    free();
    void openQueue(directory, OPTIONS).close();
    expect(fs.readdirSync(directory).toSorted()).toEqual(["committed.json", "queue.db"]);
  });
});
