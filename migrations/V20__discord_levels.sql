-- Servers of Discord and their categories and channels, as the gateway's events name them: the levels above a place in the house.
-- Ids have 64 bits without a sign, and are stored with one.
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
