//! Changes of people's roles, ids and names.
//!
//! config.toml counts before every grant, so what the file fixes is not changed here: the refusal
//! names the line.

use rusqlite::{Connection, Transaction};

use super::known_people::{Known, Looking, Register, Source, find};
use crate::access::{Role, grants, people};
use crate::agents::agent_rows;
use crate::config::{AgentSpec, Config, Person};
use crate::domain::{AgentId, AgentUid, PersonId, UserError, nearest};
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::ledger;

/// The longest name of a person.
const MAX_NAME_CHARS: usize = 64;

/// A wish of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    Add {
        name: String,
        ids: Vec<PersonId>,
        role: Option<Role>,
        /// With single agents.
        agents: Vec<(String, Role)>,
    },
    Role {
        who: String,
        role: Role,
        agent: Option<String>,
    },
    Link {
        who: String,
        id: PersonId,
    },
    Remove {
        who: String,
    },
}

/// A change that is possible, and what it comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
    Add {
        name: String,
        /// The id that stands for the person.
        main: PersonId,
        others: Vec<PersonId>,
        role: Option<Role>,
        agents: Vec<(AgentId, AgentUid, Role)>,
    },
    Role {
        known: Known,
        role: Role,
        agent: Option<(AgentId, AgentUid)>,
        before: Role,
    },
    Link {
        known: Known,
        id: PersonId,
    },
    Remove {
        known: Known,
        /// The line of config.toml that still names the person.
        stays: Option<usize>,
    },
}

/// Looks whether a wish can be carried out.
pub(crate) fn plan(
    connection: &Connection,
    config: &Config,
    wish: &Wish,
    now: i64,
) -> rusqlite::Result<Result<Plan, UserError>> {
    let access = &config.access;
    let person = |word: &str| find(connection, access, word, Looking::ToChange, now);
    match wish {
        Wish::Add {
            name,
            ids,
            role,
            agents,
        } => add(connection, config, (name, ids), (*role, agents), now),
        Wish::Role { who, role, agent } => match person(who)? {
            Ok(known) => change_role(connection, config, known, *role, agent.as_deref()),
            Err(error) => Ok(Err(error)),
        },
        Wish::Link { who, id } => match person(who)? {
            Ok(known) => {
                let other = Register::load(connection, access, now)?.known(id);
                Ok(link(known, id, &other))
            }
            Err(error) => Ok(Err(error)),
        },
        Wish::Remove { who } => Ok(person(who)?.and_then(remove)),
    }
}

fn change_role(
    connection: &Connection,
    config: &Config,
    known: Known,
    role: Role,
    agent: Option<&str>,
) -> rusqlite::Result<Result<Plan, UserError>> {
    let agent = match agent
        .map(|word| find_agent(connection, config, word))
        .transpose()?
    {
        Some(Err(error)) => return Ok(Err(error)),
        Some(Ok(agent)) => Some(agent),
        None => None,
    };
    if let Source::Owners(line) = known.role_from {
        return Ok(Err(fixed(&known, "an owner", line, "[access] owners")));
    }
    let with = agent.as_ref().map(|(agent, _)| agent);
    let own = with.and_then(|with| known.agents.iter().find(|(agent, ..)| agent == with));
    let (before, from) = match (with, own) {
        (Some(_), Some((_, role, from))) => (*role, Some(from)),
        (Some(_), None) => (known.role, None),
        (None, _) => (known.role, Some(&known.role_from)),
    };
    if let Some(Source::File(line)) = from {
        let is = before.with_article();
        return Ok(Err(fixed(&known, is, Some(*line), "that line")));
    }
    if with.is_some() && known.role == Role::Owner {
        return Ok(Err(UserError::new(format!(
            "{} is an owner, and so the owner of every agent.",
            known.label()
        ))));
    }
    Ok(Ok(Plan::Role {
        known,
        role,
        agent,
        before,
    }))
}

fn fixed(known: &Known, is: &str, line: Option<usize>, there: &str) -> UserError {
    let line = line.map_or_else(String::new, |line| format!("line {line} of "));
    UserError::new(format!(
        "{} is {is}: {line}config.toml says so, and the file counts before anything granted here. Change {there}.",
        known.label()
    ))
}

fn find_agent(
    connection: &Connection,
    config: &Config,
    word: &str,
) -> rusqlite::Result<Result<(AgentId, AgentUid), UserError>> {
    let Some(spec) = agent_called(config, word) else {
        return Ok(Err(no_agent(config, word)));
    };
    let uid = agent_rows::uid_of(connection, &spec.id)?;
    let never_ran = || UserError::new(format!("{} is new: start the gateway first.", spec.id));
    Ok(uid.map(|uid| (spec.id.clone(), uid)).ok_or_else(never_ran))
}

