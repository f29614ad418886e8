-- Who may come in over HTTP: API tokens, and sign-ins of browsers. Only digests of secrets are kept.
CREATE TABLE http_keys (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    -- token or sign-in.
    kind         TEXT    NOT NULL,
    -- SHA-256 of the secret.
    digest       BLOB    NOT NULL UNIQUE,
    -- A token's name, or the login name of the one who signed in.
    name         TEXT    NOT NULL,
    -- The person who signed in, if one from a platform.
    person       TEXT,
    -- read, operate or admin.
    scope        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER
) STRICT;
CREATE UNIQUE INDEX http_keys_by_name ON http_keys (name) WHERE kind = 'token';

-- Texts of config.toml that were replaced through the API or the dashboard. A text has no secrets: the file only names them.
CREATE TABLE config_history (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    at   INTEGER NOT NULL,
    -- Who replaced it.
    by   TEXT    NOT NULL,
    text TEXT    NOT NULL
) STRICT;
