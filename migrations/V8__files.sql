-- The copy in the home's `outgoing` folder that a row sends. It is removed once the row is sent.
ALTER TABLE outbox ADD COLUMN file TEXT;
