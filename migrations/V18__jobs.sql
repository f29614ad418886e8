-- Jobs: turns at a time. Those of config.toml are here by their name, for their state; those made in chat or at the command line
-- with all that they are.
CREATE TABLE jobs (
    id           INTEGER PRIMARY KEY,
    agent_uid    TEXT    NOT NULL REFERENCES agents (uid),
    name         TEXT    NOT NULL,
    -- config, chat, cli, import or hook.
    source       TEXT    NOT NULL,
    -- Schedule and task in JSON. NULL for jobs of config.toml.
    definition   TEXT,
    -- Where the answers of a job with a definition go. NULL: nowhere.
    place_id     INTEGER REFERENCES places (id),
    -- The person whose rights its turns have. NULL: the operator's.
    made_by      TEXT,
    made_name    TEXT,
    created_at   INTEGER NOT NULL,
    -- The schedule in words of the program. When it changes, slots before the change do not count as missed.
    schedule     TEXT    NOT NULL DEFAULT '',
    -- All slots up to this one are done.
    handled_upto INTEGER NOT NULL,
    -- Runs that failed in a row, and the moment until which the job waits after the last.
    failures     INTEGER NOT NULL DEFAULT 0,
    wait_until   INTEGER NOT NULL DEFAULT 0,
    -- Set while the job is paused.
    paused_at    INTEGER,
    paused_by    TEXT,
    paused_why   TEXT,
    -- Set when the job is over or was removed.
    ended_at     INTEGER
) STRICT;
CREATE UNIQUE INDEX jobs_by_name ON jobs (agent_uid, name) WHERE ended_at IS NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_in_place ON jobs (place_id) WHERE place_id IS NOT NULL;

-- Each slot of a job that was run or skipped, once.
CREATE TABLE job_runs (
    job_id   INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    -- Unix milliseconds.
    slot     INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    -- queued, done, nothing, failed, refused, stopped, undelivered or skipped.
    state    TEXT    NOT NULL,
    -- Why it was skipped, run late, or failed.
    reason   TEXT,
    -- Earlier slots that were missed, and that this row stands for too.
    missed   INTEGER NOT NULL DEFAULT 0,
    inbox_id INTEGER,
    ended_at INTEGER,
    PRIMARY KEY (job_id, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_runs_open ON job_runs (inbox_id) WHERE state = 'queued';
CREATE INDEX job_runs_old ON job_runs (at);
