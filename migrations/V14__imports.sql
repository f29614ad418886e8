-- Where imported things came from, so that a second import adds only what is new in the source.
CREATE TABLE imports (
    -- openclaw, hermes, zeroclaw, moltis or signet.
    system    TEXT    NOT NULL,
    -- The folder of the other system.
    source    TEXT    NOT NULL,
    -- agent, file, memory, conversation, rule or person.
    kind      TEXT    NOT NULL,
    -- As the other system calls it.
    source_id TEXT    NOT NULL,
    agent_uid TEXT    REFERENCES agents (uid),
    -- What it is here: an agent's id, a path, a place, a person.
    target    TEXT    NOT NULL,
    -- Its state when it was carried: the digest of a file, the number and digest of messages.
    stamp     TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (system, source, kind, source_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX imports_of_agent ON imports (agent_uid) WHERE agent_uid IS NOT NULL;
