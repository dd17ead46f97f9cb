import type { ClusterClient } from "../../api/client.ts";
import { type ErrorCode, EXIT, RelayError } from "../../domain/errors.ts";
import type { JobReceipt, JobSubmissionInput } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { TraceContext } from "../../domain/trace.ts";
import { sha256Hex } from "../../lib/digest.ts";
import { CLUSTER } from "../cluster-option.ts";
import { interruptible } from "../follow/interrupt.ts";
import { NO_ENGINE, NO_SCHEDULER } from "../no-engine.ts";
import { withReason } from "../print/outcome-text.ts";
import { printJson } from "../print/table.ts";
import { assignment, byteCount, duration, type Reader, text, whole } from "../values.ts";
import { also, type Call, defineVerb, ignored, list, option, optionOr, refused, toggle } from "../verb.ts";
import { keepLastJob } from "./last-job.ts";
import type { GivenInputs } from "./staged-inputs.ts";
import { workOf } from "./submission.ts";
import { surroundingTrace } from "./surrounding-trace.ts";
import { pinned } from "./used-artifact-option.ts";

const LONGEST_SECONDS = 366 * 86_400;
const timeLimit: Reader<number> = {
  ...duration,
  form: `${duration.form}, and at most 366d`,
  read(given) {
    const seconds = duration.read(given);
    return seconds === undefined || seconds > LONGEST_SECONDS ? undefined : seconds;
  },
};

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
    "jarvis-yaml": option(text("FILE"), `Run this JARVIS-CD pipeline (${NO_ENGINE})`),
    workdir: option(text("DIR"), "Where it runs; on this machine the current directory unless given, elsewhere the home directory"),
    env: list(assignment("NAME=VALUE"), "Add a variable to its environment"),
    login: toggle("Run it through the login shell, so that its profile applies"),
    timeout: also(option(timeLimit, "End it after this time"), "timeout-seconds"),
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
    exclusive: refused(NO_SCHEDULER, false),
    shared: ignored("nothing else was asked for", false),
    new: toggle(`Run a pipeline again although its content is known (${NO_ENGINE})`),
    wait: toggle("Wait until it has ended; exit code as of job wait"),
  },
  examples: [
    ["job submit -- python3 -u train.py --epochs 3", "a command, in the current directory"],
    ["job submit --output 'result/*.csv' --timeout 2h --retries 1 -- ./simulate --steps 1000", "keep what it writes, and try twice"],
    ["job submit --script prepare.sh --env DATASET=small --login", "a script, with the modules of the login shell"],
    ["job submit --stdin --wait < prepare.sh", "a script that comes through a pipe, waited for"],
    ["job submit --input deck=./in.lj -- sh -c './sim -in \"$CLIO_RELAY_INPUT_DECK\"'", "with a file of this machine's"],
  ],
  async run({ flags, rest, io, json, relay }) {
    if (flags.new && flags["idempotency-key"] !== undefined)
      throw new RelayError("usage", "--new and --idempotency-key exclude each other");
    if (flags.new && flags["jarvis-yaml"] === undefined)
      throw new RelayError("usage", "--new is for pipelines: every submission of a command is a new job");
    if (flags["max-input-bytes"] !== undefined && flags.input.length === 0)
      throw new RelayError("usage", "--max-input-bytes is for --input");
    if (flags["idempotency-key"] === "") throw new RelayError("usage", "--idempotency-key is empty");
    const name = await relay.clusterName(flags.cluster);
    const { mode } = await relay.clusterEntry(name);
    const work = await workOf(io, flags, rest, mode === "local" ? io.env.cwd : null);
    const key = flags["idempotency-key"] ?? defaultKey(work, flags.new);
    const submission = {
      cluster: name,
      ...work,
      idempotency_key: key,
      used_artifact_refs: flags["used-artifact"],
    } as JobSubmissionInput;
    const cluster = relay.desktop.cluster(name);
    const trace = await surroundingTrace(io);
    const submit = (complete: JobSubmissionInput) => send(cluster, complete, key, mode !== "local", trace);
    const receipt =
      flags.input.length === 0 ? await submit(submission) : await withInputs({ flags, io, relay }, cluster, submission, submit);
    await keepLastJob(io, relay.paths.lastJobFile, { cluster: name, job_id: receipt.job_id });
    try {
      if (!json) await io.stdout.write(`${receipt.job_id}\n`);
      else if (!flags.wait) await printJson(io.stdout, receipt);
    } catch (error) {
      // Whoever does not get the id could not find the job.
      await io.stderr.write(`notice: ${receipt.job_id} was submitted\n`).catch(() => undefined);
      throw error;
    }
    if (receipt.existing) {
      const again = work.kind === "jarvis" && flags["idempotency-key"] === undefined ? "; --new runs again" : "";
      await io.stderr.write(`notice: existing job ${receipt.job_id}, ${receipt.state}${again}\n`);
    }
    if (!flags.wait) return EXIT.ok;
    const { waitExit, waitForJob } = await import("./wait.ts");
    return interruptible(
      io,
      () => `no longer waiting; the job goes on. Wait again with: clio-relay job wait ${receipt.job_id} --cluster ${name}`,
      async (signal) => {
        const result = await waitForJob(cluster, receipt.job_id, Number.POSITIVE_INFINITY, io, signal);
        if (json) await printJson(io.stdout, result);
        else if (result.outcome !== null) await io.stderr.write(`${withReason(result.state, result.outcome.message)}\n`);
        return waitExit(result);
      },
    );
  },
});

async function withInputs(
  { flags, io, relay }: { flags: { input: GivenInputs; "max-input-bytes": number | undefined } } & Pick<Call, "io" | "relay">,
  cluster: ClusterClient,
  submission: JobSubmissionInput,
  submit: (complete: JobSubmissionInput) => Promise<JobReceipt>,
): Promise<JobReceipt> {
  const { submitWithInputs } = await import("./staged-inputs.ts");
  return submitWithInputs(
    { io, settings: relay.settings, given: flags.input, maxBytes: flags["max-input-bytes"], cluster },
    submission,
    submit,
  );
}

async function send(
  cluster: ClusterClient,
  submission: JobSubmissionInput,
  key: string,
  overLink: boolean,
  trace: TraceContext | null,
): Promise<JobReceipt> {
  try {
    return await cluster.submit(submission, trace);
  } catch (error) {
    if (!(error instanceof RelayError) || !UNKNOWN.has(error.code)) throw error;
    // What has not left this machine was not taken on.
    if (error.data["sent"] === false) throw error;
    // It may have been taken on; under the same key it is not taken on twice.
    const first = overLink && error.code === "link_down" ? `clio-relay connect ${cluster.name}, then ` : "";
    throw new RelayError(
      error.code,
      error.message,
      { ...error.data, idempotency_key: key },
      `${first}repeat it with --idempotency-key ${key}`,
    );
  }
}

/** With these it is not known whether the submission was taken on. */
const UNKNOWN: ReadonlySet<ErrorCode> = new Set(["link_down", "answer_malformed", "request_interrupted", "desktop_unavailable"]);

/** A fresh key for a command, so that a submission can be sent twice and taken once; the content's digest for a pipeline. */
function defaultKey(work: Pick<JobSubmissionInput, "kind" | "spec">, fresh: boolean): string {
  const yaml = "pipeline_yaml" in work.spec ? work.spec.pipeline_yaml : undefined;
  return yaml === undefined || fresh ? `cli_${crypto.randomUUID().replaceAll("-", "")}` : `pipeline_${sha256Hex(yaml)}`;
}
