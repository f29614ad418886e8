-- Agents that were paused: they begin no turn until they are resumed.
CREATE TABLE paused_agents (
    agent_uid TEXT    PRIMARY KEY REFERENCES agents (uid),
    at        INTEGER NOT NULL,
    -- A person's id, or 'cli'.
    by        TEXT    NOT NULL,
    -- The name of the person at that time, or of the login on this machine.
    by_name   TEXT
) STRICT, WITHOUT ROWID;

-- Places that were told of a pause, each once.
CREATE TABLE pause_notices (
    agent_uid TEXT    NOT NULL REFERENCES agents (uid),
    place_id  INTEGER NOT NULL,
    PRIMARY KEY (agent_uid, place_id)
) STRICT, WITHOUT ROWID;

-- Failures before this time do not count for the agent's state.
ALTER TABLE agents ADD COLUMN restarted_at INTEGER;

-- For the state of an agent: its last answer and its last failure.
CREATE INDEX turns_of_agent ON turns (agent_uid, ended_at);

-- Agents given to places for a while. They stand over the lasting pin, and beneath a pin for the next message.
CREATE TABLE timed_pins (
    place_id    INTEGER PRIMARY KEY,
    agent_uid   TEXT    NOT NULL REFERENCES agents (uid),
    set_by      TEXT    NOT NULL,
    set_by_name TEXT,
    set_at      INTEGER NOT NULL,
    until       INTEGER NOT NULL,
    -- The facts about the message of the switch, to route the place at the end.
    origin      TEXT    NOT NULL
) STRICT;
CREATE INDEX timed_pins_by_end ON timed_pins (until);
