-- Words and the rest of a message are kept apart, with the role of the writer and the platform's time. Rows from before have
-- neither role nor time, and are shown so.

-- The role with the agent when the message was written.
ALTER TABLE messages ADD COLUMN role TEXT CHECK (role IN ('guest', 'member', 'admin', 'owner'));
-- Replies, forwards and attachments, as a JSON list; the text has the words alone.
ALTER TABLE messages ADD COLUMN around TEXT;
-- By the platform's clock.
ALTER TABLE messages ADD COLUMN sent_at INTEGER;

-- A number for everybody whose words are in a prompt: names can be anybody's.
CREATE TABLE person_numbers (
    -- Never given twice.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    person TEXT    NOT NULL UNIQUE
) STRICT;
INSERT INTO person_numbers (person)
    SELECT person FROM messages JOIN places ON places.id = place_id
    WHERE person IS NOT NULL AND key NOT GLOB 'import:*' GROUP BY person ORDER BY min(messages.id);
INSERT OR IGNORE INTO person_numbers (person) SELECT DISTINCT person FROM memories WHERE person IS NOT NULL;

-- The name in the line about a switch was part of the gateway's words. It stands apart, as the person's.
UPDATE messages
    SET person_name = substr(text, 1, instr(text, ' handed this place from ') - 1),
        text = substr(text, instr(text, ' handed this place from ') + length(' handed this place '))
    WHERE kind = 'handoff' AND instr(text, ' handed this place from ') > 0;
