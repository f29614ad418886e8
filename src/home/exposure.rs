//! Finds where a house is more open than its operator may think: `parlor security check`. Pure.

use std::collections::HashMap;

use serde::Serialize;

use crate::agents::ToolPolicy;
use crate::config::{AfterUntrusted, AgentSpec, Config, Dms, Groups, Risk, Transport};
use crate::domain::{AgentId, Role};
use crate::routing::Table;
use crate::routing::doors::{Door, SetInChat};
use crate::tools::{self, policy};

/// Doors of an agent named in a text.
const MOST_NAMED: usize = 3;

/// A remark for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Exposure {
    pub(crate) level: Level,
    /// A short name for programs, always the same.
    pub(crate) check: &'static str,
    pub(crate) finding: String,
    pub(crate) fix: String,
}

/// How much an exposure matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Worth knowing.
    Note,
    /// Should be decided on purpose.
    Warning,
    /// Strangers get at private things, or other users of the machine at secrets.
    Danger,
}

/// The state of a home, besides its config.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) belongings: HashMap<AgentId, Belongings>,
    pub(crate) set_in_chat: SetInChat,
    /// Files and folders open to other users of the machine, with their modes.
    pub(crate) readable_by_others: Vec<(String, u32)>,
}

/// Private things of an agent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Belongings {
    pub(crate) memories: u32,
    pub(crate) has_memory_file: bool,
    pub(crate) has_files: bool,
}

impl Belongings {
    fn in_words(self) -> Option<String> {
        let mut words = Vec::new();
        match self.memories {
            0 => {}
            1 => words.push("1 private memory".to_owned()),
            more => words.push(format!("{more} private memories")),
        }
        if self.has_memory_file {
            words.push("MEMORY.md".to_owned());
        }
        if self.has_files {
            words.push("files in its workspace".to_owned());
        }
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// The worst first.
pub(crate) fn exposures(config: &Config, table: &Table, facts: &Facts) -> Vec<Exposure> {
    let house = House {
        config,
        table,
        facts,
    };
    let mut found = Vec::new();
    found.extend(house.modes());
    found.extend(house.agents());
    found.extend(house.guests());
    found.extend(house.reaching());
    found.extend(house.rules());
    found.extend(house.listeners());
    found.extend(house.owners());
    found.sort_by_key(|exposure| std::cmp::Reverse(exposure.level));
    found
}

struct House<'a> {
    config: &'a Config,
    table: &'a Table,
    facts: &'a Facts,
}

impl House<'_> {
    fn doors_of(&self, agent: &AgentId) -> Vec<Door> {
        self.table
            .doors_of(agent, &self.config.access, &self.facts.set_in_chat)
    }

    fn modes(&self) -> impl Iterator<Item = Exposure> {
        let readable = self.facts.readable_by_others.iter();
        readable.map(|(path, mode)| Exposure {
            level: Level::Danger,
            check: "modes",
            finding: format!("Other users of this machine may read {path} (mode {mode:03o})."),
            fix: format!("chmod go-rwx {path}"),
        })
    }

    /// Open places × agents with private things, their own or by way of others.
    fn agents(&self) -> Vec<Exposure> {
        let mut found = Vec::new();
        for agent in &self.config.agents {
            let doors = self.doors_of(&agent.id);
            if doors.is_empty() {
                continue;
            }
            let ways = in_words(&doors);
            let belongings = self.facts.belongings.get(&agent.id).copied();
            if let Some(private) = belongings.and_then(Belongings::in_words) {
                found.push(Exposure {
                    level: Level::Warning,
                    check: "open-agent",
                    finding: format!(
                        "Guests can talk to `{0}` ({ways}), and `{0}` has {private}.",
                        agent.id
                    ),
                    fix: format!(
                        "Give guests an agent without private things, or close this one: `who = \"member\"` under [agents.{}] and no binding of open places.",
                        agent.id
                    ),
                });
            }
            let reached = agent.tools.access.read.iter();
            let reached = reached
                .chain(&agent.tools.access.write)
                .chain(&agent.memory.read_from);
            let mut others: Vec<&AgentId> = reached.collect();
            others.sort();
            others.dedup();
            found.extend(others.into_iter().map(|other| Exposure {
                level: Level::Warning,
                check: "open-by-way-of",
                finding: format!(
                    "Guests can talk to `{}` ({ways}), which reads the workspace or memories of `{other}`.",
                    agent.id
                ),
                fix: format!(
                    "Take `{other}` out of `access` and `read_memory_from` under [agents.{}].",
                    agent.id
                ),
            }));
        }
        found
    }

