-- Failed answers can be tried again, and owners are told about providers.

-- Providers, or single models of theirs, that owners were told about.
CREATE TABLE provider_notices (
    -- openai, or openai/gpt-5.4
    subject TEXT    NOT NULL PRIMARY KEY,
    -- The kind of trouble; absent once the provider has answered again.
    trouble TEXT,
    told_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- From here on, the row of a message whose turn failed keeps its payload, so that the turn can be tried again.
CREATE INDEX inbox_retryable ON inbox (id) WHERE state = 'failed' AND payload IS NOT NULL;
