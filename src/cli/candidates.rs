//! Live candidates for Tab: agents of the config and places of the database.
//!
//! Quick and silent: nothing is written, no database is brought up to date, and where there is no
//! home, or a broken one, there are no candidates.

use std::path::PathBuf;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use super::home_folder;
use crate::agents::shown_name;
use crate::config::{self, Secrets};
use crate::home::Home;
use crate::printable::printable_line;
use crate::{storage, tenants};

/// Places that are offered: the ones used last.
const MOST_PLACES: u32 = 200;

/// Every argument that names an agent, an archive or a place gets its candidates, by its name in
/// the help.
pub(super) fn with_candidates(command: Command) -> Command {
    let verb = command.get_name().to_owned();
    let command = command.mut_args(|argument| match kind(&verb, &argument) {
        Some(candidates) => argument.add(ArgValueCandidates::new(candidates)),
        None => argument,
    });
    command.mut_subcommands(with_candidates)
}

fn kind(verb: &str, argument: &Arg) -> Option<fn() -> Vec<CompletionCandidate>> {
    let value = argument.get_value_names()?.first()?.as_str();
    match (verb, value) {
        ("restore", "WHICH") => Some(archives),
        ("purge", "WHICH") => Some(agents_and_archives),
        (_, "AGENT") => Some(agents),
        (_, "PLACE" | "NEWPLACE" | "KEY" | "PLACE|ID" | "PLACE|ID|all") => Some(places),
        (_, "SECTION|KEY") => Some(sections),
        _ => None,
    }
}

/// The shell passes on the words of the line, among them `--home DIR`.
fn home() -> Option<Home> {
    let mut words = std::env::args_os().skip_while(|word| word != "--");
    let mut named = None;
    while let Some(word) = words.next() {
        let word = word.to_string_lossy().into_owned();
        if word == "--home" {
            named = words.next().map(PathBuf::from);
        } else if let Some(path) = word.strip_prefix("--home=") {
            named = Some(PathBuf::from(path));
        }
    }
    let named = named.or_else(|| std::env::var_os("PARLOR_HOME").map(PathBuf::from));
    home_folder(named).filter(|home| home.path().is_dir())
}

fn candidate(id: &str, name: Option<&str>) -> CompletionCandidate {
    let name = name.map(printable_line).filter(|name| !name.is_empty());
    CompletionCandidate::new(printable_line(id)).help(name.map(Into::into))
}

fn agents() -> Vec<CompletionCandidate> {
    let Some(draft) = home().and_then(|home| config::load(home.path(), Secrets::WherePresent).ok())
    else {
        return Vec::new();
    };
    let agents = draft.config.agents.iter();
    agents
        .map(|agent| candidate(agent.id.as_str(), Some(&shown_name(agent))))
        .collect()
}

/// Sections of the config, the agents' among them.
fn sections() -> Vec<CompletionCandidate> {
    let Some(home) = home() else {
        return Vec::new();
    };
    let Ok(settings) = super::running_config::settings_on_disk(&home) else {
        return Vec::new();
    };
    let keys = settings.all().iter().map(|setting| setting.key.as_str());
    let mut names: Vec<&str> = keys
        .map(|key| key.rsplit_once('.').map_or(key, |(section, _)| section))
        .collect();
    names.dedup();
    names.iter().map(|name| candidate(name, None)).collect()
}

fn archives() -> Vec<CompletionCandidate> {
    let archives = home().map(|home| tenants::archives(home.path()));
    let archives = archives.unwrap_or_default();
    archives
        .iter()
        .map(|archive| candidate(&archive.name, Some(archive.id.as_str())))
        .collect()
}

fn agents_and_archives() -> Vec<CompletionCandidate> {
    let mut all = agents();
    all.extend(archives());
    all
}

fn places() -> Vec<CompletionCandidate> {
    let read =
        |connection: &rusqlite::Connection| crate::routing::places::latest(connection, MOST_PLACES);
    let places = home().and_then(|home| storage::peek(&home.database(), read));
    let places = places.unwrap_or_default();
    places
        .iter()
        .map(|(key, name)| candidate(key, name.as_deref()))
        .collect()
}
