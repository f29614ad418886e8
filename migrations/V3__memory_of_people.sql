-- A memory can be for one person or for one place, besides an agent's own (private) and everybody's (global).
-- Rows from before keep the visibility they have, also those that name a person or a place: they were saved when the whole agent
-- saw them, and people count on that. `/forget` and a new `/remember` make a narrower one.

CREATE TABLE memories_of_people (
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
    created_at    INTEGER NOT NULL,
    CHECK (visibility <> 'person' OR person IS NOT NULL),
    CHECK (visibility <> 'place' OR place_id IS NOT NULL)
) STRICT;
-- The numbers go on where they were, also if the newest rows are deleted by now.
INSERT INTO sqlite_sequence (name, seq) SELECT 'memories_of_people', seq FROM sqlite_sequence WHERE name = 'memories';
INSERT INTO memories_of_people (id, slot, agent_uid, visibility, archived_from, source, path, text, place_id, person, created_at)
    SELECT id, slot, agent_uid, visibility, archived_from, source, path, text, place_id, person, created_at FROM memories;
DROP TABLE memories;
ALTER TABLE memories_of_people RENAME TO memories;
CREATE INDEX memories_of_agent ON memories (agent_uid, visibility, source);
CREATE INDEX memories_of_file ON memories (agent_uid, path) WHERE path IS NOT NULL;
CREATE INDEX memories_global ON memories (source) WHERE visibility = 'global';
CREATE INDEX memories_said_by ON memories (agent_uid, person) WHERE person IS NOT NULL;
CREATE INDEX memories_for_place ON memories (agent_uid, place_id) WHERE visibility = 'place';

-- A short number for each agent, for each person of an agent and for each place of an agent, with which the words of their rows
-- begin in the index. 0 stands for global rows and belongs to no agent.
CREATE TABLE memory_scopes_of_people (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_uid TEXT    REFERENCES agents (uid),
    -- The person, for rows seen by one person.
    person    TEXT,
    -- The place, for rows seen in one place. A group that became a supergroup may have two numbers.
    place_id  INTEGER,
    -- Slots given out so far.
    slots     INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO sqlite_sequence (name, seq) SELECT 'memory_scopes_of_people', seq FROM sqlite_sequence WHERE name = 'memory_scopes';
INSERT INTO memory_scopes_of_people (number, agent_uid, slots) SELECT number, agent_uid, slots FROM memory_scopes;
DROP TABLE memory_scopes;
ALTER TABLE memory_scopes_of_people RENAME TO memory_scopes;
CREATE INDEX memory_scopes_of ON memory_scopes (agent_uid, person, place_id);
