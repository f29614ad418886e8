//! The bindings, filed by target, so that a decision takes the same few look-ups among ten or ten
//! thousand.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Rank;
use super::check;
use super::filter::Filters;
use super::pattern::{self, Target};
use super::trial::{Slot, ranks};
use crate::config::{AgentSpec, Binding, Config, Problem, Who};
use crate::domain::{AgentId, ChatId, DiscordId, SessionKey};

/// Everything routing knows. Built once from a config and never changed.
#[derive(Debug, Clone)]
pub struct Table {
    default_agent: AgentId,
    agents: HashSet<AgentId>,
    bindings: Vec<Bound>,
    /// Positions in `bindings`, strongest first.
    slots: HashMap<Slot, Vec<usize>>,
    /// The people and places each agent is open to.
    open_to: HashMap<AgentId, OpenTo>,
}

/// The people and places an agent is open to.
#[derive(Debug, Clone)]
pub(super) struct OpenTo {
    pub(super) who: Who,
    pub(super) places: Vec<Target>,
}

/// A parsed binding.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    /// The binding's place in the file, counted from 0.
    pub(super) index: usize,
    /// The line of its `match`, counted from 1.
    pub(super) line: usize,
    pub(super) agent: AgentId,
    pub(super) target: Target,
    pub(super) filters: Filters,
    /// Target and filters in words.
    pub(super) text: Arc<str>,
    pub(super) locked: bool,
    pub(super) require_mention: Option<bool>,
}

/// A binding to a Telegram group.
#[derive(Debug, Clone, Copy)]
pub struct BoundGroup<'a> {
    pub chat: ChatId,
    /// The binding's target and filters in words.
    pub text: &'a str,
    pub require_mention: Option<bool>,
}

/// A binding to a place on Discord.
#[derive(Debug, Clone, Copy)]
pub struct BoundOnDiscord<'a> {
    pub place: DiscordPlace,
    /// The binding's target and filters in words.
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscordPlace {
    Server(DiscordId),
    Category(DiscordId),
    /// A channel or a thread.
    Channel(DiscordId),
}

impl Table {
    /// Files the bindings, and reports wrong bindings in file order. Wrong bindings are left out of
    /// the table.
    pub fn build(config: &Config) -> (Table, Vec<Problem>) {
        let agents = config.agents.iter().map(|agent| agent.id.clone());
        let (mut table, mut problems) =
            Table::from_bindings(config.default_agent.clone(), agents, &config.bindings);
        for agent in &config.agents {
            problems.extend(table.open(agent));
        }
        problems.extend(config.matches_left_out.iter().filter_map(|text| {
            let malformed = pattern::parse(&text.value).err()?;
            Some(check::malformed(text, malformed))
        }));
        problems.sort_by_key(|problem| problem.span.start);
        (table, problems)
    }

    /// Takes over the `who` of an agent. Reports its wrong places.
    fn open(&mut self, agent: &AgentSpec) -> Vec<Problem> {
        let (mut places, mut problems) = (Vec::new(), Vec::new());
        for place in &agent.who.places {
            match pattern::parse(&place.value) {
                Ok(target) => places.push(target),
                Err(malformed) => problems.push(check::malformed_who(place, malformed)),
            }
        }
        let who = agent.who.clone();
        self.open_to
            .insert(agent.id.clone(), OpenTo { who, places });
        problems
    }

    /// Files bindings like [`Table::build`], from the parts of the config in use.
    pub fn from_bindings(
        default_agent: AgentId,
        agents: impl IntoIterator<Item = AgentId>,
        bindings: &[Binding],
    ) -> (Table, Vec<Problem>) {
        let agents = agents.into_iter().collect();
        let mut table = Table {
            default_agent,
            agents,
            bindings: Vec::new(),
            slots: HashMap::new(),
            open_to: HashMap::new(),
        };
        let mut problems = Vec::new();
        for (index, binding) in bindings.iter().enumerate() {
            match understand(index, binding) {
                Ok(bound) => table.insert(bound),
                Err(found) => problems.extend(found),
            }
        }
        table.sort();
        problems.extend(check::between_rules(&table, bindings));
        problems.sort_by_key(|problem| problem.span.start);
        (table, problems)
    }

