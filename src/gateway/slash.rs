//! The command list, as Discord's slash commands show it.

use crate::channels::discord::{Menu, Offered, SlashCommand, SlashOption, Suggestion};
use crate::commands::{Argument, Audience, Offers, SPECS};
use crate::config::{AgentSpec, Config};

pub(super) fn menu(config: &Config) -> Menu {
    let command = |spec: &crate::commands::Spec| SlashCommand {
        name: spec.name.into(),
        description: spec.summary.into(),
        options: spec.options.iter().map(|argument| option(config, argument)).collect(),
        owners_only: spec.owners_only,
        is_for_asker_alone: spec.audience == Audience::Asker,
    };
    Menu { commands: SPECS.iter().map(command).collect() }
}

fn option(config: &Config, argument: &Argument) -> SlashOption {
    let offered = match argument.offers {
        Offers::Nothing => Offered::Nothing,
        Offers::Words(words) => Offered::Choices(plain(words).collect()),
        Offers::Agents(words) => Offered::Suggestions(config.agents.iter().map(agent).chain(plain(words)).collect()),
        Offers::Models(words) => Offered::Suggestions(models(config).into_iter().chain(plain(words)).collect()),
    };
    SlashOption {
        name: argument.name.into(),
        description: argument.summary.into(),
        is_required: argument.is_required,
        offered,
    }
}

fn plain(words: &'static [&'static str]) -> impl Iterator<Item = Suggestion> {
    words.iter().map(|word| Suggestion { label: (*word).to_owned(), value: (*word).to_owned() })
}

/// With its name, so that it is found by that too.
fn agent(spec: &AgentSpec) -> Suggestion {
    let id = spec.id.to_string();
    let label = spec.name.as_ref().map_or_else(|| id.clone(), |name| format!("{name} ({id})"));
    let label = spec.emoji.iter().fold(label, |label, emoji| format!("{emoji} {label}"));
    Suggestion { label, value: id }
}

/// Every model that the config names, once.
fn models(config: &Config) -> Vec<Suggestion> {
    let named = std::iter::once(&config.default_model).chain(config.agents.iter().filter_map(|agent| agent.model.as_ref()));
    let mut models: Vec<String> = Vec::new();
    for model in named.map(ToString::to_string) {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    models.into_iter().map(|model| Suggestion { label: model.clone(), value: model }).collect()
}
