import * as v from "valibot";
import { LIMITS } from "./limits.ts";
import { looseText, text } from "./primitives.ts";

const PipelineYaml = v.pipe(v.string(), v.minLength(1), v.maxLength(LIMITS.scriptBytes));

/** A JARVIS-CD pipeline that somebody is about to submit: its text, or the name under which the cluster has it. */
export const PipelineQuestion = v.pipe(
  v.strictObject({ pipeline_yaml: v.optional(PipelineYaml), pipeline_name: v.optional(text(256)) }),
  v.check(
    ({ pipeline_yaml, pipeline_name }) => (pipeline_yaml === undefined) !== (pipeline_name === undefined),
    "exactly one of pipeline_yaml and pipeline_name is needed",
  ),
);
export type PipelineQuestion = v.InferOutput<typeof PipelineQuestion>;

/** What of a pipeline is to come along with it: settings that their packages declare to be files of the submitter's. */
export const PipelineInputs = v.strictObject({
  pipeline_id: text(128),
  /** Its text, as the cluster has it now, where it was asked for by its name. */
  pipeline_yaml: v.optional(PipelineYaml),
  settings: v.array(
    v.strictObject({
      /** `PACKAGE.SETTING`, by which a submission names the file. */
      name: text(512),
      /** The package's name within the pipeline. */
      package_id: text(128),
      setting: text(256),
      /** What the pipeline says of it, else what the package does; empty for no file. */
      value: looseText(4_096),
    }),
  ),
});
export type PipelineInputs = v.InferOutput<typeof PipelineInputs>;
