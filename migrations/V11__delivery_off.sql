-- Places whose answers are kept instead of sent, because an owner or admin has switched delivery off there.
CREATE TABLE delivery_off (
    place_id    INTEGER PRIMARY KEY,
    set_by      TEXT    NOT NULL,
    -- The name of the person at that time.
    set_by_name TEXT,
    set_at      INTEGER NOT NULL
) STRICT;

-- The announcement of a subagent's end: a short name and words given by the parent, and the files that the subagent wrote.
ALTER TABLE subagents ADD COLUMN label TEXT;
-- JSON lists of texts.
ALTER TABLE subagents ADD COLUMN tags TEXT;
ALTER TABLE subagents ADD COLUMN artifacts TEXT;
