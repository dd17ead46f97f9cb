import * as v from "valibot";
import { type JobKind, JobSubmission, type JobSubmissionInput } from "../../domain/job.ts";
import { JarvisSpec, McpCallSpec, RemoteAgentSpec } from "../../domain/specs.ts";
import { type Operation, operation } from "../operation.ts";
import { parse } from "../request.ts";

const [{ entries: fields }] = JobSubmission.options;
/** What a submission of any kind may say besides its spec. */
const common = {
  cluster: fields.cluster,
  idempotency_key: fields.idempotency_key,
  used_artifact_refs: fields.used_artifact_refs,
  metadata: fields.metadata,
};

/** The MCP server of JARVIS-CD itself, which the cluster's configuration leads to. */
const JARVIS_SERVER = "jarvis";

const { pipeline_yaml: _yaml, pipeline_path: _path, pipeline_name: _name, ...jarvis } = JarvisSpec.entries;
const { server: _server, server_args: _args, env_from: _env, expected_registered_contract: _contract, ...jarvisCall } = McpCallSpec.entries;

/** Jobs of one kind, whose spec's members stand beside the others. */
interface KindRoute {
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  readonly kind: JobKind;
  /** Members of the spec that the body has. */
  readonly spec: v.ObjectEntries;
  /** Members that it always has. */
  readonly fixed?: Readonly<Record<string, unknown>>;
}

const ROUTES: readonly KindRoute[] = [
  {
    path: "/jobs/jarvis",
    id: "submitJarvis",
    summary: "Submit a JARVIS-CD pipeline by its text",
    kind: "jarvis",
    spec: { pipeline_yaml: v.pipe(v.string(), v.minLength(1)), ...jarvis },
  },
  {
    path: "/jobs/jarvis-pipeline",
    id: "submitJarvisPipeline",
    summary: "Submit a JARVIS-CD pipeline that the cluster has, by its name",
    kind: "jarvis",
    spec: { pipeline_name: v.pipe(v.string(), v.minLength(1), v.maxLength(256)), ...jarvis },
  },
  {
    path: "/jobs/remote-agent",
    id: "submitRemoteAgent",
    summary: "Submit a run of the cluster's agent, with a prompt that lies there",
    kind: "remote_agent",
    spec: RemoteAgentSpec.entries,
  },
  {
    path: "/jobs/mcp-call",
    id: "submitMcpCall",
    summary: "Submit one call of an MCP server on the cluster, or the listing of its tools",
    kind: "mcp_call",
    spec: McpCallSpec.entries,
  },
  {
    path: "/jobs/jarvis-mcp-call",
    id: "submitJarvisMcpCall",
    summary: "The same of the MCP server of JARVIS-CD",
    kind: "mcp_call",
    spec: jarvisCall,
    fixed: { server: JARVIS_SERVER },
  },
];

/**
 * POST /jobs in other words, one route a kind.
 *
 * @param submit the operation that they stand for
 */
export const kindSubmissionRoutes = (submit: Operation): Operation[] =>
  ROUTES.map(({ path, id, summary, kind, spec, fixed }) =>
    operation({
      ...submit,
      path,
      id,
      summary,
      body: v.strictObject({ ...common, ...spec }),
      handler: (input) => {
        const members = Object.entries(input.body as Record<string, unknown>);
        const of = (own: boolean) => Object.fromEntries(members.filter(([name]) => Object.hasOwn(spec, name) === own));
        const submission = { ...of(false), kind, spec: { ...of(true), ...fixed } } as JobSubmissionInput;
        return submit.handler({ ...input, body: parse(JobSubmission, submission, "body") });
      },
    }),
  );