    fn guests(&self) -> Vec<Exposure> {
        let mut found = Vec::new();
        let ceiling = self.config.tools.ceilings.guest;
        if ceiling > Risk::Look {
            found.push(Exposure {
                level: Level::Warning,
                check: "guest-tools",
                finding: format!("Guests may have agents use tools up to `{ceiling}`."),
                fix: "Write `guest = \"look\"` under [access.tools].".into(),
            });
        }
        if !self
            .table
            .has_open_places(&self.config.access, &self.facts.set_in_chat)
        {
            return found;
        }
        let limits = self.config.access.limits.guest;
        if limits.budget.day.tokens.is_none() || limits.messages_per_minute == 0 {
            found.push(Exposure {
                level: Level::Warning,
                check: "guest-limits",
                finding: "Guests can write in open places, and a limit for guests is switched off."
                    .into(),
                fix: "Write `tokens_per_day` and `messages_per_minute` above 0 under [access.limits.guest].".into(),
            });
        }
        let agents =
            self.config.agents.iter().filter(|agent| {
                !agent.limits.budget.is_any() && !self.doors_of(&agent.id).is_empty()
            });
        let agents: Vec<&AgentId> = agents.map(|agent| &agent.id).collect();
        if !agents.is_empty() {
            let have = if agents.len() == 1 { "has" } else { "have" };
            found.push(Exposure {
                level: Level::Note,
                check: "agent-limits",
                finding: format!(
                    "Guests can talk to {}, which {have} no daily limit.",
                    listed(&agents, |id| format!("`{id}`"))
                ),
                fix: format!(
                    "Write `tokens_per_day` or `cost_per_day` under {}.",
                    listed(&agents, |id| format!("[agents.{id}.limits]"))
                ),
            });
        }
        found
    }

    /// Agents that read guests' words and may then be led to take words elsewhere. Agents with the
    /// same tools are told together.
    fn reaching(&self) -> Vec<Exposure> {
        let agents = self.config.agents.iter().filter(|agent| {
            agent.tools.after_untrusted == AfterUntrusted::Label
                && !self.doors_of(&agent.id).is_empty()
        });
        let mut reaching: Vec<(Vec<&'static str>, Vec<&AgentId>)> = Vec::new();
        for agent in agents {
            let tools = self.reaching_tools(agent);
            match reaching.iter_mut().find(|(known, _)| *known == tools) {
                _ if tools.is_empty() => {}
                Some((_, agents)) => agents.push(&agent.id),
                None => reaching.push((tools, vec![&agent.id])),
            }
        }
        let told = reaching.into_iter().map(|(tools, agents)| {
            let turn = match agents.as_slice() {
                [agent] => format!("a turn of `{agent}`"),
                _ => "a turn of theirs".to_owned(),
            };
            Exposure {
                level: Level::Note,
                check: "after-untrusted",
                finding: format!(
                    "Guests can talk to {}, and {turn} that has read a guest's words may still use {}.",
                    listed(&agents, |id| format!("`{id}`")),
                    tools.join(", ")
                ),
                fix: format!(
                    "Write `after_untrusted = \"ask\"` or `\"refuse\"` under {}.",
                    listed(&agents, |id| format!("[agents.{id}]"))
                ),
            }
        });
        told.collect()
    }

    /// The tools of an agent that take words out of the place of their turn.
    fn reaching_tools(&self, agent: &AgentSpec) -> Vec<&'static str> {
        let policy = ToolPolicy::new(self.config, agent);
        let reaching = tools::KNOWN.iter().filter(|(tool, risk)| {
            *risk == Risk::Reach
                && *tool != tools::FILE_SEND
                && policy::for_agent(&policy, tool, *risk).is_ok()
                && policy::asks(&policy, tool).is_none()
        });
        reaching.map(|(tool, _)| *tool).collect()
    }

