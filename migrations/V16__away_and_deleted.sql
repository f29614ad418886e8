-- How far each Discord server was heard, over all its channels; server 0 stands for private chats. What a channel got after that
-- is asked for when the bot is back, also where nothing was ever seen.
CREATE TABLE discord_heard (
    server  INTEGER PRIMARY KEY,
    message INTEGER NOT NULL
) STRICT;

-- When a person's words were taken out of a row because their message was deleted.
ALTER TABLE messages ADD COLUMN deleted_at INTEGER;
-- A deleted message is found by its name on the platform. Few rows have the words of several.
CREATE INDEX messages_written_as ON messages (written_as) WHERE written_as IS NOT NULL;
CREATE INDEX messages_of_several ON messages (id) WHERE instr(trim(written_as), ' ') > 0;
