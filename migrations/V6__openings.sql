-- Opened and pinned are two things: taking a pin back leaves a place open, and closing a place is a step of its own.

-- Places that an owner or admin has opened from chat.
CREATE TABLE openings (
    place_id       INTEGER PRIMARY KEY,
    opened_by      TEXT    NOT NULL,
    -- The name of the person at that time; absent for rows from before.
    opened_by_name TEXT,
    opened_at      INTEGER NOT NULL
) STRICT;

-- Until now a lasting pin opened its place, so places with one stay open.
INSERT INTO openings (place_id, opened_by, opened_at)
SELECT place_id, set_by, set_at FROM pins JOIN places ON places.id = place_id
WHERE once = 0 AND (key GLOB 'telegram:topic:*' OR key GLOB 'telegram:group:*' OR key GLOB 'discord:channel:*' OR key GLOB 'discord:thread:*');

ALTER TABLE pins ADD COLUMN set_by_name TEXT;
