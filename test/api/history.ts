import type { History } from "../../src/api/provenance/history.ts";
import type { Artifact } from "../../src/domain/artifact.ts";
import type { Attempt } from "../../src/domain/attempt.ts";
import type { Job, Outcome } from "../../src/domain/job.ts";
import type { TransformRef } from "../../src/domain/transform.ts";

const SHA256 = "ab".repeat(32);
const at = (second: number): string => `2026-02-03T04:05:${String(second).padStart(2, "0")}.678Z`;

export const artifact = (artifact_id: string, name: string, more: Partial<Artifact> = {}): Artifact => ({
  artifact_id,
  job_id: "job_c",
  sequence: 1,
  kind: "execution_output",
  name,
  uri: `spool:artifacts/${artifact_id}`,
  size_bytes: 12,
  sha256: SHA256,
  metadata: { attempt: 1 },
  created_at: at(9),
  ...more,
});

const outcome: Outcome = { reason: "completed", exit_code: 0, signal: null, message: "it exited with 0", residual: [] };

const attempt = (number: number): Attempt => ({
  job_id: "job_c",
  attempt: number,
  state: "ended",
  shim: null,
  process: { pid: 7, start_time: 7, boot_id: "boot", hostname: "node-7" },
  claimed_at: at(1),
  started_at: at(number * 2),
  ended_at: at(number * 2 + 1),
  outcome,
});

type Command = Extract<Job, { kind: "command" }>;

export const commandJob = (more: Partial<Command> = {}): Command => ({
  job_id: "job_c",
  sequence: 3,
  cluster: "local",
  kind: "command",
  lane: "workload",
  state: "succeeded",
  spec: {
    argv: ["/opt/sim/bin/simulate", "--steps", "10"],
    workdir: "/w",
    env: { API_KEY: "hunter2" },
    login: false,
    timeout_seconds: null,
    outputs: [],
    retries: 1,
  },
  idempotency_key: "k",
  owner_session_id: null,
  owner_session_generation_id: null,
  used_artifact_refs: [],
  submission_digest: "cd".repeat(32),
  created_at: at(0),
  updated_at: at(8),
  leased_by: null,
  attempts: 2,
  last_error: null,
  outcome,
  cancellation_request: null,
  not_before: null,
  quarantine: null,
  trace: null,
  metadata: {},
  ...more,
});

/** A job of two attempts that used one artifact and left some. */
export const history = (more: Partial<History> = {}): History => ({
  job: commandJob(),
  attempts: [attempt(1), attempt(2)],
  inputs: [
    {
      artifact: artifact("artifact_mesh", "mesh.h5", { job_id: "job_p" }),
      edge: {
        sequence: 1,
        artifact_id: "artifact_mesh",
        consumer_job_id: "job_c",
        producer_job_id: "job_p",
        sha256: SHA256,
        provenance: {
          schema_version: "clio-relay.artifact-use.v1",
          evidence: "schema-arg",
          authority: null,
          external_ref: null,
          arg: "mesh",
          note: null,
        },
        created_at: at(0),
      },
    },
  ],
  artifacts: [
    artifact("artifact_1", "out/result.csv"),
    artifact("artifact_2", "out/result.csv", { metadata: { attempt: 2 }, sequence: 2 }),
    artifact("artifact_3", "big.nc", { size_bytes: 5_000_000_000, uri: "file:///scratch/big.nc" }),
    artifact("artifact_4", "stdout.log", { kind: "stdout" }),
  ],
  transform: null,
  ...more,
});

export const transform: TransformRef = {
  job_id: "job_c",
  activity_id: "run-17",
  mechanism: "tool-schema",
  environment: { tier: "image-digest", image: "solver:3", digest: `sha256:${"0".repeat(64)}`, platform: null },
  replay: "re-runnable",
  replay_reason: "it draws random numbers",
  used_evidence: [],
  created_at: "2026-02-03T04:06:00.000Z",
};
