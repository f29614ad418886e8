-- Messages that show an answer while it is written. Whoever finishes the answer puts it there, also after a restart.
CREATE TABLE streams (
    inbox_id   INTEGER NOT NULL,
    -- Which part of the answer it shows, from 0.
    number     INTEGER NOT NULL,
    place      TEXT    NOT NULL,
    message_id TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (inbox_id, number)
) STRICT, WITHOUT ROWID;

-- The message that a row changes instead of sending a new one. With an empty part it is taken away.
ALTER TABLE outbox ADD COLUMN target TEXT;

-- Chats in which the platform asked the bot to wait, and until when.
CREATE TABLE chat_waits (
    platform TEXT    NOT NULL,
    chat     INTEGER NOT NULL,
    until    INTEGER NOT NULL,
    PRIMARY KEY (platform, chat)
) STRICT, WITHOUT ROWID;
