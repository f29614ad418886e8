-- Groups that became supergroups, and so have another id. Bindings may still name the old one.
CREATE TABLE chat_aliases (
    old INTEGER PRIMARY KEY,
    new INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

-- 1: the operator asked for a failed row to be sent again, and the next start does it.
ALTER TABLE outbox ADD COLUMN retry_at_start INTEGER NOT NULL DEFAULT 0;
CREATE INDEX outbox_failed_of_place ON outbox (place, id) WHERE state = 'failed';
