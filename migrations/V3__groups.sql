-- 1: said among people and not to the bot. Only the newest of a place are kept.
ALTER TABLE messages ADD COLUMN observed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX messages_observed ON messages (session_key, id) WHERE observed = 1;
