import { laneOf } from "../../../domain/job.ts";
import { scriptPath } from "../../../execution/attempt-dir.ts";
import { interpreterOf } from "../../../execution/environment.ts";
import type { ExitRecord } from "../../../execution/spool-records.ts";
import { type Engine, type EngineAround, type EngineAttempt, type EngineEnd, type EnginePlan, recordedEnd } from "./engine.ts";

/** A program with its arguments, or a script: what the shim records is all there is to know of it. */
export const commandEngine: Engine<"command"> = {
  kind: "command",
  admit: async (submission) => laneOf(submission),
  attempt: (around) => new CommandAttempt(around),
};

class CommandAttempt implements EngineAttempt {
  constructor(private readonly around: EngineAround<"command">) {}

  async plan(): Promise<EnginePlan> {
    const { directory, job } = this.around;
    const { argv, script, workdir, env, login, timeout_seconds } = job.spec;
    return {
      argv: script === undefined ? argv! : [...interpreterOf(script), scriptPath(directory)],
      ...(script === undefined ? {} : { script }),
      env,
      workdir,
      login,
      timeout_seconds,
    };
  }

  async look(): Promise<void> {}

  async end(exit: ExitRecord): Promise<EngineEnd> {
    return recordedEnd(exit, this.around.job.spec.outputs);
  }

  async close(): Promise<void> {}
}
