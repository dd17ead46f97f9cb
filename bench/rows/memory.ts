import fs from "node:fs";
import { eventually } from "../../test/runner/wait.ts";
import { install, residentBytes } from "../installation.ts";
import type { BenchContext, Result, Row } from "../row.ts";

const MB = 1_000_000;
const LOG_BYTES = 1024 * 1024 * 1024;

/** Largest resident set seen while `work` runs, in bytes. */
async function peakDuring(pid: number, work: () => Promise<void>): Promise<number> {
  let peak = residentBytes(pid);
  const timer = setInterval(() => {
    peak = Math.max(peak, residentBytes(pid));
  }, 20);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return Math.max(peak, residentBytes(pid));
}

async function drain(response: Response): Promise<number> {
  let bytes = 0;
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) bytes += piece.length;
  return bytes;
}

/** Resident sets of the processes that are always there, and while a log of 1 GiB goes through them. */
export const row: Row = {
  name: "memory",
  async run(context: BenchContext): Promise<Result[]> {
    const quota = String(2 * LOG_BYTES);
    await using relay = await install(context, { CLIO_RELAY_LOG_STREAM_MAX_BYTES: quota, CLIO_RELAY_LOG_JOB_MAX_BYTES: quota });
    const size = Math.ceil(LOG_BYTES * Math.min(1, context.scale));
    const submit = (argv: string[]) => relay.worker.submit({ cluster: "local", kind: "command", spec: { argv, workdir: "/" } });

    const quiet = await submit(["sleep", "1000"]);
    const shim = await eventually(async () => {
      const { attempt } = await relay.worker.status(quiet.job_id);
      if (attempt?.shim == null) throw new Error("not started");
      return attempt.shim.pid;
    });
    await Bun.sleep(3_000);
    const desktop = await relay.desktopPid();
    const idle = { worker: residentBytes(relay.workerPid), desktop: residentBytes(desktop), shim: residentBytes(shim) };
    await relay.worker.cancel(quiet.job_id);

    let followed = 0;
    let reread = 0;
    const growth = { worker: 0, desktop: 0 };
    growth.desktop = -idle.desktop;
    growth.worker = -idle.worker;
    const work = async () => {
      const job = await submit(["head", "-c", String(size), "/dev/zero"]);
      followed = await drain(await relay.desktop.logContent(job.job_id, "stdout", { follow: true }));
      reread = await drain(await relay.desktop.logContent(job.job_id, "stdout"));
    };
    let desktopPeak = 0;
    const workerPeak = await peakDuring(relay.workerPid, async () => {
      desktopPeak = await peakDuring(desktop, work);
    });
    if (followed !== size || reread !== size) throw new Error(`followed ${followed}, read ${reread} of ${size} bytes`);
    growth.worker += workerPeak;
    growth.desktop += desktopPeak;
    const anonymous = (pid: number) =>
      Number(/^RssAnon:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN) * 1024;
    return [
      { name: "idle worker, resident", unit: "MB", yardstick: null, ours: idle.worker / MB, target: { atMost: 90 } },
      { name: "idle desktop, resident", unit: "MB", yardstick: null, ours: idle.desktop / MB, target: { atMost: 90 } },
      { name: "shim of a quiet job, resident", unit: "MB", yardstick: null, ours: idle.shim / MB, target: { atMost: 35 } },
      { name: "worker growth, following and reading 1 GiB", unit: "MB", yardstick: null, ours: growth.worker / MB, target: { atMost: 64 } },
      { name: "desktop growth, the same", unit: "MB", yardstick: null, ours: growth.desktop / MB, target: { atMost: 64 } },
      { name: "worker anonymous memory afterwards", unit: "MB", yardstick: null, ours: anonymous(relay.workerPid) / MB, target: null },
    ];
  },
};
