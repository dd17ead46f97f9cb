import * as v from "valibot";
import { LIMITS } from "./limits.ts";
import { looseText, text } from "./primitives.ts";

/** The text of a JARVIS-CD pipeline that somebody is about to submit. */
export const PipelineQuestion = v.strictObject({ pipeline_yaml: v.pipe(v.string(), v.minLength(1), v.maxLength(LIMITS.scriptBytes)) });

/** What of a pipeline is to come along with it: settings that their packages declare to be files of the submitter's. */
export const PipelineInputs = v.strictObject({
  pipeline_id: text(128),
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
