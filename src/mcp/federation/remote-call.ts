import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { Sha256 } from "../../domain/primitives.ts";
import type { Place } from "../clusters.ts";
import { type Admitted, SubmittedView, submit, type Wanted } from "../submit.ts";
import type { ToolCall } from "../tool.ts";
import { jobView } from "../views.ts";
import { observed, untilEnded } from "../wait.ts";
import { type CallResultView, contentOf } from "./call-result.ts";
import type { OwnArguments } from "./controls.ts";
import type { Route } from "./federated.ts";

/** A call of a tool of a server on a cluster. */
export interface RemoteCall {
  /** By which name the agent asked for it. */
  readonly as: string;
  readonly route: Route;
  /** As its server calls it. */
  readonly tool: string;
  readonly given: Readonly<Record<string, unknown>>;
  readonly idempotency_key?: string | undefined;
  readonly key_argument?: Wanted["key_argument"];
  /** Artifacts that it uses. */
  readonly used_artifact_refs?: Wanted["used_artifact_refs"];
  /** Left out: as it was registered. */
  readonly timeout_seconds?: number | undefined;
}

/** Put a call into the cluster's queue. @throws RelayError as any submission; job_route_refused */
export const submitCall = (wanted: RemoteCall, call: ToolCall): Promise<Admitted> => {
  const { as, route, idempotency_key, key_argument, used_artifact_refs = [] } = wanted;
  // Who looks at a list of jobs knows a server by what it is registered as.
  const title = `${route.server} ${wanted.tool}`;
  const spec = specOf(wanted);
  const submission = { cluster: route.cluster, kind: "mcp_call" as const, spec, idempotency_key, key_argument, used_artifact_refs, title };
  return submit(as, submission, call, (place) => sameRoute(place, route));
};

type Waiting = Pick<OwnArguments, "wait_for_terminal" | "wait_timeout_seconds" | "include_logs" | "log_limit">;

/** The job of a call, and what came of it where that was waited for. @param revision of the catalogue in which it was found */
export async function answered({ place, receipt, key }: Admitted, waiting: Waiting, revision: string, call: ToolCall) {
  const { wait_for_terminal, wait_timeout_seconds: timeout_seconds, include_logs, log_limit } = waiting;
  const more = { idempotency_key: key, existing: receipt.existing, catalog_revision: revision };
  if (!wait_for_terminal) return { ...jobView(place, receipt), ...more };
  const job = await untilEnded(place, receipt.job_id, call.now() + timeout_seconds * 1_000, call);
  const view = jobView(place, job ?? receipt);
  return { ...view, ...more, ...(await observed(place, view, { timeout_seconds, include_logs, log_limit }, call)) };
}

export const RemoteCallView = v.object({ ...SubmittedView.entries, catalog_revision: v.optional(Sha256) });

/** What is shown of a call besides the structure: the server's own blocks, and the job. */
export function remoteContent(output: Readonly<Record<string, unknown>>) {
  const { mcp_result, ...handle } = output as { mcp_result?: CallResultView };
  return contentOf(mcp_result, handle);
}

/** Whether the call that an answer tells of has failed. */
export function remoteFailed(output: Readonly<Record<string, unknown>>): boolean {
  const { mcp_result, state } = output as { mcp_result?: CallResultView; state?: string };
  return mcp_result?.is_error ?? (state === "failed" || state === "canceled");
}

/** @throws RelayError job_route_refused where the cluster is reached by another way than the one that led to the server */
function sameRoute({ entry, route_revision }: Place, { found }: Route): void {
  if (route_revision === found.route_revision) return;
  throw new RelayError(
    "job_route_refused",
    `the route of ${entry.name} has changed since its servers were asked`,
    { cluster: entry.name, route_revision },
    `clio-relay remote-mcp refresh --cluster ${entry.name} --name ${found.server}`,
  );
}

function specOf({ route: { registration, found }, tool, given, timeout_seconds }: RemoteCall) {
  const { command, args, env_from, contract, call_timeout_seconds, reuse } = registration;
  const { artifact_id, sha256, server_artifact } = found.provenance;
  return {
    server: command,
    server_args: args,
    env_from,
    expected_server_artifact_digest: server_artifact.immutable ? server_artifact.digest : null,
    expected_registered_contract: contract,
    operation: "tools/call",
    tool,
    arguments: given,
    timeout_seconds: timeout_seconds ?? call_timeout_seconds,
    // Whether it may take the short way there, the worker decides.
    control_query_evidence: server_artifact.immutable && readsOnly(found, tool) ? { artifact_id, sha256 } : null,
    reuse,
  };
}

function readsOnly({ tools }: Route["found"], name: string): boolean {
  const { readOnlyHint, destructiveHint } = tools.find((tool) => tool.name === name)?.annotations ?? {};
  return readOnlyHint === true && destructiveHint !== true;
}
