-- Whose part of the conversation a message is: the agent's that said it, or that it was said to. Absent: nobody's.
ALTER TABLE messages ADD COLUMN part_uid TEXT REFERENCES agents (uid);
-- What the platform calls the messages that a person's words came in, with a space around each: a later edit is of the same part.
ALTER TABLE messages ADD COLUMN written_as TEXT;
CREATE INDEX messages_of_part ON messages (session_key, conversation, part_uid, id);

UPDATE messages SET part_uid = agent_uid WHERE agent_uid IS NOT NULL;
-- An answer was always written with its questions, in one transaction with one time. At most fifty are answered at once.
UPDATE messages SET part_uid = (
    SELECT answer.agent_uid FROM messages AS answer
    WHERE answer.id > messages.id AND answer.id <= messages.id + 50 AND answer.kind = 'agent' AND answer.meta_json = '{"v":1}'
      AND answer.session_key = messages.session_key AND answer.conversation = messages.conversation
      AND answer.created_at = messages.created_at
    ORDER BY answer.id LIMIT 1)
WHERE kind = 'person' AND observed = 0;

-- A summary stands for a whole conversation, or for one agent's part of it.
CREATE TABLE summaries_of_parts (
    session_key  TEXT    NOT NULL,
    conversation INTEGER NOT NULL,
    -- The uid of the agent whose part it sums up; empty: all that was said.
    part         TEXT    NOT NULL,
    -- The last message it stands for.
    upto         INTEGER NOT NULL,
    -- How many messages it stands for.
    messages     INTEGER NOT NULL,
    agent_uid    TEXT    NOT NULL REFERENCES agents (uid),
    text         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (session_key, conversation, part)
) STRICT, WITHOUT ROWID;
INSERT INTO summaries_of_parts (session_key, conversation, part, upto, messages, agent_uid, text, created_at)
    SELECT session_key, conversation, '', upto, messages, agent_uid, text, created_at FROM summaries;
DROP TABLE summaries;
ALTER TABLE summaries_of_parts RENAME TO summaries;
