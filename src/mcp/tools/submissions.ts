import * as v from "valibot";
import type { ClusterEntry } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import { SchedulerRequest } from "../../domain/scheduler.ts";
import { CommandSpec, JarvisSpec, McpCallSpec, RemoteAgentSpec } from "../../domain/specs.ts";
import type { Place } from "../clusters.ts";
import { jarvisServer } from "../jarvis/server.ts";
import { receiptOf, SubmittedView, submit, submitted, type Wanted } from "../submit.ts";
import { askForMessage } from "../tasks/followup.ts";
import { defineTool, type Profile, RUNS, type Tool, type ToolCall } from "../tool.ts";
import { CLUSTER, SUBMISSION, said, THEN_WAIT } from "./arguments.ts";

const ANSWER =
  "Answers as soon as the job is in the cluster's queue, with its id; nothing has run by then. Follow it with relay_wait or relay_observe, read what it wrote with relay_read_job_log, and what it left with relay_list_artifacts.";

const FIELDS = { ...CLUSTER, ...SUBMISSION, ...THEN_WAIT };
const Common = v.object(FIELDS);
type Common = v.InferOutput<typeof Common>;

/** It ends the job, which no wait does. */
const ENDED_AFTER = "wall clock after which the job is ended; no bound when left out";

interface Kind {
  readonly name: string;
  readonly title: string;
  readonly profile: Profile;
  readonly description: string;
  readonly kind: Wanted["kind"];
  /** Members of the job's spec among the arguments. */
  readonly spec: v.ObjectEntries;
  /** Further members of the spec; where they depend on what is known of the cluster, made of that. */
  readonly fixed?: Readonly<Record<string, unknown>> | ((entry: ClusterEntry) => Readonly<Record<string, unknown>>);
  /** Further arguments, which are no part of the spec. */
  readonly besides?: v.ObjectEntries;
  readonly clusters?: "all" | "commands";
  /** Whether it is answered with a task where the client can have one. */
  readonly task?: true;
  readonly mayRun?: (call: ToolCall, place: Place) => void;
  /** What else a call wants, by its arguments. */
  readonly further?: (args: Readonly<Record<string, unknown>>) => Pick<Wanted, "metadata" | "onQueued">;
}

function submission(of: Kind): Tool {
  const { name, title, profile, description, kind, spec, fixed, besides = {}, clusters = "all", task, mayRun, further } = of;
  const put = async (args: Common, call: ToolCall) => {
    const given = Object.entries(args as Record<string, unknown>).filter(([member]) => Object.hasOwn(spec, member));
    const { cluster, idempotency_key, used_artifact_refs } = args;
    const title = "title" in args && typeof args.title === "string" ? args.title : undefined;
    const known = typeof fixed === "function" ? fixed((await call.clusters.named(cluster, call.signal)).entry) : fixed;
    const inSpec = { ...Object.fromEntries(given), ...known };
    const wanted = { cluster, kind, spec: inSpec, idempotency_key, used_artifact_refs, title, ...further?.(args) };
    return submit(name, wanted, call, mayRun === undefined ? undefined : (place) => mayRun(call, place));
  };
  return defineTool({
    name,
    title,
    profile,
    description: `${description} ${ANSWER}`,
    hints: RUNS,
    clusters,
    input: v.strictObject({ ...spec, ...besides, ...FIELDS }),
    output: SubmittedView,
    run: async (args, call) => receiptOf(await put(args as Common, call), args as Common, call),
    ...(task === undefined ? {} : { submit: async (args, call) => submitted(await put(args as Common, call)) }),
  });
}

const { argv, script, workdir, env, login, timeout_seconds, outputs, retries, inputs, ...furtherOfCommand } = CommandSpec.entries;
const scheduler = "scheduler" in furtherOfCommand ? { scheduler: furtherOfCommand.scheduler as v.GenericSchema } : {};

/** Agents of the profile `user` run commands where the cluster's operator has said that they may. */
function mayRunCommands({ profile }: ToolCall, { entry }: Place): void {
  if (profile === "admin" || entry.agent_commands === true) return;
  throw new RelayError("agent_commands_refused", `agents may not submit commands to ${entry.name}`, { cluster: entry.name });
}

const command = submission({
  name: "relay_submit_command",
  title: "Run a command on a cluster",
  profile: "user",
  description:
    "Runs a program or a script on a cluster as a job, which outlives this conversation. Give argv (a program and its arguments, without a shell) or script (text; its #! line names the interpreter, /bin/sh without one). " +
    "It gets none of your environment: env adds variables, login applies the login profile (modules). outputs are patterns of files below workdir that are kept as artifacts; one that matches nothing fails the job.",
  kind: "command",
  spec: {
    argv: said(argv, "program and arguments, handed to exec as they are"),
    script: said(script, "text of a script, in place of argv"),
    workdir: said(workdir, "absolute path of a directory that is there; the home directory when left out"),
    env: said(env, "variables that it gets"),
    login: said(login, "whether the login profile is applied"),
    timeout_seconds: said(timeout_seconds, ENDED_AFTER),
    outputs: said(outputs, "patterns below workdir, such as result/*.csv"),
    retries: said(retries, "further attempts when one fails"),
    inputs: said(
      inputs,
      "files that were brought to the cluster with job submit --input (artifacts of kind input), by name; each in used_artifact_refs, too. It finds the path in CLIO_RELAY_INPUT_<NAME>. What another job left is read where that job wrote it",
    ),
    ...scheduler,
  },
  besides: { title: v.optional(said(v.pipe(v.string(), v.minLength(1), v.maxLength(200)), "what lists call it")) },
  clusters: "commands",
  task: true,
  mayRun: mayRunCommands,
});

