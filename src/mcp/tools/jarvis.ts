import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import type { PipelineQuestion } from "../../domain/pipeline.ts";
import { Id, JsonValue, recordOf } from "../../domain/primitives.ts";
import { executionIdOf } from "../../execution/jarvis/execution-id.ts";
import { OwnArguments } from "../federation/controls.ts";
import { answered, RemoteCallView, remoteContent, remoteFailed, submitCall } from "../federation/remote-call.ts";
import { executionOf } from "../jarvis/execution.ts";
import { jarvisRoute, needsServer } from "../jarvis/route.ts";
import { runNamed } from "../jarvis/run.ts";
import { stepSettings } from "../jarvis/step-files.ts";
import { submitted } from "../submit.ts";
import { ADDS, defineTool, READS, RUNS, type Submitted, type Tool, type ToolCall, type ToolHints } from "../tool.ts";
import { jobView } from "../views.ts";
import { CLUSTER, said } from "./arguments.ts";

const name = (most: number) => v.pipe(v.string(), v.minLength(1), v.maxLength(most));
const word = v.optional(v.pipe(v.string(), v.maxLength(1_024)));
const count = v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1)));
const PIPELINE = { pipeline_id: said(name(128), "the pipeline, as JARVIS-CD on the cluster calls it") };
const CONFIG = v.optional(
  said(
    recordOf(v.string(), JsonValue),
    "settings of the package, by name; one that is declared to be a file may name a file of the machine where this endpoint runs, which comes along",
  ),
);
const EXECUTION_ID = "what JARVIS-CD calls the run";

/** Where and how JARVIS-CD is to run a pipeline. */
const Execution = v.strictObject({
  mode: v.optional(v.picklist(["auto", "local", "direct", "cluster", "scheduler", "hostfile"])),
  ...{ account: word, partition: word, qos: word, walltime: word, job_name: word, output: word, error: word, hostfile: word },
  ...{ nodes: count, tasks: count, tasks_per_node: count, cpus_per_task: count, gpus: count, gpus_per_node: count },
  hosts: v.optional(v.array(v.string())),
  exclusive: v.optional(v.boolean()),
});

const EXECUTION = v.optional(said(Execution, "where and how it is to run"));

const { cluster: _cluster, ...controls } = OwnArguments.entries;
const CONTROLS = {
  ...controls,
  timeout_seconds: v.optional(said(v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(86_400)), "how long the call may take")),
};
const OWN: ReadonlySet<string> = new Set(["cluster", ...Object.keys(CONTROLS)]);
const Own = v.object({ ...CLUSTER, ...CONTROLS });
type Own = v.InferOutput<typeof Own>;

/** What clients need to know of an answer: there are several such tools, and each has it. */
const { cluster, job_id, route_revision, state, terminal, mcp_result, retry } = RemoteCallView.entries;
const JarvisView = v.object({
  ...{ cluster, job_id, route_revision, state, terminal, mcp_result, retry },
  served_by: said(v.picklist(["mcp", "engine"]), "mcp: the MCP server of JARVIS-CD there, whose answer is mcp_result; engine: the worker"),
  execution_handle: v.optional(v.object({ pipeline_id: v.string(), execution_id: v.string(), job_id: Id })),
});

interface JarvisTool<I extends v.ObjectEntries> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly hints: ToolHints;
  readonly input: I;
  /** What it does, as an error says that it is not available. */
  readonly what: string;
  /** Arguments that are none of the server's. */
  readonly besides?: readonly string[];
  /** What a step's settings are to be held against, so that files come along; null: nothing. */
  readonly about?: (args: v.InferOutput<v.ObjectSchema<I, undefined>>) => {
    readonly question: PipelineQuestion;
    readonly step: string | null;
  };
  /** Throws where there is a server, and it cannot do what is asked. */
  readonly refuse?: (args: Own & v.InferOutput<v.ObjectSchema<I, undefined>>) => void;
  /** What the worker does where there is no server; absent: nothing. Null of a submission: it is answered without a job. */
  readonly engine?: {
    readonly run: (args: Own & v.InferOutput<v.ObjectSchema<I, undefined>>, call: ToolCall) => Promise<Record<string, unknown>>;
    readonly submit: (args: Own & v.InferOutput<v.ObjectSchema<I, undefined>>, call: ToolCall) => Promise<Submitted | null>;
  };
  readonly output?: v.GenericSchema<unknown, Record<string, unknown>>;
}

