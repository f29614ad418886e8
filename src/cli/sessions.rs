//! `parlor sessions …`: lists places with their conversations, shows and searches them, and begins
//! them anew, copies or moves them. Works while the gateway runs.

mod words;

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chrono::{Local, NaiveDate, NaiveTime, TimeZone};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::json;

use super::json::Named;
use super::meant_place;
use super::operator::{self, odd_reply};
use super::truth::{self, Answered, Truth};
use super::{
    Failure, Outcome, data, data_json, data_json_text, database, note, print, running_config,
};
use crate::clock::now_ms;
use crate::domain::{Origin, Platform, SessionKey};
use crate::home::{CheckedConfig, Home};
use crate::operations::house::{House, person_of};
use crate::operations::ignored_list;
use crate::operations::session_list::{self, Wanted};
use crate::operations::session_state::{self, SessionState};
use crate::operations::transcripts::{self, Detail, Line};
use crate::operations::{ForkOn, Reply, Request, finding_places, names};
use crate::printable::{escape_json, printable};
use crate::records::transcript::Extent;
use crate::storage::Db;

/// Without a verb, sessions are listed.
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
    /// List places with their agent, people, messages and what waits there
    #[command(visible_alias = "ls")]
    List(List),
    /// Show a place's settings, and who said what there
    Show(Show),
    /// Write a transcript as Markdown or as JSON lines
    Export(Export),
    /// Search the conversations of all agents
    Search(Search),
    /// Copy a conversation to the terminal, where its agent goes on with it
    Fork(Fork),
    /// Begin a new conversation in a place, as /new does
    New {
        /// Key or name of the place
        #[arg(value_name = "PLACE")]
        place: String,
    },
    /// Move a conversation with its pin and model to another place
    #[command(visible_alias = "mv")]
    Move {
        /// Key or name of the place
        #[arg(value_name = "PLACE")]
        place: String,
        /// Key of the other place, which has no conversation
        #[arg(value_name = "NEWPLACE")]
        to: SessionKey,
    },
}

#[derive(Args, Default)]
struct List {
    /// Only places of this agent
    #[arg(long, short, value_name = "AGENT")]
    agent: Option<String>,
    /// Only places of this platform: telegram, discord, web or local
    #[arg(long, value_name = "PLATFORM", value_parser = platform)]
    platform: Option<Platform>,
    /// Only places where this person talks: an id or a name
    #[arg(long, value_name = "PERSON")]
    person: Option<String>,
    /// Only places used since then: 90m, 12h, 7d or a date
    #[arg(long, value_name = "WHEN", value_parser = moment_ago)]
    since: Option<i64>,
    /// Places where messages were ignored, and why
    #[arg(long, conflicts_with_all = ["agent", "person"])]
    ignored: bool,
    /// At most so many, the latest first
    #[arg(long, value_name = "NUMBER", default_value_t = USUAL_LIST)]
    limit: usize,
}

#[derive(Args)]
struct Show {
    /// Key or name of the place
    #[arg(value_name = "PLACE")]
    place: String,
    /// Also conversations from before the last /new
    #[arg(long)]
    all: bool,
    /// At most so many messages, the newest
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: u32,
    /// With ids, labels and meta_json of each message
    #[arg(long)]
    raw: bool,
}

#[derive(Args)]
struct Export {
    /// Key or name of the place
    #[arg(value_name = "PLACE")]
    place: String,
    /// Markdown, or a JSON object in each line
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also conversations from before the last /new
    #[arg(long)]
    all: bool,
    /// With ids, labels and meta_json of each message
    #[arg(long)]
    raw: bool,
    /// Write it to this file, which must not exist yet [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    #[default]
    Md,
    Jsonl,
}

#[derive(Args)]
struct Search {
    /// Words that are all in a message
    #[arg(required = true)]
    words: Vec<String>,
    /// Only what was said by and to this agent
    #[arg(long, short, value_name = "AGENT")]
    agent: Option<String>,
    /// At most so many messages, the newest first
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    limit: u32,
}

#[derive(Args)]
struct Fork {
    /// Key or name of the place
    #[arg(value_name = "PLACE")]
    place: String,
    /// A new place of the terminal or the web chat, such as local:home:draft
    #[arg(long, value_name = "PLACE")]
    to: Option<SessionKey>,
}

