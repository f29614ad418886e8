-- Calls of tools that wait for a person's yes or no, and those that have got one.
CREATE TABLE approvals (
    id              INTEGER PRIMARY KEY,
    -- The call: its turn by the first inbox row, its round, and its number in the round.
    inbox_id        INTEGER NOT NULL,
    round           INTEGER NOT NULL,
    number          INTEGER NOT NULL,
    -- Where the people of the turn are.
    place_id        INTEGER NOT NULL REFERENCES places (id),
    agent_uid       TEXT    NOT NULL,
    tool            TEXT    NOT NULL,
    -- As people are shown them, cut to a bound.
    arguments       TEXT    NOT NULL,
    -- SHA-256 of the tool's name and all of the arguments.
    hash            TEXT    NOT NULL,
    -- The rule that asks.
    why             TEXT    NOT NULL,
    -- What the turn had read.
    labels          INTEGER NOT NULL,
    -- For whom the turn is, with their role at the time.
    person          TEXT    NOT NULL,
    person_name     TEXT    NOT NULL,
    role            TEXT    NOT NULL,
    -- The lowest role that decides.
    least           TEXT    NOT NULL,
    -- 'waiting', 'allowed', 'refused', 'expired' or 'cancelled'.
    state           TEXT    NOT NULL DEFAULT 'waiting',
    decided_by      TEXT,
    decided_by_name TEXT,
    asked_at        INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    decided_at      INTEGER,
    -- Written before an allowed call runs.
    began_at        INTEGER,
    -- Rows of the outbox that show it, as a JSON list.
    notices         TEXT    NOT NULL DEFAULT '[]',
    -- 1: the messages show how it ended.
    told            INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX approvals_of_call ON approvals (inbox_id, round);
CREATE INDEX approvals_waiting ON approvals (expires_at) WHERE state = 'waiting';
CREATE INDEX approvals_untold ON approvals (id) WHERE told = 0 AND state <> 'waiting';
CREATE INDEX approvals_of_place ON approvals (place_id);
CREATE INDEX approvals_of_agent ON approvals (agent_uid);