const agentSpec = {
  prompt_path: said(v.unwrap(RemoteAgentSpec.entries.prompt_path), "file with the prompt, an absolute path on the cluster"),
  mcp_config_path: said(RemoteAgentSpec.entries.mcp_config_path, "file there with the MCP servers that it may use"),
  model: said(RemoteAgentSpec.entries.model, "the model; the agent's own choice when left out"),
  workdir: said(RemoteAgentSpec.entries.workdir, "absolute path of a directory there; the home directory when left out"),
  timeout_seconds: said(RemoteAgentSpec.entries.timeout_seconds, `${ENDED_AFTER}; not with scheduler`),
  scheduler: said(
    // In a scheduler's own words more could be asked for than a run of the agent.
    v.optional(v.omit(SchedulerRequest, ["options", "directives"])),
    "run it in an allocation of the cluster's scheduler, {} for one as it comes; on the worker's host when left out",
  ),
};
const agent = (name: string, profile: Profile): Tool =>
  submission({
    name,
    title: "Run the cluster's agent",
    profile,
    description:
      "Runs the agent that the cluster is configured with as a job there, with a prompt from a file that lies on the cluster already. It may add to its timeline while it works: relay_watch_task_events.",
    kind: "remote_agent",
    spec: agentSpec,
    besides: {
      request_followup_message: v.optional(
        said(v.boolean(), "ask the client for a further message, as an input of the task; the agent finds it on the job's timeline"),
        false,
      ),
    },
    task: true,
    further: ({ request_followup_message: wanted }) =>
      wanted === true ? { metadata: { request_followup_message: true }, onQueued: askForMessage } : {},
  });

const { pipeline_yaml, pipeline_name, exclusive, inputs: settings, ...ofPipeline } = JarvisSpec.entries;
const jarvis = {
  exclusive: said(exclusive, "ask the scheduler for nodes of its own; of a pipeline that has a scheduler"),
  inputs: said(
    settings,
    "settings that are files, as PACKAGE.SETTING, each with the artifact of kind input that it is; each in used_artifact_refs, too",
  ),
  workdir: said(ofPipeline.workdir, "absolute path of a directory there; the home directory when left out"),
  env: said(ofPipeline.env, "variables that it gets"),
  timeout_seconds: said(ofPipeline.timeout_seconds, ENDED_AFTER),
};
const { server, server_args, env_from, tool, arguments: given, timeout_seconds: callTimeout } = McpCallSpec.entries;
const toolName = said(v.unwrap(v.unwrap(tool)), "the tool to call");
const toolArguments = said(given, "arguments of the tool");
const callEnds = said(callTimeout, "wall clock after which the call is ended; 300 when left out");

export const submissionTools: readonly Tool[] = [
  command,
  agent("relay_submit_agent", "user"),
  agent("relay_submit_remote_agent", "admin"),
  submission({
    name: "relay_submit_jarvis_pipeline",
    title: "Run a JARVIS-CD pipeline by its text",
    profile: "admin",
    description: "Runs a JARVIS-CD pipeline as a job, from its YAML text.",
    kind: "jarvis",
    spec: { pipeline_yaml: said(v.unwrap(pipeline_yaml), "the pipeline, as YAML"), ...jarvis },
  }),
  submission({
    name: "relay_submit_jarvis_job",
    title: "Run a JARVIS-CD pipeline by its name",
    profile: "admin",
    description: "Runs a JARVIS-CD pipeline as a job that the cluster has under a name.",
    kind: "jarvis",
    spec: { pipeline_name: said(v.unwrap(pipeline_name), "what it is called there"), ...jarvis },
  }),
  submission({
    name: "relay_submit_mcp_call",
    title: "Call an MCP server on a cluster",
    profile: "admin",
    description: "Starts an MCP server on the cluster by its command line, calls one of its tools once, and keeps the result with the job.",
    kind: "mcp_call",
    spec: {
      server: said(server, "program of the server, as the cluster finds it"),
      server_args: said(server_args, "arguments of the program"),
      env_from: said(env_from, "variables for it: name there, and name of the worker's variable whose value it gets. Names only"),
      tool: toolName,
      arguments: toolArguments,
      timeout_seconds: callEnds,
    },
    fixed: { operation: "tools/call" },
  }),
  submission({
    name: "relay_call_jarvis_mcp",
    title: "Call the MCP server of JARVIS-CD",
    profile: "admin",
    description:
      "Calls one tool of the MCP server of JARVIS-CD: of the one that is registered as jarvis, else of the one that the cluster's worker is configured with.",
    kind: "mcp_call",
    spec: { tool: toolName, arguments: toolArguments, timeout_seconds: callEnds },
    fixed: (entry) => ({ operation: "tools/call", ...jarvisServer(entry) }),
    task: true,
  }),
];
