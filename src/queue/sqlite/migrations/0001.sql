-- Schema 1. Timestamps are ISO 8601 UTC text; JSON columns hold one object or array each.
-- `job` is jobs.sequence: it only grows, so the rows of new jobs lie together at the end of each table and one
-- commit of many jobs touches few pages. Long columns stand last, so that reading the others does not follow them.
CREATE TABLE jobs (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL UNIQUE,
  cluster TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('command', 'jarvis', 'remote_agent', 'mcp_call', 'input_ingest')),
  lane TEXT NOT NULL CHECK (lane IN ('workload', 'control')),
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
CREATE INDEX jobs_ready ON jobs (lane, kind, ready, sequence) WHERE ready = 1;
CREATE INDEX jobs_delayed ON jobs (not_before) WHERE not_before IS NOT NULL;
CREATE INDEX jobs_active ON jobs (sequence) WHERE state IN ('queued', 'leased', 'running');
CREATE INDEX jobs_quarantined ON jobs (sequence) WHERE quarantine IS NOT NULL;

-- Kept apart from jobs, so that a key outlives its job as a tombstone. owner_session_id is '' where there is none.
CREATE TABLE idempotency (
  owner_session_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  job_id TEXT NOT NULL,
  job_digest TEXT NOT NULL CHECK (length(job_digest) = 64),
  state TEXT NOT NULL CHECK (state IN ('committed', 'retired')),
  PRIMARY KEY (owner_session_id, idempotency_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  job INTEGER NOT NULL REFERENCES jobs (sequence),
  sequence INTEGER NOT NULL CHECK (sequence >= 1),
  task_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'canceled')),
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  next_seq INTEGER NOT NULL DEFAULT 1 CHECK (next_seq >= 1),
  PRIMARY KEY (job, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  job INTEGER NOT NULL REFERENCES jobs (sequence),
  seq INTEGER NOT NULL CHECK (seq >= 1),
  event_type TEXT NOT NULL,
  message TEXT NOT NULL,
  level TEXT NOT NULL CHECK (level IN ('info', 'warning', 'error')),
  payload TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (job, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE task_events (
  job INTEGER NOT NULL,
  task INTEGER NOT NULL,
  seq INTEGER NOT NULL CHECK (seq >= 1),
  event_type TEXT NOT NULL,
  label TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('planned', 'running', 'succeeded', 'warning', 'error', 'canceled')),
  summary TEXT NOT NULL,
  detail TEXT,
  path_refs TEXT NOT NULL,
  artifact_refs TEXT NOT NULL,
  metadata TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (job, task, seq),
  FOREIGN KEY (job, task) REFERENCES tasks (job, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE progress (
  job INTEGER NOT NULL REFERENCES jobs (sequence),
  sequence INTEGER NOT NULL CHECK (sequence >= 1),
  progress_id TEXT NOT NULL,
  label TEXT NOT NULL,
  current REAL,
  total REAL CHECK (total IS NULL OR total > 0),
  unit TEXT,
  message TEXT,
  source_event_seq INTEGER,
  metadata TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (job, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX progress_latest ON progress (job, label, sequence);

CREATE TABLE artifacts (
  job INTEGER NOT NULL REFERENCES jobs (sequence),
  sequence INTEGER NOT NULL CHECK (sequence >= 1),
  artifact_id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  uri TEXT NOT NULL,
  size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
  sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
  metadata TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (job, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
  job INTEGER NOT NULL REFERENCES jobs (sequence),
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  state TEXT NOT NULL CHECK (state IN ('claimed', 'running', 'ended', 'void')),
  shim TEXT,
  process TEXT,
  claimed_at TEXT NOT NULL,
  started_at TEXT,
  ended_at TEXT,
  outcome TEXT,
  PRIMARY KEY (job, attempt),
  CHECK ((ended_at IS NOT NULL) = (state IN ('ended', 'void'))),
  CHECK ((outcome IS NOT NULL) = (state = 'ended')),
  CHECK (state <> 'running' OR shim IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_open ON attempts (job) WHERE state IN ('claimed', 'running');

CREATE TABLE leases (
  job INTEGER PRIMARY KEY REFERENCES jobs (sequence),
  lease_id TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  kind TEXT NOT NULL,
  lane TEXT NOT NULL,
  acquired_at TEXT NOT NULL,
  expires_at TEXT NOT NULL
) STRICT;

-- How far an attempt's files were turned into records; committed together with those records.
CREATE TABLE segments (
  job INTEGER NOT NULL REFERENCES jobs (sequence),
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  stream TEXT NOT NULL CHECK (stream IN ('stdout', 'stderr')),
  base INTEGER NOT NULL CHECK (base >= 0),
  length INTEGER NOT NULL DEFAULT 0 CHECK (length >= 0),
  -- seq of the event that says the stream was cut
  truncated_seq INTEGER,
  capture TEXT,
  PRIMARY KEY (job, attempt, stream)
) STRICT, WITHOUT ROWID;

CREATE TABLE emit_offsets (
  job INTEGER NOT NULL REFERENCES jobs (sequence),
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  file TEXT NOT NULL,
  next_offset INTEGER NOT NULL CHECK (next_offset >= 0),
  PRIMARY KEY (job, attempt, file)
) STRICT, WITHOUT ROWID;

CREATE TABLE endpoints (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  endpoint_id TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('worker', 'desktop')),
  cluster TEXT NOT NULL,
  process TEXT NOT NULL,
  version TEXT NOT NULL,
  capacity TEXT NOT NULL,
  registered_at TEXT NOT NULL,
  last_seen_at TEXT NOT NULL,
  stopped_at TEXT,
  lane_last_error TEXT
) STRICT;
