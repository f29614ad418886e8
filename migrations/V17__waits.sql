-- How long the wait is that `not_before` ends. No wait is longer, whatever the clock says.
ALTER TABLE outbox ADD COLUMN wait_ms INTEGER NOT NULL DEFAULT 0;
-- How long a row has been tried so far, in time that really passed while a process ran.
ALTER TABLE outbox ADD COLUMN tried_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chat_waits ADD COLUMN wait_ms INTEGER NOT NULL DEFAULT 0;
