-- Schema 3: whether any input on record has a content.
CREATE INDEX artifacts_input ON artifacts (sha256) WHERE kind = 'input';
