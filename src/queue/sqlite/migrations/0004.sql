-- Schema 4: the trace that a job belongs to, as its submission said.
ALTER TABLE jobs ADD COLUMN trace TEXT;
