//! Things that several systems share: chat addresses, names of tools, providers of models, `.env`
//! files.

use std::collections::HashMap;

use secrecy::SecretString;
use serde_json::Value;
use toml_edit::{InlineTable, Item, Table, value};

use super::found::FoundSecret;
use crate::config::{AgentTable, Names, Risk};
use crate::domain::{PersonId, Platform, SessionKey};
use crate::tenants::Section;

/// Where a conversation is held, in the words of most systems.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) platform: String,
    /// direct, group or channel; also dm and thread.
    pub(super) kind: String,
    pub(super) chat: String,
    /// A topic or thread.
    pub(super) thread: Option<String>,
    /// The writer, where each has a conversation of their own in a group.
    pub(super) member: Option<String>,
}

impl Address {
    /// The key of the place here.
    pub(super) fn place(&self) -> Option<SessionKey> {
        let is_direct = matches!(self.kind.as_str(), "direct" | "dm" | "private");
        let (chat, thread) = (self.chat.as_str(), self.thread.as_deref());
        let thread = thread.filter(|thread| !thread.is_empty());
        let member = self.member.as_deref().filter(|member| !member.is_empty());
        let tail = member.map_or_else(String::new, |member| format!(":{member}"));
        let key = match (self.platform.as_str(), is_direct, thread) {
            ("telegram", true, None) => format!("telegram:dm:{chat}"),
            ("telegram", true, Some(topic)) => format!("telegram:dm:{chat}:{topic}"),
            ("telegram", false, None) => format!("telegram:group:{chat}{tail}"),
            ("telegram", false, Some(topic)) => format!("telegram:topic:{chat}:{topic}"),
            ("discord", true, _) => format!("discord:dm:{chat}"),
            ("discord", false, None) => format!("discord:channel:{chat}{tail}"),
            ("discord", false, Some(thread)) => format!("discord:thread:{chat}:{thread}"),
            _ => return None,
        };
        let place: SessionKey = key.parse().ok()?;
        (!place.is_internal()).then_some(place)
    }
}

/// A person by a number, with or without a platform in front: `tg:5`, `telegram:5`, `user:5`.
pub(super) fn person(platform: Platform, id: &str) -> Option<PersonId> {
    let id = id.trim();
    let number = id.rsplit(':').next().unwrap_or(id);
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let person: PersonId = format!("{platform}:{number}").parse().ok()?;
    (!person.is_nobody()).then_some(person)
}

/// The words in a list of texts and numbers, or in a text with commas.
pub(super) fn words(list: Option<&Value>) -> Vec<String> {
    let word = |value: &Value| match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match list {
        Some(Value::Array(list)) => list.iter().filter_map(word).collect(),
        Some(Value::String(text)) => {
            let words = text.split(',').map(str::trim);
            let words = words.filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        }
        Some(other) => word(other).into_iter().collect(),
        None => Vec::new(),
    }
}

/// Limits of tools, in the names of other systems.
#[derive(Debug, Default)]
pub(super) struct ToolLists {
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Vec<String>,
    pub(super) max_risk: Option<Risk>,
}

impl ToolLists {
    /// Puts the limits into an agent's table, and returns the names without a counterpart. An
    /// unknown tool is never allowed.
    pub(super) fn put_into(self, table: &mut AgentTable) -> Vec<String> {
        let mut unknown = Vec::new();
        let mut mapped = |names: Vec<String>| {
            let mut known = Vec::new();
            for name in names {
                match tools(&name) {
                    [] => unknown.push(name),
                    tools => known.extend(tools.iter().map(|tool| (*tool).to_owned())),
                }
            }
            known.sort();
            known.dedup();
            known
        };
        if let Some(allow) = self.allow {
            table.tools.allow = Some(Names(mapped(allow)));
        }
        let deny = mapped(self.deny);
        if !deny.is_empty() {
            table.tools.deny = Some(Names(deny));
        }
        table.max_risk = self.max_risk.or(table.max_risk);
        unknown
    }
}

