//! The text forms of choices, such as `"per-user"` or `"shared"`, and of model names.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    AfterUntrusted, Approver, DefaultVisibility, Dms, GroupSessions, Groups, HookSignature,
    LogFormat, LogLevel, MemoryKind, MemorySwitch, MetricsAccess, ModelRef, ProviderKind, Quote,
    Reasoning, Risk, Rotate, Switch, TransportMode, Visibility,
};
use crate::domain::{Platform, Role};
use crate::jobs::{JobContext, Missed};

/// A value written as a word from a short list.
pub(super) trait Choice: Copy + FromStr + 'static {
    fn words() -> Vec<&'static str>;
}

macro_rules! choices {
    ($($choice:ident { $($variant:ident = $word:literal),+ })+) => {$(
        impl $choice {
            pub const ALL: &'static [$choice] = &[$($choice::$variant),+];

            /// The word in the config file.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($choice::$variant => $word),+
                }
            }
        }

        impl fmt::Display for $choice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $choice {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                $choice::ALL.iter().copied().find(|choice| choice.as_str() == text).ok_or(())
            }
        }

        impl Choice for $choice {
            fn words() -> Vec<&'static str> {
                $choice::ALL.iter().map(|choice| choice.as_str()).collect()
            }
        }
    )+};
}

impl Choice for Platform {
    fn words() -> Vec<&'static str> {
        Platform::ALL.into_iter().map(Platform::as_str).collect()
    }
}

impl Choice for Missed {
    fn words() -> Vec<&'static str> {
        Missed::ALL.iter().map(|missed| missed.as_str()).collect()
    }
}

impl Choice for JobContext {
    fn words() -> Vec<&'static str> {
        JobContext::ALL
            .iter()
            .map(|context| context.as_str())
            .collect()
    }
}

impl Choice for Role {
    fn words() -> Vec<&'static str> {
        Role::ALL.into_iter().map(Role::as_str).collect()
    }
}

choices! {
    GroupSessions { PerUser = "per-user", Shared = "shared" }
    Switch { Handoff = "handoff", Separate = "separate" }
    Dms { Pairing = "pairing", Open = "open", Closed = "closed" }
    TransportMode { Polling = "polling", Webhook = "webhook" }
    Groups { Bound = "bound", Open = "open" }
    Visibility { Person = "person", Place = "place", Private = "private", Global = "global" }
    DefaultVisibility { Apart = "apart", Private = "private", Global = "global" }
    MemorySwitch { On = "on", Off = "off" }
    MemoryKind { Memory = "memory", Note = "note", File = "file" }
    AfterUntrusted { Label = "label", Ask = "ask", Refuse = "refuse" }
    Approver { Member = "member", Admin = "admin", Owner = "owner" }
    Risk { Look = "look", Change = "change", Reach = "reach" }
    LogFormat { Text = "text", Json = "json" }
    LogLevel { Error = "error", Warn = "warn", Info = "info", Debug = "debug", Trace = "trace" }
    Rotate { Daily = "daily", Size = "size" }
    MetricsAccess { Token = "token", Open = "open" }
    Quote { Auto = "auto", Always = "always", Never = "never" }
    Reasoning { None = "none", Low = "low", Medium = "medium", High = "high" }
    HookSignature { Token = "token", Github = "github", Stripe = "stripe" }
    ProviderKind {
        OpenAi = "openai",
        OpenAiResponses = "openai-responses",
        Anthropic = "anthropic",
        Gemini = "gemini",
        Ollama = "ollama"
    }
}

impl ProviderKind {
    /// Where this kind of server is found when the file does not say.
    pub fn default_base_url(self) -> &'static str {
        match self {
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses => "https://api.openai.com/v1/",
            ProviderKind::Anthropic => "https://api.anthropic.com/v1/",
            ProviderKind::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
            ProviderKind::Ollama => "http://localhost:11434/",
        }
    }
}

impl ModelRef {
    /// The word for the built-in demo model; no provider can have this name.
    pub const DEMO: &'static str = "demo";
    /// The demo model's first name, still in use in old homes and as a model chosen in old chats.
    const OLD_DEMO: &'static str = "offline";
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelRef::Demo => f.write_str(Self::DEMO),
            ModelRef::Of { provider, model } => write!(f, "{provider}/{model}"),
        }
    }
}

impl Serialize for ModelRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ModelRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|()| D::Error::custom(format!("`{text}` is no model")))
    }
}

impl FromStr for ModelRef {
    type Err = ();

    /// The first slash ends the provider; model names may have slashes and colons of their own.
    fn from_str(text: &str) -> Result<Self, ()> {
        if [Self::DEMO, Self::OLD_DEMO].contains(&text) {
            return Ok(ModelRef::Demo);
        }
        let (provider, model) = text.split_once('/').ok_or(())?;
        let complete = !provider.is_empty()
            && !model.is_empty()
            && !text.contains(|c: char| c.is_whitespace() || c.is_control());
        if complete {
            Ok(ModelRef::Of {
                provider: provider.to_owned(),
                model: model.to_owned(),
            })
        } else {
            Err(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_names_round_trip() {
        for text in [
            "demo",
            "openai/gpt-5.4",
            "ollama/llama3:8b",
            "router/meta/llama:free",
        ] {
            assert_eq!(text.parse::<ModelRef>().unwrap().to_string(), text);
        }
        assert_eq!("offline".parse(), Ok(ModelRef::Demo));
        for bad in [
            "",
            "gpt-5.4",
            "openai/",
            "/gpt-5.4",
            "open ai/x",
            "openai/x\ny",
        ] {
            assert!(bad.parse::<ModelRef>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_word_reads_back_as_its_value() {
        for kind in ProviderKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
        }
        assert_eq!("OpenAI".parse::<ProviderKind>(), Err(()));
    }
}
