-- What the steps V1, V2 and so on make of an empty file. A test writes it, see the end of
-- src/storage/migrations/tests.rs.
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
, restarted_at INTEGER, updated_at INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE agent_former_ids (
    id        TEXT    PRIMARY KEY,
    agent_uid TEXT    NOT NULL REFERENCES agents (uid),
    until     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
, edits INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE chat_aliases (
    old INTEGER PRIMARY KEY,
    new INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
CREATE TABLE pins (
    place_id  INTEGER NOT NULL,
    -- 1: for the next message only; stands over the lasting pin.
    once      INTEGER NOT NULL DEFAULT 0,
    agent_uid TEXT    NOT NULL REFERENCES agents (uid),
    set_by    TEXT    NOT NULL,
    set_at    INTEGER NOT NULL, set_by_name TEXT,
    PRIMARY KEY (place_id, once)
) STRICT, WITHOUT ROWID;
CREATE TABLE model_overrides (
    place_id INTEGER PRIMARY KEY,
    -- provider/model; counts only while the place's agent may use it.
    model    TEXT    NOT NULL,
    set_by   TEXT    NOT NULL,
    set_at   INTEGER NOT NULL
) STRICT;
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
, role TEXT CHECK (role IN ('guest', 'member', 'admin', 'owner')), around TEXT, sent_at INTEGER, labels INTEGER) STRICT;
CREATE INDEX messages_of_conversation ON messages (place_id, conversation, id);
CREATE INDEX messages_of_part ON messages (place_id, conversation, part_uid, id);
CREATE INDEX messages_observed ON messages (place_id, id) WHERE observed = 1;
CREATE INDEX messages_written_as ON messages (written_as) WHERE written_as IS NOT NULL;
CREATE INDEX messages_of_several ON messages (id) WHERE instr(trim(written_as), ' ') > 0;
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
    created_at   INTEGER NOT NULL, labels INTEGER,
    PRIMARY KEY (place_id, conversation, part)
) STRICT, WITHOUT ROWID;
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
, labels INTEGER) STRICT;
CREATE INDEX turns_of_place ON turns (place_id, id);
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
, labels INTEGER) STRICT;
CREATE TABLE rounds (
    inbox_id      INTEGER NOT NULL REFERENCES open_turns (inbox_id) ON DELETE CASCADE,
    number        INTEGER NOT NULL,
    text          TEXT    NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, calls TEXT NOT NULL DEFAULT '[]', at INTEGER,
    PRIMARY KEY (inbox_id, number)
) STRICT, WITHOUT ROWID;
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
    effects   TEXT    NOT NULL DEFAULT '[]', labels INTEGER, ended_at INTEGER,
    PRIMARY KEY (inbox_id, round, number),
    FOREIGN KEY (inbox_id, round) REFERENCES rounds (inbox_id, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE TABLE decisions (
    id       INTEGER PRIMARY KEY,
    place_id INTEGER NOT NULL,
    inbox_id INTEGER NOT NULL,
    what     TEXT    NOT NULL,
    at       INTEGER NOT NULL
) STRICT;
CREATE INDEX decisions_of_place ON decisions (place_id, id);
CREATE INDEX decisions_by_age ON decisions (at);
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
CREATE TABLE budgets (
    day         TEXT    NOT NULL,
    -- agent:<uid> or person:<id>.
    spender     TEXT    NOT NULL,
    tokens      INTEGER NOT NULL DEFAULT 0,
    cost_micros INTEGER NOT NULL DEFAULT 0,
    -- 1: the owners were told that little is left.
    warned      INTEGER NOT NULL DEFAULT 0, more_tokens INTEGER NOT NULL DEFAULT 0, more_cost_micros INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, spender)
) STRICT, WITHOUT ROWID;
CREATE TABLE budget_notices (
    place_id INTEGER NOT NULL,
    spender  TEXT    NOT NULL,
    until    INTEGER NOT NULL,
    PRIMARY KEY (place_id, spender)
) STRICT, WITHOUT ROWID;
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
, waited_ms INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX outbox_open ON outbox (place_id, id) WHERE state IN ('waiting', 'sending');
CREATE INDEX outbox_sent ON outbox (sent_at) WHERE sent_at IS NOT NULL;
CREATE INDEX outbox_failed ON outbox (id) WHERE state = 'failed';
CREATE INDEX outbox_failed_of_place ON outbox (place_id, id) WHERE state = 'failed';
CREATE INDEX outbox_repeated ON outbox (id) WHERE repeated = 1;
CREATE TABLE preview_messages (
    inbox_id   INTEGER NOT NULL,
    -- The part of the answer that the message shows, from 0.
    number     INTEGER NOT NULL,
    place_id   INTEGER NOT NULL,
    message_id TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (inbox_id, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE chat_waits (
    platform TEXT    NOT NULL,
    chat     INTEGER NOT NULL,
    until    INTEGER NOT NULL,
    -- The length of the wait. No wait is longer, whatever the clock says.
    wait_ms  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (platform, chat)
) STRICT, WITHOUT ROWID;
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
, first_message TEXT, told_at INTEGER, told_times INTEGER NOT NULL DEFAULT 0, decision TEXT CHECK (decision IN ('in', 'owner', 'no', 'ran out')), decided_code TEXT, decided_by TEXT, decider TEXT, decided_at INTEGER, is_due INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE INDEX people_with_code ON people (code_until) WHERE code_until IS NOT NULL;
CREATE VIRTUAL TABLE memories_fts USING fts5 (
    words,
    content = '',
    contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TABLE memory_files (
    agent_uid TEXT NOT NULL REFERENCES agents (uid),
    path      TEXT NOT NULL,
    -- Size, time and so on in one text: another text, another file.
    stamp     TEXT NOT NULL,
    PRIMARY KEY (agent_uid, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE keys (
    name   TEXT PRIMARY KEY,
    secret BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE telegram_menus (
    scope TEXT PRIMARY KEY,
    menu  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE discord_commands (
    application INTEGER PRIMARY KEY,
    commands    TEXT    NOT NULL
) STRICT;
CREATE TABLE discord_seen (
    channel INTEGER PRIMARY KEY,
    message INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX discord_seen_by_time ON discord_seen (seen_at);
CREATE TABLE discord_heard (
    server  INTEGER PRIMARY KEY,
    message INTEGER NOT NULL
) STRICT;
CREATE TABLE "subagents" (
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
, labels INTEGER, addresses TEXT, label TEXT, tags TEXT, artifacts TEXT) STRICT, WITHOUT ROWID;
CREATE INDEX subagents_of_turn ON subagents (parent_inbox_id);
CREATE INDEX subagents_of_place ON subagents (parent_place_id, seen);
CREATE INDEX subagents_running ON subagents (inbox_id) WHERE state = 'running';
CREATE TABLE "memories" (
    -- Never given twice, so that a late "forget 12" cannot mean another row.
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The row in the index; absent while archived. Slots of one scope stand side by side, so that ranking the rows of a scope
    -- touches few pages however many rows other scopes have in between.
    slot          INTEGER UNIQUE,
    agent_uid     TEXT    NOT NULL REFERENCES agents (uid),
    visibility    TEXT    NOT NULL CHECK (visibility IN ('person', 'place', 'private', 'global', 'archived')),
    -- The visibility before archiving, for a restore.
    archived_from TEXT    CHECK (archived_from IN ('person', 'place', 'private', 'global')),
    source        TEXT    NOT NULL CHECK (source IN ('saved', 'file')),
    -- The file that the row is a piece of, such as MEMORY.md, seen from the agent's folder.
    path          TEXT,
    text          TEXT    NOT NULL,
    -- Where and by whom it was said, as far as known. Decides who sees a row for a place or for a person.
    place_id      INTEGER,
    person        TEXT,
    created_at    INTEGER NOT NULL, labels INTEGER,
    CHECK (visibility <> 'person' OR person IS NOT NULL),
    CHECK (visibility <> 'place' OR place_id IS NOT NULL)
) STRICT;
CREATE INDEX memories_of_agent ON memories (agent_uid, visibility, source);
CREATE INDEX memories_of_file ON memories (agent_uid, path) WHERE path IS NOT NULL;
CREATE INDEX memories_global ON memories (source) WHERE visibility = 'global';
CREATE INDEX memories_said_by ON memories (agent_uid, person) WHERE person IS NOT NULL;
CREATE INDEX memories_for_place ON memories (agent_uid, place_id) WHERE visibility = 'place';
CREATE TABLE "memory_scopes" (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_uid TEXT    REFERENCES agents (uid),
    -- The person, for rows seen by one person.
    person    TEXT,
    -- The place, for rows seen in one place. A group that became a supergroup may have two numbers.
    place_id  INTEGER,
    -- Slots given out so far.
    slots     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX memory_scopes_of ON memory_scopes (agent_uid, person, place_id);
CREATE TABLE provider_notices (
    -- openai, or openai/gpt-5.4
    subject TEXT    NOT NULL PRIMARY KEY,
    -- The kind of trouble; absent once the provider has answered again.
    trouble TEXT,
    told_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_retryable ON inbox (id) WHERE state = 'failed' AND payload IS NOT NULL;
CREATE INDEX people_due ON people (id) WHERE is_due = 1;
CREATE INDEX people_decided ON people (decided_code) WHERE decided_code IS NOT NULL;
CREATE TABLE guest_notices (
    outbox_id  INTEGER PRIMARY KEY,
    -- The code that the message has buttons for; absent in a message that only counts the waiting guests.
    code       TEXT,
    -- How many guests waited.
    waiting    INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX guest_notices_of_code ON guest_notices (code) WHERE code IS NOT NULL;
CREATE INDEX guest_notices_by_age ON guest_notices (created_at);
CREATE TABLE openings (
    place_id       INTEGER PRIMARY KEY,
    opened_by      TEXT    NOT NULL,
    -- The name of the person at that time; absent for rows from before.
    opened_by_name TEXT,
    opened_at      INTEGER NOT NULL
) STRICT;
CREATE TABLE person_numbers (
    -- Never given twice.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    person TEXT    NOT NULL UNIQUE
) STRICT;
CREATE TABLE audit (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    -- A person's id, 'cli' for the command line, 'config' for a saved file, or 'gateway'.
    actor     TEXT    NOT NULL,
    -- The actor's name at that time: of the person, or of the login on this machine.
    name      TEXT,
    -- Absent where no place is concerned.
    place_id  INTEGER,
    -- The agent's id at that time; absent where none is concerned.
    agent     TEXT,
    -- Such as 'switch', 'bind', 'role', 'reload'.
    action    TEXT    NOT NULL,
    -- The thing that changed where it is neither the place nor the agent, such as a person.
    subject   TEXT,
    before    TEXT,
    after     TEXT
) STRICT;
CREATE INDEX audit_by_age ON audit (at);
CREATE TABLE delivery_off (
    place_id    INTEGER PRIMARY KEY,
    set_by      TEXT    NOT NULL,
    -- The name of the person at that time.
    set_by_name TEXT,
    set_at      INTEGER NOT NULL
) STRICT;
CREATE TABLE paused_agents (
    agent_uid TEXT    PRIMARY KEY REFERENCES agents (uid),
    at        INTEGER NOT NULL,
    -- A person's id, or 'cli'.
    by        TEXT    NOT NULL,
    -- The name of the person at that time, or of the login on this machine.
    by_name   TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE pause_notices (
    agent_uid TEXT    NOT NULL REFERENCES agents (uid),
    place_id  INTEGER NOT NULL,
    PRIMARY KEY (agent_uid, place_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_of_agent ON turns (agent_uid, ended_at);
CREATE TABLE timed_pins (
    place_id    INTEGER PRIMARY KEY,
    agent_uid   TEXT    NOT NULL REFERENCES agents (uid),
    set_by      TEXT    NOT NULL,
    set_by_name TEXT,
    set_at      INTEGER NOT NULL,
    until       INTEGER NOT NULL,
    -- The facts about the message of the switch, to route the place at the end.
    origin      TEXT    NOT NULL
) STRICT;
CREATE INDEX timed_pins_by_end ON timed_pins (until);
CREATE TABLE person_links (
    -- Such as discord:8765.
    id             TEXT    PRIMARY KEY,
    -- The id that stands for the person.
    main           TEXT    NOT NULL,
    granted_by     TEXT    NOT NULL,
    granted_name   TEXT,
    granted_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE person_names (
    main           TEXT    PRIMARY KEY,
    name           TEXT    NOT NULL UNIQUE,
    granted_by     TEXT    NOT NULL,
    granted_name   TEXT,
    granted_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE people_revision (
    number INTEGER NOT NULL
) STRICT;
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
CREATE TABLE pauses (
    what      TEXT    PRIMARY KEY,
    set_by    TEXT    NOT NULL,
    set_name  TEXT,
    set_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE imports (
    -- openclaw, hermes, zeroclaw, moltis or signet.
    system    TEXT    NOT NULL,
    -- The folder of the other system.
    source    TEXT    NOT NULL,
    -- agent, file, memory, conversation, rule or person.
    kind      TEXT    NOT NULL,
    -- As the other system calls it.
    source_id TEXT    NOT NULL,
    agent_uid TEXT    REFERENCES agents (uid),
    -- What it is here: an agent's id, a path, a place, a person.
    target    TEXT    NOT NULL,
    -- Its state when it was carried: the digest of a file, the number and digest of messages.
    stamp     TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (system, source, kind, source_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX imports_of_agent ON imports (agent_uid) WHERE agent_uid IS NOT NULL;
CREATE TABLE http_keys (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    -- token or sign-in.
    kind         TEXT    NOT NULL,
    -- SHA-256 of the secret.
    digest       BLOB    NOT NULL UNIQUE,
    -- A token's name, or the login name of the one who signed in.
    name         TEXT    NOT NULL,
    -- The person who signed in, if one from a platform.
    person       TEXT,
    -- read, operate or admin.
    scope        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER
) STRICT;
CREATE UNIQUE INDEX http_keys_by_name ON http_keys (name) WHERE kind = 'token';
CREATE TABLE config_history (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    at   INTEGER NOT NULL,
    -- Who replaced it.
    by   TEXT    NOT NULL,
    text TEXT    NOT NULL
) STRICT;
CREATE TABLE web_screen (
    -- Never given twice: a browser that was away goes on after the last id it has read.
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    place_id   INTEGER NOT NULL,
    -- The id that the browser gave to a line, or the ticket of a delivery. The same id again is the same message.
    message_id TEXT    NOT NULL UNIQUE,
    -- JSON: who speaks, the words, files and buttons.
    body       TEXT    NOT NULL,
    -- 1: a person's line that the gateway has not taken in yet.
    is_new     INTEGER NOT NULL DEFAULT 0,
    at         INTEGER NOT NULL
) STRICT;
CREATE INDEX web_screen_of_place ON web_screen (place_id, id);
CREATE INDEX web_screen_new ON web_screen (id) WHERE is_new = 1;
CREATE TABLE declined (
    what TEXT    PRIMARY KEY,
    at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE jobs (
    id           INTEGER PRIMARY KEY,
    agent_uid    TEXT    NOT NULL REFERENCES agents (uid),
    name         TEXT    NOT NULL,
    -- config, chat, cli, import or hook.
    source       TEXT    NOT NULL,
    -- Schedule and task in JSON. NULL for jobs of config.toml.
    definition   TEXT,
    -- Where the answers of a job with a definition go. NULL: nowhere.
    place_id     INTEGER REFERENCES places (id),
    -- The person whose rights its turns have. NULL: the operator's.
    made_by      TEXT,
    made_name    TEXT,
    created_at   INTEGER NOT NULL,
    -- The schedule in words of the program. When it changes, slots before the change do not count as missed.
    schedule     TEXT    NOT NULL DEFAULT '',
    -- All slots up to this one are done.
    handled_upto INTEGER NOT NULL,
    -- Runs that failed in a row, and the moment until which the job waits after the last.
    failures     INTEGER NOT NULL DEFAULT 0,
    wait_until   INTEGER NOT NULL DEFAULT 0,
    -- Set while the job is paused.
    paused_at    INTEGER,
    paused_by    TEXT,
    paused_why   TEXT,
    -- Set when the job is over or was removed.
    ended_at     INTEGER
) STRICT;
CREATE UNIQUE INDEX jobs_by_name ON jobs (agent_uid, name) WHERE ended_at IS NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_in_place ON jobs (place_id) WHERE place_id IS NOT NULL;
CREATE TABLE job_runs (
    job_id   INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    -- Unix milliseconds.
    slot     INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    -- queued, done, nothing, failed, refused, stopped, undelivered or skipped.
    state    TEXT    NOT NULL,
    -- Why it was skipped, run late, or failed.
    reason   TEXT,
    -- Earlier slots that were missed, and that this row stands for too.
    missed   INTEGER NOT NULL DEFAULT 0,
    inbox_id INTEGER,
    ended_at INTEGER,
    PRIMARY KEY (job_id, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_runs_open ON job_runs (inbox_id) WHERE state = 'queued';
CREATE INDEX job_runs_old ON job_runs (at);
CREATE TABLE turn_notes (
    turn_id INTEGER PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    -- JSON.
    notes   TEXT    NOT NULL,
    -- The prompt as it was sent, compressed. Only the newest turns of a place have one.
    prompt  BLOB
) STRICT;
CREATE INDEX turn_notes_with_prompt ON turn_notes (turn_id) WHERE prompt IS NOT NULL;
CREATE TABLE prompts_forgotten (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL
) STRICT;
CREATE TABLE mini_app_entries (
    hash  TEXT    PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE discord_servers (
    id   INTEGER PRIMARY KEY,
    name TEXT    NOT NULL
) STRICT;
CREATE TABLE discord_channels (
    id       INTEGER PRIMARY KEY,
    server   INTEGER NOT NULL,
    -- The category of a channel; absent for a channel without one, and for a category.
    category INTEGER,
    -- 'category', 'forum' or 'channel'.
    kind     TEXT    NOT NULL,
    name     TEXT    NOT NULL
) STRICT;
CREATE INDEX discord_channels_of_server ON discord_channels (server);
CREATE TABLE speakers (
    person  TEXT    PRIMARY KEY,
    -- Of the newest message with a name.
    name    TEXT,
    -- When the newest message was stored.
    said_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_failed ON turns (agent_uid, ended_at) WHERE outcome NOT IN ('answered', 'stopped');
CREATE INDEX turns_by_end ON turns (ended_at, agent_uid, outcome, route);
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
CREATE TRIGGER messages_changed
AFTER UPDATE OF place_id, conversation, kind, agent_uid, part_uid, person, person_name, role, around, text, created_at, sent_at, deleted_at, labels ON messages
BEGIN
    UPDATE places SET edits = edits + 1 WHERE id IN (OLD.place_id, NEW.place_id);
END;
CREATE TRIGGER messages_deleted AFTER DELETE ON messages
BEGIN
    UPDATE places SET edits = edits + 1 WHERE id = OLD.place_id;
END;
CREATE TRIGGER agents_renamed AFTER UPDATE OF slug, archived_id ON agents
BEGIN
    UPDATE places SET edits = edits + 1;
END;
CREATE TRIGGER agents_deleted AFTER DELETE ON agents
BEGIN
    UPDATE places SET edits = edits + 1;
END;
INSERT INTO memory_scopes VALUES (0, NULL, NULL, NULL, 0);
INSERT INTO people_revision VALUES (0);
