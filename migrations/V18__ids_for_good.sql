-- Other rows, the names of runs (`7-0-0`) and of their sessions (`child:7-0-0`) are made of the id of an inbox row, and a summary
-- stands for messages up to an id. Such an id is never given twice, also when the row that had it was cleaned away.
-- Only the declaration changes, not the rows, so nothing is copied: <https://www.sqlite.org/lang_altertable.html#otheralter>
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'INTEGER PRIMARY KEY,', 'INTEGER PRIMARY KEY AUTOINCREMENT,')
    WHERE type = 'table' AND name IN ('inbox', 'messages');
PRAGMA writable_schema = RESET;

-- Above every id that is known, also from rows that outlived the one they were made for.
DELETE FROM sqlite_sequence WHERE name IN ('inbox', 'messages');
INSERT INTO sqlite_sequence (name, seq) SELECT 'inbox', max(
    coalesce((SELECT max(id) FROM inbox), 0),
    coalesce((SELECT max(inbox_id) FROM turns), 0),
    coalesce((SELECT max(inbox_id) FROM outbox), 0),
    coalesce((SELECT max(inbox_id) FROM streams), 0),
    coalesce((SELECT max(inbox_id) FROM tasks), 0),
    coalesce((SELECT max(inbox_id) FROM decisions), 0),
    coalesce((SELECT max(max(inbox_id, parent_inbox_id)) FROM children), 0),
    coalesce((SELECT max(CAST(substr(key, length('child:') + 1) AS INTEGER)) FROM sessions WHERE key GLOB 'child:*'), 0),
    coalesce((SELECT max(CAST(meta_json ->> '$.idempotency_key' AS INTEGER)) FROM messages WHERE json_valid(meta_json)), 0));
INSERT INTO sqlite_sequence (name, seq) SELECT 'messages', max(
    coalesce((SELECT max(id) FROM messages), 0),
    coalesce((SELECT max(upto) FROM summaries), 0));

-- Whoever else has the database open reads the changed declarations: making a table is what tells them.
CREATE TABLE declarations_changed (number INTEGER) STRICT;
DROP TABLE declarations_changed;
