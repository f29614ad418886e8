-- What stands for the older part of a long conversation when a model is asked. The messages themselves stay.
CREATE TABLE summaries (
    session_key  TEXT    NOT NULL,
    conversation INTEGER NOT NULL,
    -- The last message it stands for.
    upto         INTEGER NOT NULL,
    -- How many messages it stands for.
    messages     INTEGER NOT NULL,
    agent_uid    TEXT    NOT NULL REFERENCES agents (uid),
    text         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (session_key, conversation)
) STRICT, WITHOUT ROWID;
