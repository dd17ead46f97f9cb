import type { ClusterClient } from "../../api/client.ts";
import { RelayError } from "../../domain/errors.ts";
import type { JobReceipt, JobSubmissionInput } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { CLUSTER } from "../cluster-option.ts";
import { assignment, byteCount, type Reader, text, whole } from "../values.ts";
import { also, type Call, defineVerb, ignored, list, option, optionOr, toggle } from "../verb.ts";
import { contentKey, freshKey, type Handing, send, showReceipt } from "./hand-over.ts";
import { SCHEDULER } from "./scheduler-options.ts";
import type { GivenInputs } from "./staged-inputs.ts";
import { workOf } from "./submission.ts";
import { surroundingTrace } from "./surrounding-trace.ts";
import { timeLimit } from "./time-limit.ts";
import { pinned } from "./used-artifact-option.ts";

const NAME_MAX = 200;
const jobName: Reader<string> = {
  label: "NAME",
  form: `a name of at most ${NAME_MAX} characters on one line`,
  read: (given) => (given.trim() !== "" && given.length <= NAME_MAX && !/\p{Cc}/u.test(given) ? given.trim() : undefined),
};

export const verb = defineVerb({
  summary: "Put a job into a cluster's queue",
  details:
    "Prints the job's id, or with --json the job. Everything after -- is the command, word for word, without a shell. A script's #! line names its " +
    "interpreter, which is /bin/sh where there is none; it gets no arguments, and --env hands it values.\n\nEvery submission of a command is a new job. With --idempotency-key the same submission under the same key is the same job, and " +
    "another one under it is refused; a pipeline file's own content is its key unless --new is given.\n\nA job does not get this shell's environment. It " +
    "gets an allow-list of the worker's (HOME, PATH, LANG, MODULEPATH and the like); --env adds to it, and --login gives what the profile sets.\n\n" +
    "Output appears when the program writes it. Python keeps it back where it writes to no terminal: use python3 -u, or --env PYTHONUNBUFFERED=1.",
  positionals: {},
  rest: "COMMAND…",
  flags: {
    cluster: CLUSTER,
    name: option(jobName, "What lists call it, instead of its command"),
    script: option(text("FILE"), "Run this script"),
    stdin: toggle("Run the script on standard input"),
    "jarvis-yaml": option(text("FILE"), "Run this JARVIS-CD pipeline"),
    workdir: option(text("DIR"), "Where it runs; on this machine the current directory unless given, elsewhere the home directory"),
    env: list(assignment("NAME=VALUE"), "Add a variable to its environment"),
    login: toggle("Run it through the login shell, so that its profile applies"),
    timeout: also(option(timeLimit, "End it after this time; an allocation of a scheduler has --time"), "timeout-seconds"),
    output: list(
      text("GLOB"),
      "Keep files below its directory that match; a pattern that matches none fails the job (and --retries run it again), and a file above 64 MiB is kept by reference, where it lies",
    ),
    retries: optionOr(whole(0, LIMITS.retriesMax), 0, "Further attempts when one fails"),
    input: list(
      assignment("NAME=FILE"),
      "Bring this file along; the job finds its path in CLIO_RELAY_INPUT_NAME. It lies below the current directory (CLIO_RELAY_INPUT_WORKSPACE_ROOT) and is read-only there",
    ),
    "max-input-bytes": option(byteCount, "How large inputs may be, one and all together; 1 MiB and 4 MiB unless given"),
    "used-artifact": list(pinned, "Pin an artifact that it consumes; another digest than the recorded one refuses the job"),
    "idempotency-key": option(text("KEY"), "Same key and same submission: same job"),
    ...SCHEDULER,
    exclusive: toggle("Ask the scheduler for nodes of its own, of a pipeline too"),
    shared: ignored("nothing else was asked for", false),
    new: toggle("Run a pipeline again although its content is known"),
    wait: toggle("Wait until it has ended; exit code as of job wait"),
  },
  examples: [
    ["job submit -- python3 -u train.py --epochs 3", "a command, in the current directory"],
    ["job submit --output 'result/*.csv' --timeout 2h --retries 1 -- ./simulate --steps 1000", "keep what it writes, and try twice"],
    ["job submit --script prepare.sh --env DATASET=small --login", "a script, with the modules of the login shell"],
    ["job submit --stdin --wait < prepare.sh", "a script that comes through a pipe, waited for"],
    ["job submit --scheduler slurm --nodes 2 --gpus 8 --time 04:00:00 -- srun ./train.sh", "in an allocation of two nodes"],
    ["job submit --sbatch job.sbatch", "a batch script of SLURM, as it is"],
    ["job submit --jarvis-yaml pipeline.yaml --wait", "a JARVIS-CD pipeline, with the files that its settings name"],
    ["job submit --input deck=./in.lj -- sh -c './sim -in \"$CLIO_RELAY_INPUT_DECK\"'", "with a file of this machine's"],
  ],
  async run(call) {
    const { flags, rest, io, relay } = call;
    if (flags.new && flags["idempotency-key"] !== undefined)
      throw new RelayError("usage", "--new and --idempotency-key exclude each other");
    if (flags.new && flags["jarvis-yaml"] === undefined)
      throw new RelayError("usage", "--new is for pipelines: every submission of a command is a new job");
    if (flags["max-input-bytes"] !== undefined && flags.input.length === 0 && flags["jarvis-yaml"] === undefined)
      throw new RelayError("usage", "--max-input-bytes is for --input");
    if (flags["idempotency-key"] === "") throw new RelayError("usage", "--idempotency-key is empty");
    const name = await relay.clusterName(flags.cluster);
    const { mode } = await relay.clusterEntry(name);
    const work = await workOf(io, flags, rest, mode === "local" ? io.env.cwd : null);
    const handing: Handing = { cluster: relay.desktop.cluster(name), overLink: mode !== "local", trace: await surroundingTrace(io) };
    const fresh = work.kind !== "jarvis" || flags.new ? freshKey() : null;
    const submission = { cluster: name, ...work, used_artifact_refs: flags["used-artifact"] } as JobSubmissionInput;
    const submit = (complete: JobSubmissionInput) =>
      send(io, handing, { ...complete, idempotency_key: flags["idempotency-key"] ?? fresh ?? contentKey(complete) });
    const given = work.kind === "jarvis" ? await pipelineInputs(handing.cluster, submission, flags.input) : flags.input;
    const receipt = given.length === 0 ? await submit(submission) : await withInputs(call, handing.cluster, given, submission, submit);
    const again = work.kind === "jarvis" && flags["idempotency-key"] === undefined ? "; --new runs again" : "";
    return showReceipt(call, handing, receipt, { wait: flags.wait, again });
  },
});

async function withInputs(
  { flags, io, relay }: { flags: { "max-input-bytes": number | undefined } } & Pick<Call, "io" | "relay">,
  cluster: ClusterClient,
  given: GivenInputs,
  submission: JobSubmissionInput,
  submit: (complete: JobSubmissionInput) => Promise<JobReceipt>,
): Promise<JobReceipt> {
  const { submitWithInputs } = await import("./staged-inputs.ts");
  return submitWithInputs({ io, settings: relay.settings, given, maxBytes: flags["max-input-bytes"], cluster }, submission, submit);
}

async function pipelineInputs(cluster: ClusterClient, { spec }: JobSubmissionInput, given: GivenInputs): Promise<GivenInputs> {
  const { inputsOfPipeline } = await import("./pipeline-inputs.ts");
  return inputsOfPipeline(cluster, spec, given);
}