function jarvisTool<const I extends v.ObjectEntries>({
  besides = [],
  refuse,
  about: aboutStep,
  engine,
  what,
  output = JarvisView,
  input,
  ...about
}: JarvisTool<I>): Tool {
  const put = async (args: Own, call: ToolCall) => {
    const { server, place } = await jarvisRoute(about.name, args.cluster, call);
    if (server === null) return null;
    refuse?.(args as never);
    const given = Object.fromEntries(Object.entries(args).filter(([member]) => !OWN.has(member) && !besides.includes(member)));
    const { idempotency_key, timeout_seconds } = args;
    const wanted = { as: about.name, route: server.route, tool: about.name, given, idempotency_key, timeout_seconds };
    const { config } = given as { config?: Record<string, unknown> };
    if (aboutStep !== undefined && config !== undefined) {
      const { question, step } = aboutStep(args as never);
      const { config: settings, pins } = await stepSettings(place, question, step, config, call);
      const staged = { ...wanted, given: { ...given, config: settings }, used_artifact_refs: pins };
      return { admitted: await submitCall(staged, call), revision: server.revision };
    }
    return { admitted: await submitCall(wanted, call), revision: server.revision };
  };
  return defineTool({
    ...about,
    profile: "user",
    clusters: "all",
    input: v.strictObject({ ...CLUSTER, ...input, ...CONTROLS }) as v.GenericSchema,
    output,
    async run(args, call) {
      const own = args as Own;
      const called = await put(own, call);
      if (called !== null) return { ...(await answered(called.admitted, own, called.revision, call)), served_by: "mcp" };
      if (engine === undefined) throw needsServer(own.cluster, what);
      return { ...(await engine.run(args as never, call)), served_by: "engine" };
    },
    async submit(args, call) {
      const own = args as Own;
      const called = await put(own, call);
      if (called !== null) return submitted(called.admitted);
      if (engine === undefined) throw needsServer(own.cluster, what);
      return engine.submit(args as never, call);
    },
    content: remoteContent,
    failed: remoteFailed,
  });
}

const BY_SERVER = "Where an MCP server of JARVIS-CD is registered on the cluster (as jarvis), it answers, and mcp_result has what it says";

interface Run extends Own {
  readonly pipeline_id: string;
  readonly execution?: v.InferOutput<typeof Execution> | undefined;
  readonly execution_id?: string | undefined;
  readonly spack_specs?: readonly string[] | undefined;
  readonly inputs: Readonly<Record<string, string>>;
  readonly submit: boolean;
}

/** Run a pipeline that the cluster has, by the worker. It has one way of running it. */
function runByWorker(
  { cluster, pipeline_id, execution = {}, execution_id, spack_specs = [], inputs, submit: now, idempotency_key }: Run,
  call: ToolCall,
) {
  const { exclusive, ...others } = execution;
  const [other] = Object.keys(others);
  if (other !== undefined) throw needsServer(cluster, `execution.${other}`);
  if (execution_id !== undefined) throw needsServer(cluster, "an execution_id of one's own");
  if (spack_specs.length > 0) throw needsServer(cluster, "building packages (spack_specs)");
  if (!now) throw needsServer(cluster, "preparing a run without starting it (submit: false)");
  return runNamed({ cluster, pipeline_id, exclusive, inputs, idempotency_key }, call);
}

const ExecutionView = v.object({
  ...JarvisView.entries,
  execution_record: v.optional(v.nullable(v.record(v.string(), v.unknown()))),
  progress: v.optional(v.nullable(v.record(v.string(), v.unknown()))),
  runtime_metadata: v.optional(v.nullable(v.record(v.string(), v.unknown()))),
  service_runtimes: v.optional(v.nullable(v.record(v.string(), v.unknown()))),
  artifact_page: v.optional(v.object({ artifacts: v.array(v.unknown()), next_cursor: v.nullable(v.string()) })),
  not_available: v.optional(v.pipe(v.array(v.string()), v.description("what is missing, and why"))),
});

