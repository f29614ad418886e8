//! `parlor people`: everybody known, their roles and ids, and where each comes from. Works while the
//! gateway runs: a change counts from the next message on.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::actor::actor;
use super::json::{Amount, moment, time};
use super::table::{Column, table};
use super::{Failure, Outcome, data, data_json, database, running_config};
use crate::access::grants::Grantor;
use crate::clock::now_ms;
use crate::commands::texts::people as texts;
use crate::commands::texts::usage::cost_of;
use crate::config::Currency;
use crate::domain::{PersonId, Role};
use crate::figures::grouped;
use crate::home::{CheckedConfig, Home};
use crate::operations::known_people::{self, Known, Looking, Source};
use crate::operations::people::{self, Wish};
use crate::storage::Db;

/// Without a verb, people are listed.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Show everybody: from config.toml, granted, let in, and seen
    #[command(visible_alias = "ls")]
    List,
    /// Show a person, and where each role and id comes from
    Show {
        /// An id, such as telegram:12345678, or a name
        who: String,
    },
    /// Add a person with a name, ids and a role
    Add {
        /// A name of your choice
        name: String,
        /// An id on a platform, such as telegram:12345678
        #[arg(long, value_name = "ID", required = true, value_parser = person)]
        id: Vec<PersonId>,
        /// The role with all agents [default: member]
        #[arg(long, value_parser = role)]
        role: Option<Role>,
        /// The role with one agent only, such as coding=member
        #[arg(long, value_name = "AGENT=ROLE", value_parser = with_agent)]
        agent: Vec<(String, Role)>,
    },
    /// Give a person a role, with all agents or with one
    Role {
        /// An id, such as telegram:12345678, or a name that you have given
        who: String,
        /// guest, member, admin or owner
        #[arg(value_parser = role)]
        role: Role,
        /// With this agent only
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// Make an id one of the ids of a person
    Link {
        /// An id, such as telegram:12345678, or a name that you have given
        who: String,
        /// The person's id on another platform
        #[arg(value_parser = person)]
        id: PersonId,
    },
    /// Take back everything that was granted to a person
    #[command(visible_alias = "rm")]
    Remove {
        /// An id, such as telegram:12345678, or a name that you have given
        who: String,
    },
}

fn person(text: &str) -> Result<PersonId, String> {
    text.parse()
        .map_err(|()| "write the platform and the number, such as telegram:12345678".into())
}

fn role(text: &str) -> Result<Role, String> {
    text.parse()
        .map_err(|()| "roles are guest, member, admin and owner".into())
}

fn with_agent(text: &str) -> Result<(String, Role), String> {
    let (agent, word) = text.split_once('=').ok_or("write it like coding=member")?;
    Ok((agent.to_owned(), role(word)?))
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let checked = running_config::checked(&home).await?;
    let db = database::open(&home.database()).await?;
    let json = arguments.json;
    let wish = match arguments.verb.unwrap_or(Verb::List) {
        Verb::List => return list(&db, &checked, json).await,
        Verb::Show { who } => return show(&db, &checked, who, json).await,
        Verb::Add {
            name,
            id,
            role,
            agent,
        } => {
            let is_for_one = role.is_none() && !agent.is_empty();
            let role = role.or((!is_for_one).then_some(Role::Member));
            Wish::Add {
                name,
                ids: id,
                role,
                agents: agent,
            }
        }
        Verb::Role { who, role, agent } => Wish::Role { who, role, agent },
        Verb::Link { who, id } => Wish::Link { who, id },
        Verb::Remove { who } => Wish::Remove { who },
    };
    change(&home, &db, checked, wish, json).await
}

async fn change(home: &Home, db: &Db, checked: CheckedConfig, wish: Wish, json: bool) -> Outcome {
    // New agents of the file get their rows, so that roles can hang on them.
    checked.registry(home, db).await?;
    let (config, currency) = (checked.config.clone(), checked.config.currency.clone());
    let write = move |tx: &rusqlite::Transaction<'_>| {
        let (access, now) = (&config.access, now_ms());
        let plan = match people::plan(tx, &config, &wish, now)? {
            Ok(plan) => plan,
            Err(error) => return Ok(Err(error)),
        };
        plan.write(tx, &actor(), now)?;
        let word = plan.person().to_string();
        let known = known_people::find(tx, access, &word, Looking::ToChange, now)?;
        Ok(known.map(|known| (plan, known)))
    };
    let (plan, known) = db.write(write).await??;
    if json {
        return data_json(&Listed::of(&known, &currency));
    }
    data(format_args!("{}", texts::changed(&plan)));
    Ok(())
}

