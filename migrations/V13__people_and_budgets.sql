-- Roles and ids granted while the gateway runs, budgets of months and of the whole house, and the switch for background work.

-- Ids of one person on several platforms, as an owner has linked them. config.toml may name the same ids, and then counts.
CREATE TABLE person_links (
    -- Such as discord:8765.
    id             TEXT    PRIMARY KEY,
    -- The id that stands for the person.
    main           TEXT    NOT NULL,
    granted_by     TEXT    NOT NULL,
    granted_name   TEXT,
    granted_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Roles that an owner has given. A role in config.toml counts before them.
CREATE TABLE person_roles (
    -- The id that stands for the person.
    main           TEXT    NOT NULL,
    -- Empty: with all agents.
    agent_uid      TEXT    NOT NULL DEFAULT '',
    role           TEXT    NOT NULL CHECK (role IN ('guest', 'member', 'admin', 'owner')),
    granted_by     TEXT    NOT NULL,
    granted_name   TEXT,
    granted_at     INTEGER NOT NULL,
    PRIMARY KEY (main, agent_uid)
) STRICT, WITHOUT ROWID;

-- Names that an owner has given to people.
CREATE TABLE person_names (
    main           TEXT    PRIMARY KEY,
    name           TEXT    NOT NULL UNIQUE,
    granted_by     TEXT    NOT NULL,
    granted_name   TEXT,
    granted_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Counts up with every change of the three tables above, so that a running gateway notices changes of other processes.
CREATE TABLE people_revision (
    number INTEGER NOT NULL
) STRICT;
INSERT INTO people_revision (number) VALUES (0);

-- More than the limit, allowed for this day by an owner.
ALTER TABLE budgets ADD COLUMN more_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE budgets ADD COLUMN more_cost_micros INTEGER NOT NULL DEFAULT 0;

-- The same as `budgets`, by calendar month. In both tables the spender `house` is everybody together, and `warned` is 1 when the
-- owners were told that little is left, 2 when they were told that nothing is left.
CREATE TABLE month_budgets (
    -- The month at the gateway, such as 2026-01.
    month            TEXT    NOT NULL,
    spender          TEXT    NOT NULL,
    tokens           INTEGER NOT NULL DEFAULT 0,
    cost_micros      INTEGER NOT NULL DEFAULT 0,
    warned           INTEGER NOT NULL DEFAULT 0,
    more_tokens      INTEGER NOT NULL DEFAULT 0,
    more_cost_micros INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (month, spender)
) STRICT, WITHOUT ROWID;
INSERT INTO month_budgets (month, spender, tokens, cost_micros)
    SELECT substr(day, 1, 7), 'agent:' || agent_uid, sum(input_tokens + output_tokens), coalesce(sum(cost_micros), 0)
    FROM spending GROUP BY 1, 2
    UNION ALL
    SELECT substr(day, 1, 7), 'person:' || person, sum(input_tokens + output_tokens), coalesce(sum(cost_micros), 0)
    FROM spending GROUP BY 1, 2
    UNION ALL
    SELECT substr(day, 1, 7), 'house', sum(input_tokens + output_tokens), coalesce(sum(cost_micros), 0)
    FROM spending GROUP BY 1;
INSERT INTO budgets (day, spender, tokens, cost_micros)
    SELECT day, 'house', sum(input_tokens + output_tokens), coalesce(sum(cost_micros), 0) FROM spending GROUP BY day;

-- Work that an owner has paused, such as 'background'.
CREATE TABLE pauses (
    what      TEXT    PRIMARY KEY,
    set_by    TEXT    NOT NULL,
    set_name  TEXT,
    set_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
