import * as v from "valibot";
import { ProcessIdentity } from "../domain/attempt.ts";
import { Outcome } from "../domain/job.ts";
import { LogStream, StreamCapture } from "../domain/log.ts";
import { ByteCount, Count, Finite, Id, looseText, recordOf, Sequence, Sha256, Timestamp, text } from "../domain/primitives.ts";
import { SchedulerName } from "../domain/scheduler.ts";
import type { AttemptSpec, ExitRecord, ProcessRecord, StartRecord, TruncationRecord } from "./spool-records.ts";

/**
 * The worker's reading of the spool. Objects are open: members that a newer shim adds are passed over, while the members that
 * are known must fit.
 */
const record_version = Sequence;
const Decimal = v.pipe(v.string(), v.regex(/^\d{1,20}$/));
const Path = v.pipe(v.string(), v.startsWith("/"), v.maxLength(4_096));

export const SpecSchema: v.GenericSchema<unknown, AttemptSpec> = v.object({
  record_version,
  job_id: Id,
  attempt: Sequence,
  cluster: Id,
  argv: v.pipe(v.array(v.string()), v.minLength(1)),
  workdir: Path,
  env: recordOf(v.string(), v.string()),
  login: v.boolean(),
  env_setup: v.nullable(v.string()),
  env_setup_strict: v.exactOptional(v.boolean()),
  timeout_seconds: v.nullable(v.pipe(Finite, v.gtValue(0))),
  quota: v.object({
    stream_bytes: ByteCount,
    job_bytes: ByteCount,
    used: v.object({ stdout: ByteCount, stderr: ByteCount }),
  }),
  cancel_grace_seconds: v.pipe(Finite, v.minValue(0)),
  first_alone_seconds: v.exactOptional(v.pipe(Finite, v.minValue(0))),
});

const AllocationSchema = v.object({
  provider: SchedulerName,
  native_id: text(128),
  cluster: v.nullable(looseText(1_024)),
  node: text(255),
});

export const StartSchema: v.GenericSchema<unknown, StartRecord> = v.variant("claimed_by", [
  v.object({
    record_version,
    claimed_by: v.literal("shim"),
    shim: ProcessIdentity,
    cgroup: v.nullable(Path),
    version: looseText(128),
    allocation: v.optional(AllocationSchema),
  }),
  v.object({ record_version, claimed_by: v.literal("worker"), reason: looseText(2_000) }),
]);

export const ProcessSchema: v.GenericSchema<unknown, ProcessRecord> = v.object({
  record_version,
  process: ProcessIdentity,
  started_at: Timestamp,
  workdir: v.optional(v.object({ path: Path, dev: Decimal, ino: Decimal })),
});

const ExitStreamSchema = v.object({ ...StreamCapture.entries, sha256: v.nullable(Sha256) });

export const ExitSchema: v.GenericSchema<unknown, ExitRecord> = v.object({
  record_version,
  outcome: v.object(Outcome.entries),
  started_at: v.nullable(Timestamp),
  ended_at: Timestamp,
  streams: v.object({ stdout: ExitStreamSchema, stderr: ExitStreamSchema }),
  usage: v.nullable(
    v.object({
      user_seconds: v.pipe(Finite, v.minValue(0)),
      system_seconds: v.pipe(Finite, v.minValue(0)),
      max_rss_bytes: ByteCount,
    }),
  ),
  leftover: Count,
  asked_to_end: v.optional(v.boolean()),
  memory_kills: v.optional(Count),
});

export const TruncationSchema: v.GenericSchema<unknown, TruncationRecord> = v.object({
  record_version,
  stream: LogStream,
  capture: v.object(StreamCapture.entries),
  at: Timestamp,
});
