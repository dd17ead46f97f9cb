import { afterEach } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import {
  type AttemptPlan,
  attemptDirectory,
  eventsDirectory,
  prepareAttempt,
  readExit,
  readProcess,
  readStart,
} from "../../src/execution/attempt-dir.ts";
import { SHIM_ENVIRONMENT } from "../../src/execution/direct-spawner.ts";
import { findJob } from "../../src/execution/processes.ts";
import { attemptMark, type ExitRecord, type ProcessRecord } from "../../src/execution/spool-records.ts";
import { eventually } from "../runner/wait.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));

/** The relay's command when it runs from source. */
export const FROM_SOURCE: readonly string[] = [process.execPath, path.join(ROOT, "src/main.ts")];

/** Where the spare shims of a test process write their claims. */
export const SPARE_SPOOL = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-spares-"));
process.on("exit", () => fs.rmSync(SPARE_SPOOL, { recursive: true, force: true }));

export interface PlanOverrides extends Partial<Omit<AttemptPlan, "quota">> {
  readonly quota?: Partial<AttemptPlan["quota"]>;
}

/** One attempt in a directory of its own, prepared as a worker does it. */
export class TestAttempt {
  readonly jobDir: string;
  readonly directory: string;
  readonly workdir: string;
  readonly jobId: string;
  readonly attempt = 1;
  shim: Bun.Subprocess | null = null;

  constructor(
    readonly root: string,
    argv: readonly string[],
    overrides: PlanOverrides = {},
    private readonly command: readonly string[] = FROM_SOURCE,
  ) {
    this.jobId = `job_${crypto.randomUUID().replaceAll("-", "")}`;
    this.jobDir = path.join(root, "spool", this.jobId);
    this.directory = attemptDirectory(this.jobDir, this.attempt);
    this.workdir = path.join(root, "work");
    fs.mkdirSync(this.workdir, { recursive: true });
    prepareAttempt(this.directory, {
      job_id: this.jobId,
      attempt: this.attempt,
      cluster: "test",
      argv,
      workdir: this.workdir,
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", CLIO_RELAY_EVENTS: eventsDirectory(this.directory) },
      login: false,
      env_setup: null,
      timeout_seconds: null,
      cancel_grace_seconds: 1,
      ...overrides,
      quota: { stream_bytes: 64 * 1024 * 1024, job_bytes: 128 * 1024 * 1024, used: { stdout: 0, stderr: 0 }, ...overrides.quota },
    });
  }

  get mark(): string {
    return attemptMark(this.jobId, this.attempt);
  }

  /** Start a shim on it, as a launcher does. */
  start(): Bun.Subprocess {
    this.shim = Bun.spawn([...this.command, "__shim", this.directory], {
      cwd: "/",
      env: { ...SHIM_ENVIRONMENT },
      stdin: "ignore",
      stdout: "ignore",
      stderr: Bun.file(this.file("shim.err")),
      detached: true,
    });
    return this.shim;
  }

  /** Start a shim and wait for its end. */
  async run(): Promise<ExitRecord> {
    this.start();
    return this.exit();
  }

  /** The exit record, once the shim has ended. */
  async exit(): Promise<ExitRecord> {
    const code = await this.shim?.exited;
    const record = readExit(this.directory);
    if (record === null || record === "torn") {
      throw new Error(
        `the shim ended with ${code} and left ${String(record)} as exit.json: ${this.text("shim.err")}${this.text("shim.log")}`,
      );
    }
    return record;
  }

  /** The record of the first process, once it is there. */
  started(): Promise<ProcessRecord> {
    return eventually(() => readProcess(this.directory), { what: "process.json", everyMs: 5 });
  }

  /** Wait until the job has written this to its standard output. */
  output(text: string): Promise<true> {
    return eventually(() => this.text("stdout.log").includes(text) || null, { what: `${JSON.stringify(text)} in stdout`, everyMs: 5 });
  }

  file(name: string): string {
    return path.join(this.directory, name);
  }

  bytes(name: string): Buffer {
    return fs.readFileSync(this.file(name));
  }

  /** A file's text, empty where there is none. */
  text(name: string): string {
    return fs.existsSync(this.file(name)) ? this.bytes(name).toString("utf8") : "";
  }

  json(name: string): Record<string, unknown> {
    return JSON.parse(this.text(name)) as Record<string, unknown>;
  }

  /** Processes of the job that run now. */
  processes(): number[] {
    const record = readProcess(this.directory);
    return findJob({ mark: this.mark, process: record?.process ?? null, cgroup: null }).owned.map(({ pid }) => pid);
  }

  /** Kill what is left of it. */
  async dispose(): Promise<void> {
    this.shim?.kill("SIGKILL");
    await this.shim?.exited;
    const start = readStart(this.directory);
    if (start !== null && start !== "torn" && start.claimed_by === "shim") killQuietly(start.shim.pid, start.shim.start_time);
    await eventually(
      () => {
        const left = this.processes();
        for (const pid of left) killQuietly(pid, null);
        return left.length === 0;
      },
      { what: `the end of ${this.mark}` },
    );
  }
}

function killQuietly(pid: number, startTime: number | null): void {
  try {
    if (startTime !== null) {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
      if (Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]) !== startTime) return;
    }
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone.
  }
}

/** Call it at the top of a test file: returns a maker of attempts that are ended and removed after each test. */
export function testAttempts(
  command?: readonly string[],
): (argv: readonly string[], overrides?: PlanOverrides, root?: string) => TestAttempt {
  const made: { attempt: TestAttempt; owned: boolean }[] = [];
  afterEach(async () => {
    for (const { attempt, owned } of made.splice(0)) {
      await attempt.dispose();
      if (owned) fs.rmSync(attempt.root, { recursive: true, force: true });
    }
  });
  return (argv, overrides, root) => {
    const attempt = new TestAttempt(root ?? fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-shim-")), argv, overrides, command);
    made.push({ attempt, owned: root === undefined });
    return attempt;
  };
}

/** A job that is a shell script. */
export const sh = (script: string): string[] => ["/bin/sh", "-c", script];
export const bash = (script: string): string[] => ["/bin/bash", "-c", script];
