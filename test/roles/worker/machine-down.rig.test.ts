import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { JobSubmissionInput } from "../../../src/domain/job.ts";
import { bootId } from "../../../src/lib/system/process-identity.ts";
import { describeWith } from "../../runner/components.ts";
import { removeTree } from "../../runner/remove.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";
import { McpCalls } from "./mcp-calls.ts";
import type { Death } from "./mortal.ts";
import { countingCall, diesOver } from "./warm-death.ts";

/** What a worker is started with after its machine was. */
const ENTER = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"';

/** A worker's directory on a machine that goes down, with what was not flushed. */
class Machine {
  readonly worker = new WorkerHarness();
  readonly file = path.join(this.worker.directory, "counted");
  readonly #boot = path.join(this.worker.directory, "boot-id");

  constructor() {
    fs.writeFileSync(this.#boot, `${[...bootId()].reverse().join("")}\n`);
  }

  /** The worker of the first start. */
  first(death: Death): WorkerHarness {
    return new WorkerHarness({ death }, this.worker.directory);
  }

  /** One of the next start. */
  next(death: Death | null = null): WorkerHarness {
    return new WorkerHarness({ death }, this.worker.directory, ["unshare", "--mount", "sh", "-c", ENTER, this.#boot]);
  }

  get jobId(): string {
    const [id, ...more] = fs.readdirSync(this.worker.spoolDir).filter((name) => name.startsWith("job_"));
    if (id === undefined || more.length > 0) throw new Error("there is not one job");
    return id;
  }

  get count(): number {
    return fs.existsSync(this.file) ? fs.statSync(this.file).size : 0;
  }

  /** When the shim of the call has come to its end: what it had not flushed, a crash of the machine may take. */
  async goesDown(...names: readonly string[]): Promise<void> {
    const directory = this.worker.attemptDir(this.jobId);
    await eventually(() => fs.existsSync(path.join(directory, "exit.json")), { what: "the end of the call" });
    if (names.length === 0) removeTree(path.dirname(directory));
    for (const name of names) fs.rmSync(path.join(directory, name));
  }
}

describeWith(["tmpfs"], "a machine that goes down over a call of a kept server", () => {
  test.each<[string, Death]>([
    ["that was made, and not recorded", { call: "startAttempt", when: "before" }],
    ["that was prepared, and given to nobody", { call: "keep", when: "after" }],
  ])("%s, has it made no second time", async (_what, death) => {
    const machine = new Machine();
    await using _first = machine.worker;
    if (death.call === "startAttempt") fs.writeFileSync(`${machine.file}.hold`, "");
    expect(await diesOver(countingCall(machine.file), machine.first(death))).toBe("SIGKILL");
    fs.rmSync(`${machine.file}.hold`, { force: true });
    if (death.call === "startAttempt") await machine.goesDown();
    else removeTree(path.join(machine.worker.spoolDir, machine.jobId));
    const made = machine.count;
    // One that dies before it has said what it found leaves that to the next.
    expect(await diesOver(countingCall(machine.file), machine.next({ call: "settle", when: "before" }))).toBe("SIGKILL");
    await using worker = machine.next();
    await worker.start();
    const { job_id } = await worker.client.submit(countingCall(machine.file));
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", outcome: { reason: "outcome_unknown", residual: [] }, attempts: 1 });
    expect(machine.count).toBe(made);
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
  });

  test("has its result where that was left", async () => {
    const machine = new Machine();
    await using _first = machine.worker;
    expect(await diesOver(countingCall(machine.file), machine.first({ call: "settle", when: "before" }))).toBe("SIGKILL");
    await machine.goesDown("process.json");
    await using worker = machine.next();
    await worker.start();
    const { job_id } = await worker.client.submit(countingCall(machine.file));
    expect(await new McpCalls(worker).text(job_id)).toBe("counted");
    expect(machine.count).toBe(1);
  });

  test.each(["exit.json", "mcp-result.json"])("knows no end of it where %s is torn", async (torn) => {
    const machine = new Machine();
    await using _first = machine.worker;
    expect(await diesOver(countingCall(machine.file), machine.first({ call: "settle", when: "before" }))).toBe("SIGKILL");
    await machine.goesDown("process.json", torn);
    fs.writeFileSync(path.join(machine.worker.attemptDir(machine.jobId), torn), "");
    await using worker = machine.next();
    await worker.start();
    const { job_id } = await worker.client.submit(countingCall(machine.file));
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "failed", outcome: { reason: "outcome_unknown" }, attempts: 1 });
    expect(machine.count).toBe(1);
  });
});

describeWith(["tmpfs"], "a machine that goes down over a command", () => {
  test("that had not begun runs it", async () => {
    const machine = new Machine();
    await using _first = machine.worker;
    const spec = { argv: ["sh", "-c", `printf x >> ${machine.file}`] };
    const command = { cluster: "local", kind: "command", idempotency_key: "once", spec } as JobSubmissionInput;
    expect(await diesOver(command, machine.first({ call: "launch", when: "before" }))).toBe("SIGKILL");
    removeTree(path.join(machine.worker.spoolDir, machine.jobId));
    await using worker = machine.next();
    await worker.start();
    const { job_id } = await worker.client.submit(command);
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "succeeded", attempts: 2 });
    expect(machine.count).toBe(1);
  });
});
