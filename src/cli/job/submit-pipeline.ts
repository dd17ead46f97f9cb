import { RelayError } from "../../domain/errors.ts";
import type { JobSubmissionInput } from "../../domain/job.ts";
import { CLUSTER } from "../cluster-option.ts";
import { text } from "../values.ts";
import { defineVerb, list, option, required, toggle } from "../verb.ts";
import { freshKey, type Handing, send, showReceipt } from "./hand-over.ts";
import { surroundingTrace } from "./surrounding-trace.ts";
import { pinned } from "./used-artifact-option.ts";

export const verb = defineVerb({
  summary: "Run a JARVIS-CD pipeline that the cluster has",
  details:
    "Prints the job's id, or with --json the job. What runs is the pipeline as JARVIS keeps it when the job starts; the job has that text as an artifact. " +
    "Each submission is a new job, unless --idempotency-key says which one it is.",
  positionals: {},
  flags: {
    cluster: CLUSTER,
    "pipeline-name": required(text("NAME"), "Its name there (jarvis ppl list)"),
    "used-artifact": list(pinned, "Pin an artifact that it consumes; another digest than the recorded one refuses the job"),
    "idempotency-key": option(text("KEY"), "Same key and same submission: same job"),
    wait: toggle("Wait until it has ended; exit code as of job wait"),
  },
  examples: [["job submit-pipeline --cluster c --pipeline-name demo --wait", "run it, and wait for its end"]],
  async run(call) {
    const { flags, io, relay } = call;
    if (flags["idempotency-key"] === "") throw new RelayError("usage", "--idempotency-key is empty");
    const name = await relay.clusterName(flags.cluster);
    const { mode } = await relay.clusterEntry(name);
    const handing: Handing = { cluster: relay.desktop.cluster(name), overLink: mode !== "local", trace: await surroundingTrace(io) };
    const submission = {
      cluster: name,
      kind: "jarvis",
      spec: { pipeline_name: flags["pipeline-name"] },
      idempotency_key: flags["idempotency-key"] ?? freshKey(),
      used_artifact_refs: flags["used-artifact"],
    } as JobSubmissionInput;
    return showReceipt(call, handing, await send(io, handing, submission), { wait: flags.wait, again: "" });
  },
});
