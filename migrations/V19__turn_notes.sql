-- What ended turns took, stage by stage. The notes have numbers and names of models, tools and sections, and nobody's words.
CREATE TABLE turn_notes (
    turn_id INTEGER PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    -- JSON.
    notes   TEXT    NOT NULL,
    -- The prompt as it was sent, compressed. Only the newest turns of a place have one.
    prompt  BLOB
) STRICT;
CREATE INDEX turn_notes_with_prompt ON turn_notes (turn_id) WHERE prompt IS NOT NULL;

-- When words were last forgotten on request. A turn that began before may have read them, so its prompt is not kept.
CREATE TABLE prompts_forgotten (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL
) STRICT;

-- The model calls of a round, as JSON: those that failed, and the one that asked for the tools.
ALTER TABLE rounds ADD COLUMN calls TEXT NOT NULL DEFAULT '[]';
-- When the round was written, which is when its tools began.
ALTER TABLE rounds ADD COLUMN at INTEGER;
ALTER TABLE tool_calls ADD COLUMN ended_at INTEGER;

-- How long the platform asked to wait, all times together.
ALTER TABLE outbox ADD COLUMN waited_ms INTEGER NOT NULL DEFAULT 0;

-- Sign-ins from Telegram that were used, by the hash that Telegram signed them with. Each counts once.
CREATE TABLE mini_app_entries (
    hash  TEXT    PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