/// The tools here for a tool there.
fn tools(name: &str) -> &'static [&'static str] {
    match name.trim().to_ascii_lowercase().as_str() {
        "read" | "file_read" | "read_file" => &["file_read"],
        "ls" | "list" | "file_list" | "list_directory" => &["file_list"],
        "grep" | "find" | "glob" | "search_files" | "content_search" | "glob_search" => {
            &["file_search"]
        }
        "write" | "file_write" | "write_file" => &["file_write"],
        "edit" | "apply_patch" | "file_edit" | "patch" => &["file_edit"],
        "web_fetch" => &["web_fetch"],
        "memory_search" | "memory_get" | "memory_recall" => &["memory_search"],
        "memory_store" | "memory_save" => &["memory_save"],
        "sessions_spawn" | "subagents" | "delegate" => &["spawn"],
        "sessions_send" => &["agent_send"],
        "message" => &["message_send"],
        "group:fs" => &[
            "file_read",
            "file_list",
            "file_search",
            "file_write",
            "file_edit",
        ],
        "group:memory" => &["memory_search", "memory_save", "memory_note", "memory_edit"],
        "group:web" => &["web_fetch"],
        _ => &[],
    }
}

/// The token of a bot.
pub(super) fn bot(platform: Platform, source: String, token: Token) -> FoundSecret {
    let name = platform.to_string();
    let variable = match token.variable {
        Some(variable) => variable,
        None => format!("{}_BOT_TOKEN", name.to_uppercase()),
    };
    let mut keys = Table::new();
    keys.insert("token", file(&name));
    FoundSecret {
        section: Section {
            path: vec![name.clone()],
            keys,
        },
        name,
        source,
        value: token.value,
        variable,
    }
}

/// A token in a config.
#[derive(Debug, Default)]
pub(super) struct Token {
    pub(super) value: Option<SecretString>,
    /// The variable of the environment with the token.
    pub(super) variable: Option<String>,
}

impl Token {
    /// A text with the token itself, or `${NAME}`.
    pub(super) fn read(text: &str, env: &HashMap<String, String>) -> Self {
        let named = text
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'));
        match named {
            Some(name) => Token::of(name, env),
            None => Token {
                value: Some(text.into()),
                variable: None,
            },
        }
    }

    /// The token in a variable.
    pub(super) fn of(name: &str, env: &HashMap<String, String>) -> Self {
        Token {
            value: env.get(name).map(|value| value.as_str().into()),
            variable: Some(name.to_owned()),
        }
    }
}

/// A provider of models. None for a dialect unknown here.
pub(super) fn provider(
    (name, dialect): (&str, &str),
    base_url: Option<&str>,
    source: String,
    token: Token,
) -> Option<FoundSecret> {
    let kind = match dialect {
        "openai" | "openai-completions" | "openai-compatible" | "openrouter" | "groq"
        | "mistral" | "deepseek" => "openai",
        "openai-responses" => "openai-responses",
        "anthropic" | "anthropic-messages" => "anthropic",
        "gemini" | "google" | "google-generative-ai" => "gemini",
        _ => return None,
    };
    let known_url = match name {
        "openrouter" => Some("https://openrouter.ai/api/v1/"),
        "groq" => Some("https://api.groq.com/openai/v1/"),
        "mistral" => Some("https://api.mistral.ai/v1/"),
        "deepseek" => Some("https://api.deepseek.com/"),
        _ => None,
    };
    let mut keys = Table::new();
    keys.insert("kind", value(kind));
    if let Some(url) = base_url.or(known_url) {
        keys.insert("base_url", value(url));
    }
    keys.insert("api_key", file(name));
    Some(FoundSecret {
        name: name.to_owned(),
        source,
        value: token.value,
        section: Section {
            path: vec!["providers".to_owned(), name.to_owned()],
            keys,
        },
        variable: token
            .variable
            .unwrap_or_else(|| format!("{}_API_KEY", name.to_uppercase().replace('-', "_"))),
    })
}

/// Usual keys of providers in a `.env` file.
pub(super) const PROVIDER_KEYS: [(&str, &str); 7] = [
    ("OPENAI_API_KEY", "openai"),
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("GEMINI_API_KEY", "gemini"),
    ("OPENROUTER_API_KEY", "openrouter"),
    ("GROQ_API_KEY", "groq"),
    ("MISTRAL_API_KEY", "mistral"),
    ("DEEPSEEK_API_KEY", "deepseek"),
];

/// Providers whose keys are in a `.env` file, but for providers found elsewhere.
pub(super) fn providers_in(
    env: &HashMap<String, String>,
    secrets: &mut Vec<FoundSecret>,
    source: &str,
) {
    for (variable, name) in PROVIDER_KEYS {
        let is_there = secrets.iter().any(|secret| secret.name == name);
        if is_there || !env.contains_key(variable) {
            continue;
        }
        let source = format!("{variable} in {source}");
        secrets.extend(provider(
            (name, name),
            None,
            source,
            Token::of(variable, env),
        ));
    }
}

