import { afterEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isRelayError, type RelayError } from "../../../src/domain/errors.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { smallFileSystems } from "../../execution/tmpfs.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { WorkerHarness } from "./harness.ts";

const temporary = temporaryDirectories();

let worker: WorkerHarness | null = null;
afterEach(() => worker?.[Symbol.asyncDispose]());

async function start(options: Record<string, unknown> = {}): Promise<WorkerHarness> {
  worker = await new WorkerHarness(options).start();
  return worker;
}

async function refusal(promise: Promise<unknown>): Promise<RelayError> {
  const outcome = await promise.then(
    () => null,
    (error: unknown) => error,
  );
  if (!isRelayError(outcome)) throw new Error(`not refused: ${String(outcome)}`);
  return outcome;
}

const DAMAGES: Readonly<Record<string, (core: string) => void>> = {
  removed: (core) => fs.rmSync(core, { recursive: true }),
  replaced(core) {
    fs.renameSync(core, `${core}.aside`);
    fs.cpSync(`${core}.aside`, core, { recursive: true });
  },
  "without its queue file": (core) => fs.rmSync(path.join(core, "queue.db")),
};

describe("while the worker runs", () => {
  test("its spool is removed: it is made again, and jobs go on", async () => {
    const { spoolDir, shell, messages } = await bound(start());
    fs.rmSync(spoolDir, { recursive: true });
    const { job_id } = await shell("echo here");
    expect((await worker!.ended(job_id)).job.state).toBe("succeeded");
    expect(await worker!.stdout(job_id)).toBe("here\n");
    expect(fs.statSync(spoolDir).mode & 0o777).toBe(0o700);
    expect(messages()).toContain(`${spoolDir} was gone, and is made again`);
  });

  test("something else takes its spool's place: submissions are refused with what to do, known keys are answered, and it recovers", async () => {
    const { spoolDir, shell } = await bound(start());
    const first = await worker!.submit({ argv: ["true"] }, { idempotency_key: "k" });
    await worker!.ended(first.job_id);
    fs.renameSync(spoolDir, `${spoolDir}.aside`);
    fs.writeFileSync(spoolDir, "");
    const error = await refusal(shell("true"));
    expect(error).toMatchObject({
      code: "storage_admission_refused",
      data: { storage_decision: { allowed: false, reason: "scan_root_invalid", directory: "spool" } },
      hint: expect.stringContaining(spoolDir),
    });
    expect(await worker!.submit({ argv: ["true"] }, { idempotency_key: "k" })).toMatchObject({ job_id: first.job_id, existing: true });
    fs.rmSync(spoolDir);
    fs.renameSync(`${spoolDir}.aside`, spoolDir);
    const { job_id } = await shell("true");
    expect((await worker!.ended(job_id)).job.state).toBe("succeeded");
  });

  test("its spool is a link that leads nowhere any more: it is not made where nobody looks for it", async () => {
    const aside = temporary();
    const target = path.join(aside, "target");
    const link = path.join(aside, "spool");
    fs.mkdirSync(target);
    fs.symlinkSync(target, link);
    const { shell } = await bound(start({ spoolDir: link }));
    fs.rmSync(target, { recursive: true });
    expect(await refusal(shell("true"))).toMatchObject({
      code: "storage_admission_refused",
      data: { storage_decision: { reason: "scan_root_invalid", directory: "spool" } },
    });
    fs.mkdirSync(target);
    const { job_id } = await shell("true");
    expect((await worker!.ended(job_id)).job.state).toBe("succeeded");
  });

  test.each(Object.entries(DAMAGES))("its state is %s: nothing new is promised that a restart would not know", async (_how, damage) => {
    const { coreDir, shell } = await bound(start());
    damage(coreDir);
    const error = await refusal(shell("true"));
    expect(error).toMatchObject({ code: "queue_unavailable", message: expect.stringContaining(coreDir), hint: expect.any(String) });
    await eventually(async () => (await worker!.client.workers()).workers[0]!.lane_last_error?.includes(coreDir));
  });
});

describeWith("tmpfs", "a file system", () => {
  const small = smallFileSystems();

  test("without names to give: submissions are refused before anything is written", async () => {
    const disk = small(`4m,nr_inodes=${LIMITS.minFreeInodes + 100}`);
    const { shell } = await bound(start({ spoolDir: path.join(disk, "spool") }));
    const { job_id } = await shell("true");
    await worker!.ended(job_id);
    for (let i = 0; i < 100; i++) fs.writeFileSync(path.join(disk, `filler-${i}`), "");
    expect(await refusal(shell("true"))).toMatchObject({
      code: "storage_admission_refused",
      data: { storage_decision: { reason: "filesystem_free_reserve", directory: "spool", min_free_inodes: LIMITS.minFreeInodes } },
    });
    for (let i = 0; i < 100; i++) fs.rmSync(path.join(disk, `filler-${i}`));
    const next = await shell("true");
    expect((await worker!.ended(next.job_id)).job.state).toBe("succeeded");
  });
});

/** The parts of a harness that these tests use, as plain functions. */
async function bound(starting: Promise<WorkerHarness>) {
  const { spoolDir, coreDir } = await starting;
  return { spoolDir, coreDir, shell: (line: string) => worker!.shell(line), messages: () => worker!.messages };
}
