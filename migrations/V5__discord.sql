-- The last message that was seen in each Discord channel, thread and private chat. What came after it while the bot was away
-- is asked for when it is back.
CREATE TABLE discord_seen (
    channel INTEGER PRIMARY KEY,
    message INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;

CREATE INDEX discord_seen_by_time ON discord_seen (seen_at);
