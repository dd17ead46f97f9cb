import type { ClusterEntry } from "../config/cluster-entry.ts";
import { RelayError } from "../domain/errors.ts";
import type { JobSubmissionInput } from "../domain/job.ts";
import { CLUSTER } from "./cluster-option.ts";
import { freshKey, type Handing, send, showReceipt } from "./job/hand-over.ts";
import { surroundingTrace } from "./job/surrounding-trace.ts";
import { pinned } from "./job/used-artifact-option.ts";
import { ARGUMENTS, argumentsOf } from "./json-option.ts";
import { oneOf, type Reader, text, whole } from "./values.ts";
import { type Call, type FlagValues, list, option, optionOr, toggle } from "./verb.ts";

const digest: Reader<string> = {
  label: "SHA256",
  form: "64 hexadecimal digits in lower case",
  read: (given) => (/^[0-9a-f]{64}$/.test(given) ? given : undefined),
};

/** Options of every verb that calls an MCP server on a cluster once. */
export const CALL = {
  cluster: CLUSTER,
  operation: optionOr(oneOf("tools/call", "tools/list"), "tools/call" as const, "Call one of its tools, or ask which it has"),
  tool: option(text("TOOL"), "The tool to call, by the server's name for it"),
  ...ARGUMENTS,
  "timeout-seconds": option(whole(1, 86_400), "End the call after this time; 300 unless given, 120 for a list"),
  "expected-server-artifact-digest": option(digest, "Refuse the call where the server's program is another one by now"),
  "used-artifact": list(pinned, "Pin an artifact that it consumes; another digest than the recorded one refuses the job"),
  "idempotency-key": option(text("KEY"), "Same key and same submission: same job"),
  wait: toggle("Wait until it has ended; exit code as of job wait"),
} as const;

/** What is said of each of them besides. */
export const CALL_DETAILS =
  "Prints the job's id, or with --json the job. Each call is a new job, unless --idempotency-key says which one it is; it is never repeated by itself, since it may have had its effect. What the server answered is kept with the job: job read-artifact JOB mcp-result.json -o -";

/**
 * Submit a call.
 *
 * @param server the members of its spec that name the server, made of what is known of the cluster
 * @throws RelayError usage, and as a submission
 */
export async function submitCall(
  call: Pick<Call, "io" | "json" | "relay"> & { readonly flags: FlagValues<typeof CALL> },
  server: (entry: ClusterEntry) => Readonly<Record<string, unknown>>,
): Promise<number> {
  const { flags, io, relay } = call;
  const spec = operationOf(call);
  if (flags["idempotency-key"] === "") throw new RelayError("usage", "--idempotency-key is empty");
  const name = await relay.clusterName(flags.cluster);
  const entry = await relay.clusterEntry(name);
  const handing: Handing = { cluster: relay.desktop.cluster(name), overLink: entry.mode !== "local", trace: await surroundingTrace(io) };
  const submission = {
    cluster: name,
    kind: "mcp_call",
    spec: { ...server(entry), ...spec },
    idempotency_key: flags["idempotency-key"] ?? freshKey(),
    used_artifact_refs: flags["used-artifact"],
  } as JobSubmissionInput;
  return showReceipt(call, handing, await send(io, handing, submission), { wait: flags.wait, again: "" });
}

/** What is wanted of the server. @throws RelayError usage */
function operationOf({ flags, io }: Pick<Call, "io"> & { readonly flags: FlagValues<typeof CALL> }): Readonly<Record<string, unknown>> {
  const { operation, tool, "timeout-seconds": seconds, "expected-server-artifact-digest": expected } = flags;
  const given = argumentsOf(io, flags);
  if (operation === "tools/call" && (tool ?? "") === "")
    throw new RelayError("usage", "--tool is missing", {}, "--operation tools/list in its place asks the server which tools it has");
  if (operation === "tools/list" && (tool !== undefined || Object.keys(given).length > 0))
    throw new RelayError("usage", "--tool and its arguments do not go with --operation tools/list");
  return {
    operation,
    ...(tool === undefined ? {} : { tool, arguments: given }),
    ...(seconds === undefined ? {} : { timeout_seconds: seconds }),
    ...(expected === undefined ? {} : { expected_server_artifact_digest: expected }),
  };
}
