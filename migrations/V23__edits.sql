-- Counts up with each message of the place that was changed, moved or deleted, and with each agent that got another name: a copy of
-- the place's messages that is kept in memory is true as long as the count is the same. New messages count nothing, because they
-- stand at the end.
ALTER TABLE places ADD COLUMN edits INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER messages_changed
AFTER UPDATE OF place_id, conversation, kind, agent_uid, part_uid, person, person_name, role, around, text, created_at, sent_at, deleted_at, labels ON messages
BEGIN
    UPDATE places SET edits = edits + 1 WHERE id IN (OLD.place_id, NEW.place_id);
END;

CREATE TRIGGER messages_deleted AFTER DELETE ON messages
BEGIN
    UPDATE places SET edits = edits + 1 WHERE id = OLD.place_id;
END;

-- Messages show the id of their agent.
CREATE TRIGGER agents_renamed AFTER UPDATE OF slug, archived_id ON agents
BEGIN
    UPDATE places SET edits = edits + 1;
END;

CREATE TRIGGER agents_deleted AFTER DELETE ON agents
BEGIN
    UPDATE places SET edits = edits + 1;
END;
