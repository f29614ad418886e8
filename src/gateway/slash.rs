//! The command list for Discord's slash commands.

use std::sync::Arc;

use futures_util::FutureExt;

use crate::access::{Role, Verdict, people};
use crate::answering::{Question, who_answers};
use crate::channels::discord::{MayAsk, Menu, Offered, SlashCommand, SlashOption, Suggestion};
use crate::commands::{Argument, Audience, Offers, SPECS, Spec};
use crate::config::{AgentSpec, Config};
use crate::domain::{Addressed, AgentId, Origin};
use crate::home::{Snapshot, Snapshots};
use crate::routing::{Router, Visit};
use crate::storage::{Db, StoreError};

pub(super) fn menu(config: &Config) -> Menu {
    let command = |spec: &Spec| SlashCommand {
        name: spec.name.into(),
        description: spec.summary.into(),
        options: spec
            .options
            .iter()
            .map(|argument| option(config, argument))
            .collect(),
        owners_only: spec.least > Role::Guest,
        is_for_asker_alone: spec.audience == Audience::Asker,
    };
    Menu {
        commands: SPECS.iter().map(command).collect(),
    }
}

/// Agents are offered only to people whose `/agent` would be carried out.
pub(super) fn may_ask(snapshots: &Snapshots, router: &Router, db: &Db) -> MayAsk {
    let (snapshots, router, db) = (snapshots.clone(), router.clone(), db.clone());
    Arc::new(move |origin| {
        let (checked, router, db) = (snapshots.current(), router.clone(), db.clone());
        async move {
            let decided = decide(&checked, &router, &db, origin).await;
            decided
                .inspect_err(|error| tracing::warn!("nothing is offered on Discord: {error}"))
                .unwrap_or(None)
        }
        .boxed()
    })
}

async fn decide(
    checked: &Snapshot,
    router: &Router,
    db: &Db,
    origin: Origin,
) -> Result<Option<Vec<AgentId>>, StoreError> {
    let access = &checked.config.access;
    let (config, person) = (checked.config.clone(), origin.person.clone());
    let standing = db
        .read(move |connection| people::standing(connection, &config.access, &person))
        .await?;
    let visit = Visit {
        access,
        origin: &origin,
        standing: &standing,
    };
    let answer = who_answers(Question {
        table: &checked.table,
        visit,
        from_chat: router.settings(visit).await?,
        addressed: Addressed::ByMention,
        is_command: true,
    });
    let is_admitted = answer.verdict == Verdict::Admit;
    let agents = checked.config.agents.iter().map(|agent| agent.id.clone());
    let fetchable = agents.filter(|agent| checked.table.may_switch(agent, visit).is_ok());
    Ok(is_admitted.then(|| fetchable.collect()))
}

fn option(config: &Config, argument: &Argument) -> SlashOption {
    let offered = match argument.offers {
        Offers::Nothing => Offered::Nothing,
        Offers::Words(words) => Offered::Choices(plain(words).collect()),
        Offers::Agents(words) => Offered::Suggestions(
            config
                .agents
                .iter()
                .map(agent)
                .chain(plain(words))
                .collect(),
        ),
        Offers::Models(words) => {
            Offered::Suggestions(models(config).into_iter().chain(plain(words)).collect())
        }
    };
    SlashOption {
        name: argument.name.into(),
        description: argument.summary.into(),
        is_required: argument.is_required,
        offered,
    }
}

fn plain(words: &'static [&'static str]) -> impl Iterator<Item = Suggestion> {
    words.iter().map(|word| Suggestion {
        label: (*word).to_owned(),
        value: (*word).to_owned(),
        agent: None,
    })
}

/// Includes the agent's name, so people find the agent by name too.
fn agent(spec: &AgentSpec) -> Suggestion {
    let id = spec.id.to_string();
    let label = spec
        .name
        .as_ref()
        .map_or_else(|| id.clone(), |name| format!("{name} ({id})"));
    let label = spec
        .emoji
        .iter()
        .fold(label, |label, emoji| format!("{emoji} {label}"));
    Suggestion {
        label,
        value: id,
        agent: Some(spec.id.clone()),
    }
}

/// Every model named in the config, once.
fn models(config: &Config) -> Vec<Suggestion> {
    let of_agents = config
        .agents
        .iter()
        .flat_map(|agent| agent.model.iter().chain(&agent.fallback));
    let of_providers = config.providers.iter().flat_map(|(name, provider)| {
        provider
            .models
            .iter()
            .map(move |model| format!("{name}/{model}"))
    });
    let mut models: Vec<String> = Vec::new();
    for model in std::iter::once(&config.default_model)
        .chain(of_agents)
        .map(ToString::to_string)
        .chain(of_providers)
    {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    models
        .into_iter()
        .map(|model| Suggestion {
            label: model.clone(),
            value: model,
            agent: None,
        })
        .collect()
}