/// Places in a list, unless another number is asked for.
const USUAL_LIST: usize = 50;

pub(super) async fn run(home: Home, Arguments { verb, json }: Arguments) -> Outcome {
    let open = Open::open(&home, json).await?;
    let usual = || {
        Verb::List(List {
            limit: USUAL_LIST,
            ..List::default()
        })
    };
    match verb.unwrap_or_else(usual) {
        Verb::List(arguments) => open.list(arguments).await,
        Verb::Show(arguments) => open.show(&arguments).await,
        Verb::Export(arguments) => open.export(&arguments).await,
        Verb::Search(arguments) => open.search(arguments).await,
        Verb::Fork(arguments) => open.fork(arguments).await,
        Verb::New { place } => open.renew(&place).await,
        Verb::Move { place, to } => open.move_to(&place, to).await,
    }
}

fn platform(text: &str) -> Result<Platform, String> {
    text.parse()
        .map_err(|()| "write telegram, discord, web or local".to_owned())
}

/// A time in the past, in Unix milliseconds.
fn moment_ago(text: &str) -> Result<i64, String> {
    let unit = |unit: char, seconds: i64| {
        let number: Option<i64> = text.strip_suffix(unit)?.parse().ok();
        number?.checked_mul(seconds)?.checked_mul(1000)
    };
    let ago = unit('m', 60)
        .or_else(|| unit('h', 60 * 60))
        .or_else(|| unit('d', 24 * 60 * 60))
        .filter(|ago| *ago > 0);
    let midnight = || {
        let date: NaiveDate = text.parse().ok()?;
        let moment = Local.from_local_datetime(&date.and_time(NaiveTime::MIN));
        Some(moment.earliest()?.timestamp_millis())
    };
    ago.map(|ago| now_ms().saturating_sub(ago))
        .or_else(midnight)
        .ok_or_else(|| "write 90m, 12h, 7d or a date such as 2026-11-01".into())
}

struct Open<'a> {
    home: &'a Home,
    db: Db,
    checked: CheckedConfig,
    house: House,
    json: bool,
}

/// A session with its messages, for programs.
#[derive(Serialize)]
struct Shown<'a> {
    /// Who answers there, or why nobody; absent where that depends on the writer's server and roles.
    answer: Option<Answered>,
    session: &'a SessionState,
    messages: &'a [Line],
}

impl<'a> Open<'a> {
    async fn open(home: &'a Home, json: bool) -> Result<Self, Failure> {
        let checked = running_config::checked(home).await?;
        let checked = truth::with_grants(home, checked).await?;
        let db = database::open(&home.database()).await?;
        let house = House::load(&db, checked.config.clone(), checked.table.clone()).await?;
        let house = house.with_places(meant_place::ignored(home).await);
        Ok(Open {
            home,
            db,
            checked,
            house,
            json,
        })
    }

    async fn list(&self, arguments: List) -> Outcome {
        if arguments.ignored {
            return self.list_ignored(&arguments).await;
        }
        let agent = match &arguments.agent {
            Some(word) => Some(self.agent(word).await?.id.clone()),
            None => None,
        };
        let person = arguments.person.as_deref();
        let wanted = Wanted {
            agent,
            platform: arguments.platform,
            person: person.map(|word| self.person(word)).transpose()?,
            since: arguments.since,
            limit: arguments.limit,
            behind: None,
        };
        let house = self.house.clone();
        let list = move |connection: &rusqlite::Connection| {
            session_list::list(connection, &house, &wanted)
        };
        let page = self.db.read(list).await?;
        if self.json {
            return data_json(&page.sessions);
        }
        data(format_args!("{}", words::list(&page.sessions)));
        if page.has_more {
            note(format_args!(
                "There are more; --limit shows more of them, --agent, --person and --since fewer."
            ));
        }
        Ok(())
    }

