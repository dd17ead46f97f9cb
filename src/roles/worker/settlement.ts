import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { NewEvent } from "../../domain/event.ts";
import type { Job, Outcome } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { LOG_STREAMS } from "../../domain/log.ts";
import { collectOutputs } from "../../execution/artifacts.ts";
import { artifactsDirectory, jobDirectory, readProcess, readSpec } from "../../execution/attempt-dir.ts";
import { attemptDocuments } from "../../execution/attempt-documents.ts";
import type { OutputIssue } from "../../execution/output-issue.ts";
import type { ExitRecord } from "../../execution/spool-records.ts";
import { sha256Hex } from "../../lib/digest.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";
import { commandOf } from "./prepare.ts";

/**
 * Make an ended attempt's records: collect outputs, write its documents, and commit all of it with the transition.
 * Nothing counts until that commit, so a worker that dies in between leaves files that the next try removes.
 */
export async function settle(
  context: WorkerContext,
  job: Job,
  fence: Fence,
  directory: string,
  exit: ExitRecord,
  signal: AbortSignal,
): Promise<void> {
  const command = commandOf(job);
  const jobDir = jobDirectory(context.spoolDir, fence.job_id);
  const spec = readSpec(directory);
  await removeUnrecorded(context, fence.job_id, jobDir);

  const { artifacts: outputs, issues } = await collectOutputs({
    workdir: spec?.workdir ?? command.workdir ?? context.homeDir,
    startedIn: readProcess(directory)?.workdir ?? null,
    patterns: exit.started_at === null ? [] : command.outputs,
    jobDir,
    storeMaxBytes: context.limits.artifactStoreBytes,
    minFreeBytes: context.limits.minFreeBytes,
    maxFiles: LIMITS.artifactsPerJob,
    attempt: fence.attempt,
    signal,
  });
  const documents =
    spec === null
      ? []
      : await attemptDocuments({
          jobDir,
          attemptDir: directory,
          spec,
          exit,
          scriptSha256: command.script === undefined ? null : sha256Hex(command.script),
          outputs,
          issues,
          used: job.used_artifact_refs,
          relayVersion: context.version,
          hostname: os.hostname(),
        });
  const { stdout, stderr } = exit.streams;
  await context.store.settle(fence, {
    outcome: withOutputs(exit.outcome, issues),
    ended_at: exit.ended_at,
    captures: { stdout: capture(stdout), stderr: capture(stderr) },
    artifacts: [...documents, ...outputs],
    events: eventsOf(exit, issues),
  });
}

const capture = ({ sha256: _sha256, ...rest }: ExitRecord["streams"]["stdout"]) => rest;

/** A command that succeeded without leaving what it declared has failed. */
function withOutputs(outcome: Outcome, issues: readonly OutputIssue[]): Outcome {
  if (outcome.reason !== "completed" || issues.length === 0) return outcome;
  const lost = issues.filter((issue) => issue.reason !== "not_stored" && issue.reason !== "not_a_file");
  if (lost.length === 0) return outcome;
  const named = lost
    .slice(0, 5)
    .map((issue) => `${issue.name} (${issue.reason})`)
    .join(", ");
  return {
    ...outcome,
    reason: "output_missing",
    message:
      `the command succeeded, but declared outputs could not be kept: ${named}${lost.length > 5 ? `, and ${lost.length - 5} more` : ""}`.slice(
        0,
        2_000,
      ),
  };
}

function eventsOf(exit: ExitRecord, issues: readonly OutputIssue[]): NewEvent[] {
  const events: NewEvent[] = [];
  if (exit.outcome.reason === "timeout") {
    events.push({ event_type: "execution.timeout", level: "warning", message: exit.outcome.message });
  }
  if (exit.outcome.reason === "outcome_unknown") {
    events.push({ event_type: "execution.outcome_unknown", level: "error", message: exit.outcome.message });
  }
  if (exit.leftover > 0 && exit.outcome.reason !== "canceled" && exit.outcome.reason !== "timeout") {
    events.push({
      event_type: "execution.leftover",
      level: "warning",
      message: `${exit.leftover} processes that the command had left running were ended with it`,
      payload: { count: exit.leftover },
    });
  }
  const unfinished = LOG_STREAMS.filter((stream) => !exit.streams[stream].complete);
  if (unfinished.length > 0 && exit.outcome.reason !== "outcome_unknown") {
    events.push({
      event_type: "execution.output_incomplete",
      level: "warning",
      message: `the log of ${unfinished.join(" and ")} may lack its end: a process that is not the command's kept the pipe open, or its shim was killed`,
      payload: { streams: unfinished },
    });
  }
  if (exit.outcome.residual.length > 0) {
    events.push({
      event_type: "execution.residual",
      level: "error",
      message: `${exit.outcome.residual.length} processes could not be ended`,
      payload: { pids: [...exit.outcome.residual] },
    });
  }
  for (const issue of issues.slice(0, 100)) {
    events.push({
      event_type: "artifact.refused",
      level: "warning",
      message: `${issue.name.slice(0, 500)}: ${issue.detail.slice(0, 1_000)}`,
      payload: { pattern: issue.pattern.slice(0, 4_096), name: issue.name.slice(0, 4_096), reason: issue.reason },
    });
  }
  return events;
}

/** Remove copies that an interrupted settlement left: no committed artifact names them. */
async function removeUnrecorded(context: WorkerContext, jobId: string, jobDir: string): Promise<void> {
  const directory = artifactsDirectory(jobDir);
  let names: string[];
  try {
    names = fs.readdirSync(directory);
  } catch {
    return;
  }
  if (names.length === 0) return;
  const recorded = new Set<string>();
  for (let cursor = 1; ; ) {
    const page = await context.store.artifacts(jobId, { cursor, limit: LIMITS.pageMax });
    for (const artifact of page.items) recorded.add(artifact.artifact_id);
    if (page.items.length === 0) break;
    cursor = page.next_cursor;
  }
  for (const name of names) if (!recorded.has(name)) fs.rmSync(path.join(directory, name), { force: true });
}
