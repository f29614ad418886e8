//! `parlor config`: tells all problems of a config at once, and prints the schema for editors.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::color::Style;
use super::{Failure, Outcome, data, data_json, data_json_text, note, print};
use crate::config::settings::{Setting, Settings, Source as Origin};
use crate::config::{self, ListedProblem, LoadError, Report, Secrets, Severity, Source};
use crate::home::{Home, check};

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Show everything that is wrong with config.toml, all at once. Does not need the secrets
    Check(Check),
    /// Show every setting that counts, and where it comes from
    Show(Show),
    /// Print a JSON Schema of config.toml, with which editors complete and check the file
    Schema(Schema),
}

#[derive(Args)]
pub(super) struct Check {
    /// Another file than the home folder's config.toml; `-` reads it from stdin
    file: Option<PathBuf>,
    /// Print the problems as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct Show {
    /// A section such as agents.rose, or a single key [default: all that is set]
    #[arg(value_name = "SECTION|KEY")]
    what: Option<String>,
    /// Print the settings as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct Schema {
    /// Write it to config.schema.json in the home folder, where config.toml looks for it
    #[arg(long)]
    write: bool,
}

pub(super) fn run(home: &Home, verb: Verb) -> Outcome {
    match verb {
        Verb::Check(arguments) => check_file(home, &arguments),
        Verb::Show(arguments) => show(home, &arguments),
        Verb::Schema(Schema { write: true }) => {
            let path = config::write_schema(home.path())?;
            data(format_args!("wrote {}", path.display()));
            Ok(())
        }
        Verb::Schema(Schema { write: false }) => {
            data_json_text(config::json_schema_text().trim_end());
            Ok(())
        }
    }
}

/// A config with problems has no effective values, so its problems are told instead.
fn show(home: &Home, arguments: &Show) -> Outcome {
    let settings = settings(home)?;
    let found: Vec<&Setting> = match &arguments.what {
        Some(what) => settings
            .below(what)
            .map_err(|unknown| Failure::WrongUse(unknown.to_string()))?,
        None => settings.all().iter().collect(),
    };
    if arguments.json {
        return data_json(&found);
    }
    // A page with everything that could be set as well would hide what is.
    let is_shown = |setting: &&&Setting| arguments.what.is_some() || setting.value.is_some();
    let lines = found.iter().filter(is_shown).map(|setting| line(setting));
    data(format_args!("{}", lines.collect::<Vec<_>>().join("\n")));
    Ok(())
}

/// The settings of a config without problems.
pub(super) fn settings(home: &Home) -> Result<Settings, Failure> {
    let source = config::read_home(home.path())?;
    let text = source.text.clone();
    let draft = config::draft(source, home.path(), Secrets::WherePresent);
    let (config, _) = check(draft, home.path())?;
    Ok(Settings::of(&config, &text, home.path()))
}

fn line(setting: &Setting) -> String {
    let value = match (&setting.value, setting.source) {
        (None, _) => return format!("{}: not set", setting.key),
        (Some(value), Origin::Environment | Origin::SecretFile) => {
            value.as_str().unwrap_or_default().to_owned()
        }
        (Some(value), _) => value.to_string(),
    };
    format!("{} = {value}  ({})", setting.key, setting.origin())
}

/// The result of a check as JSON. The book promises these keys.
#[derive(Serialize)]
struct Checked {
    file: String,
    /// No problem is an error.
    ok: bool,
    /// Absent unless `ok`.
    agents: Option<usize>,
    bindings: Option<usize>,
    problems: Vec<ListedProblem>,
}

/// What a check found.
struct Findings {
    file: PathBuf,
    /// Agents and bindings of a usable config.
    counts: Option<(usize, usize)>,
    /// Problems and warnings.
    report: Option<Report>,
    /// Secrets without which `parlor run` does not start.
    needed_secrets: usize,
}

fn check_file(home: &Home, arguments: &Check) -> Outcome {
    let found = match findings(home, arguments.file.as_deref()) {
        Ok(found) => found,
        Err(Unchecked::Unreadable(error)) if arguments.json => return unreadable(&error),
        Err(Unchecked::Unreadable(error)) => return Err(error.into()),
        Err(Unchecked::WrongUse(text)) => return Err(Failure::WrongUse(text)),
    };
    let is_old = arguments.file.is_none() && config::is_schema_old(home.path());
    match arguments.json {
        true => print_json(&found, is_old),
        false => print_words(&found, is_old),
    }
}

