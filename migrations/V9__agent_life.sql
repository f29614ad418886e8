-- An agent that was removed keeps its uid and its rows. Its slug is then where its files are, which no living agent can be called,
-- so that its id is free for another.
ALTER TABLE agents ADD COLUMN archived_at INTEGER;
ALTER TABLE agents ADD COLUMN archived_id TEXT;

-- What agents were called before. People may go on using the old id for a while.
CREATE TABLE agent_former_ids (
    id        TEXT    PRIMARY KEY,
    agent_uid TEXT    NOT NULL REFERENCES agents (uid),
    until     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
