import type { EmitLine } from "../../domain/emit-line.ts";
import type { NewEvent } from "../../domain/event.ts";
import type { ExecutionProgress, ExecutionRecord, Handle, PackageProgress, ServiceRuntime, ServiceRuntimes } from "./documents.ts";

/** An event that an attempt gets once for what it is about. */
export interface OnceEvent {
  readonly about: string;
  readonly event: NewEvent;
}

/** Lines made of one source, whose place in it is a number that grows. */
export interface SourceLines {
  readonly file: string;
  readonly offset: number;
  readonly next_offset: number;
  readonly lines: readonly EmitLine[];
}

export function startedEvent({ execution_id, pipeline_id, mode }: Pick<Handle, "execution_id" | "pipeline_id" | "mode">): OnceEvent {
  return {
    about: execution_id,
    event: {
      event_type: "jarvis.started",
      message: `JARVIS runs ${pipeline_id} as ${execution_id}.`,
      payload: { execution_id, pipeline_id, mode },
    },
  };
}

/** A record's state, once for each. */
export function stateEvent(record: ExecutionRecord): OnceEvent {
  const { execution_id, pipeline_id, mode, state, terminal, updated_at, return_code, error, scheduler_provider, scheduler_native_id } =
    record;
  const at = scheduler_native_id === null ? "" : `, ${scheduler_provider} job ${scheduler_native_id}`;
  return {
    about: `record ${state}${at}`,
    event: {
      event_type: "runtime.metadata_ingested",
      message: `JARVIS says ${state}${at}${error === null ? "" : `: ${error}`}`.slice(0, 2_000),
      level: state === "failed" ? "error" : "info",
      payload: {
        schema_version: record.schema_version,
        ...{ execution_id, pipeline_id, mode, state, terminal, updated_at, return_code },
        ...{ scheduler_provider, scheduler_native_id },
      },
    },
  };
}

/** A service's newest revision, once for each. */
export function serviceEvents({ service_runtimes }: ServiceRuntimes): OnceEvent[] {
  return service_runtimes.map((runtime) => {
    const { service_instance_id, package_id, revision, lifecycle } = runtime;
    return {
      about: `service ${service_instance_id} ${revision}`,
      event: {
        event_type: "runtime.metadata_ingested",
        message: `The service of ${package_id} is ${lifecycle}.`.slice(0, 2_000),
        payload: servicePayload(runtime),
      },
    };
  });
}

const servicePayload = (runtime: ServiceRuntime) => ({
  schema_version: runtime.schema_version,
  service_instance_id: runtime.service_instance_id,
  package_id: runtime.package_id,
  package_name: runtime.package_name,
  revision: runtime.revision,
  lifecycle: runtime.lifecycle,
  host: runtime.host,
  port: runtime.port,
  protocol: runtime.protocol,
  authorization:
    runtime.authorization == null ? null : { scheme: runtime.authorization.scheme, token_sha256: runtime.authorization.token_sha256 },
});

export function refusedEvent(question: string, reason: string): OnceEvent {
  return {
    about: `${question}: ${reason}`.slice(0, 500),
    event: {
      event_type: "runtime.metadata_refused",
      level: "warning",
      message: `What JARVIS says (execution ${question}) is not used: ${reason}`.slice(0, 2_000),
      payload: { question, reason },
    },
  };
}

/** Name of the task that stands for a package. */
const packageTask = (packageId: string): string => `package ${packageId}`;

/** What is said of each package once when a run is about to begin, and once when all of it has ended well. */
const PACKAGES_SOURCE = "jarvis:packages";
const STAGES = { planned: 0, succeeded: 1 } as const;

/** Lines on all packages of a pipeline; none where they were said before. */
export function packageLines(
  packages: readonly { readonly id: string; readonly type: string }[],
  status: keyof typeof STAGES,
  taken: ReadonlyMap<string, number>,
): SourceLines[] {
  const offset = taken.get(PACKAGES_SOURCE) ?? 0;
  const next = STAGES[status] + 1;
  if (offset >= next) return [];
  const summary = status === "planned" ? "is to be run" : "JARVIS says that the pipeline has completed";
  const lines = packages.map(({ id, type }) => taskLine(id, type, status, `${type}: ${summary}`));
  return [{ file: PACKAGES_SOURCE, offset, next_offset: next, lines }];
}

/** The name of a package's reports among the sources of an attempt; no file of a job's can have it. */
export const progressSource = (packageId: string): string => `jarvis:progress:${packageId}`;

/** Reports of packages that are newer than what was taken in of them. */
export function progressLines({ packages }: ExecutionProgress, taken: ReadonlyMap<string, number>): SourceLines[] {
  return packages.flatMap((one): SourceLines[] => {
    const { latest, package_id } = one;
    if (latest === null) return [];
    const file = progressSource(package_id);
    const offset = taken.get(file) ?? 0;
    // The first one may have the number 0.
    const next = latest.sequence + 1;
    if (next <= offset) return [];
    const reports = taskLine(package_id, one.package_name, "running", `${one.package_name} reports progress`);
    const lines = offset === 0 ? [reports, progressLine(one)] : [progressLine(one)];
    return [{ file, offset, next_offset: next, lines }];
  });
}

function progressLine({ package_id, package_name, latest }: PackageProgress): EmitLine {
  const { label, current, total, unit, message, state, sequence } = latest!;
  return {
    type: "progress",
    progress: {
      label: package_id,
      current: current ?? null,
      total: total != null && total > 0 ? total : null,
      unit: unit == null || unit === "" ? null : unit.slice(0, 64),
      message: message ?? label ?? null,
      source_event_seq: null,
      metadata: { package_name, state, sequence },
    },
  };
}

function taskLine(packageId: string, packageName: string, status: "planned" | "running" | "succeeded", summary: string): EmitLine {
  return {
    type: "task-event",
    task: packageTask(packageId),
    event: {
      event_type: "jarvis.package",
      label: packageId,
      summary,
      detail: null,
      path_refs: [],
      artifact_refs: [],
      metadata: { package_name: packageName },
      status,
    },
  };
}
