-- A place's model, set from chat with /model.
CREATE TABLE model_overrides (
    session_key TEXT    PRIMARY KEY,
    -- provider/model; it counts only while the place's agent may use it.
    model       TEXT    NOT NULL,
    set_by      TEXT    NOT NULL,
    set_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- For the last turn of a place.
CREATE INDEX turns_of_place ON turns (session_key, id);
