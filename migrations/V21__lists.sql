-- For lists of large houses: names of people without a look at messages, and the last failure of an agent without a look at its
-- answered turns.

-- Everybody who has written, by their newest message.
CREATE TABLE speakers (
    person  TEXT    PRIMARY KEY,
    -- Of the newest message with a name.
    name    TEXT,
    -- When the newest message was stored.
    said_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- The words in a subagent's session are an agent's, those in a job's session nobody's, and a package has its own names.
INSERT INTO speakers (person, said_at)
    SELECT person, max(messages.created_at) FROM messages JOIN places ON places.id = place_id
    WHERE kind = 'person' AND person IS NOT NULL AND key NOT GLOB 'child:*' AND key NOT GLOB 'cron:*' AND key NOT GLOB 'import:*' GROUP BY person;
UPDATE speakers SET name = newest.person_name
    FROM (SELECT person, person_name, max(messages.id) FROM messages JOIN places ON places.id = place_id
          WHERE kind = 'person' AND person IS NOT NULL AND person_name <> ''
            AND key NOT GLOB 'child:*' AND key NOT GLOB 'cron:*' AND key NOT GLOB 'import:*' GROUP BY person) AS newest
    WHERE newest.person = speakers.person;

CREATE INDEX turns_failed ON turns (agent_uid, ended_at) WHERE outcome NOT IN ('answered', 'stopped');
-- With all that is counted in the turns of a day.
DROP INDEX turns_by_end;
CREATE INDEX turns_by_end ON turns (ended_at, agent_uid, outcome, route);
