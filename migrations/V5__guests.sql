-- Guests who wait to be let in: their first message, the decision, and the notices that asked owners and admins to decide.

-- The first message as JSON, kept until somebody decides or the code runs out.
ALTER TABLE people ADD COLUMN first_message TEXT;
-- When the guest was last told to wait, and how often.
ALTER TABLE people ADD COLUMN told_at INTEGER;
ALTER TABLE people ADD COLUMN told_times INTEGER NOT NULL DEFAULT 0;
-- What became of the last code, who decided (a person's id, or 'cli'), and that person's name.
ALTER TABLE people ADD COLUMN decision TEXT CHECK (decision IN ('in', 'owner', 'no', 'ran out'));
ALTER TABLE people ADD COLUMN decided_code TEXT;
ALTER TABLE people ADD COLUMN decided_by TEXT;
ALTER TABLE people ADD COLUMN decider TEXT;
ALTER TABLE people ADD COLUMN decided_at INTEGER;
-- 1: the gateway has not told anybody about the decision yet.
ALTER TABLE people ADD COLUMN is_due INTEGER NOT NULL DEFAULT 0;
CREATE INDEX people_due ON people (id) WHERE is_due = 1;
CREATE INDEX people_decided ON people (decided_code) WHERE decided_code IS NOT NULL;

-- Messages to owners and admins about guests who wait.
CREATE TABLE guest_notices (
    outbox_id  INTEGER PRIMARY KEY,
    -- The code that the message has buttons for; absent in a message that only counts the waiting guests.
    code       TEXT,
    -- How many guests waited.
    waiting    INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX guest_notices_of_code ON guest_notices (code) WHERE code IS NOT NULL;
CREATE INDEX guest_notices_by_age ON guest_notices (created_at);
