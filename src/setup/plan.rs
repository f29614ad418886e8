//! The changes of a setup as values, each with its lines of config.toml. Pure: text in, text out.

use serde::Serialize;

use crate::config::edit::{self, EditError, NewAgent};
use crate::domain::{AgentId, PersonId, Platform, SessionKey};

/// The keeper of a secret. The secret itself is in neither.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Keeper {
    /// An environment variable.
    Env(String),
    /// A file below the home folder, for its owner alone.
    File(String),
}

impl Keeper {
    fn toml(&self) -> String {
        match self {
            Keeper::Env(name) => format!("{{ env = \"{name}\" }}"),
            Keeper::File(path) => format!("{{ file = \"{path}\" }}"),
        }
    }
}

/// A change of the home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(crate) enum Change {
    /// The home folder with its first agents.
    Home {
        folder: String,
    },
    /// The model of all agents without a model of their own.
    Model {
        model: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<NewProvider>,
    },
    /// A bot.
    Platform {
        platform: Platform,
        token: Keeper,
        #[serde(skip_serializing_if = "Option::is_none")]
        api_url: Option<String>,
    },
    Owner {
        person: PersonId,
    },
    Agent {
        id: AgentId,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        personality: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        skills: Option<Vec<String>>,
    },
    /// An agent has another name.
    Name {
        agent: AgentId,
        name: String,
    },
    Binding {
        place: SessionKey,
        agent: AgentId,
    },
    /// A place goes back to the other rules of the config.
    Unbinding {
        place: SessionKey,
    },
    /// The agent is put aside, with all its files and rows.
    Removal {
        agent: AgentId,
    },
    /// A unit of systemd.
    Service {
        unit: String,
        commands: Vec<String>,
    },
    /// Variables of this shell, for the service.
    Environment {
        file: String,
        names: Vec<String>,
    },
    /// Agents of another system.
    Import {
        system: &'static str,
        folder: String,
    },
}

impl Change {
    /// Whether the change is made elsewhere than in the config.
    pub(super) fn is_outside(&self) -> bool {
        matches!(
            self,
            Change::Service { .. } | Change::Environment { .. } | Change::Import { .. }
        )
    }
}

/// A section `[providers.<name>]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NewProvider {
    pub(crate) name: String,
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_key: Option<Keeper>,
}

impl NewProvider {
    fn section(&self) -> String {
        format!("providers.{}", self.name)
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        let url = self.base_url.as_ref().map(|url| ("base_url", quoted(url)));
        let key = self.api_key.as_ref().map(|key| ("api_key", key.toml()));
        let kind = ("kind", quoted(&self.kind));
        [Some(kind), url, key].into_iter().flatten().collect()
    }
}

impl Change {
    /// The config with this change. Agents come with files, so they are written elsewhere; the
    /// text is theirs all the same.
    pub(crate) fn edit(&self, text: &str) -> Result<String, EditError> {
        match self {
            Change::Model { model, provider } => {
                let text = edit::set_top(text, "default_model", &quoted(model))?;
                match provider {
                    Some(new) => edit::set_section(&text, &new.section(), &new.keys()),
                    None => Ok(text),
                }
            }
            Change::Platform {
                platform,
                token,
                api_url,
            } => edit::set_section(text, platform.as_str(), &platform_keys(token, api_url)),
            Change::Owner { person } => edit::add_owner(text, person),
            Change::Agent {
                id, name, skills, ..
            } => edit::add_agent(text, id, &entry(name, skills)),
            Change::Name { agent, name } => {
                edit::set_section(text, &format!("agents.{agent}"), &[("name", quoted(name))])
            }
            Change::Binding { place, agent } => edit::bind(text, &place.to_string(), agent),
            Change::Unbinding { place } => edit::unbind(text, &place.to_string()),
            Change::Removal { agent } => Ok(edit::take_out_agent(text, agent)?.text),
            Change::Home { .. }
            | Change::Service { .. }
            | Change::Environment { .. }
            | Change::Import { .. } => Ok(text.to_owned()),
        }
    }