fn file(name: &str) -> Item {
    let mut file = InlineTable::new();
    file.insert("file", format!("secrets/{name}").into());
    Item::Value(file.into())
}

/// The lines `NAME=value` of a text.
pub(super) fn dotenv(text: &str) -> HashMap<String, String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let name = name.trim().trim_start_matches("export ").trim();
        let value = value.trim();
        let quoted = ['"', '\''].iter().find_map(|quote| {
            let inner = value.strip_prefix(*quote)?;
            inner.strip_suffix(*quote)
        });
        Some((name.to_owned(), quoted.unwrap_or(value).to_owned()))
    });
    pairs.filter(|(_, value)| !value.is_empty()).collect()
}

/// The value of a line `- **Name:** Rose` of an IDENTITY.md. A placeholder in round brackets is
/// none.
pub(super) fn identity_line(text: &str, label: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let line = line.trim().trim_start_matches(['-', '*', ' ']);
        let (name, value) = line.split_once(':')?;
        if !name.trim().trim_matches('*').eq_ignore_ascii_case(label) {
            return None;
        }
        let value = value.trim().trim_matches('*').trim();
        let is_placeholder = value.starts_with('(') || value.starts_with('_');
        (!value.is_empty() && !is_placeholder).then(|| value.to_owned())
    })
}

/// A name or an emoji, if the text is short.
pub(super) fn short(value: Option<&str>) -> Option<String> {
    let text = value?.trim();
    let is_short =
        !text.is_empty() && text.chars().count() <= 64 && !text.contains(char::is_control);
    is_short.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_keys() {
        let check =
            |platform: &str, kind: &str, chat: &str, thread: Option<&str>, expected: &str| {
                let address = Address {
                    platform: platform.into(),
                    kind: kind.into(),
                    chat: chat.into(),
                    thread: thread.map(Into::into),
                    member: None,
                };
                let place = address.place().map(|place| place.to_string());
                assert_eq!(place.unwrap_or_default(), expected);
            };
        check("telegram", "direct", "5", None, "telegram:dm:5");
        check("telegram", "dm", "5", Some("7"), "telegram:dm:5:7");
        check(
            "telegram",
            "group",
            "-100",
            Some("7"),
            "telegram:topic:-100:7",
        );
        check("telegram", "group", "-100", None, "telegram:group:-100");
        check("discord", "channel", "9", None, "discord:channel:9");
        check("discord", "channel", "9", Some("8"), "discord:thread:9:8");
        check("discord", "direct", "9", None, "discord:dm:9");
        check("slack", "channel", "9", None, "");
        check("telegram", "direct", "5:7:9", None, "");
        check("telegram", "direct", "@alice", None, "");
    }

    #[test]
    fn only_numbers_are_people() {
        let person = |id| person(Platform::Telegram, id).map(|person| person.to_string());
        for id in ["5", "tg:5", "telegram:5", " 5 "] {
            assert_eq!(person(id).as_deref(), Some("telegram:5"));
        }
        for id in ["@alice", "*", "", "tg:", "0", "-5", "5x"] {
            assert_eq!(person(id), None, "{id}");
        }
    }

    #[test]
    fn an_unknown_tool_is_never_allowed() {
        let mut table = AgentTable::default();
        let lists = ToolLists {
            allow: Some(vec!["read".into(), "exec".into()]),
            deny: vec!["write".into(), "canvas".into()],
            max_risk: None,
        };
        assert_eq!(lists.put_into(&mut table), ["exec", "canvas"]);
        assert_eq!(
            table.written().to_string(),
            "tools = { allow = [\"file_read\"], deny = [\"file_write\"] }\n"
        );
    }

    #[test]
    fn identity_lines_are_read_without_placeholders() {
        let text =
            "# Me\n- **Name:** Rose\n- **Emoji:** (pick one)\n- creature: cat\n* **Vibe:** _warm_";
        let line = |label| identity_line(text, label);
        assert_eq!(line("Name").as_deref(), Some("Rose"));
        assert_eq!(line("Creature").as_deref(), Some("cat"));
        assert_eq!(
            (line("Emoji"), line("Vibe"), line("Theme")),
            (None, None, None)
        );
    }
}
