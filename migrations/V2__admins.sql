-- Admins are a role of their own, so the rows of subagents may say so.

CREATE TABLE subagents_with_admins (
    -- Made of the tool call that asked for the subagent, so that the same call makes the same subagent.
    run             TEXT    PRIMARY KEY,
    relation        TEXT    NOT NULL CHECK (relation IN ('subagent', 'peer')),
    place_id        INTEGER NOT NULL,
    inbox_id        INTEGER NOT NULL,
    agent_uid       TEXT    NOT NULL REFERENCES agents (uid),
    -- The turn that asked for the subagent: its place, its message, its agent.
    parent_place_id INTEGER NOT NULL,
    parent_inbox_id INTEGER NOT NULL,
    parent_uid      TEXT    NOT NULL REFERENCES agents (uid),
    -- The person on whose behalf the subagent works.
    person          TEXT    NOT NULL,
    role            TEXT    NOT NULL CHECK (role IN ('guest', 'member', 'admin', 'owner')),
    task            TEXT    NOT NULL,
    -- A JSON list; absent: all tools of the parent.
    tools           TEXT,
    max_steps       INTEGER NOT NULL,
    on_finish       TEXT    NOT NULL CHECK (on_finish IN ('wait', 'announce', 'report')),
    hop             INTEGER NOT NULL,
    trace           TEXT    NOT NULL,
    state           TEXT    NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'finished', 'failed', 'stopped')),
    result          TEXT,
    steps           INTEGER NOT NULL DEFAULT 0,
    input_tokens    INTEGER NOT NULL DEFAULT 0,
    output_tokens   INTEGER NOT NULL DEFAULT 0,
    cached_tokens   INTEGER NOT NULL DEFAULT 0,
    -- 1: a turn of the parent was told the result.
    seen            INTEGER NOT NULL DEFAULT 0,
    started_at      INTEGER NOT NULL,
    ended_at        INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO subagents_with_admins SELECT * FROM subagents;
DROP TABLE subagents;
ALTER TABLE subagents_with_admins RENAME TO subagents;
CREATE INDEX subagents_of_turn ON subagents (parent_inbox_id);
CREATE INDEX subagents_of_place ON subagents (parent_place_id, seen);
CREATE INDEX subagents_running ON subagents (inbox_id) WHERE state = 'running';
