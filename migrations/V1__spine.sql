-- Agents the gateway has known. Other rows hang on the uid, so a renamed agent keeps them.
CREATE TABLE agents (
    uid             TEXT    PRIMARY KEY,
    slug            TEXT    NOT NULL UNIQUE,
    created_at      INTEGER NOT NULL,
    -- When its first turn finished; BOOTSTRAP.md is in the prompt until then.
    bootstrapped_at INTEGER
) STRICT, WITHOUT ROWID;

-- Everything accepted from a platform. A row is written before the platform is told that we have it.
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY,
    platform    TEXT    NOT NULL,
    update_id   TEXT    NOT NULL,
    session_key TEXT,
    state       TEXT    NOT NULL CHECK (state IN ('waiting', 'done', 'refused', 'failed', 'broken')),
    -- Why it ended as it did, for the operator.
    outcome     TEXT,
    -- The message as JSON while it waits; the raw update of a broken one.
    payload     TEXT,
    received_at INTEGER NOT NULL,
    closed_at   INTEGER,
    UNIQUE (platform, update_id)
) STRICT;
CREATE INDEX inbox_waiting ON inbox (id) WHERE state = 'waiting';
CREATE INDEX inbox_closed ON inbox (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX inbox_broken ON inbox (id) WHERE state = 'broken';

-- One row per place that ever had a turn.
CREATE TABLE sessions (
    key          TEXT    PRIMARY KEY,
    -- Counts up with every /new.
    conversation INTEGER NOT NULL DEFAULT 1,
    created_at   INTEGER NOT NULL,
    active_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A place's agent, set from chat.
CREATE TABLE pins (
    session_key TEXT    NOT NULL,
    -- 1: for the next message only; stands over the lasting one.
    once        INTEGER NOT NULL DEFAULT 0,
    agent_uid   TEXT    NOT NULL REFERENCES agents (uid),
    set_by      TEXT    NOT NULL,
    set_at      INTEGER NOT NULL,
    PRIMARY KEY (session_key, once)
) STRICT, WITHOUT ROWID;

-- What topics are called, as far as Telegram ever told.
CREATE TABLE topic_names (
    place TEXT PRIMARY KEY,
    name  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What was said in a place.
CREATE TABLE messages (
    id           INTEGER PRIMARY KEY,
    session_key  TEXT    NOT NULL,
    conversation INTEGER NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind IN ('person', 'agent', 'handoff')),
    agent_uid    TEXT    REFERENCES agents (uid),
    person       TEXT,
    person_name  TEXT,
    text         TEXT    NOT NULL,
    meta_json    TEXT    NOT NULL DEFAULT '{"v":1}',
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_of_conversation ON messages (session_key, conversation, id);

-- One row per run of an agent.
CREATE TABLE turns (
    id            INTEGER PRIMARY KEY,
    inbox_id      INTEGER NOT NULL,
    session_key   TEXT    NOT NULL,
    agent_uid     TEXT    NOT NULL REFERENCES agents (uid),
    model         TEXT    NOT NULL,
    route         TEXT    NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER NOT NULL,
    outcome       TEXT    NOT NULL,
    steps         INTEGER NOT NULL DEFAULT 0,
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cached_tokens INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX turns_by_end ON turns (ended_at);

-- What is to be sent. One row is one call to the platform.
CREATE TABLE outbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    place       TEXT    NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('final', 'command', 'notice', 'error')),
    -- As the channel rendered it.
    part        TEXT    NOT NULL,
    inbox_id    INTEGER,
    state       TEXT    NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sending', 'sent', 'failed')),
    attempts    INTEGER NOT NULL DEFAULT 0,
    -- 1: a call's answer was never seen, so it was made again.
    repeated    INTEGER NOT NULL DEFAULT 0,
    not_before  INTEGER NOT NULL DEFAULT 0,
    error       TEXT,
    message_id  TEXT,
    created_at  INTEGER NOT NULL,
    sent_at     INTEGER
) STRICT;
CREATE INDEX outbox_open ON outbox (place, id) WHERE state IN ('waiting', 'sending');
CREATE INDEX outbox_sent ON outbox (sent_at) WHERE sent_at IS NOT NULL;
CREATE INDEX outbox_failed ON outbox (id) WHERE state = 'failed';
CREATE INDEX outbox_repeated ON outbox (id) WHERE repeated = 1;

-- Keys the gateway made for itself.
CREATE TABLE keys (
    name   TEXT PRIMARY KEY,
    secret BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Command menus as Telegram was last told them.
CREATE TABLE telegram_menus (
    scope TEXT PRIMARY KEY,
    menu  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- People who are no owners: what they may do, and whether they were told how to get in.
CREATE TABLE people (
    id           TEXT    PRIMARY KEY,
    name         TEXT    NOT NULL,
    -- Set once an owner let them in.
    paired_at    INTEGER,
    paired_by    TEXT,
    -- The code they were told, and until when it counts.
    code         TEXT    UNIQUE,
    code_until   INTEGER,
    created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX people_with_code ON people (code_until) WHERE code_until IS NOT NULL;