async fn list(db: &Db, checked: &CheckedConfig, json: bool) -> Outcome {
    let config = checked.config.clone();
    let read = move |connection: &rusqlite::Connection| {
        known_people::list(connection, &config.access, now_ms())
    };
    let known = db.read(read).await?;
    let currency = &checked.config.currency;
    if json {
        let listed: Vec<Listed> = known
            .iter()
            .map(|known| Listed::of(known, currency))
            .collect();
        data_json(&listed)?;
    } else if known.is_empty() {
        data(format_args!("Nobody is known yet."));
    } else {
        data(format_args!("{}", in_a_table(&known, currency)));
    }
    Ok(())
}

async fn show(db: &Db, checked: &CheckedConfig, who: String, json: bool) -> Outcome {
    let config = checked.config.clone();
    let read = move |connection: &rusqlite::Connection| {
        known_people::find(connection, &config.access, &who, Looking::ToShow, now_ms())
    };
    let known = db
        .read(read)
        .await?
        .map_err(|error| Failure::WrongUse(error.to_string()))?;
    let currency = &checked.config.currency;
    if json {
        data_json(&Listed::of(&known, currency))?;
    } else {
        let told = texts::show(&known, currency).replace('`', "");
        data(format_args!("{told}"));
    }
    Ok(())
}

fn in_a_table(known: &[Known], currency: &Currency) -> String {
    let columns = [
        Column::Words("NAME"),
        Column::Whole("ID"),
        Column::Words("ROLE"),
        Column::Words("FROM"),
        Column::Whole("LAST SEEN"),
        Column::Number("TOKENS TODAY"),
        Column::Number("COST TODAY"),
    ];
    let rows = known.iter().map(|known| {
        let ids: Vec<String> = known.ids.iter().map(|(id, _)| id.to_string()).collect();
        let with = known.agents.iter();
        let with: String = with
            .map(|(agent, role, _)| format!(", {role} with {agent}"))
            .collect();
        let name = known.name.as_ref().or(known.called.as_ref());
        [
            name.cloned().unwrap_or_default(),
            ids.join(" "),
            format!("{}{with}", known.role),
            texts::source(&known.role_from),
            known.last_seen.map_or_else(|| "-".to_owned(), moment),
            grouped(known.spent.tokens),
            cost_of(Some(known.spent.cost), known.unpriced_tokens, currency).unwrap_or_default(),
        ]
    });
    table(columns, rows.collect())
}

/// A person for programs.
#[derive(Serialize)]
struct Listed {
    id: String,
    name: Option<String>,
    called: Option<String>,
    ids: Vec<ListedId>,
    role: String,
    from: Origin,
    agents: Vec<ListedRole>,
    last_seen: Option<String>,
    tokens_today: u64,
    cost_today: Amount,
    /// Tokens of today that no price is known for.
    unpriced_tokens_today: u64,
}

#[derive(Serialize)]
struct ListedId {
    id: String,
    from: Origin,
}

#[derive(Serialize)]
struct ListedRole {
    agent: String,
    role: String,
    from: Origin,
}

/// Where a role or an id comes from.
#[derive(Serialize)]
struct Origin {
    kind: &'static str,
    line: Option<usize>,
    by: Option<String>,
    at: Option<String>,
}

impl Origin {
    fn of(source: &Source) -> Self {
        let plain = |kind, line| Origin {
            kind,
            line,
            by: None,
            at: None,
        };
        let granted = |kind, by: &Grantor| Origin {
            kind,
            line: None,
            by: Some(by.id.clone()),
            at: Some(time(by.at)),
        };
        match source {
            Source::Owners(line) => plain("owners", *line),
            Source::File(line) => plain("config", Some(*line)),
            Source::Granted(by) => granted("granted", by),
            Source::Paired(by) => granted("paired", by),
            Source::Nowhere => plain("seen", None),
        }
    }
}

impl Listed {
    fn of(known: &Known, currency: &Currency) -> Self {
        let ids = known.ids.iter().map(|(id, from)| ListedId {
            id: id.to_string(),
            from: Origin::of(from),
        });
        let agents = known.agents.iter().map(|(agent, role, from)| ListedRole {
            agent: agent.to_string(),
            role: role.to_string(),
            from: Origin::of(from),
        });
        Listed {
            id: known.main().to_string(),
            name: known.name.clone(),
            called: known.called.clone(),
            ids: ids.collect(),
            role: known.role.to_string(),
            from: Origin::of(&known.role_from),
            agents: agents.collect(),
            last_seen: known.last_seen.map(time),
            tokens_today: known.spent.tokens,
            cost_today: Amount::of(known.spent.cost, currency),
            unpriced_tokens_today: known.unpriced_tokens,
        }
    }
}