/// The agent with this id or name.
pub(super) fn agent_called<'a>(config: &'a Config, word: &str) -> Option<&'a AgentSpec> {
    let word = word.trim_start_matches('@').to_lowercase();
    let is_called = |spec: &&AgentSpec| {
        let name = spec.name.as_deref().map(str::to_lowercase);
        spec.id.as_str() == word || name.is_some_and(|name| name == word)
    };
    config.agents.iter().find(is_called)
}

fn no_agent(config: &Config, word: &str) -> UserError {
    let known: Vec<&str> = config
        .agents
        .iter()
        .map(|agent| agent.id.as_str())
        .collect();
    UserError::new(match nearest(word, known.iter().copied()) {
        Some(near) => format!("No agent is called {word}. Did you mean {near}?"),
        None => format!("No agent is called {word}. Known: {}.", known.join(", ")),
    })
}

fn link(known: Known, id: &PersonId, other: &Known) -> Result<Plan, UserError> {
    if id.is_nobody() || matches!(id, PersonId::Local(_)) {
        return Err(UserError::new(format!("{id} is nobody's id.")));
    }
    if known.has(id) {
        return Err(UserError::new(format!(
            "{id} belongs to {} already.",
            known.label()
        )));
    }
    let from = other.ids.iter().find(|(own, _)| own == id);
    match from.map(|(_, from)| from) {
        Some(Source::File(line)) => Err(fixed(
            other,
            "a person of their own",
            Some(*line),
            "that line",
        )),
        Some(Source::Owners(line)) => Err(fixed(other, "an owner", *line, "[access] owners")),
        // Whoever follows the linked id would get the rights of the other person.
        _ if other.role > known.role && other.role >= Role::Admin => Err(UserError::new(format!(
            "{} is {}. Change that first, or link the ids the other way round.",
            other.label(),
            other.role.with_article()
        ))),
        _ => Ok(Plan::Link {
            known,
            id: id.clone(),
        }),
    }
}

fn remove(known: Known) -> Result<Plan, UserError> {
    let line = |source: &Source| match source {
        Source::File(line) => Some(Some(*line)),
        Source::Owners(line) => Some(*line),
        _ => None,
    };
    let agents = known.agents.iter().map(|(_, _, from)| from);
    let ids = known.ids.iter().map(|(_, from)| from);
    let sources: Vec<&Source> = std::iter::once(&known.role_from)
        .chain(agents)
        .chain(ids)
        .collect();
    let is_granted = |source: &&Source| matches!(source, Source::Granted(_) | Source::Paired(_));
    let stays = sources.iter().find_map(|source| line(source));
    if sources.iter().any(is_granted) {
        return Ok(Plan::Remove {
            stays: stays.flatten(),
            known,
        });
    }
    Err(match stays {
        Some(line) => fixed(&known, known.role.with_article(), line, "that line"),
        None => UserError::new(format!(
            "{} has nothing that could be taken back.",
            known.label()
        )),
    })
}

