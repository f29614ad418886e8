//! Names that other programs have for a key of ours.

use super::schema::{self, Shape};

/// Tables by the name of their shape, with foreign names and ours.
const FOREIGN: [(&Shape, &[(&str, &str)]); 6] = [
    (
        &schema::TOP,
        &[
            ("model", "default_model"),
            ("agent", "default_agent"),
            ("llm", "default_model"),
        ],
    ),
    (&schema::TELEGRAM, &BOT),
    (&schema::DISCORD, &BOT),
    (
        &schema::PROVIDER,
        &[
            ("type", "kind"),
            ("provider", "kind"),
            ("dialect", "kind"),
            ("url", "base_url"),
            ("endpoint", "base_url"),
            ("api_base", "base_url"),
            ("api_url", "base_url"),
            ("key", "api_key"),
            ("token", "api_key"),
            ("api_token", "api_key"),
        ],
    ),
    (
        &schema::AGENT,
        &[
            ("display_name", "name"),
            ("title", "name"),
            ("llm", "model"),
            ("default_model", "model"),
        ],
    ),
    (
        &schema::BINDING,
        &[
            ("place", "match"),
            ("session", "match"),
            ("agent_id", "agent"),
        ],
    ),
];

const BOT: [(&str, &str); 4] = [
    ("bot_token", "token"),
    ("api_token", "token"),
    ("api_key", "token"),
    ("key", "token"),
];

/// Sections in the singular, or under another program's name.
const SECTIONS: [(&str, &str); 9] = [
    ("agent", "agents"),
    ("provider", "providers"),
    ("binding", "bindings"),
    ("models", "providers"),
    ("user", "people"),
    ("users", "people"),
    ("person", "people"),
    ("budget", "limits"),
    ("budgets", "limits"),
];

/// Our name for a key that another program calls so.
pub(super) fn of(shape: &Shape, key: &str) -> Option<&'static str> {
    let (_, names) = FOREIGN.iter().find(|(known, _)| known.name == shape.name)?;
    let (_, ours) = names.iter().find(|(foreign, _)| *foreign == key)?;
    Some(ours)
}

/// The key to write instead. `below` is the first key below, if the key is a table.
pub(super) fn advice(shape: &Shape, key: &str, below: Option<&str>) -> Option<String> {
    if let Some(advice) = below.and_then(|below| section(shape, key, below)) {
        return Some(advice);
    }
    of(shape, key).map(|ours| format!("did you mean `{ours}`?"))
}

/// `[agent.ada]`: the section's name is in the plural.
fn section(shape: &Shape, key: &str, below: &str) -> Option<String> {
    let is_top = shape.name == schema::TOP.name;
    let (_, plural) = SECTIONS
        .iter()
        .find(|(singular, _)| is_top && *singular == key)?;
    Some(match *plural {
        "bindings" => "write `[[bindings]]`".to_owned(),
        "limits" => "write `[limits]`".to_owned(),
        plural => format!("write `[{plural}.{below}]`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_foreign_name_leads_to_a_key_that_is_there() {
        for (shape, names) in &FOREIGN {
            for (foreign, ours) in *names {
                assert!(shape.key(ours).is_some(), "{ours} in {}", shape.name);
                assert!(shape.key(foreign).is_none(), "{foreign} in {}", shape.name);
            }
        }
    }
}
