-- Schema 2: who used whose artifacts, and what was done with them.
-- The artifact is named by its place, the job that left it and its number there. A foreign key without an action keeps that row, and with it the
-- producer, for as long as the edge is there; an edge goes with its consumer.
CREATE TABLE used_artifacts (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  consumer INTEGER NOT NULL REFERENCES jobs (sequence),
  producer INTEGER NOT NULL,
  artifact INTEGER NOT NULL,
  sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
  created_at TEXT NOT NULL,
  provenance TEXT,
  FOREIGN KEY (producer, artifact) REFERENCES artifacts (job, sequence)
) STRICT;
CREATE INDEX used_artifacts_consumer ON used_artifacts (consumer, sequence);
CREATE INDEX used_artifacts_producer ON used_artifacts (producer, artifact, sequence);

CREATE TABLE transforms (
  job INTEGER PRIMARY KEY REFERENCES jobs (sequence),
  digest TEXT NOT NULL CHECK (length(digest) = 64),
  created_at TEXT NOT NULL,
  transform TEXT NOT NULL
) STRICT;

-- Jobs of schema 1 have their pins in their record only. Those that never fitted an artifact stay there.
INSERT INTO used_artifacts (consumer, producer, artifact, sha256, created_at)
  SELECT jobs.sequence, a.job, a.sequence, a.sha256, jobs.created_at
  FROM jobs, json_each(jobs.used_artifact_refs) AS pin, artifacts AS a
  WHERE jobs.used_artifact_refs <> '[]' AND json_valid(jobs.used_artifact_refs)
    AND a.artifact_id = pin.value ->> 'artifact_id' AND a.sha256 = pin.value ->> 'sha256'
  ORDER BY jobs.sequence, a.artifact_id;
