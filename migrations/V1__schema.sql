-- The first schema. Times are Unix milliseconds, lengths of time are milliseconds, yes and no are 1 and 0.
-- Rows hang on the uid of an agent and on the id of a place, so a renamed agent and a moved group keep them. A `place_id` is not
-- declared as a reference: the places of subagents are deleted some day, and SQLite would look through every table for each.

-- Agents that the gateway has known.
CREATE TABLE agents (
    uid             TEXT    PRIMARY KEY,
    -- The agent's id. A removed agent has the path of its files here, which no living agent can be called.
    slug            TEXT    NOT NULL UNIQUE,
    created_at      INTEGER NOT NULL,
    -- When the first turn finished; BOOTSTRAP.md is in the prompt until then.
    bootstrapped_at INTEGER,
    archived_at     INTEGER,
    -- The id of a removed agent.
    archived_id     TEXT
) STRICT, WITHOUT ROWID;

-- Former ids of renamed agents. People may go on using an old id for a while.
CREATE TABLE agent_former_ids (
    id        TEXT    PRIMARY KEY,
    agent_uid TEXT    NOT NULL REFERENCES agents (uid),
    until     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Places: topics, threads, channels, groups, private chats, and the sessions of subagents.
CREATE TABLE places (
    -- Never given twice, because other rows are named after it.
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The session key, such as telegram:topic:-1001234567890:101.
    key          TEXT    NOT NULL UNIQUE,
    -- The topic's or thread's name, as far as the platform ever told.
    name         TEXT,
    -- Counts up with every /new.
    conversation INTEGER NOT NULL DEFAULT 1,
    -- When the place was last used; absent for a place without a conversation.
    active_at    INTEGER,
    created_at   INTEGER NOT NULL
) STRICT;

-- Groups that became supergroups, and so have another id. Bindings may still name the old id.
CREATE TABLE chat_aliases (
    old INTEGER PRIMARY KEY,
    new INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

-- Agents given to places with /agent.
CREATE TABLE pins (
    place_id  INTEGER NOT NULL,
    -- 1: for the next message only; stands over the lasting pin.
    once      INTEGER NOT NULL DEFAULT 0,
    agent_uid TEXT    NOT NULL REFERENCES agents (uid),
    set_by    TEXT    NOT NULL,
    set_at    INTEGER NOT NULL,
    PRIMARY KEY (place_id, once)
) STRICT, WITHOUT ROWID;

-- Models given to places with /model.
CREATE TABLE model_overrides (
    place_id INTEGER PRIMARY KEY,
    -- provider/model; counts only while the place's agent may use it.
    model    TEXT    NOT NULL,
    set_by   TEXT    NOT NULL,
    set_at   INTEGER NOT NULL
) STRICT;

-- Updates accepted from platforms. A row is written before the platform is told that the update has arrived.
CREATE TABLE inbox (
    -- Never given twice: other rows, the names of subagents (7-0-0) and of their sessions (child:7-0-0) are made of it.
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    platform    TEXT    NOT NULL,
    update_id   TEXT    NOT NULL,
    place_id    INTEGER,
    state       TEXT    NOT NULL CHECK (state IN ('waiting', 'done', 'refused', 'failed', 'broken')),
    -- Why the row was closed, for the operator.
    outcome     TEXT,
    -- The message as JSON while it waits; the raw text of a broken update.
    payload     TEXT,
    received_at INTEGER NOT NULL,
    closed_at   INTEGER,
    UNIQUE (platform, update_id)
) STRICT;
CREATE INDEX inbox_waiting ON inbox (id) WHERE state = 'waiting';
CREATE INDEX inbox_closed ON inbox (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX inbox_broken ON inbox (id) WHERE state = 'broken';

-- The transcripts of places.
CREATE TABLE messages (
    -- Never given twice, because summaries and turns end at one.
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    place_id     INTEGER NOT NULL,
    conversation INTEGER NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind IN ('person', 'agent', 'handoff')),
    -- The inbox row whose turn this is part of: the questions of a turn and its answer have the same.
    inbox_id     INTEGER,
    -- The speaker, if an agent.
    agent_uid    TEXT    REFERENCES agents (uid),
    -- The agent whose part of the conversation this is: the speaker, or the agent that was spoken to.
    part_uid     TEXT    REFERENCES agents (uid),
    -- The speaker, or the person on whose behalf an agent spoke.
    person       TEXT,
    person_name  TEXT,
    text         TEXT    NOT NULL,
    meta_json    TEXT    NOT NULL DEFAULT '{"v":1}',
    -- The platform's ids of the messages that the text came in, with a space around each.
    written_as   TEXT,
    -- 1: talk among people. Only the newest of a place is kept.
    observed     INTEGER NOT NULL DEFAULT 0,
    created_at   INTEGER NOT NULL,
    -- When the text was taken out because its message was deleted.
    deleted_at   INTEGER
) STRICT;
CREATE INDEX messages_of_conversation ON messages (place_id, conversation, id);
CREATE INDEX messages_of_part ON messages (place_id, conversation, part_uid, id);
CREATE INDEX messages_observed ON messages (place_id, id) WHERE observed = 1;
CREATE INDEX messages_written_as ON messages (written_as) WHERE written_as IS NOT NULL;
CREATE INDEX messages_of_several ON messages (id) WHERE instr(trim(written_as), ' ') > 0;

-- Summaries of the older part of long conversations. The messages themselves stay.
CREATE TABLE summaries (
    place_id     INTEGER NOT NULL,
    conversation INTEGER NOT NULL,
    -- The uid of the agent whose part is summed up; empty: the whole conversation.
    part         TEXT    NOT NULL,
    -- The last message that the summary covers.
    upto         INTEGER NOT NULL,
    -- The number of messages that the summary covers.
    messages     INTEGER NOT NULL,
    agent_uid    TEXT    NOT NULL REFERENCES agents (uid),
    text         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (place_id, conversation, part)
) STRICT, WITHOUT ROWID;

-- Finished turns.
CREATE TABLE turns (
    id            INTEGER PRIMARY KEY,
    inbox_id      INTEGER NOT NULL,
    place_id      INTEGER NOT NULL,
    agent_uid     TEXT    NOT NULL REFERENCES agents (uid),
    model         TEXT    NOT NULL,
    route         TEXT    NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER NOT NULL,
    outcome       TEXT    NOT NULL,
    steps         INTEGER NOT NULL DEFAULT 0,
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    -- Part of the input.
    cached_tokens INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX turns_by_end ON turns (ended_at);
CREATE INDEX turns_of_place ON turns (place_id, id);

-- Turns that asked for tools and are not finished. With its rounds and calls, another process can go on with a turn.
CREATE TABLE open_turns (
    -- The message that is answered.
    inbox_id   INTEGER PRIMARY KEY,
    place_id   INTEGER NOT NULL,
    agent_uid  TEXT    NOT NULL REFERENCES agents (uid),
    -- All messages that are answered with this turn, as a JSON list of inbox ids.
    members    TEXT    NOT NULL,
    -- The question, as the agent read it.
    question   TEXT    NOT NULL,
    -- The newest row of the transcript when the turn began.
    read_upto  INTEGER NOT NULL,
    -- 1: parked for other messages; the transcript has the question already.
    parked     INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL
) STRICT;

-- Model calls of unfinished turns that asked for tools.
CREATE TABLE rounds (
    inbox_id      INTEGER NOT NULL REFERENCES open_turns (inbox_id) ON DELETE CASCADE,
    number        INTEGER NOT NULL,
    text          TEXT    NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    PRIMARY KEY (inbox_id, number)
) STRICT, WITHOUT ROWID;

-- Tool calls of unfinished turns, each written before it runs.
CREATE TABLE tool_calls (
    inbox_id  INTEGER NOT NULL,
    round     INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    call_id   TEXT    NOT NULL,
    tool      TEXT    NOT NULL,
    arguments TEXT    NOT NULL,
    -- The result that the model was told; absent while the call runs.
    result    TEXT,
    -- Effects that take place with the end of the turn, as a JSON list. Written with the result, so that each happens once.
    effects   TEXT    NOT NULL DEFAULT '[]',
    PRIMARY KEY (inbox_id, round, number),
    FOREIGN KEY (inbox_id, round) REFERENCES rounds (inbox_id, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Subagents, and agents that another agent has written to. Each has a session of its own.
CREATE TABLE subagents (
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
    role            TEXT    NOT NULL CHECK (role IN ('guest', 'member', 'owner')),
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
CREATE INDEX subagents_of_turn ON subagents (parent_inbox_id);
CREATE INDEX subagents_of_place ON subagents (parent_place_id, seen);
CREATE INDEX subagents_running ON subagents (inbox_id) WHERE state = 'running';

-- Decisions about messages that came while a place was busy.
CREATE TABLE decisions (
    id       INTEGER PRIMARY KEY,
    place_id INTEGER NOT NULL,
    inbox_id INTEGER NOT NULL,
    what     TEXT    NOT NULL,
    at       INTEGER NOT NULL
) STRICT;
CREATE INDEX decisions_of_place ON decisions (place_id, id);
CREATE INDEX decisions_by_age ON decisions (at);

-- Tokens and money spent, by day. /usage adds these up.
CREATE TABLE spending (
    -- The day at the gateway, such as 2026-01-31.
    day           TEXT    NOT NULL,
    agent_uid     TEXT    NOT NULL REFERENCES agents (uid),
    place_id      INTEGER NOT NULL,
    person        TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    turns         INTEGER NOT NULL DEFAULT 0,
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cached_tokens INTEGER NOT NULL DEFAULT 0,
    -- In millionths of the prices' currency. Absent: the model has no price.
    cost_micros   INTEGER,
    PRIMARY KEY (day, agent_uid, place_id, person, model)
) STRICT, WITHOUT ROWID;

-- The same by agent and by person, ready to be compared with their limits.
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
    place_id INTEGER NOT NULL,
    spender  TEXT    NOT NULL,
    until    INTEGER NOT NULL,
    PRIMARY KEY (place_id, spender)
) STRICT, WITHOUT ROWID;

-- Messages to be sent. One row is one call to the platform.
CREATE TABLE outbox (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    place_id       INTEGER NOT NULL,
    kind           TEXT    NOT NULL CHECK (kind IN ('final', 'command', 'notice', 'error')),
    -- As the channel rendered it.
    part           TEXT    NOT NULL,
    -- The message that the row changes instead of sending a new one. With an empty part that message is deleted.
    target         TEXT,
    -- The copy in the home's folder `outgoing` that the row sends. The copy is removed once the row is sent.
    file           TEXT,
    -- The message that is answered.
    inbox_id       INTEGER,
    -- The row of the transcript with the text; absent where no agent speaks.
    said_id        INTEGER,
    state          TEXT    NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sending', 'sent', 'failed')),
    attempts       INTEGER NOT NULL DEFAULT 0,
    -- 1: the answer to a call was never seen, so the call was made again.
    repeated       INTEGER NOT NULL DEFAULT 0,
    not_before     INTEGER NOT NULL DEFAULT 0,
    -- The length of the wait that `not_before` ends. No wait is longer, whatever the clock says.
    wait_ms        INTEGER NOT NULL DEFAULT 0,
    -- How long the row has been tried so far, in time that passed while a process ran.
    tried_ms       INTEGER NOT NULL DEFAULT 0,
    -- 1: the operator asked for a failed row to be sent again at the next start.
    retry_at_start INTEGER NOT NULL DEFAULT 0,
    error          TEXT,
    message_id     TEXT,
    created_at     INTEGER NOT NULL,
    sent_at        INTEGER
) STRICT;
CREATE INDEX outbox_open ON outbox (place_id, id) WHERE state IN ('waiting', 'sending');
CREATE INDEX outbox_sent ON outbox (sent_at) WHERE sent_at IS NOT NULL;
CREATE INDEX outbox_failed ON outbox (id) WHERE state = 'failed';
CREATE INDEX outbox_failed_of_place ON outbox (place_id, id) WHERE state = 'failed';
CREATE INDEX outbox_repeated ON outbox (id) WHERE repeated = 1;

-- Messages that show an answer while it is written. The finished answer is put there, also after a restart.
CREATE TABLE preview_messages (
    inbox_id   INTEGER NOT NULL,
    -- The part of the answer that the message shows, from 0.
    number     INTEGER NOT NULL,
    place_id   INTEGER NOT NULL,
    message_id TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (inbox_id, number)
) STRICT, WITHOUT ROWID;

-- Chats in which the platform asked the bot to wait.
CREATE TABLE chat_waits (
    platform TEXT    NOT NULL,
    chat     INTEGER NOT NULL,
    until    INTEGER NOT NULL,
    -- The length of the wait. No wait is longer, whatever the clock says.
    wait_ms  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (platform, chat)
) STRICT, WITHOUT ROWID;

-- People who are no owners.
CREATE TABLE people (
    id         TEXT    PRIMARY KEY,
    name       TEXT    NOT NULL,
    -- Set once an owner let the person in.
    paired_at  INTEGER,
    paired_by  TEXT,
    -- The pairing code that the person was told, and its end.
    code       TEXT    UNIQUE,
    code_until INTEGER,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX people_with_code ON people (code_until) WHERE code_until IS NOT NULL;

-- Memories of agents. A row belongs to one agent for good; its visibility says which other agents see it.
CREATE TABLE memories (
    -- Never given twice, so that a late "forget 12" cannot mean another row.
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The row in the index; absent while archived. Slots of one scope stand side by side, so that ranking the rows of a scope
    -- touches few pages however many rows other scopes have in between.
    slot          INTEGER UNIQUE,
    agent_uid     TEXT    NOT NULL REFERENCES agents (uid),
    visibility    TEXT    NOT NULL CHECK (visibility IN ('private', 'global', 'archived')),
    -- The visibility before archiving, for a restore.
    archived_from TEXT    CHECK (archived_from IN ('private', 'global')),
    source        TEXT    NOT NULL CHECK (source IN ('saved', 'file')),
    -- The file that the row is a piece of, such as MEMORY.md, seen from the agent's folder.
    path          TEXT,
    text          TEXT    NOT NULL,
    -- Where and by whom it was said, as far as known.
    place_id      INTEGER,
    person        TEXT,
    created_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX memories_of_agent ON memories (agent_uid, visibility, source);
CREATE INDEX memories_of_file ON memories (agent_uid, path) WHERE path IS NOT NULL;
CREATE INDEX memories_global ON memories (source) WHERE visibility = 'global';

-- A short number for each agent, with which its words begin in the index. 0 stands for global rows and belongs to no agent.
CREATE TABLE memory_scopes (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_uid TEXT    UNIQUE REFERENCES agents (uid),
    -- Slots given out so far.
    slots     INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO memory_scopes (number) VALUES (0);

-- The words of all rows that are not archived. Each word begins with the number of its scope, so that a search walks through the
-- rows of one scope only.
CREATE VIRTUAL TABLE memories_fts USING fts5 (
    words,
    content = '',
    contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Files as they were when their pieces were taken into `memories`.
CREATE TABLE memory_files (
    agent_uid TEXT NOT NULL REFERENCES agents (uid),
    path      TEXT NOT NULL,
    -- Size, time and so on in one text: another text, another file.
    stamp     TEXT NOT NULL,
    PRIMARY KEY (agent_uid, path)
) STRICT, WITHOUT ROWID;

-- Keys that the gateway made for itself.
CREATE TABLE keys (
    name   TEXT PRIMARY KEY,
    secret BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Command menus as Telegram was last told them.
CREATE TABLE telegram_menus (
    scope TEXT PRIMARY KEY,
    menu  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Slash commands as Discord was last told them.
CREATE TABLE discord_commands (
    application INTEGER PRIMARY KEY,
    commands    TEXT    NOT NULL
) STRICT;

-- The last message that was seen in each Discord channel, thread and private chat. Later messages are asked for when the bot is
-- back.
CREATE TABLE discord_seen (
    channel INTEGER PRIMARY KEY,
    message INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX discord_seen_by_time ON discord_seen (seen_at);

-- The last message that was seen in each Discord server, over all its channels; server 0 stands for private chats. Later messages
-- are asked for when the bot is back, also in channels that were never seen.
CREATE TABLE discord_heard (
    server  INTEGER PRIMARY KEY,
    message INTEGER NOT NULL
) STRICT;