    async fn list_ignored(&self, arguments: &List) -> Outcome {
        let (house, platform) = (self.house.clone(), arguments.platform);
        let (since, limit) = (arguments.since.unwrap_or(i64::MIN), arguments.limit);
        let list = move |connection: &rusqlite::Connection| {
            ignored_list::list(connection, &house, platform, since, limit)
        };
        let ignored = self.db.read(list).await?;
        if self.json {
            return data_json(&ignored);
        }
        data(format_args!("{}", words::ignored(&ignored)));
        if !ignored.is_empty() {
            let is_open = |place: &ignored_list::Ignored| place.now == ignored_list::Now::Open;
            note(format_args!(
                "`parlor route explain PLACE` tells {}.",
                match ignored.iter().all(is_open) {
                    true => "who answers there now",
                    false => "more, and how to open a closed place",
                }
            ));
        }
        Ok(())
    }

    async fn show(&self, arguments: &Show) -> Outcome {
        let extent = extent(arguments.all);
        let (state, lines) = self
            .read(
                &arguments.place,
                (extent, arguments.limit),
                detail(arguments.raw),
            )
            .await?;
        let truth = self.truth(&state).await?;
        if self.json {
            return data_json(&Shown {
                answer: truth.as_ref().map(Truth::answered),
                session: &state,
                messages: &lines,
            });
        }
        let told = truth.as_ref().map(|truth| truth.told.as_str());
        data(format_args!("{}", words::state(&state, told)));
        data(format_args!("\n{}", words::transcript(&lines)?));
        Ok(())
    }

    async fn export(&self, arguments: &Export) -> Outcome {
        let extent = (extent(arguments.all), u32::MAX);
        let (state, lines) = self
            .read(&arguments.place, extent, detail(arguments.raw))
            .await?;
        let text = match arguments.format {
            Format::Md => printable(&words::markdown(&state, &lines)?),
            Format::Jsonl => escape_json(&words::json_lines(&lines)?),
        };
        let Some(path) = &arguments.out else {
            if self.json {
                return data_json(&lines);
            }
            match arguments.format {
                Format::Md => print::document(&text),
                Format::Jsonl => data_json_text(text.trim_end()),
            }
            return Ok(());
        };
        write_new(path, &text)?;
        let told = json!({ "place": state.place, "messages": lines.len(), "file": path.display().to_string() });
        print::result(
            self.json,
            &told,
            format_args!(
                "{} of {} written to {}.",
                words::messages(lines.len()),
                state.place.text(),
                path.display()
            ),
        )
    }

    async fn search(&self, arguments: Search) -> Outcome {
        let agent = match &arguments.agent {
            Some(word) => Some(self.agent(word).await?.uid),
            None => None,
        };
        let (house, limit) = (self.house.clone(), arguments.limit);
        let wanted: Vec<String> = arguments
            .words
            .iter()
            .flat_map(|words| words.split_whitespace())
            .map(str::to_owned)
            .collect();
        if wanted.is_empty() {
            return Err(Failure::WrongUse("tell which words to look for".into()));
        }
        let search = move |connection: &rusqlite::Connection| {
            transcripts::search(connection, &house, &wanted, agent, limit)
        };
        let hits = self.db.read(search).await?;
        if self.json {
            return data_json(&hits);
        }
        data(format_args!("{}", words::hits(&hits)));
        Ok(())
    }

    /// Who answers there, told as `route explain` does.
    async fn truth(&self, state: &SessionState) -> Result<Option<Truth>, Failure> {
        if !state.is_sure {
            return Ok(None);
        }
        let key: SessionKey = state
            .place
            .id
            .parse()
            .map_err(|error| Failure::Failed(format!("{error}")))?;
        let origin = Origin::new(key.clone(), person_of(&key));
        let truth = truth::truth(self.home, &self.checked, origin, None).await?;
        Ok(Some(truth))
    }

    async fn fork(&self, Fork { place, to }: Fork) -> Outcome {
        let from = self.place(&place).await?;
        let on = ForkOn::Terminal;
        let asked = operator::ask(self.home, Request::Fork { from, to, on }).await?;
        let Reply::Forked(forked) = asked else {
            return Err(odd_reply());
        };
        print::result(
            self.json,
            &*forked,
            format_args!(
                "{} of {} copied to {}. {} answers there.",
                words::messages(forked.messages),
                forked.from.text(),
                forked.to.id,
                forked.agent.text()
            ),
        )?;
        note(format_args!("`{}` goes on with it.", forked.command));
        Ok(())
    }

