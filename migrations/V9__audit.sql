-- Changes that people have made: who, where, what, and the values before and after.
CREATE TABLE audit (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    -- A person's id, 'cli' for the command line, 'config' for a saved file, or 'gateway'.
    actor     TEXT    NOT NULL,
    -- The actor's name at that time: of the person, or of the login on this machine.
    name      TEXT,
    -- Absent where no place is concerned.
    place_id  INTEGER,
    -- The agent's id at that time; absent where none is concerned.
    agent     TEXT,
    -- Such as 'switch', 'bind', 'role', 'reload'.
    action    TEXT    NOT NULL,
    -- The thing that changed where it is neither the place nor the agent, such as a person.
    subject   TEXT,
    before    TEXT,
    after     TEXT
) STRICT;
CREATE INDEX audit_by_age ON audit (at);
