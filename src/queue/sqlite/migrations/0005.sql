-- Schema 5: jobs in allocations of a scheduler.
-- The lane of jobs is one of three, which only a new table can say. Long columns stand last here, too.
CREATE TABLE jobs_of_lanes (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL UNIQUE,
  cluster TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('command', 'jarvis', 'remote_agent', 'mcp_call', 'input_ingest')),
  lane TEXT NOT NULL CHECK (lane IN ('workload', 'control', 'scheduler')),
  state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'running', 'succeeded', 'failed', 'canceled')),
  attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  voided_attempts INTEGER NOT NULL DEFAULT 0 CHECK (voided_attempts BETWEEN 0 AND attempts),
  -- whether it may be claimed; a column, so that the index alone can answer and count
  ready INTEGER NOT NULL DEFAULT 1,
  next_seq INTEGER NOT NULL DEFAULT 1 CHECK (next_seq >= 1),
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  leased_by TEXT,
  not_before TEXT,
  title TEXT NOT NULL,
  quarantine TEXT,
  last_error TEXT,
  outcome TEXT,
  cancellation_request TEXT,
  idempotency_key TEXT NOT NULL,
  owner_session_id TEXT,
  owner_session_generation_id TEXT,
  submission_digest TEXT NOT NULL CHECK (length(submission_digest) = 64),
  trace TEXT,
  used_artifact_refs TEXT NOT NULL,
  metadata TEXT NOT NULL,
  spec TEXT NOT NULL,
  CHECK ((owner_session_id IS NULL) = (owner_session_generation_id IS NULL)),
  CHECK ((leased_by IS NOT NULL) = (state IN ('leased', 'running'))),
  CHECK ((outcome IS NOT NULL) = (state IN ('succeeded', 'failed', 'canceled'))),
  CHECK (state NOT IN ('leased', 'running') OR attempts > 0),
  CHECK (not_before IS NULL OR state = 'queued'),
  CHECK (ready = (state = 'queued' AND not_before IS NULL AND quarantine IS NULL))
) STRICT;
INSERT INTO jobs_of_lanes (sequence, job_id, cluster, kind, lane, state, attempts, voided_attempts, ready, next_seq, created_at, updated_at,
    leased_by, not_before, title, quarantine, last_error, outcome, cancellation_request, idempotency_key, owner_session_id,
    owner_session_generation_id, submission_digest, trace, used_artifact_refs, metadata, spec)
  SELECT sequence, job_id, cluster, kind, lane, state, attempts, voided_attempts, ready, next_seq, created_at, updated_at,
    leased_by, not_before, title, quarantine, last_error, outcome, cancellation_request, idempotency_key, owner_session_id,
    owner_session_generation_id, submission_digest, trace, used_artifact_refs, metadata, spec FROM jobs ORDER BY sequence;
-- A number that was given out once is never given out again, not even that of a job that is gone.
DELETE FROM sqlite_sequence WHERE name = 'jobs_of_lanes';
UPDATE sqlite_sequence SET name = 'jobs_of_lanes' WHERE name = 'jobs';
DROP TABLE jobs;
ALTER TABLE jobs_of_lanes RENAME TO jobs;
CREATE INDEX jobs_ready ON jobs (lane, kind, ready, sequence) WHERE ready = 1;
CREATE INDEX jobs_delayed ON jobs (not_before) WHERE not_before IS NOT NULL;
CREATE INDEX jobs_active ON jobs (sequence) WHERE state IN ('queued', 'leased', 'running');
CREATE INDEX jobs_quarantined ON jobs (sequence) WHERE quarantine IS NOT NULL;

-- One row for each attempt that is, or may have been, submitted to a scheduler.
CREATE TABLE scheduler_jobs (
  job INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  -- the task that stands for it
  task INTEGER NOT NULL,
  provider TEXT NOT NULL CHECK (provider IN ('slurm', 'gridengine')),
  marker TEXT NOT NULL UNIQUE,
  submission TEXT NOT NULL DEFAULT 'intended' CHECK (submission IN ('intended', 'submitted', 'unresolved', 'refused')),
  native_id TEXT,
  scheduler_cluster TEXT,
  retained INTEGER NOT NULL DEFAULT 0 CHECK (retained IN (0, 1)),
  intended_at TEXT NOT NULL,
  submitted_at TEXT,
  observed_at TEXT,
  ended_at TEXT,
  status TEXT,
  PRIMARY KEY (job, attempt),
  UNIQUE (job, task),
  FOREIGN KEY (job, attempt) REFERENCES attempts (job, attempt),
  FOREIGN KEY (job, task) REFERENCES tasks (job, sequence),
  CHECK ((native_id IS NOT NULL) = (submission = 'submitted')),
  CHECK ((submitted_at IS NOT NULL) = (submission = 'submitted')),
  CHECK (scheduler_cluster IS NULL OR submission = 'submitted'),
  CHECK (retained = 0 OR submission = 'submitted'),
  CHECK (status IS NULL OR submission = 'submitted'),
  CHECK ((observed_at IS NULL) = (status IS NULL)),
  CHECK (ended_at IS NULL OR status IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX scheduler_jobs_native ON scheduler_jobs (native_id) WHERE native_id IS NOT NULL;
CREATE INDEX scheduler_jobs_open ON scheduler_jobs (job, attempt) WHERE ended_at IS NULL AND submission <> 'refused';
