//! `/whoami`: the person, the place, the agent and the reason for this agent; for owners, lines to
//! paste into config.toml.

use std::path::Path;

use super::texts::{agent as agent_texts, place as texts, words};
use super::{CommandError, Context, model, truth};
use crate::access::Role;
use crate::answering::{Answer, Silence};
use crate::config::{self, Draft, Secrets, Source};
use crate::domain::{AgentId, SessionKey};
use crate::home;
use crate::routing::Rule;

pub(super) async fn run(context: &Context<'_>) -> Result<String, CommandError> {
    let (inbound, origin) = (context.inbound, &context.inbound.origin);
    let answer = truth::now(context).await?;
    let mut lines = vec![
        texts::you_are(&inbound.person_name, &origin.person, context.role),
        texts::this_is(words::kind(&origin.key), origin.place_name(), &origin.key),
        truth::tell(context, &answer),
    ];
    if answer.silence.is_none() {
        let (agent, chosen) = model::here(context).await?;
        let model = words::model_used(&chosen.model);
        let source = truth::may_open(context).then(|| words::source(&chosen));
        lines.push(agent_texts::model_here(&agent.label(), &model, source));
    }
    let mut text = lines.join("\n");
    if context.standing.role() == Role::Owner
        && let Some(block) = for_good(context, &answer).await
    {
        text.push_str(&format!("\n\n{block}"));
    }
    Ok(text)
}

/// How to keep the agent here in the config.
async fn for_good(context: &Context<'_>, answer: &Answer) -> Option<String> {
    let (folder, wish) = (context.services.home.clone(), Wish::of(context, answer));
    let looked_up = tokio::task::spawn_blocking(move || {
        let text = std::fs::read_to_string(folder.join("config.toml")).ok()?;
        Some(wish.look_up(&text, &folder))
    });
    let found = looked_up.await.ok()??;
    let this = truth::this(context);
    Some(match found {
        Found::Fine { wish, other } => {
            let label = truth::label(context, &wish.agent);
            let why = match answer.silence {
                Some(Silence::PlaceClosed) => format!("To open {this} for good"),
                _ => format!("To keep {label} here for good"),
            };
            let other = other.as_ref().map(|(meaning, key)| (*meaning, key));
            texts::to_paste(&why, &wish.key, &wish.agent, other)
        }
        // The sentence about the answer names the line.
        Found::Bound { line, .. } if decides(answer, line) => return None,
        Found::Bound { line, agent } => {
            texts::bound_already(&this, line, &truth::label(context, &agent))
        }
        Found::Refused => texts::CONFIG_HAS_PROBLEMS.to_owned(),
    })
}

fn decides(answer: &Answer, binding: usize) -> bool {
    matches!(answer.resolved.route.rule, Rule::Binding { line, .. } if line == binding)
}

/// A binding that an owner may want.
struct Wish {
    key: SessionKey,
    agent: AgentId,
    /// Another key that the owner may mean, and its meaning.
    other: Option<(&'static str, SessionKey)>,
}

enum Found {
    /// The config takes these lines.
    Fine {
        wish: Wish,
        other: Option<(&'static str, SessionKey)>,
    },
    /// The config has a binding for the very place.
    Bound { line: usize, agent: AgentId },
    /// The config takes neither.
    Refused,
}

impl Wish {
    fn of(context: &Context<'_>, answer: &Answer) -> Self {
        let (key, agent) = (&context.inbound.origin.key, answer.agent().clone());
        let (key, other) = match key.whole_group() {
            // Each member has a conversation of their own, but people see the group as the place.
            Some(group) if !key.is_shared() => (group, Some(("you alone", key.clone()))),
            Some(group) => (key.clone(), Some(("the whole group", group))),
            None => (key.clone(), None),
        };
        Wish { key, agent, other }
    }

    /// Asks the checker of `parlor config check` about the present file.
    fn look_up(self, text: &str, folder: &Path) -> Found {
        if self.is_accepted(text, folder, &self.key) {
            let other = self.other.clone();
            let other = other.filter(|(_, key)| self.is_accepted(text, folder, key));
            return Found::Fine { wish: self, other };
        }
        // A binding with a problem gives the place to nobody.
        let Ok((present, _)) = home::check(draft(text, folder), folder) else {
            return Found::Refused;
        };
        let wanted = self.key.to_string();
        let bound = present
            .bindings
            .iter()
            .find(|binding| binding.pattern.value == wanted);
        match bound {
            Some(binding) => Found::Bound {
                line: line_of(text, binding.pattern.span.start),
                agent: binding.agent.value.clone(),
            },
            None => Found::Refused,
        }
    }

    fn is_accepted(&self, text: &str, folder: &Path, key: &SessionKey) -> bool {
        let edited = format!(
            "{text}\n[[bindings]]\nmatch = \"{key}\"\nagent = \"{}\"\n",
            self.agent
        );
        home::check(draft(&edited, folder), folder).is_ok()
    }
}

fn draft(text: &str, folder: &Path) -> Draft {
    let source = Source {
        path: folder.join("config.toml"),
        text: text.to_owned(),
    };
    config::draft(source, folder, Secrets::WherePresent)
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    before.matches('\n').count() + 1
}
