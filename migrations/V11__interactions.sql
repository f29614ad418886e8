-- Slash commands as Discord was last told them.
CREATE TABLE discord_commands (
    application INTEGER PRIMARY KEY,
    commands    TEXT    NOT NULL
) STRICT;