enum Unchecked {
    Unreadable(LoadError),
    WrongUse(String),
}

/// Checks as for a start, with the secrets. A secret that is not on this machine is only a warning,
/// because the file may be meant for another one.
fn findings(home: &Home, file: Option<&Path>) -> Result<Findings, Unchecked> {
    let source = source(home, file)?;
    let path = source.path.clone();
    let drafted = |secrets| config::draft(source.clone(), home.path(), secrets);
    let draft = drafted(Secrets::Required);
    let mut report = Report {
        source: draft.source.clone(),
        problems: draft.warnings.clone(),
        purpose: Secrets::WherePresent,
    };
    let problems = check(draft, home.path()).err();
    let problems = problems.map_or_else(Vec::new, |report| report.problems);
    let is_usable = problems
        .iter()
        .all(|problem| report.severity(problem) != Severity::Error);
    let needed_secrets = problems.len();
    report.problems.extend(problems);
    let config = check(drafted(Secrets::WherePresent), home.path()).ok();
    Ok(Findings {
        file: path,
        needed_secrets,
        counts: config
            .filter(|_| is_usable)
            .map(|(config, _)| (config.agents.len(), config.bindings.len())),
        report: (!report.problems.is_empty()).then_some(report),
    })
}

fn source(home: &Home, file: Option<&Path>) -> Result<Source, Unchecked> {
    match file {
        None => config::read_home(home.path()).map_err(Unchecked::Unreadable),
        Some(path) if path == Path::new("-") => {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.map_err(|_| Unchecked::WrongUse("the text on stdin is not UTF-8".into()))?;
            Ok(Source {
                path: "stdin".into(),
                text,
            })
        }
        Some(path) => config::read_file(path).map_err(|error| match error {
            LoadError::Missing(path) => {
                Unchecked::WrongUse(format!("there is no file {}", path.display()))
            }
            other => Unchecked::Unreadable(other),
        }),
    }
}

fn print_words(found: &Findings, is_old: bool) -> Outcome {
    let color = Style::for_stderr().is_coloured();
    let name = found
        .file
        .file_name()
        .unwrap_or(found.file.as_os_str())
        .to_string_lossy();
    match (&found.report, found.counts) {
        (Some(report), None) => {
            print::in_colour(&report.render(color));
            return Err(Failure::told());
        }
        (Some(report), Some(_)) => {
            // An empty line separates the warnings from the result.
            print::in_colour(&format!("{}\n", report.render_problems(color).trim_end()));
        }
        (None, _) => {}
    }
    if let Some((agents, bindings)) = found.counts {
        data(format_args!(
            "{name} is fine: {}, {}.",
            count(agents, "agent"),
            count(bindings, "binding")
        ));
    }
    match found.needed_secrets {
        0 => {}
        1 => note(format_args!(
            "`parlor run` would not start on this machine: a secret is missing."
        )),
        missing => note(format_args!(
            "`parlor run` would not start on this machine: {missing} secrets are missing."
        )),
    }
    if is_old {
        note(format_args!("{OLD_SCHEMA} {RENEW}"));
    }
    Ok(())
}

fn print_json(found: &Findings, is_old: bool) -> Outcome {
    let mut problems = found
        .report
        .as_ref()
        .map(Report::listed)
        .unwrap_or_default();
    if is_old {
        problems.push(ListedProblem {
            help: Some(RENEW.into()),
            ..ListedProblem::at_start(&found.file, "note", "old-schema", OLD_SCHEMA.into())
        });
    }
    data_json(&Checked {
        file: found.file.to_string_lossy().into_owned(),
        ok: found.counts.is_some(),
        agents: found.counts.map(|(agents, _)| agents),
        bindings: found.counts.map(|(_, bindings)| bindings),
        problems,
    })?;
    match found.counts {
        Some(_) => Ok(()),
        None => Err(Failure::told()),
    }
}

fn unreadable(error: &LoadError) -> Outcome {
    let problem = ListedProblem::at_start(error.path(), "error", "unreadable", error.to_string());
    data_json(&Checked {
        file: error.path().to_string_lossy().into_owned(),
        ok: false,
        agents: None,
        bindings: None,
        problems: vec![problem],
    })?;
    Err(Failure::told())
}

const OLD_SCHEMA: &str = "config.schema.json is from another version of Parlor.";
const RENEW: &str = "`parlor config schema --write` renews it.";

fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}