    async fn renew(&self, place: &str) -> Outcome {
        let place = self.place(place).await?;
        let asked = operator::ask(self.home, Request::Renew { place }).await?;
        let Reply::Renewed(renewed) = asked else {
            return Err(odd_reply());
        };
        let model = renewed.model.as_ref().map_or_else(String::new, |model| {
            format!(" The model {model}, chosen with /model, went with the old one.")
        });
        print::result(
            self.json,
            &renewed,
            format_args!(
                "A new conversation begins in {}.{model}",
                renewed.place.text()
            ),
        )
    }

    async fn move_to(&self, place: &str, to: SessionKey) -> Outcome {
        let from = self.place(place).await?;
        let asked = operator::ask(self.home, Request::Move { from, to }).await?;
        let Reply::Moved(moved) = asked else {
            return Err(odd_reply());
        };
        let pinned = moved.pinned.as_ref().map(Named::text);
        let along: Vec<String> = pinned
            .map(|agent| format!("the switch to {agent}"))
            .into_iter()
            .chain(
                moved
                    .model
                    .as_ref()
                    .map(|model| format!("the model {model}")),
            )
            .collect();
        let along = match along.as_slice() {
            [] => String::new(),
            along => format!(", with {}", along.join(" and ")),
        };
        print::result(
            self.json,
            &*moved,
            format_args!(
                "{} moved from {} to {}{along}.",
                words::messages(moved.messages),
                moved.from.text(),
                moved.to.text()
            ),
        )
    }

    /// The state of a place and its messages.
    async fn read(
        &self,
        word: &str,
        extent: (Extent, u32),
        detail: Detail,
    ) -> Result<(SessionState, Vec<Line>), Failure> {
        let place = self.place(word).await?;
        let (house, key) = (self.house.clone(), place.clone());
        let read = move |connection: &rusqlite::Connection| {
            let state = session_state::state(connection, &house, &key)?;
            let lines = transcripts::read(connection, &house, &key, extent, detail)?;
            Ok(state.map(|state| (state, lines)))
        };
        let read = self.db.read(read).await?;
        read.ok_or_else(|| Failure::Failed(format!("nothing was ever said in {place}")))
    }

    async fn place(&self, word: &str) -> Result<SessionKey, Failure> {
        let (names, own) = (self.house.names.clone(), word.to_owned());
        let find =
            move |connection: &rusqlite::Connection| finding_places::find(connection, &names, &own);
        let found = self.db.read(find).await?;
        found.map_err(meant_place::not_meant)
    }

    fn person(&self, word: &str) -> Result<crate::domain::PersonId, Failure> {
        let found = self.house.names.find_person(word);
        found.map_err(|error: names::NoPerson| Failure::WrongUse(error.to_string()))
    }

    async fn agent(&self, word: &str) -> Result<std::sync::Arc<crate::agents::Agent>, Failure> {
        let (registry, _) = self.checked.registry(self.home, &self.db).await?;
        super::agent::find(&registry, word).cloned()
    }
}

fn extent(all: bool) -> Extent {
    match all {
        true => Extent::All,
        false => Extent::Current,
    }
}

fn detail(raw: bool) -> Detail {
    match raw {
        true => Detail::Raw,
        false => Detail::Readable,
    }
}

/// Conversations are private, so the file is for its owner alone.
fn write_new(path: &Path, text: &str) -> Outcome {
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(text.trim_end().as_bytes())?;
        file.write_all(b"\n")
    });
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::Failed(format!(
            "{} is there already, and is left as it is",
            path.display()
        )),
        _ => Failure::Failed(format!("{} cannot be written: {error}", path.display())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ages_or_dates() {
        let ago = |text| moment_ago(text).map(|at| (now_ms() - at) / 60_000);
        assert_eq!(ago("90m"), Ok(90));
        assert_eq!(ago("2h"), Ok(120));
        assert_eq!(ago("1d"), Ok(24 * 60));
        assert!(moment_ago("2026-01-31").is_ok_and(|at| at < now_ms()));
        for wrong in ["0d", "-1h", "h", "", "yesterday", "12"] {
            assert!(moment_ago(wrong).is_err(), "{wrong}");
        }
    }
}
