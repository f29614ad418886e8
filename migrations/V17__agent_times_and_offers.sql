-- When an agent was renamed, removed or brought back last. Before any of these, when it was made.
ALTER TABLE agents ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
UPDATE agents SET updated_at = coalesce(archived_at, created_at);

-- Offers of the setup that the operator said no to, such as bringing agents of another system.
CREATE TABLE declined (
    what TEXT    PRIMARY KEY,
    at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