export const jarvisTools: readonly Tool[] = [
  jarvisTool({
    name: "jarvis_create_pipeline",
    title: "Make a JARVIS-CD pipeline",
    description: `Makes an empty pipeline of JARVIS-CD on a cluster, to which jarvis_add_step adds packages. ${BY_SERVER}; without one it is not available.`,
    hints: ADDS,
    input: { ...PIPELINE, execution: EXECUTION },
    what: "making a pipeline",
  }),
  jarvisTool({
    name: "jarvis_describe",
    title: "What JARVIS-CD has",
    description: `Describes packages, one package with its settings, a pipeline, or a step of it. ${BY_SERVER}; without one it is not available.`,
    hints: READS,
    input: {
      target: said(v.picklist(["packages", "package_search", "package", "pipeline", "step"]), "what to describe"),
      query: v.optional(said(name(256), "of package_search: what to look for")),
      page_size: v.optional(said(v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(25)), "entries of one answer"), 10),
      cursor: v.optional(said(name(1_024), "from the answer before, to go on from there")),
      package_name: v.optional(said(name(256), "of package: which one")),
      pipeline_id: v.optional(said(name(128), "of pipeline and step: which one")),
      step_id: v.optional(said(name(256), "of step: which one")),
      include_yaml: v.optional(said(v.boolean(), "with the text that JARVIS-CD keeps of it")),
    },
    what: "a description of packages and pipelines",
  }),
  jarvisTool({
    name: "jarvis_add_step",
    title: "Add a package to a JARVIS-CD pipeline",
    description: `Adds a package to a pipeline, with its settings. ${BY_SERVER}; without one it is not available.`,
    hints: ADDS,
    input: {
      ...PIPELINE,
      package_name: said(name(256), "the package, as jarvis_describe names it"),
      config: CONFIG,
      step_id: v.optional(said(name(256), "what the step is called")),
      target: v.optional(said(name(256), "where in the pipeline it belongs")),
    },
    what: "adding a step to a pipeline",
    about: ({ package_name, config }) => {
      const pkgs = [{ ...config, pkg_type: package_name, pkg_name: "step" }];
      return { question: { pipeline_yaml: JSON.stringify({ name: "step", pkgs }) }, step: null };
    },
  }),
  jarvisTool({
    name: "jarvis_edit_step",
    title: "Change or remove a step of a JARVIS-CD pipeline",
    description: `Changes the settings of a step of a pipeline, or removes it. ${BY_SERVER}; without one it is not available.`,
    hints: RUNS,
    input: {
      ...PIPELINE,
      step_id: said(name(256), "the step"),
      config: CONFIG,
      operation: v.optional(said(v.picklist(["edit", "remove"]), "what to do with it"), "edit"),
    },
    what: "changing a step of a pipeline",
    about: ({ pipeline_id, step_id }) => ({ question: { pipeline_name: pipeline_id }, step: step_id }),
  }),
  jarvisTool({
    name: "jarvis_run",
    title: "Run a JARVIS-CD pipeline",
    description: `Runs a pipeline that the cluster has. ${BY_SERVER}: the run goes on, and jarvis_get_execution follows it. Without one the worker runs it as a job of its own, by its name alone: the answer has its job_id, and relay_wait has its end.`,
    hints: RUNS,
    input: {
      ...PIPELINE,
      execution: EXECUTION,
      execution_id: v.optional(said(name(128), EXECUTION_ID)),
      spack_specs: v.optional(said(v.array(name(512)), "what Spack is to provide for it")),
      submit: v.optional(said(v.boolean(), "false: make it ready, and do not start it"), true),
      inputs: v.optional(
        said(
          recordOf(v.string(), name(4_096)),
          "without the server: settings that are files of the machine where this endpoint runs, as PACKAGE.SETTING, with their paths below its input root. They come along, as do those that declared settings name by relative paths",
        ),
        {},
      ),
    },
    besides: ["inputs"],
    refuse({ cluster, inputs }) {
      if (Object.keys(inputs).length === 0) return;
      throw new RelayError(
        "request_validation_failed",
        `inputs: on ${cluster} the MCP server of JARVIS-CD runs pipelines, and no file comes along with its runs`,
        { cluster },
        "jarvis_add_step and jarvis_edit_step bring along what a step's settings name",
      );
    },
    what: "running a pipeline",
    engine: {
      // It is on its way when it is in the queue: nobody waits for the end of a run here.
      async run(args, call) {
        const { place, receipt, key } = await runByWorker(args, call);
        const retry = {
          tool: "relay_wait",
          arguments: { job_id: receipt.job_id, cluster: place.entry.name, route_revision: place.route_revision },
        };
        const execution_handle = { pipeline_id: args.pipeline_id, execution_id: executionIdOf(receipt), job_id: receipt.job_id };
        return { ...jobView(place, receipt), idempotency_key: key, existing: receipt.existing, execution_handle, retry };
      },
      submit: async (args, call) => submitted(await runByWorker(args, call)),
    },
  }),
  jarvisTool({
    name: "jarvis_get_execution",
    title: "A run of JARVIS-CD",
    description: `Says how a run of a pipeline stands: record, progress, live services, what it left. ${BY_SERVER}. Without one the worker says what it knows: while it runs its state and progress, and JARVIS-CD's own documents when it has ended (not_available names the rest).`,
    hints: READS,
    input: {
      ...PIPELINE,
      execution_id: said(name(128), "as jarvis_run, or the job's status, has it"),
      job_id: v.optional(said(Id, "the job of jarvis_run, where the worker ran it: found at once")),
      include_progress: v.optional(said(v.boolean(), "with what its packages report"), true),
      include_service_runtimes: v.optional(said(v.boolean(), "with the live services that it has"), false),
      artifacts: v.optional(
        said(
          v.strictObject({
            page_size: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(100)), 50),
            cursor: v.optional(name(1_024)),
            ...{ role: word, state: word, package_id: word, artifact_id: word },
            content_max_bytes: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0))),
          }),
          "which page of what it left",
        ),
      ),
    },
    besides: ["job_id"],
    what: "a run",
    output: ExecutionView,
    engine: {
      async run({ cluster, pipeline_id, execution_id, job_id, include_progress, include_service_runtimes, artifacts }, call) {
        const place = await call.clusters.named(cluster, call.signal);
        const cursor = Number(/^\d{1,6}$/.exec(artifacts?.cursor ?? "0")?.[0] ?? 0);
        const page = { cursor, page_size: artifacts?.page_size ?? 50 };
        const question = {
          pipeline_id,
          execution_id,
          job_id,
          progress: include_progress,
          services: include_service_runtimes,
          artifacts: page,
        };
        return executionOf(place, question, call.signal);
      },
      submit: () => Promise.resolve(null),
    },
  }),
];
