-- What was spent, by day. `/usage` adds these up.
CREATE TABLE spending (
    -- The day where the gateway runs, as 2026-01-31.
    day           TEXT    NOT NULL,
    agent_uid     TEXT    NOT NULL REFERENCES agents (uid),
    session_key   TEXT    NOT NULL,
    person        TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    turns         INTEGER NOT NULL DEFAULT 0,
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    -- Part of the input.
    cached_tokens INTEGER NOT NULL DEFAULT 0,
    -- In millionths of the money the prices are in. Absent: the model has no price.
    cost_micros   INTEGER,
    PRIMARY KEY (day, agent_uid, session_key, person, model)
) STRICT, WITHOUT ROWID;

-- The same for each agent and each person, ready to be compared with their limits.
CREATE TABLE budgets (
    day         TEXT    NOT NULL,
    -- agent:<uid> or person:<id>.
    spender     TEXT    NOT NULL,
    tokens      INTEGER NOT NULL DEFAULT 0,
    cost_micros INTEGER NOT NULL DEFAULT 0,
    -- 1: the owners were told that little is left.
    warned      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, spender)
) STRICT, WITHOUT ROWID;

-- Places that were told that a limit is reached, and until when that need not be said again.
CREATE TABLE budget_notices (
    session_key TEXT    NOT NULL,
    spender     TEXT    NOT NULL,
    until       INTEGER NOT NULL,
    PRIMARY KEY (session_key, spender)
) STRICT, WITHOUT ROWID;
