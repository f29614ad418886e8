//! Our agents for other systems: entries and bindings merged into an `openclaw.json`. Pure.
//!
//! Foreign keys stay as they are. Our bindings carry a comment, so that the next export finds them;
//! the same house twice gives the same text.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::openclaw::settings;
use crate::config::{AgentSpec, Binding, Config};

/// Marks a binding as ours.
const MARK: &str = "parlor";

/// A merged file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) text: String,
    pub(crate) agents: usize,
    pub(crate) bindings: usize,
    /// Bindings without a counterpart there, each with the reason.
    pub(crate) left: Vec<(String, &'static str)>,
    /// The old text had comments; JSON cannot keep them.
    pub(crate) loses_comments: bool,
}

/// Merges agents and bindings of a house into a file. An empty text is an empty file. The error
/// says why the file cannot be read.
pub(crate) fn openclaw(old: &str, config: &Config, home: &Path) -> Result<Merged, String> {
    let mut file = match old.trim() {
        "" => Value::Object(Map::new()),
        text => settings::parse(text)?,
    };
    let Value::Object(top) = &mut file else {
        return Err("it is not an object".to_owned());
    };
    put_agents(top, config, home)?;
    let (bindings, left) = put_bindings(top, &config.bindings)?;
    let mut text = serde_json::to_string_pretty(&file).map_err(|error| error.to_string())?;
    text.push('\n');
    Ok(Merged {
        text,
        agents: config.agents.len(),
        bindings,
        left,
        loses_comments: !old.trim().is_empty() && serde_json::from_str::<Value>(old).is_err(),
    })
}

fn put_agents(top: &mut Map<String, Value>, config: &Config, home: &Path) -> Result<(), String> {
    let agents = object(top, "agents")?;
    let has_list =
        agents.get("list").is_some_and(Value::is_array) && !agents.contains_key("entries");
    if has_list {
        let Some(Value::Array(list)) = agents.get_mut("list") else {
            return Ok(());
        };
        let has_default = list.iter().any(|entry| entry["default"] == true);
        for spec in &config.agents {
            let at = list
                .iter()
                .position(|entry| entry["id"] == spec.id.as_str());
            let at = at.unwrap_or_else(|| {
                list.push(json!({ "id": spec.id.as_str() }));
                list.len() - 1
            });
            let is_default = spec.id == config.default_agent && !has_default;
            put_agent(&mut list[at], spec, home, is_default)?;
        }
        return Ok(());
    }
    let entries = object(agents, "entries")?;
    let has_default = entries.values().any(|entry| entry["default"] == true);
    for spec in &config.agents {
        let entry = entries.entry(spec.id.as_str()).or_insert_with(|| json!({}));
        let is_default = spec.id == config.default_agent && !has_default;
        put_agent(entry, spec, home, is_default)?;
    }
    Ok(())
}

/// Writes an agent's settings with the same meaning there. The agent's folder becomes the
/// workspace, unless the entry names another.
fn put_agent(
    entry: &mut Value,
    spec: &AgentSpec,
    home: &Path,
    is_default: bool,
) -> Result<(), String> {
    let Value::Object(entry) = entry else {
        return Err(format!("its entry of {} is not an object", spec.id));
    };
    let folder = home.join("agents").join(spec.id.as_str());
    let folder = folder.display().to_string();
    entry.entry("workspace").or_insert_with(|| folder.into());
    if is_default {
        entry.insert("default".to_owned(), true.into());
    }
    if spec.name.is_some() || spec.emoji.is_some() {
        let identity = object(entry, "identity")?;
        let words = [("name", &spec.name), ("emoji", &spec.emoji)];
        for (key, word) in words {
            if let Some(word) = word {
                identity.insert(key.to_owned(), word.as_str().into());
            }
        }
    }
    if let Some(model) = &spec.model {
        let fallbacks: Vec<String> = spec.fallback.iter().map(ToString::to_string).collect();
        let model = match fallbacks.is_empty() {
            true => json!(model.to_string()),
            false => json!({ "primary": model.to_string(), "fallbacks": fallbacks }),
        };
        entry.insert("model".to_owned(), model);
    }
    if let Some(skills) = &spec.skills {
        let names: Vec<&str> = skills.iter().map(|skill| skill.value.as_str()).collect();
        entry.insert("skills".to_owned(), json!(names));
    }
    Ok(())
}

