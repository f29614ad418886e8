//! The fourteen ranks of a decision, strongest first: what each had to say about a message.

use serde::Serialize;
use utoipa::ToSchema;

use super::explain::{Candidate, Explanation, Outcome, Step};
use super::{Rank, Rule};
use crate::domain::{Origin, Platform, SessionKey};

/// A rank with its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Ranked {
    /// Such as `exact_topic`.
    pub(crate) rank: &'static str,
    /// The rank in words.
    pub(crate) title: &'static str,
    pub(crate) says: Says,
    /// Why, in a few words.
    pub(crate) why: String,
    /// The lines of config.toml with bindings of this rank about this place.
    pub(crate) lines: Vec<usize>,
}

/// What a rank says about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Says {
    /// Its rule decides.
    Decides,
    /// Its rule would decide, were there no pin.
    UnderPin,
    /// Its rule matches, but a stronger one decides.
    Matches,
    /// Rules about this place are there, but a filter does not hold.
    Misses,
    /// No rule of this rank is about this place.
    NoRule,
    /// The rank cannot have rules about such a place.
    NotHere,
}

impl Explanation {
    /// All ranks, also those that cannot have a rule about this place.
    pub(crate) fn by_rank(&self) -> Vec<Ranked> {
        Rank::ALL
            .into_iter()
            .map(|rank| self.ranked(rank))
            .collect()
    }

    fn ranked(&self, rank: Rank) -> Ranked {
        let steps: Vec<&Step> = self.steps.iter().filter(|step| step.rank == rank).collect();
        let bindings: Vec<&Candidate> = steps.iter().flat_map(|step| &step.bindings).collect();
        let (says, why) = match (steps.as_slice(), rank) {
            ([], _) => (Says::NotHere, not_here(rank, &self.origin).to_owned()),
            ([only, ..], Rank::Pin | Rank::Default) => {
                let decides = self.route.rule.rank() == rank;
                let says = if decides { Says::Decides } else { Says::NoRule };
                (says, only.result.clone())
            }
            (steps, _) => self.among(steps, &bindings),
        };
        Ranked {
            rank: rank.as_str(),
            title: title(rank),
            says,
            why,
            lines: bindings.iter().map(|binding| binding.line).collect(),
        }
    }

    fn among(&self, steps: &[&Step], bindings: &[&Candidate]) -> (Says, String) {
        let with = |wanted: &[Outcome]| {
            let mut found = bindings.iter();
            found.find(|binding| wanted.contains(&binding.outcome))
        };
        if let Some(binding) = with(&[Outcome::Decides]) {
            let matches = match &self.route.rule {
                Rule::Binding { matches, .. } => matches.to_string(),
                Rule::Pin { .. } | Rule::Default => String::new(),
            };
            return (Says::Decides, format!("line {}: {matches}", binding.line));
        }
        if let Some(binding) = with(&[Outcome::UnderPin]) {
            let why = format!("line {} would decide without the pin", binding.line);
            return (Says::UnderPin, why);
        }
        if let Some(binding) = with(&[Outcome::Weaker, Outcome::Later]) {
            let why = format!("line {} matches, but a stronger rule decides", binding.line);
            return (Says::Matches, why);
        }
        match bindings {
            [] => {
                let looked: Vec<&str> = steps.iter().map(|step| step.looked_for.as_str()).collect();
                (
                    Says::NoRule,
                    format!("no binding for {}", looked.join(" or ")),
                )
            }
            missing => {
                let why: Vec<String> = missing.iter().map(|binding| missed(binding)).collect();
                (Says::Misses, why.join("; "))
            }
        }
    }
}

/// `line 12: name = "release *", but it is called Garden`.
fn missed(binding: &Candidate) -> String {
    let failing = binding.filters.iter().filter(|check| !check.holds);
    let failing: Vec<String> = failing
        .map(|check| format!("{}, but {}", check.filter, check.finding))
        .collect();
    format!("line {}: {}", binding.line, failing.join(" and "))
}

fn title(rank: Rank) -> &'static str {
    match rank {
        Rank::Pin => "Pin, set with /agent",
        Rank::ExactTopic => "Exact topic or thread",
        Rank::Member => "Member in a group",
        Rank::NameOrTag => "Name of the topic, or tag",
        Rank::EveryTopic => "Every topic of the group",
        Rank::Place => "Group, channel, chat or room",
        Rank::ParentChannel => "Channel of the thread",
        Rank::Category => "Category",
        Rank::ServerRole => "Server and role",
        Rank::Server => "Server",
        Rank::Person => "Person anywhere",
        Rank::PrivateChats => "Private chats",
        Rank::Platform => "Platform",
        Rank::Default => "default_agent",
    }
}

/// Why a rank has no say in a place.
fn not_here(rank: Rank, origin: &Origin) -> &'static str {
    let is_discord = origin.key.platform() == Some(Platform::Discord);
    match rank {
        Rank::Member | Rank::Person if origin.person.is_nobody() => "no person is named",
        Rank::Member => "not in a group or channel",
        Rank::Person => "people at this machine have no ids",
        Rank::ExactTopic | Rank::NameOrTag => "not a topic or thread",
        Rank::EveryTopic => "not a topic of a Telegram group",
        Rank::Place if matches!(origin.key, SessionKey::DiscordThread { .. }) => {
            "a thread: its channel has the rank below"
        }
        Rank::ParentChannel => "not a thread",
        Rank::Category if is_discord => "the category is not known",
        Rank::ServerRole | Rank::Server if is_discord => "the server is not known",
        Rank::Category | Rank::ServerRole | Rank::Server => "only on Discord",
        Rank::PrivateChats => "not a private chat",
        Rank::Pin | Rank::Place | Rank::Platform | Rank::Default => {
            "not a place where people write"
        }
    }
}
