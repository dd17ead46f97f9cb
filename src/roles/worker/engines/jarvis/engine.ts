import type { Lane } from "../../../../domain/job.ts";
import type { Engine, EngineAround, EngineAttempt, SubmissionOf } from "../engine.ts";
import { JarvisAttempt } from "./attempt.ts";
import type { JarvisInstallation } from "./installation.ts";
import { checkInputs, readyPipeline } from "./source.ts";

/** Pipelines of JARVIS-CD (docs/jarvis.md). */
export class JarvisEngine implements Engine<"jarvis"> {
  readonly kind = "jarvis";

  constructor(private readonly jarvis: JarvisInstallation) {}

  async admit({ spec }: SubmissionOf<"jarvis">): Promise<Lane> {
    const ready = await readyPipeline(spec, this.jarvis);
    if (ready.own) checkInputs(ready, spec.inputs ?? {});
    return "workload";
  }

  attempt(around: EngineAround<"jarvis">): EngineAttempt {
    return new JarvisAttempt(around, this.jarvis);
  }
}
