import type { Lane } from "../../../../domain/job.ts";
import type { PipelineInputs, PipelineQuestion } from "../../../../domain/pipeline.ts";
import { pipelineRefused } from "../../../../execution/jarvis/pipeline-text.ts";
import type { Schedulers } from "../../allocation/schedulers.ts";
import type { Engine, EngineAround, EngineAttempt, PipelineReader, SubmissionOf } from "../engine.ts";
import { JarvisAttempt } from "./attempt.ts";
import type { JarvisInstallation } from "./installation.ts";
import { checkInputs, readyPipeline } from "./source.ts";

/** Pipelines of JARVIS-CD (docs/jarvis.md). */
export class JarvisEngine implements Engine<"jarvis">, PipelineReader {
  readonly kind = "jarvis";

  constructor(
    private readonly jarvis: JarvisInstallation,
    private readonly schedulers: Schedulers,
  ) {}

  async admit({ spec }: SubmissionOf<"jarvis">): Promise<Lane> {
    const ready = await readyPipeline(spec, this.jarvis);
    if (ready.own) checkInputs(ready, spec.inputs ?? {});
    else if (Object.keys(spec.inputs ?? {}).length > 0)
      throw pipelineRefused("input", "a pipeline of the cluster's is run as it is kept there: one with inputs is submitted by its text");
    if (ready.pipeline.scheduler === null) return "workload";
    await this.schedulers.provider("slurm");
    return "scheduler";
  }

  async inputs(question: PipelineQuestion): Promise<PipelineInputs> {
    const spec = { ...question, workdir: null, env: {}, timeout_seconds: null };
    const { pipeline, wanted, named } = await readyPipeline(spec, this.jarvis);
    const settings = wanted.map(({ name, packageId, setting, value }) => ({
      name,
      package_id: packageId,
      setting,
      value: value.slice(0, 4_096),
    }));
    return { pipeline_id: pipeline.name, ...(named ? { pipeline_yaml: pipeline.toString() } : {}), settings };
  }

  attempt(around: EngineAround<"jarvis">): EngineAttempt {
    return new JarvisAttempt(around, this.jarvis, this.schedulers);
  }
}