type Left = Vec<(String, &'static str)>;

/// Replaces our bindings. A file without any gets no key.
fn put_bindings(
    top: &mut Map<String, Value>,
    bindings: &[Binding],
) -> Result<(usize, Left), String> {
    let mut left = Vec::new();
    let had_key = top.contains_key("bindings");
    let mut all = match top.get("bindings") {
        None => Vec::new(),
        Some(Value::Array(list)) => list.clone(),
        Some(_) => return Err("its `bindings` is not a list".to_owned()),
    };
    let had_own = all.iter().any(|binding| binding["comment"] == MARK);
    all.retain(|binding| binding["comment"] != MARK);
    let foreign = all.clone();
    for binding in bindings {
        match matched(binding) {
            Ok(matched) if foreign.iter().any(|other| other["match"] == matched) => {
                left.push((
                    binding.pattern.value.clone(),
                    "a rule of the file is for the same places",
                ));
            }
            Ok(matched) => all.push(json!({
                "agentId": binding.agent.value.as_str(),
                "comment": MARK,
                "match": matched,
            })),
            Err(why) => left.push((binding.pattern.value.clone(), why)),
        }
    }
    let count = all.len() - foreign.len();
    match all.is_empty() && (had_own || !had_key) {
        true => drop(top.shift_remove("bindings")),
        false => drop(top.insert("bindings".to_owned(), Value::Array(all))),
    }
    Ok((count, left))
}

/// The `match` of a binding there.
fn matched(binding: &Binding) -> Result<Value, &'static str> {
    if binding.users.is_some() || binding.name.is_some() || binding.tag.is_some() {
        return Err("rules there cannot be for some people or names");
    }
    let roles = binding.roles.as_ref().map(|roles| {
        let roles = roles.value.iter().map(ToString::to_string);
        roles.collect::<Vec<_>>()
    });
    let fields: Vec<&str> = binding.pattern.value.split(':').collect();
    let peer = |channel: &str, kind: &str, id: &str| json!({ "channel": channel, "peer": { "kind": kind, "id": id } });
    let plain = match fields.as_slice() {
        ["discord", "guild", id] => {
            let mut matched = json!({ "channel": "discord", "guildId": id });
            if let (Some(roles), Value::Object(matched)) = (&roles, &mut matched) {
                matched.insert("roles".to_owned(), json!(roles));
            }
            return Ok(matched);
        }
        _ if roles.is_some() => return Err("roles there belong to a whole server"),
        ["telegram", "topic", _, "*"] => {
            return Err("there is no rule for every topic in its list");
        }
        ["telegram", "topic", chat, topic] => {
            peer("telegram", "group", &format!("{chat}:topic:{topic}"))
        }
        ["telegram", "group", chat] => peer("telegram", "group", chat),
        [platform @ ("telegram" | "discord"), "dm", user] => peer(platform, "direct", user),
        [platform @ ("telegram" | "discord"), "dm"] => peer(platform, "direct", "*"),
        ["discord", "channel", id] => peer("discord", "channel", id),
        ["discord", "thread", _, thread] => peer("discord", "channel", thread),
        [platform @ ("telegram" | "discord")] => json!({ "channel": platform }),
        _ => return Err("there is no such rule there"),
    };
    Ok(plain)
}

/// The object under a key, made if there is none.
fn object<'a>(
    map: &'a mut Map<String, Value>,
    key: &str,
) -> Result<&'a mut Map<String, Value>, String> {
    let value = map.entry(key).or_insert_with(|| json!({}));
    value
        .as_object_mut()
        .ok_or_else(|| format!("its `{key}` is not an object"))
}