    /// The lines of config.toml, for the person's consent.
    pub(crate) fn lines(&self) -> String {
        match self {
            Change::Model { model, provider } => {
                let section = provider
                    .as_ref()
                    .map(|new| format!("\n{}", edit::section_lines(&new.section(), &new.keys())));
                format!(
                    "default_model = {}\n{}",
                    quoted(model),
                    section.unwrap_or_default()
                )
            }
            Change::Platform {
                platform,
                token,
                api_url,
            } => edit::section_lines(platform.as_str(), &platform_keys(token, api_url)),
            Change::Owner { person } => format!("[access]\nowners = [\"{person}\"]\n"),
            Change::Binding { place, agent } => {
                format!("[[bindings]]\nmatch = \"{place}\"\nagent = \"{agent}\"\n")
            }
            Change::Agent { .. }
            | Change::Name { .. }
            | Change::Unbinding { .. }
            | Change::Removal { .. }
            | Change::Home { .. }
            | Change::Service { .. }
            | Change::Environment { .. }
            | Change::Import { .. } => String::new(),
        }
    }
}

pub(super) fn entry(name: &Option<String>, skills: &Option<Vec<String>>) -> NewAgent {
    NewAgent {
        name: name.clone(),
        skills: skills.clone(),
        ..NewAgent::default()
    }
}

fn platform_keys(token: &Keeper, api_url: &Option<String>) -> Vec<(&'static str, String)> {
    let url = api_url.as_ref().map(|url| ("api_url", quoted(url)));
    [Some(("token", token.toml())), url]
        .into_iter()
        .flatten()
        .collect()
}

/// The text as a string of TOML.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::shipped_config;

    #[test]
    fn the_lines_of_a_whole_setup() {
        let rose = AgentId::parse("rose").unwrap();
        let changes = [
            Change::Model {
                model: "openrouter/x/y".into(),
                provider: Some(NewProvider {
                    name: "openrouter".into(),
                    kind: "openai".into(),
                    base_url: Some("https://openrouter.ai/api/v1/".into()),
                    api_key: Some(Keeper::Env("OPENROUTER_API_KEY".into())),
                }),
            },
            Change::Platform {
                platform: Platform::Telegram,
                token: Keeper::File("secrets/telegram".into()),
                api_url: None,
            },
            Change::Owner {
                person: "telegram:111".parse().unwrap(),
            },
            Change::Binding {
                place: "telegram:topic:-1001:101".parse().unwrap(),
                agent: rose,
            },
        ];
        let text = changes
            .iter()
            .fold(shipped_config().to_owned(), |text, change| {
                change.edit(&text).unwrap()
            });
        let again = changes
            .iter()
            .fold(text.clone(), |text, change| change.edit(&text).unwrap());
        assert_eq!(again, text, "a second time changes nothing");
        let before: Vec<&str> = shipped_config().lines().collect();
        let added: Vec<&str> = text.lines().filter(|line| !before.contains(line)).collect();
        insta::assert_snapshot!(added.join("\n"), @r#"
        default_model = "openrouter/x/y"
        [telegram]
        token = { file = "secrets/telegram" }
        [access]
        owners = ["telegram:111"]
        match = "telegram:topic:-1001:101"
        [providers.openrouter]
        kind = "openai"
        base_url = "https://openrouter.ai/api/v1/"
        api_key = { env = "OPENROUTER_API_KEY" }
        "#);
        let lines: Vec<String> = changes.iter().map(Change::lines).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        default_model = "openrouter/x/y"

        [providers.openrouter]
        kind = "openai"
        base_url = "https://openrouter.ai/api/v1/"
        api_key = { env = "OPENROUTER_API_KEY" }

        [telegram]
        token = { file = "secrets/telegram" }

        [access]
        owners = ["telegram:111"]

        [[bindings]]
        match = "telegram:topic:-1001:101"
        agent = "rose"
        "#);
    }
}
