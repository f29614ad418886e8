//! Keys known from other programs, and their counterparts here.

use super::lookalikes::looks_like_variable;
use super::schema::{self, Shape};

/// Tables, keys that they do not have, and the advice.
const KEYS: &[(&[&Shape], &[&str], &str)] = &[
    (
        &[&schema::TOP],
        &["storage", "store", "database", "db"],
        ONE_STORE,
    ),
    (
        &[&schema::MEMORY],
        &["backend", "storage", "store"],
        ONE_STORE,
    ),
    (
        &[&schema::TOP],
        &["logging", "logs", "logger"],
        "the log is written as [log], with `level`, `format` and `file`",
    ),
    (
        &[&schema::TOP],
        &["env", "environment", "secrets", "vars"],
        "a secret is not written into this file: `{ env = \"NAME\" }` names a variable, and `{ file = \"secrets/name\" }` a file in the home folder",
    ),
    (
        &[&schema::TOP],
        &[
            "slack", "whatsapp", "signal", "matrix", "irc", "teams", "email",
        ],
        "Parlor connects to Telegram and Discord, and has a web chat; remove this",
    ),
    (
        &[&schema::TOP],
        &["mcp", "mcp_servers", "mcpServers"],
        "Parlor has no MCP servers; [tools] has the tools that there are. Remove this",
    ),
    (
        &[&schema::TOP],
        &["gateway", "server", "http", "api", "dashboard"],
        "the listener of the dashboard and the HTTP API is written as [admin], with `listen = \"127.0.0.1:7717\"`",
    ),
    (
        &[&schema::AGENT],
        &[
            "workspace",
            "workspace_dir",
            "workdir",
            "cwd",
            "dir",
            "folder",
            "path",
        ],
        "an agent's workspace is agents/<id>/workspace in the home folder and cannot be elsewhere; [shared_paths.<name>] gives agents another folder",
    ),
    (
        &[&schema::AGENT],
        &[
            "soul",
            "soul_file",
            "persona",
            "prompt",
            "instructions",
            "system",
        ],
        "an agent's character is in agents/<id>/SOUL.md of the home folder: write it there, or add a few words with `system_prompt = \"…\"`",
    ),
    (
        &[&schema::TELEGRAM, &schema::DISCORD],
        &["enabled", "enable", "disabled", "active"],
        "the section itself switches the platform on: delete this line, or put `#` before the lines of the section to switch it off",
    ),
    (
        &[&schema::ACCESS],
        &[
            "allowed_users",
            "allow_from",
            "allowlist",
            "allow_list",
            "whitelist",
            "dm_policy",
        ],
        "`owners = [\"telegram:12345678\"]` names the owners, `[people.<name>]` others with their role, and `parlor pair` lets people in",
    ),
    (
        &[&schema::TELEGRAM],
        PEOPLE,
        "people are in [access]: `owners = [\"telegram:12345678\"]` names the owners, and `parlor pair` lets others in",
    ),
    (
        &[&schema::DISCORD],
        PEOPLE,
        "people are in [access]: `owners = [\"discord:123456789012345678\"]` names the owners, and `parlor pair` lets others in",
    ),
];

/// Lists of people in other programs.
const PEOPLE: &[&str] = &[
    "allowed_users",
    "allow_from",
    "allowlist",
    "allow_list",
    "allowed",
    "whitelist",
    "users",
    "admins",
    "owner",
    "dm_policy",
];

/// The advice for keys about other stores.
const ONE_STORE: &str = "everything is kept in one SQLite file, parlor.db in the home folder, and no other store can be chosen; remove this";

/// Sections around a platform in other programs.
const AROUND_PLATFORMS: [&str; 7] = [
    "channels",
    "channel",
    "platforms",
    "platform",
    "connectors",
    "gateways",
    "bots",
];

/// The advice about a key of another program. `below` is the first key below, if the key is a
/// table, and `text` its value, if the value is text.
pub(super) fn advice(
    shape: &Shape,
    key: &str,
    below: Option<&str>,
    text: Option<&str>,
) -> Option<String> {
    let is_here = |shapes: &[&Shape]| shapes.iter().any(|known| known.name == shape.name);
    let known = KEYS
        .iter()
        .find(|(shapes, keys, _)| is_here(shapes) && keys.contains(&key));
    known
        .map(|(_, _, advice)| (*advice).to_owned())
        .or_else(|| platform(shape, key, below?))
        .or_else(|| variable(shape, key, text?))
}

/// `[channels.telegram]`
fn platform(shape: &Shape, key: &str, below: &str) -> Option<String> {
    if shape.name != schema::TOP.name || !AROUND_PLATFORMS.contains(&key) {
        return None;
    }
    Some(match below {
        "telegram" | "discord" => format!("write `[{below}]`"),
        _ => "platforms are sections of their own: `[telegram]` and `[discord]`".to_owned(),
    })
}

/// `api_key_env = "OPENAI_API_KEY"`
fn variable(shape: &Shape, key: &str, text: &str) -> Option<String> {
    let name = secret_behind(key)?;
    let ours = match shape.key(name) {
        Some(_) => name,
        // Bots have a token, providers a key.
        None => ["token", "api_key"]
            .into_iter()
            .find(|ours| shape.key(ours).is_some())?,
    };
    looks_like_variable(text).then(|| format!("write `{ours} = {{ env = \"{text}\" }}`"))
}

/// The secret of a key that holds the name of a variable, as in `api_key_env`.
pub(super) fn secret_behind(key: &str) -> Option<&str> {
    ["_env", "_env_var", "_var"]
        .iter()
        .find_map(|end| key.strip_suffix(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_of_ours_is_foreign() {
        for (shapes, keys, _) in KEYS {
            for (shape, key) in shapes
                .iter()
                .flat_map(|shape| keys.iter().map(move |key| (shape, key)))
            {
                assert!(shape.key(key).is_none(), "{key} in {}", shape.name);
            }
        }
        for name in AROUND_PLATFORMS {
            assert!(schema::TOP.key(name).is_none(), "{name}");
        }
    }
}
