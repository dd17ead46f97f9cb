import fs from "node:fs";
import { variable } from "../../config/environment.ts";
import { RelayError } from "../../domain/errors.ts";
import { tryLock } from "../../lib/files/file-lock.ts";
import { FEW_THREADS } from "../../lib/system/few-threads.ts";
import { PLAIN_COPIES } from "../../lib/system/plain-copies.ts";
import { startInBackground } from "../../roles/background.ts";
import { backgroundEnvironment } from "../../roles/background-environment.ts";
import { probe } from "../../roles/probe.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";

const WITHIN_MS = 60_000;
const ANSWER_MS = 2_000;
const POLL_MS = 50;

/**
 * Make sure that a worker of a cluster of this machine answers. Of several commands that want the same at once one starts it; the
 * others wait for it to answer.
 *
 * @param options as `worker run` takes them
 * @returns the process that this call started, which need not be the one that answers; null when it started none
 * @throws RelayError worker_not_running with what it said when it ended at once, observation_timeout when it does not answer in time
 */
export async function ensureWorker(io: CliIo, relay: Installation, name: string, options: readonly string[]): Promise<number | null> {
  const { paths } = relay;
  const log = paths.workerLog(name);
  const answers = (): Promise<boolean> =>
    probe(paths.workerSocket(name), ANSWER_MS).then(
      () => true,
      () => false,
    );
  const deadline = performance.now() + WITHIN_MS;
  while (!(await answers())) {
    const lock = tryLock(paths.workerStartLock(name));
    try {
      if (lock !== null && !(await answers())) {
        const outcome = await startInBackground({
          command: [...io.self, "worker", "run", "--cluster", name, ...options],
          cwd: startDirectory(io.env.home),
          environment: { ...FEW_THREADS, ...PLAIN_COPIES, ...backgroundEnvironment(paths, io.env) },
          withinAttempt: variable(io.env, "CLIO_RELAY_ATTEMPT"),
          stderrFile: log,
          ready: answers,
          withinMs: deadline - performance.now(),
        });
        if (outcome.state === "ready") return outcome.pid;
        if (outcome.state === "late") throw late(outcome.pid, log);
        // One that was started in another way was faster.
        if (await answers()) return null;
        const said = outcome.said === "" ? `exit code ${outcome.exitCode}` : outcome.said;
        throw new RelayError("worker_not_running", `the worker ended at once: ${said}`, {}, `see ${log}`);
      }
    } finally {
      lock?.release();
    }
    if (performance.now() > deadline) throw late(null, log);
    await Bun.sleep(POLL_MS);
  }
  return null;
}

/** Where a worker runs; the home directory that a name service knows need not be there. */
const startDirectory = (home: string): string => (fs.statSync(home, { throwIfNoEntry: false })?.isDirectory() ? home : "/");

const late = (pid: number | null, log: string): RelayError =>
  new RelayError(
    "observation_timeout",
    `the worker${pid === null ? "" : `, process ${pid},`} has not answered yet`,
    pid === null ? {} : { pid },
    `see ${log}`,
  );
