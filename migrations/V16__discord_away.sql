-- How far each Discord server was heard, over all its channels; server 0 stands for private chats. What a channel got after that
-- is asked for when the bot is back, also where nothing was ever seen.
CREATE TABLE discord_heard (
    server  INTEGER PRIMARY KEY,
    message INTEGER NOT NULL
) STRICT;
