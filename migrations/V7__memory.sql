-- What agents remember. A row belongs to one agent for good; who else sees it, its visibility says.
CREATE TABLE memories (
    -- Never given twice, so that a late "forget 12" cannot mean another row.
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Its row in the index; none while it is archived. Slots of one scope stand side by side, so that ranking its rows
    -- touches few pages however many rows others have in between.
    slot          INTEGER UNIQUE,
    agent_uid     TEXT    NOT NULL REFERENCES agents (uid),
    visibility    TEXT    NOT NULL CHECK (visibility IN ('private', 'global', 'archived')),
    -- What an archived row was before, so that it can become that again.
    archived_from TEXT    CHECK (archived_from IN ('private', 'global')),
    source        TEXT    NOT NULL CHECK (source IN ('saved', 'file')),
    -- The file a row is a piece of, such as MEMORY.md, seen from the agent's folder.
    path          TEXT,
    text          TEXT    NOT NULL,
    -- Where and by whom it was said, as far as known.
    place         TEXT,
    person        TEXT,
    created_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX memories_of_agent ON memories (agent_uid, visibility, source);
CREATE INDEX memories_of_file ON memories (agent_uid, path) WHERE path IS NOT NULL;
CREATE INDEX memories_global ON memories (source) WHERE visibility = 'global';

-- A short number for each agent, with which its words begin in the index. 0 stands for global rows and is nobody's.
CREATE TABLE memory_scopes (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_uid TEXT    UNIQUE REFERENCES agents (uid),
    -- Slots given out so far.
    slots     INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO memory_scopes (number) VALUES (0);

-- The words of all rows that are not archived. Each word begins with the number of whoever may see it, so that a search walks
-- through the rows of its own scope and through nobody else's.
CREATE VIRTUAL TABLE memories_fts USING fts5 (
    words,
    content = '',
    contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Files as they were when their pieces were taken into `memories`.
CREATE TABLE memory_files (
    agent_uid TEXT    NOT NULL REFERENCES agents (uid),
    path      TEXT    NOT NULL,
    -- Size, time and so on in one text: another text, another file.
    stamp     TEXT    NOT NULL,
    PRIMARY KEY (agent_uid, path)
) STRICT, WITHOUT ROWID;
