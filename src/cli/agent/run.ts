import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import type { JobSubmissionInput } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { sha256Hex } from "../../lib/digest.ts";
import { CLUSTER } from "../cluster-option.ts";
import { freshKey, type Handing, send, showReceipt } from "../job/hand-over.ts";
import { ALLOCATION, requestOf } from "../job/scheduler-options.ts";
import type { GivenInputs } from "../job/staged-inputs.ts";
import { surroundingTrace } from "../job/surrounding-trace.ts";
import { timeLimit } from "../job/time-limit.ts";
import { pinned } from "../job/used-artifact-option.ts";
import { byteCount, type Reader, text } from "../values.ts";
import { also, defineVerb, type FlagValues, list, option, toggle } from "../verb.ts";

const remotePath: Reader<string> = {
  label: "PATH",
  form: "an absolute path on the cluster",
  read: (given) => (given.startsWith("/") && !given.includes("\0") ? given : undefined),
};

const FLAGS = {
  cluster: CLUSTER,
  prompt: option(remotePath, "File with the prompt, on the cluster"),
  "prompt-file": option(text("FILE"), "Bring this file along as the prompt, in place of --prompt"),
  "mcp-config": option(remotePath, "File with the agent's MCP configuration, on the cluster"),
  "mcp-config-file": option(text("FILE"), "Bring this file along as that, in place of --mcp-config"),
  model: option(text("MODEL"), "The model that the agent is to use, by the name that it has for it"),
  workdir: option(remotePath, "Where it begins; the home directory unless given"),
  timeout: also(option(timeLimit, "End it after this time"), "timeout-seconds"),
  ...ALLOCATION,
  exclusive: toggle("Nodes of its own"),
  "max-input-bytes": option(byteCount, "How large files may be that are brought along, one and all together; 1 MiB and 4 MiB unless given"),
  "used-artifact": list(pinned, "Pin an artifact that it consumes; another digest than the recorded one refuses the job"),
  "idempotency-key": option(text("KEY"), "Same key and same submission: same job"),
  new: toggle("Run the same prompt again"),
  wait: toggle("Wait until it has ended; exit code as of job wait"),
} as const;

type Given = FlagValues<typeof FLAGS>;

export const verb = defineVerb({
  summary: "Run the cluster's agent on a prompt",
  details:
    "Prints the job's id, or with --json the job. Which agent that is, the cluster's entry says (cluster add --agent-bin), or the worker's settings (CLIO_RELAY_AGENT_BIN). The same prompt is the same job, by its path or, where it is brought along, by its content, unless --new is given.\n\n" +
    "job task-events shows what the agent does meanwhile, and its last message is an artifact.",
  positionals: {},
  flags: FLAGS,
  examples: [
    ["agent run --cluster c --prompt /home/me/prompt.md --mcp-config /home/me/agent.toml", "with files that lie on the cluster"],
    ["agent run --cluster c --prompt-file ./prompt.md --wait", "with a prompt of this machine's"],
    [
      "agent run --cluster c --prompt-file ./prompt.md --scheduler auto --gpus 1 --time 02:00:00",
      "in an allocation of the cluster's scheduler",
    ],
  ],
  async run(call) {
    const { flags, io, relay } = call;
    refuseUnclear(flags);
    const name = await relay.clusterName(flags.cluster);
    const { mode } = await relay.clusterEntry(name);
    const handing: Handing = { cluster: relay.desktop.cluster(name), overLink: mode !== "local", trace: await surroundingTrace(io) };
    const given = broughtAlong(flags);
    const submission = submissionOf(name, flags);
    const submit = (complete: JobSubmissionInput) =>
      send(io, handing, { ...complete, idempotency_key: flags["idempotency-key"] ?? (flags.new ? freshKey() : agentKey(complete)) });
    const receipt = given.length === 0 ? await submit(submission) : await withFiles();
    return showReceipt(call, handing, receipt, {
      wait: flags.wait,
      again: flags["idempotency-key"] === undefined ? "; --new runs again" : "",
    });

    async function withFiles() {
      const { submitWithInputs } = await import("../job/staged-inputs.ts");
      const wanted = { io, settings: relay.settings, given, maxBytes: flags["max-input-bytes"], cluster: handing.cluster };
      return submitWithInputs(wanted, submission, submit);
    }
  },
});

function refuseUnclear(flags: Given): void {
  if ((flags.prompt === undefined) === (flags["prompt-file"] === undefined))
    throw new RelayError(
      "usage",
      "exactly one of --prompt and --prompt-file is needed",
      {},
      "--prompt-file FILE brings a prompt along, --prompt PATH names one that lies on the cluster",
    );
  if (flags["mcp-config"] !== undefined && flags["mcp-config-file"] !== undefined)
    throw new RelayError("usage", "--mcp-config and --mcp-config-file exclude each other");
  if (flags["max-input-bytes"] !== undefined && broughtAlong(flags).length === 0)
    throw new RelayError("usage", "--max-input-bytes is for --prompt-file and --mcp-config-file");
  if (flags["idempotency-key"] === "") throw new RelayError("usage", "--idempotency-key is empty");
  if (flags.model === "") throw new RelayError("usage", "--model is empty");
  if (flags.new && flags["idempotency-key"] !== undefined) throw new RelayError("usage", "--new and --idempotency-key exclude each other");
}

function broughtAlong({ "prompt-file": prompt, "mcp-config-file": configuration }: Given): GivenInputs {
  const both = [["prompt", prompt, "--prompt-file"] as const, ["mcp_config", configuration, "--mcp-config-file"] as const];
  const maxBytes = LIMITS.agentFileBytes;
  return both.flatMap(([name, file, option]) => (file === undefined ? [] : [[name, file, { option, maxBytes }] as const]));
}

function submissionOf(cluster: string, flags: Given): JobSubmissionInput {
  const { prompt, model, workdir, timeout, "prompt-file": file, "mcp-config": configuration } = flags;
  const scheduler = requestOf({ ...flags, sbatch: undefined, qsub: undefined });
  const spec = {
    ...(prompt === undefined ? {} : { prompt_path: prompt }),
    ...(configuration === undefined ? {} : { mcp_config_path: configuration }),
    ...(model === undefined ? {} : { model }),
    ...(workdir === undefined ? {} : { workdir }),
    ...(timeout === undefined ? {} : { timeout_seconds: timeout }),
    ...(scheduler === undefined ? {} : { scheduler }),
  };
  const metadata = file === undefined ? {} : { prompt_name: path.basename(file) };
  return { cluster, kind: "remote_agent", spec, metadata, used_artifact_refs: flags["used-artifact"] } as JobSubmissionInput;
}

/** `agent:<cluster>:<prompt>:<mcp_config>`, each a path, or the artifact of a file that was brought along; digested where that is too long for a key. */
function agentKey({ cluster, spec }: JobSubmissionInput): string {
  const { prompt_path, mcp_config_path, inputs = {} } = spec as Extract<JobSubmissionInput, { kind: "remote_agent" }>["spec"];
  const key = `agent:${cluster}:${prompt_path ?? inputs["prompt"]}:${mcp_config_path ?? inputs["mcp_config"] ?? ""}`;
  return key.length <= LIMITS.idempotencyKeyLength ? key : `agent:${cluster}:${sha256Hex(key)}`;
}
