import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { InputClient } from "../../../src/api/client/input-client.ts";
import { isRelayError } from "../../../src/domain/errors.ts";
import { isAlive } from "../../../src/lib/system/process-identity.ts";
import { auditOffline } from "../../../src/roles/worker/offline.ts";
import { fillInodes, fillUp, smallFileSystems } from "../../execution/tmpfs.ts";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";

const reasonOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "accepted",
    (error: unknown) => (isRelayError(error) ? error.code : String(error)),
  );

describeWith("tmpfs", "a full disk", () => {
  const small = smallFileSystems();

  /** A worker whose `part` (core or spool) lies on a small file system. */
  function withSmall(part: "core" | "spool", size: string): { worker: WorkerHarness; disk: string } {
    const disk = small(size);
    const worker = new WorkerHarness({ [`${part}Dir`]: path.join(disk, part), limits: { minFreeBytes: 0 } });
    return { worker, disk };
  }

  test("as state: submissions are refused with a type, nothing is torn, the running job goes on and ends", async () => {
    const { worker: made, disk } = withSmall("core", "4m");
    await using worker = made;
    await worker.start();
    const release = path.join(worker.directory, "release");
    const { job_id } = await worker.shell(`echo before; while [ ! -e ${release} ]; do sleep 0.05; done; echo after`);
    await worker.running(job_id);
    const ballast = fillUp(disk);

    let refused = "accepted";
    const accepted: string[] = [];
    for (let i = 0; i < 200 && refused === "accepted"; i++) {
      refused = await reasonOf(
        worker.submit({ argv: ["true"], env: { PADDING: "x".repeat(50_000) } }).then((job) => accepted.push(job.job_id)),
      );
    }
    expect(refused).toBe("storage_admission_refused");

    fs.writeFileSync(release, "");
    await eventually(() => fs.readFileSync(path.join(worker.attemptDir(job_id), "stdout.log"), "utf8") === "before\nafter\n");
    fs.rmSync(ballast);
    const { job } = await worker.ended(job_id);
    expect(job.state).toBe("succeeded");
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
    for (const id of accepted) expect((await worker.ended(id)).job.state).toBe("succeeded");
    expect(await worker.drain()).toBe(0);
    expect(await auditOffline(worker.coreDir)).toMatchObject({ ok: true, findings: [], checked: { leases: 0 } });
  });

  test("as spool: a piece of an input is refused whole, what came is kept, and the upload goes on when there is room", async () => {
    const { worker: made, disk } = withSmall("spool", "4m");
    await using worker = made;
    await worker.start();
    const client = new InputClient("local", worker.client.http);
    const data = Buffer.alloc(1_500_000, "0123456789");
    const key = { sha256: new Bun.CryptoHasher("sha256").update(data).digest("hex"), size_bytes: data.length };
    const put = (from: number, to: number) => client.put(key, from, data.subarray(from, to), AbortSignal.timeout(10_000));
    expect(await reasonOf(client.begin({ ...key, size_bytes: 5_000_000 }))).toBe("storage_admission_refused");
    await client.begin(key);
    await put(0, 500_000);
    const ballast = fillUp(disk, 100_000);
    expect(await reasonOf(put(500_000, 1_500_000))).toBe("storage_admission_refused");
    expect(await client.query([key])).toMatchObject([{ state: "partial", offset: 500_000 }]);
    fs.rmSync(ballast);
    expect(await put(500_000, 1_500_000)).toMatchObject({ state: "complete" });
  });

  test.each([0, 1])(
    "as spool, full to the last byte: a job that waits for room says so, and starts when there is some (%d spares)",
    async (spares) => {
      const disk = small("1m");
      await using worker = new WorkerHarness({ spoolDir: path.join(disk, "spool"), limits: { minFreeBytes: 0 }, spares });
      await worker.start();
      const { job_id: first } = await worker.shell("true");
      await worker.ended(first);
      const ballast = fillUp(disk);
      const { job_id } = await worker.shell("echo ran");
      const obstacle = await eventually(async () => (await worker.client.status(job_id)).obstacle);
      expect(obstacle).toMatch(/no room left|bytes free/);
      const delays = async () => (await worker.events(job_id)).filter(({ event_type }) => event_type === "execution.delayed");
      await eventually(async () => (await delays()).length > 0);
      fs.rmSync(ballast);
      const { job, obstacle: after } = await worker.ended(job_id);
      expect([job.state, after]).toEqual(["succeeded", null]);
      for (const { message } of await delays()) expect(message).toContain("has not started yet");
    },
  );

  test("as spool, without a name left: a job whose end cannot be recorded says so, and ends as it ended when there is room", async () => {
    const disk = small("4m,nr_inodes=1500");
    await using worker = new WorkerHarness({ spoolDir: path.join(disk, "spool"), limits: { minFreeBytes: 0 }, spares: 0 });
    await worker.start();
    const release = path.join(worker.directory, "release");
    const { job_id } = await worker.shell(`while [ ! -e ${release} ]; do sleep 0.05; done; echo done`);
    await worker.running(job_id);
    const fillers = fillInodes(disk);
    fs.writeFileSync(release, "");
    const obstacle = await eventually(async () => (await worker.client.status(job_id)).obstacle);
    expect(obstacle).toContain("cannot record the end: ENOSPC");
    for (const file of fillers) fs.rmSync(file);
    const { job, obstacle: after } = await worker.ended(job_id);
    expect([job.state, after]).toEqual(["succeeded", null]);
    expect(await worker.stdout(job_id)).toBe("done\n");
  });

  test("as spool: the job's output is cut and counted, its end is recorded, and the worker goes on", async () => {
    const { worker: made, disk } = withSmall("spool", "1m");
    await using worker = made;
    await worker.start();
    const { job_id } = await worker.shell("head -c 3000000 /dev/zero; echo done >&2; exit 4");
    await worker.running(job_id);
    const { job, logs } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", outcome: { reason: "exit_nonzero", exit_code: 4 } });
    const { capture, size_bytes } = logs.find((log) => log.stream === "stdout")!;
    expect(capture).toMatchObject({ observed: 3_000_000, truncated: "disk_full", complete: true });
    expect(capture!.kept + capture!.dropped).toBe(3_000_000);
    expect(size_bytes).toBe(capture!.kept);
    expect((await worker.events(job_id)).map((e) => e.event_type)).toContain("stdout.truncated");

    fs.rmSync(path.join(worker.attemptDir(job_id), "stdout.log"));
    expect(fs.statfsSync(disk).bavail).toBeGreaterThan(0);
    const next = await worker.shell("echo again");
    await worker.ended(next.job_id);
    expect(await worker.stdout(next.job_id)).toBe("again\n");
    expect(await worker.drain()).toBe(0);
    expect(await auditOffline(worker.coreDir)).toMatchObject({ ok: true, findings: [], checked: { leases: 0 } });
  });

  test("as spool: a running job can be cancelled, and a worker starts and answers", async () => {
    const { worker: made, disk } = withSmall("spool", "1m");
    await using worker = made;
    await worker.start();
    const { job_id } = await worker.shell("sleep 600");
    const { attempt } = await worker.running(job_id);
    fillUp(disk);
    await worker.kill();
    await worker.start();
    await worker.client.cancel(job_id);
    await eventually(() => !isAlive(attempt!.process!), { what: "the end of the job's process" });
    fs.rmSync(path.join(disk, "ballast"));
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "canceled", attempts: 1 });
  });

  test("below the reserve: submissions are refused before anything is written", async () => {
    const disk = small("8m");
    await using worker = new WorkerHarness({ spoolDir: path.join(disk, "spool"), limits: { minFreeBytes: 4 * 1024 * 1024 } });
    await worker.start();
    const first = await worker.shell("true");
    await worker.ended(first.job_id);
    fillUp(disk, 3 * 1024 * 1024);
    const before = (await worker.client.queue({ include_terminal: true })).source_total;
    expect(await reasonOf(worker.shell("true"))).toBe("storage_admission_refused");
    expect((await worker.client.queue({ include_terminal: true })).source_total).toBe(before);
  });
});
