-- The screen of the web chat: everything that was said in its places, in the order in which a browser reads it. The web chat has
-- no server of its own, so this is the far end: a line is here before its sender is told so, and an answer is delivered when it is here.
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
