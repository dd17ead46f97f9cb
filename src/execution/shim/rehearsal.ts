import fs from "node:fs";
import path from "node:path";
import type { Clock } from "../../lib/waiting/clock.ts";
import { type AttemptSpec, FILES, RECORD_VERSION } from "../spool-records.ts";
import { outcomeOf } from "./outcome.ts";
import { readSpecFile } from "./spec-file.ts";
import { startJob } from "./start-job.ts";
import { superviseJob } from "./supervise.ts";

const SPEC: AttemptSpec = {
  record_version: RECORD_VERSION,
  job_id: "rehearsal",
  attempt: 1,
  cluster: "rehearsal",
  argv: ["true"],
  workdir: "/",
  env: { PATH: "/usr/bin:/bin" },
  login: false,
  env_setup: null,
  timeout_seconds: null,
  quota: { stream_bytes: 1, job_bytes: 1, used: { stdout: 0, stderr: 0 } },
  cancel_grace_seconds: 0,
};

/**
 * Run true(1) as a job in a directory that is removed again: what runs for the first time in a process takes several times as long,
 * and a spare has the time. Nothing is flushed. Never throws; a rehearsal that fails costs an attempt its head start.
 *
 * @param spool where the directory is made, so that it is on the file system of the attempts
 */
export async function rehearse(spool: string, clock: Clock): Promise<void> {
  const directory = path.join(spool, `.rehearsal.${process.pid}.tmp`);
  try {
    fs.mkdirSync(directory, { mode: 0o700 });
    fs.writeFileSync(path.join(directory, FILES.spec), JSON.stringify(SPEC));
    const log = { note: () => undefined };
    const started = startJob(
      readSpecFile(directory),
      { directory, place: directory, clock, log, patienceMs: 0 },
      { process: { commit: () => true } },
    );
    const term = { received: false, promise: new Promise<void>(() => undefined) };
    const recorders = Object.values(started.recorders);
    const end = await superviseJob({ child: started.child, recorders, spec: SPEC, clock, term, isCancel: () => false, log });
    outcomeOf(end.cause, end.exit, SPEC, end.residual);
    for (const recorder of recorders) recorder.conclude();
    for (const fd of [...started.logs, ...started.pipes]) fs.closeSync(fd);
  } catch {
    // The attempt will say what is wrong.
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}