    /// Whether the config has an agent of this id; the agent of a pin may be gone.
    pub fn knows(&self, agent: &AgentId) -> bool {
        self.agents.contains(agent)
    }

    pub(super) fn open_to(&self, agent: &AgentId) -> Option<&OpenTo> {
        self.open_to.get(agent)
    }

    pub fn default_agent(&self) -> &AgentId {
        &self.default_agent
    }

    /// The Telegram groups in bindings, by themselves or by a topic, in file order.
    pub fn telegram_groups(&self) -> impl Iterator<Item = BoundGroup<'_>> {
        self.bindings.iter().filter_map(|bound| {
            let chat = bound.target.telegram_group()?;
            Some(BoundGroup {
                chat,
                text: &bound.text,
                require_mention: bound.require_mention,
            })
        })
    }

    /// The places in bindings to an agent, in file order. A pin or a stronger binding may give a
    /// place to another agent.
    pub fn places_of(&self, agent: &AgentId) -> impl Iterator<Item = &SessionKey> {
        let own = self
            .bindings
            .iter()
            .filter(move |bound| bound.agent == *agent);
        own.filter_map(|bound| {
            if let Target::Place(key) = &bound.target {
                Some(key)
            } else {
                None
            }
        })
    }

    /// The Discord servers, categories, channels and threads in bindings, in file order.
    pub fn discord_places(&self) -> impl Iterator<Item = BoundOnDiscord<'_>> {
        self.bindings.iter().filter_map(|bound| {
            let place = match &bound.target {
                Target::Server(id) => DiscordPlace::Server(*id),
                Target::Category(id) => DiscordPlace::Category(*id),
                Target::Place(SessionKey::DiscordChannel { channel, .. }) => {
                    DiscordPlace::Channel(*channel)
                }
                Target::Place(SessionKey::DiscordThread { thread, .. }) => {
                    DiscordPlace::Channel(*thread)
                }
                _ => return None,
            };
            Some(BoundOnDiscord {
                place,
                text: &bound.text,
            })
        })
    }

    /// Whether a rule gives people in the same place to different agents.
    pub(crate) fn tells_people_apart(&self) -> bool {
        let of_people = |slot: &Slot| matches!(slot.rank, Rank::Member | Rank::Person);
        self.slots().any(of_people)
            || self
                .bindings()
                .any(|bound| bound.filters.users().is_some() || bound.filters.look_at_roles())
    }

    /// The bindings in a slot, strongest first.
    pub(super) fn at(&self, slot: &Slot) -> impl Iterator<Item = &Bound> + use<'_> {
        self.slots
            .get(slot)
            .into_iter()
            .flatten()
            .map(|position| &self.bindings[*position])
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.keys()
    }

    pub(super) fn bindings(&self) -> impl Iterator<Item = &Bound> {
        self.bindings.iter()
    }

    fn insert(&mut self, bound: Bound) {
        let position = self.bindings.len();
        for rank in ranks(&bound) {
            let slot = Slot {
                rank: *rank,
                target: bound.target.clone(),
            };
            self.slots.entry(slot).or_default().push(position);
        }
        self.bindings.push(bound);
    }

    fn sort(&mut self) {
        for positions in self.slots.values_mut() {
            positions.sort_by_key(|position| {
                (Reverse(self.bindings[*position].filters.count()), *position)
            });
        }
    }
}

fn understand(index: usize, binding: &Binding) -> Result<Bound, Vec<Problem>> {
    let target = pattern::parse(&binding.pattern.value)
        .map_err(|malformed| vec![check::malformed(&binding.pattern, malformed)])?;
    let never_matches = check::never_matches(binding, &target);
    if !never_matches.is_empty() {
        return Err(never_matches);
    }
    let filters = Filters::of(binding);
    Ok(Bound {
        index,
        line: binding.line,
        agent: binding.agent.value.clone(),
        text: describe(&target, &filters).into(),
        target,
        filters,
        locked: binding.locked,
        require_mention: binding.require_mention,
    })
}

fn describe(target: &Target, filters: &Filters) -> String {
    let mut text = target.to_string();
    for (position, filter) in filters.iter().enumerate() {
        let joint = if position == 0 { " with" } else { " and" };
        text.push_str(&format!("{joint} {filter}"));
    }
    text
}
