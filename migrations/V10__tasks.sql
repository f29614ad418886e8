-- Turns that have asked for tools and are not over. With their rounds and calls they can be gone on with by another process.
CREATE TABLE tasks (
    -- The message that is answered.
    inbox_id    INTEGER PRIMARY KEY,
    session_key TEXT    NOT NULL,
    agent_uid   TEXT    NOT NULL REFERENCES agents (uid),
    -- All messages that are answered with it, as a JSON list of their inbox ids.
    members     TEXT    NOT NULL,
    -- What is to be answered, as the agent read it.
    question    TEXT    NOT NULL,
    -- 1: put aside for what was said meanwhile; the transcript has the question already.
    parked      INTEGER NOT NULL DEFAULT 0,
    started_at  INTEGER NOT NULL
) STRICT;

-- One row per model call of a task that wanted tools.
CREATE TABLE rounds (
    inbox_id      INTEGER NOT NULL REFERENCES tasks (inbox_id) ON DELETE CASCADE,
    number        INTEGER NOT NULL,
    text          TEXT    NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    PRIMARY KEY (inbox_id, number)
) STRICT, WITHOUT ROWID;

-- One row per tool call, written before it is run.
CREATE TABLE tool_calls (
    inbox_id  INTEGER NOT NULL,
    round     INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    call_id   TEXT    NOT NULL,
    tool      TEXT    NOT NULL,
    arguments TEXT    NOT NULL,
    -- What the model was told; absent while it runs.
    result    TEXT,
    PRIMARY KEY (inbox_id, round, number),
    FOREIGN KEY (inbox_id, round) REFERENCES rounds (inbox_id, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- What the gateway decided about messages that came while a place was busy.
CREATE TABLE decisions (
    id          INTEGER PRIMARY KEY,
    session_key TEXT    NOT NULL,
    inbox_id    INTEGER NOT NULL,
    what        TEXT    NOT NULL,
    at          INTEGER NOT NULL
) STRICT;
CREATE INDEX decisions_of_place ON decisions (session_key, id);
CREATE INDEX decisions_by_age ON decisions (at);