fn add(
    connection: &Connection,
    config: &Config,
    (name, ids): (&str, &[PersonId]),
    (role, agents): (Option<Role>, &[(String, Role)]),
    now: i64,
) -> rusqlite::Result<Result<Plan, UserError>> {
    let refuse = |text: String| Ok(Err(UserError::new(text)));
    let name = name.trim();
    let is_name = !name.is_empty()
        && name.chars().count() <= MAX_NAME_CHARS
        && !name.contains([':', '`'])
        && !name.chars().any(char::is_control);
    if !is_name {
        return refuse(format!(
            "A name has 1 to {MAX_NAME_CHARS} characters, and no colon."
        ));
    }
    let Some((main, others)) = ids.split_first() else {
        return refuse("A person has an id, such as telegram:12345678.".to_owned());
    };
    let register = Register::load(connection, &config.access, now)?;
    let is_taken = |person: &Person| person.name.to_lowercase() == name.to_lowercase();
    if register.people.all().iter().any(|person| is_taken(person)) {
        return refuse(format!("Somebody is called {name} already."));
    }
    for id in ids {
        if id.is_nobody() || matches!(id, PersonId::Local(_)) {
            return refuse(format!("{id} is nobody's id."));
        }
        let known = register.known(id);
        let from = known.ids.iter().find(|(own, _)| own == id);
        match from.map(|(_, from)| from) {
            Some(Source::File(line)) => {
                return Ok(Err(fixed(
                    &known,
                    "a person there",
                    Some(*line),
                    "that line",
                )));
            }
            Some(Source::Owners(line)) => {
                return Ok(Err(fixed(&known, "an owner", *line, "[access] owners")));
            }
            Some(Source::Granted(_)) => {
                return refuse(format!("{id} belongs to {} already.", known.label()));
            }
            _ => {}
        }
    }
    let mut with = Vec::new();
    for (word, role) in agents {
        match find_agent(connection, config, word)? {
            Ok((agent, uid)) => with.push((agent, uid, *role)),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(Plan::Add {
        name: name.to_owned(),
        main: main.clone(),
        others: others.to_vec(),
        role,
        agents: with,
    }))
}

impl Plan {
    /// The id that stands for the person.
    pub(crate) fn person(&self) -> &PersonId {
        match self {
            Plan::Add { main, .. } => main,
            Plan::Role { known, .. } | Plan::Link { known, .. } | Plan::Remove { known, .. } => {
                known.main()
            }
        }
    }

    pub(crate) fn write(
        &self,
        tx: &Transaction<'_>,
        actor: &Actor,
        now: i64,
    ) -> rusqlite::Result<()> {
        if self.changes_nothing() {
            return Ok(());
        }
        let by = actor.grantor(now);
        match self {
            Plan::Add {
                name,
                main,
                others,
                role,
                agents,
            } => {
                grants::set_name(tx, main, name, &by)?;
                for id in others {
                    grants::link(tx, main, id, &by)?;
                    ledger::link(tx, main, id)?;
                }
                for (agent, role) in role
                    .iter()
                    .map(|role| (None, role))
                    .chain(agents.iter().map(|(_, uid, role)| (Some(*uid), role)))
                {
                    grants::set_role(tx, main, agent, *role, &by)?;
                }
            }
            Plan::Role {
                known, role, agent, ..
            } => {
                let uid = agent.as_ref().map(|(_, uid)| *uid);
                grants::set_role(tx, known.main(), uid, *role, &by)?;
                if uid.is_none() && *role > Role::Guest {
                    let decider = people::Decider {
                        name: by.name.clone().unwrap_or_else(|| by.id.clone()),
                        id: by.id,
                    };
                    for (id, _) in &known.ids {
                        people::let_in_by_role(tx, id, &decider, now)?;
                    }
                }
            }
            Plan::Link { known, id } => {
                grants::link(tx, known.main(), id, &by)?;
                ledger::link(tx, known.main(), id)?;
            }
            Plan::Remove { known, .. } => {
                let ids: Vec<PersonId> = known.ids.iter().map(|(id, _)| id.clone()).collect();
                grants::remove(tx, &ids)?;
                for id in &ids {
                    people::revoke(tx, id)?;
                }
            }
        }
        audit::note(tx, actor, &self.change(), now)
    }

    /// Whether exactly this role was granted before.
    fn changes_nothing(&self) -> bool {
        let Plan::Role {
            known,
            role,
            agent,
            before,
        } = self
        else {
            return false;
        };
        let is_granted = match agent {
            Some((agent, _)) => known.agents.iter().any(|(own, ..)| own == agent),
            None => matches!(known.role_from, Source::Granted(_)),
        };
        before == role && is_granted
    }

    fn change(&self) -> Change<'_> {
        match self {
            Plan::Add {
                name,
                main,
                others,
                role,
                agents,
            } => {
                let ids = std::iter::once(main).chain(others);
                let ids: Vec<String> = ids.map(PersonId::to_string).collect();
                let role = role.iter().map(Role::to_string);
                let with = agents
                    .iter()
                    .map(|(agent, _, role)| format!("{agent}={role}"));
                let roles: Vec<String> = role.chain(with).collect();
                Change::new(Action::AddPerson)
                    .about(ids.join(" "))
                    .to(format!("{name} {}", roles.join(" ")).trim_end())
            }
            Plan::Role {
                known,
                role,
                agent,
                before,
            } => {
                let change = Change::new(Action::Role).about(known.main());
                let change = change.from(before).to(role);
                match agent {
                    Some((agent, _)) => change.of(agent),
                    None => change,
                }
            }
            Plan::Link { known, id } => Change::new(Action::Link).about(known.main()).to(id),
            Plan::Remove { known, .. } => Change::new(Action::RemovePerson)
                .about(known.main())
                .from(known.role),
        }
    }
}
