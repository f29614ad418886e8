//! The settings that `[telegram]` and `[discord]` share, and how they are read.

use std::time::Duration;

use super::Problem;
use super::reader::{Section, Value, wrong_type};
use super::secrets::{Secret, Vault};

/// No person waits longer than this for the beginning of an answer, with any config.
const LONGEST_GATHER: Duration = Duration::from_secs(60);

/// The settings of a chat platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformConfig {
    pub token: Secret,
    /// Without a slash at the end.
    pub api_url: String,
    /// A new topic or thread with an agent's name is given to the agent.
    pub auto_bind: bool,
    /// Answers are shown while they are written.
    pub streaming: bool,
    /// Names of the bot besides its @name.
    pub nicknames: Vec<String>,
    pub answers: Answers,
    /// Messages of a person within this time of each other are answered as a single message. 0:
    /// each is answered for itself.
    pub gather_ms: u32,
    /// Larger files from people are not fetched.
    pub max_file_mb: u32,
}

impl PlatformConfig {
    pub fn gather(&self) -> Duration {
        Duration::from_millis(self.gather_ms.into()).min(LONGEST_GATHER)
    }
}

/// How answers look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answers {
    pub quote: Quote,
    /// An answer begins with the agent's emoji and name.
    pub show_agent: bool,
    pub link_previews: bool,
    /// An answer of more parts becomes its first part and a file; 0 means never.
    pub max_parts: u32,
    /// The bot reacts to a message with how far its answer is.
    pub reactions: bool,
}

/// Whether an answer quotes its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quote {
    /// An answer quotes in a group, when others wrote in between.
    #[default]
    Auto,
    Always,
    Never,
}

impl Default for Answers {
    fn default() -> Self {
        Answers {
            quote: Quote::default(),
            show_agent: false,
            link_previews: false,
            max_parts: 5,
            reactions: false,
        }
    }
}

/// Defaults that differ between platforms.
pub(super) struct Defaults {
    /// The platform's own servers.
    pub(super) api_url: &'static str,
    pub(super) max_file_mb: u32,
}

pub(super) fn read(
    section: &Section<'_>,
    vault: &Vault<'_>,
    defaults: &Defaults,
) -> PlatformConfig {
    let address = section
        .address("api_url", defaults.api_url)
        .map(|address| address.url);
    PlatformConfig {
        token: vault.secret(section, "token").unwrap_or_default(),
        api_url: address
            .as_deref()
            .unwrap_or(defaults.api_url)
            .trim_end_matches('/')
            .to_owned(),
        auto_bind: section.boolean("auto_bind").unwrap_or_default(),
        streaming: section.boolean("streaming").unwrap_or(true),
        nicknames: nicknames(section),
        answers: answers(section),
        gather_ms: section.count("gather_ms").unwrap_or(0),
        max_file_mb: section.count("max_file_mb").unwrap_or(defaults.max_file_mb),
    }
}

fn nicknames(section: &Section<'_>) -> Vec<String> {
    section
        .list("nicknames", nickname)
        .map(|names| names.value)
        .unwrap_or_default()
}

fn answers(section: &Section<'_>) -> Answers {
    let default = Answers::default();
    Answers {
        quote: section.choice("quote").unwrap_or(default.quote),
        show_agent: section.boolean("show_agent").unwrap_or(default.show_agent),
        link_previews: section
            .boolean("link_previews")
            .unwrap_or(default.link_previews),
        max_parts: section.count("max_parts").unwrap_or(default.max_parts),
        reactions: section.boolean("reactions").unwrap_or(default.reactions),
    }
}

/// A nickname of the bot. A nickname without a letter would be found everywhere or nowhere.
fn nickname(value: &Value<'_>) -> Result<String, Problem> {
    const ADVICE: &str = "write what people say to the bot, such as `parlor` or `hey rose`";
    match value.get_ref().as_str() {
        None => Err(wrong_type("a nickname", value, "text in quotes").help(ADVICE)),
        Some(text) if !text.contains(char::is_alphanumeric) => Err(Problem::new(
            value.span(),
            "a nickname needs a letter or a digit",
        )
        .label("nothing to listen for")
        .help(ADVICE)),
        Some(text) => Ok(text.to_owned()),
    }
}
