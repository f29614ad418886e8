-- What a call wants done with the end of its turn, as a JSON list. Written with its result, so that it is done once.
ALTER TABLE tool_calls ADD COLUMN effects TEXT NOT NULL DEFAULT '[]';

-- Runs that a turn asked for: subagents, and other agents that were written to. Each has a session of its own.
CREATE TABLE children (
    -- Made of the call that asked for it, so that the same call makes the same run.
    run             TEXT    PRIMARY KEY,
    kin             TEXT    NOT NULL CHECK (kin IN ('child', 'peer')),
    session_key     TEXT    NOT NULL,
    inbox_id        INTEGER NOT NULL,
    agent_uid       TEXT    NOT NULL REFERENCES agents (uid),
    -- The turn that asked for it: its place, its message, its agent.
    parent_key      TEXT    NOT NULL,
    parent_inbox_id INTEGER NOT NULL,
    parent_uid      TEXT    NOT NULL REFERENCES agents (uid),
    -- On whose behalf.
    person          TEXT    NOT NULL,
    standing        TEXT    NOT NULL CHECK (standing IN ('guest', 'member', 'owner')),
    task            TEXT    NOT NULL,
    -- A JSON list; absent: all that the parent has.
    tools           TEXT,
    max_steps       INTEGER NOT NULL,
    afterwards      TEXT    NOT NULL CHECK (afterwards IN ('wait', 'announce', 'report')),
    hop             INTEGER NOT NULL,
    trace           TEXT    NOT NULL,
    state           TEXT    NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'finished', 'failed', 'stopped')),
    result          TEXT,
    steps           INTEGER NOT NULL DEFAULT 0,
    input_tokens    INTEGER NOT NULL DEFAULT 0,
    output_tokens   INTEGER NOT NULL DEFAULT 0,
    cached_tokens   INTEGER NOT NULL DEFAULT 0,
    -- 1: a turn of the parent was told what came of it.
    seen            INTEGER NOT NULL DEFAULT 0,
    started_at      INTEGER NOT NULL,
    ended_at        INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX children_of_turn ON children (parent_inbox_id);
CREATE INDEX children_of_place ON children (parent_key, seen);
CREATE INDEX children_running ON children (inbox_id) WHERE state = 'running';
