//! Carries a plan out, or only looks. Each agent comes whole or not at all; each conversation and
//! each person is a transaction of its own. A failure is told in the report, and the rest goes on.

mod agents;
mod conversations;
mod files;
mod house;

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use super::found::{Found, FoundConversation};
use super::plan::{self, Known};
use super::report::{Item, MOST_ITEMS, Report, Running, State};
use super::source::Source;
use super::spool::Kept;
use super::{MovingError, Wish, blocking, disk, running, some};
use crate::access::people;
use crate::domain::{AgentId, AgentUid, Platform};
use crate::records::imports::{self, Origin};
use crate::routing::pins;
use crate::tenants::{self, Site};

/// Members looked at.
const MOST_MEMBERS: u32 = 100_000;

pub(super) async fn run(
    site: &Site,
    wish: &Wish,
    source: Arc<Source>,
    found: Found,
) -> Result<Report, MovingError> {
    let folder = source.tree.path().to_owned();
    let origin = Origin {
        system: wish.system.as_str(),
        folder: source.name.display().to_string(),
    };
    let spool = source.spooled().map_err(disk(&folder))?;
    let known = load(site, &origin).await?;
    let looked_at = folder.clone();
    let running = blocking(move || Ok(running::programs(&looked_at))).await?;
    let mut import = Import {
        site,
        wish,
        source,
        origin,
        spool,
        known,
        items: Vec::new(),
    };
    import.all(found, &running).await?;
    let mut items = import.source.take_notes();
    items.splice(0..0, import.items);
    let more = items.len().saturating_sub(MOST_ITEMS);
    items.truncate(MOST_ITEMS);
    Ok(Report {
        system: wish.system,
        source: import.origin.folder,
        running,
        carried_out: !wish.only_look,
        items,
        more,
    })
}

async fn load(site: &Site, origin: &Origin) -> Result<Known, MovingError> {
    let (registry, config) = tenants::known(site).await?;
    let wanted = origin.clone();
    let read = move |connection: &Connection| {
        let carried = imports::load(connection, &wanted)?;
        let members = people::members(connection, MOST_MEMBERS)?;
        let pinned = pins::all(connection)?;
        Ok((carried, members, pinned))
    };
    let (carried, members, pinned) = site.db.read(read).await?;
    let mut known = Known {
        carried,
        agents: registry,
        members: members.into_iter().map(|member| member.person).collect(),
        pinned: pinned.into_iter().map(|(place, _)| place).collect(),
        ..Known::default()
    };
    let platforms = [
        (Platform::Telegram, config.telegram.is_some()),
        (Platform::Discord, config.discord.is_some()),
    ];
    let in_use = platforms.into_iter().filter(|(_, is_on)| *is_on);
    known.platforms = in_use.map(|(platform, _)| platform).collect();
    known.members.extend(config.access.owners.iter().cloned());
    let named = config.access.people.all().iter();
    let named = named.flat_map(|person| person.ids.iter().cloned());
    known.members.extend(named);
    known.taken = config.agents.iter().map(|spec| spec.id.clone()).collect();
    known.taken.extend(known.agents.values().cloned());
    let folders = tenants::discovered(&config, &site.home);
    known.taken.extend(folders);
    for binding in &config.bindings {
        let has_filters = binding.users.is_some()
            || binding.roles.is_some()
            || binding.name.is_some()
            || binding.tag.is_some();
        if !has_filters {
            let (pattern, agent) = (&binding.pattern.value, &binding.agent.value);
            known.bindings.insert(pattern.clone(), agent.clone());
        }
    }
    Ok(known)
}

struct Import<'a> {
    site: &'a Site,
    wish: &'a Wish,
    source: Arc<Source>,
    origin: Origin,
    spool: Kept,
    known: Known,
    items: Vec<Item>,
}

/// An agent that is here now, or would be after the import.
struct Placed {
    id: AgentId,
    /// Absent in a look at a new agent.
    uid: Option<AgentUid>,
    conversations: Vec<FoundConversation>,
    source_id: String,
}

impl Import<'_> {
    async fn all(&mut self, found: Found, running: &[Running]) -> Result<(), MovingError> {
        self.secrets(&found.secrets, running).await?;
        let targets = plan::targets(&found.agents, &self.known, &self.wish.names);
        let reached = plan::reached_by_members(&found);
        let by_source = found.agents.iter().zip(&targets);
        let ids = by_source.filter_map(|(agent, (target, _))| {
            Some((agent.source_id.clone(), target.id()?.clone()))
        });
        let mut ids: HashMap<String, AgentId> = ids.collect();
        let Found {
            agents,
            bindings,
            people,
            ..
        } = found;
        let mut placed = Vec::new();
        for (agent, (target, why)) in agents.into_iter().zip(targets) {
            let source_id = agent.source_id.clone();
            let is_reached = reached.contains(&source_id);
            let here = self.agent(agent, (target, why), is_reached).await?;
            if here.is_none() {
                ids.remove(&source_id);
            }
            placed.extend(here);
        }
        let found = Found {
            bindings,
            ..Found::default()
        };
        let rules = plan::rules(&found, &ids, &self.known);
        let trial = self.rules(&found, rules, &ids).await?;
        for person in &people {
            self.person(person).await?;
        }
        for placed in placed {
            self.conversations(placed, &trial).await?;
        }
        Ok(())
    }

    fn is_new(&self) -> State {
        match self.wish.only_look {
            true => State::New,
            false => State::Done,
        }
    }
}

fn failed(item: Item, why: &str) -> Item {
    Item {
        state: State::Failed,
        ..item.because(why)
    }
}

/// `2 files, 1 skill`, without the zeros.
fn counted(counts: &[(usize, &str, &str)]) -> String {
    let there = counts.iter().filter(|(count, ..)| *count > 0);
    let words = there.map(|(count, one, many)| some(*count, one, many));
    let words: Vec<String> = words.collect();
    match words.is_empty() {
        true => "nothing besides its settings".to_owned(),
        false => words.join(", "),
    }
}