    /// Rules that open more than they seem to.
    fn rules(&self) -> Vec<Exposure> {
        let mut found = Vec::new();
        let access = &self.config.access;
        if access.groups == Groups::Open {
            found.push(Exposure {
                level: Level::Warning,
                check: "groups-open",
                finding: "Anybody can add the bot to a group of their own and talk to it there (groups = \"open\").".into(),
                fix: "Write `groups = \"bound\"` under [access] and bind the places you want.".into(),
            });
        }
        if access.dms == Dms::Open {
            found.push(Exposure {
                level: Level::Warning,
                check: "dms-open",
                finding: "Everybody can talk to the bot in private (dms = \"open\").".into(),
                fix: "Write `dms = \"pairing\"` under [access].".into(),
            });
        }
        for binding in self.config.bindings.iter().filter(|binding| {
            let pattern = binding.pattern.value.as_str();
            pattern.starts_with("discord:guild:") || pattern.starts_with("telegram:group:")
        }) {
            if binding.users.is_some() || binding.roles.is_some() || binding.name.is_some() {
                continue;
            }
            found.push(Exposure {
                level: Level::Note,
                check: "wide-binding",
                finding: format!(
                    "The binding in line {} opens all of `{}`, also topics, channels and threads that are made later.",
                    binding.line, binding.pattern.value
                ),
                fix: "Bind single topics or channels where that is too much.".into(),
            });
        }
        found
    }

    fn listeners(&self) -> Vec<Exposure> {
        let transport = self.config.telegram.as_ref().map(|known| &known.transport);
        let webhook = match transport {
            Some(Transport::Webhook(webhook)) => Some(("The webhook", webhook.listen)),
            _ => None,
        };
        let admin = self.config.admin.as_ref();
        let admin = admin.map(|admin| ("The listener of [admin]", admin.listen));
        let open = [webhook, admin]
            .into_iter()
            .flatten()
            .filter(|(_, address)| !address.ip().to_canonical().is_loopback());
        open.map(|(what, address)| Exposure {
            level: Level::Warning,
            check: "listeners",
            finding: format!("{what} listens on {address} in plain HTTP, for other machines too."),
            fix: "Listen on 127.0.0.1 and put a reverse proxy with a certificate before it.".into(),
        })
        .collect()
    }

    fn owners(&self) -> Vec<Exposure> {
        let has_platform = self.config.telegram.is_some() || self.config.discord.is_some();
        let people = self.config.access.people.all();
        let is_owned = !self.config.access.owners.is_empty()
            || people.iter().any(|person| person.role == Some(Role::Owner));
        if is_owned || !has_platform {
            return Vec::new();
        }
        vec![Exposure {
            level: Level::Note,
            check: "no-owner",
            finding: "Nobody is an owner on a platform, so nobody is told of problems there."
                .into(),
            fix: "Write your id under [access] owners; /whoami shows it.".into(),
        }]
    }
}

fn in_words(doors: &[Door]) -> String {
    let mut words: Vec<String> = doors.iter().take(MOST_NAMED).map(door).collect();
    if doors.len() > MOST_NAMED {
        words.push(format!("and {} more", doors.len() - MOST_NAMED));
    }
    words.join(", ")
}

fn door(door: &Door) -> String {
    match door {
        Door::Binding { target } => format!("the binding of {target}"),
        Door::Place(place) => format!("`who` names {place}"),
        Door::Who => "`who` is \"guest\"".into(),
        Door::Default => "it is the default_agent and has no `who`".into(),
        Door::Pin(place) => format!("/agent in {place}"),
    }
}

/// `one`, `one and two`, `one, two and three`.
fn listed(agents: &[&AgentId], shown: fn(&AgentId) -> String) -> String {
    let shown: Vec<String> = agents.iter().map(|id| shown(id)).collect();
    match shown.as_slice() {
        [before @ .., last] if !before.is_empty() => {
            format!("{} and {last}", before.join(", "))
        }
        only => only.concat(),
    }
}

#[cfg(test)]
mod tests;
