//! `parlor pair`: lets a person in with a code, makes the first owner, lists people, and takes a
//! pairing back. Works while the gateway runs: the gateway then tells everybody.

use std::io::{IsTerminal, stdin};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::actor::actor;
use super::json::Named;
use super::table::{Column, table};
use super::{Failure, Outcome, data, data_json, database, print, question};
use crate::access::people::{self, Acquaintance, Decider, Decision};
use crate::clock::now_ms;
use crate::commands::texts::people as texts;
use crate::commands::texts::words::duration_of;
use crate::config::{Access, Secrets};
use crate::domain::{PersonId, Role};
use crate::home::{CheckedConfig, Home, OwnerError, add_owner};
use crate::operations::known_people;
use crate::records::audit::{self, Action, Change};
use crate::storage::Db;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The code that the bot told the person
    code: Option<String>,
    /// Make the person an owner too, in config.toml
    #[arg(long, requires = "code")]
    owner: bool,
    /// Turn the person away
    #[arg(long, requires = "code", conflicts_with = "owner")]
    no: bool,
    /// Do not ask whether this is the right person
    #[arg(long)]
    yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Show people who wait with a code, and people who were let in
    #[command(visible_alias = "ls")]
    List {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Let in the person with a code; `parlor pair CODE` is short for it
    Approve(Approval),
    /// Take back that a person was let in
    #[command(visible_alias = "rm")]
    Revoke {
        /// The person's id, such as telegram:12345678
        id: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

/// A code, and what becomes of its person.
#[derive(Args)]
struct Approval {
    /// The code that the bot told the person
    code: String,
    /// Make the person an owner too, in config.toml
    #[arg(long)]
    owner: bool,
    /// Turn the person away
    #[arg(long, conflicts_with = "owner")]
    no: bool,
    /// Do not ask whether this is the right person
    #[arg(long)]
    yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A person of the list.
#[derive(Serialize)]
struct Listed {
    id: String,
    name: String,
    state: &'static str,
    code: Option<String>,
    let_in_by: Option<String>,
    /// How long the code counts, for people.
    #[serde(skip)]
    left: Option<String>,
}

/// What a person is after a decision.
#[derive(Serialize)]
struct Became {
    person: Named,
    became: &'static str,
}

impl Became {
    fn new(known: &Acquaintance, became: &'static str) -> Self {
        Became {
            person: Named::new(&known.person, Some(&known.name)),
            became,
        }
    }
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let db = database::open(&home.database()).await?;
    match (arguments.verb, arguments.code) {
        (Some(Verb::List { json }), _) => list(&db, json).await,
        (Some(Verb::Approve(approval)), _) => approve(&home, &db, approval).await,
        (Some(Verb::Revoke { id, json }), _) => revoke(&home, &db, &id, json).await,
        (None, Some(code)) => {
            let (owner, no) = (arguments.owner, arguments.no);
            let (yes, json) = (arguments.yes, arguments.json);
            let approval = Approval {
                code,
                owner,
                no,
                yes,
                json,
            };
            approve(&home, &db, approval).await
        }
        (None, None) => list(&db, arguments.json).await,
    }
}

async fn approve(home: &Home, db: &Db, approval: Approval) -> Outcome {
    let decision = decision(approval.owner, approval.no);
    let known = decide(home, db, approval.code, decision, approval.yes).await?;
    told(&known, decision, approval.json, home.is_running())
}

fn decision(makes_owner: bool, turns_away: bool) -> Decision {
    match (makes_owner, turns_away) {
        (true, _) => Decision::MadeOwner,
        (false, true) => Decision::TurnedAway,
        (false, false) => Decision::LetIn,
    }
}

async fn decide(
    home: &Home,
    db: &Db,
    code: String,
    decision: Decision,
    yes: bool,
) -> Result<Acquaintance, Failure> {
    let known = guest_of(db, &code, decision).await?;
    let is_asked = !yes && stdin().is_terminal() && print::is_seen();
    if is_asked && !is_right(&known, decision)? {
        return Err(Failure::Failed("nothing was changed".into()));
    }
    if decision == Decision::MadeOwner {
        // First, because a member who is no owner yet can be made one again.
        let (home, owner) = (home.path().to_owned(), known.person.clone());
        blocking(move || add_owner(&home, &owner)).await?;
    }
    let by = Decider {
        id: "cli".into(),
        name: "the command line".into(),
    };
    let wanted = code.clone();
    let decided = db
        .write(move |tx| {
            let now = now_ms();
            let decided = people::decide(tx, &wanted, decision, &by, now)?;
            if let Some(known) = &decided {
                let action = match decision.lets_in() {
                    true => Action::Pair,
                    false => Action::TurnAway,
                };
                let change = Change::new(action).about(&known.person);
                let change = match decision {
                    Decision::MadeOwner => change.to(Role::Owner),
                    _ => change,
                };
                audit::note(tx, &actor(), &change, now)?;
            }
            Ok(decided)
        })
        .await?;
    match decided {
        Some(known) => Ok(known),
        None => Err(no_such_code(db, &code, decision).await?),
    }
}

fn told(known: &Acquaintance, decision: Decision, json: bool, is_running: bool) -> Outcome {
    let Acquaintance { person, name } = known;
    if json {
        let became = match decision {
            Decision::MadeOwner => "owner",
            Decision::TurnedAway => "turned_away",
            Decision::LetIn | Decision::RanOut => "member",
        };
        return data_json(&Became::new(known, became));
    }
    let first = if is_running {
        "The gateway tells them now, and answers what they wrote first."
    } else {
        "The gateway tells them when it runs, and answers what they wrote first."
    };
    data(format_args!(
        "{}",
        match decision {
            Decision::MadeOwner =>
                format!("{name} ({person}) is an owner now; config.toml says so. {first}"),
            Decision::TurnedAway =>
                format!("{name} ({person}) is turned away, and can ask again tomorrow."),
            Decision::LetIn | Decision::RanOut =>
                format!("{name} ({person}) may now write to the bot. {first}"),
        }
    ));
    Ok(())
}

async fn guest_of(db: &Db, code: &str, decision: Decision) -> Result<Acquaintance, Failure> {
    let wanted = code.to_owned();
    let found = db
        .read(move |connection| people::of_code(connection, &wanted, now_ms()))
        .await?;
    match found {
        Some(known) => Ok(known),
        None => Err(no_such_code(db, code, decision).await?),
    }
}

/// Tells what became of the code, if that is known.
async fn no_such_code(db: &Db, code: &str, wanted: Decision) -> Result<Failure, Failure> {
    let code = code.to_owned();
    let decided = db
        .read(move |connection| people::decided(connection, &code))
        .await?;
    let Some(decided) = decided else {
        return Ok(Failure::Failed(NO_SUCH_CODE.into()));
    };
    let Acquaintance { person, name } = &decided.known;
    let by = decided
        .decider
        .map_or_else(|| "somebody".to_owned(), |by| by.name);
    Ok(Failure::Failed(match decided.decision {
        Decision::LetIn if wanted == Decision::MadeOwner => format!(
            "{name} ({person}) was let in already, by {by}. `parlor people role {person} owner` makes them an owner"
        ),
        Decision::LetIn | Decision::MadeOwner => {
            format!("{name} ({person}) was let in already, by {by}")
        }
        Decision::TurnedAway => format!("{name} ({person}) was turned away already, by {by}"),
        Decision::RanOut => format!(
            "the code of {name} ({person}) has run out. They get a new one by writing to the bot again"
        ),
    }))
}

fn is_right(known: &Acquaintance, decision: Decision) -> Result<bool, Failure> {
    let Acquaintance { person, name } = known;
    match decision {
        Decision::MadeOwner => question(format_args!("Make {name} ({person}) an owner? [y/N] ")),
        Decision::TurnedAway => question(format_args!("Turn away {name} ({person})? [y/N] ")),
        Decision::LetIn | Decision::RanOut => {
            question(format_args!("Let in {name} ({person})? [y/N] "));
        }
    }
    let mut line = String::new();
    stdin()
        .read_line(&mut line)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

async fn blocking(
    work: impl FnOnce() -> Result<(), OwnerError> + Send + 'static,
) -> Result<(), Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::Failed(error.to_string()))?
        .map_err(Failure::from)
}

async fn list(db: &Db, json: bool) -> Outcome {
    let read = |connection: &rusqlite::Connection| {
        Ok((
            people::waiting(connection, now_ms())?,
            people::members(connection, u32::MAX)?,
            people::turned_away(connection, now_ms())?,
        ))
    };
    let (waiting, members, turned_away) = db.read(read).await?;
    let turned_away = turned_away.into_iter().map(|known| Listed {
        id: known.person.to_string(),
        name: known.name,
        state: "turned away",
        code: None,
        let_in_by: None,
        left: None,
    });
    let waiting = waiting.into_iter().map(|waiting| Listed {
        id: waiting.person.to_string(),
        name: waiting.name,
        state: "waiting",
        code: Some(waiting.code),
        let_in_by: None,
        left: Some(format!(
            "for {} more",
            duration_of(waiting.until - now_ms())
        )),
    });
    let members = members.into_iter().map(|member| Listed {
        id: member.person.to_string(),
        name: member.name,
        state: "let in",
        code: None,
        let_in_by: Some(member.by),
        left: None,
    });
    let listed: Vec<Listed> = waiting.chain(members).chain(turned_away).collect();
    if json {
        data_json(&listed)?;
    } else if listed.is_empty() {
        data(format_args!(
            "Nobody waits, and nobody was let in with a code."
        ));
    } else {
        data(format_args!("{}", listing(&listed)));
    }
    Ok(())
}

fn listing(listed: &[Listed]) -> String {
    let columns = [
        Column::Whole("ID"),
        Column::Words("NAME"),
        Column::Words("STATE"),
        Column::Whole("CODE"),
        Column::Words("COUNTS"),
    ];
    let cells = listed.iter().map(|person| {
        [
            person.id.clone(),
            person.name.clone(),
            person.state.to_owned(),
            person.code.clone().unwrap_or_default(),
            person.left.clone().unwrap_or_default(),
        ]
    });
    table(columns, cells.collect())
}

async fn revoke(home: &Home, db: &Db, id: &str, json: bool) -> Outcome {
    let Ok(person) = id.parse::<PersonId>() else {
        return Err(Failure::WrongUse(format!(
            "`{id}` is not a person's id; `parlor pair list` shows ids"
        )));
    };
    let checked = CheckedConfig::load(home, Secrets::WherePresent);
    let access = checked.map_or_else(
        |_| Access::default(),
        |checked| checked.config.access.clone(),
    );
    let wanted = person.clone();
    let left = move |connection: &rusqlite::Connection| {
        known_people::without_code(connection, &access, &wanted, now_ms())
    };
    let left = db.read(left).await?;
    let revoked = db
        .write(move |tx| {
            let revoked = people::revoke(tx, &person)?;
            if let Some(known) = &revoked {
                let change = Change::new(Action::Unpair).about(&known.person);
                audit::note(tx, &actor(), &change, now_ms())?;
            }
            Ok(revoked)
        })
        .await?;
    let Some(known) = revoked else {
        let told = texts::not_let_in(&left).replace("`/pair`", "`parlor pair list`");
        let told = told.replace("An owner's `/", "`/");
        let told = told.replace("`/", "`parlor ");
        return Err(Failure::Failed(told.trim_end_matches('.').to_owned()));
    };
    if json {
        return data_json(&Became::new(&known, left.role.as_str()));
    }
    let told = texts::put_out(&left).replace("An owner's `/", "`/");
    let told = told.replace("`/", "`parlor ");
    print::wrapped(&told);
    Ok(())
}

const NO_SUCH_CODE: &str = "no such code is open. A code is valid for one hour; the person gets a new one by writing to the bot again";
