//! `parlor config`: tells all problems of a config at once, and prints the schema for editors.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::color::Style;
use super::{Failure, Outcome, data, data_json, data_json_text, note, print, running_config};
use crate::config::settings::{Setting, Source as Origin};
use crate::config::{self, ListedProblem, LoadError, Report, Secrets, Severity, Source};
use crate::home::{Home, check};
use crate::routing;

/// Without a verb, config.toml is checked.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Show everything that is wrong with config.toml, all at once. Does not need the secrets
    Check(Check),
    /// Show every setting that counts, and where it comes from
    Show(Show),
    /// Print a JSON Schema of config.toml, with which editors complete and check the file
    Schema(Schema),
}

#[derive(Args, Default)]
struct Check {
    /// Another file than the home folder's config.toml; `-` reads it from stdin
    file: Option<PathBuf>,
    /// Print the problems as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Show {
    /// A section such as agents.rose, or a single key [default: all that is set]
    #[arg(value_name = "SECTION|KEY")]
    what: Option<String>,
    /// Print the settings as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Schema {
    /// Write it to config.schema.json in the home folder, where config.toml looks for it
    #[arg(long)]
    write: bool,
}

pub(super) async fn run(home: Home, Arguments { verb }: Arguments) -> Outcome {
    let home = &home;
    match verb.unwrap_or_else(|| Verb::Check(Check::default())) {
        Verb::Check(arguments) => check_file(home, &arguments),
        Verb::Show(arguments) => show(home, &arguments).await,
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

/// A file with problems has no effective values. Its problems are told instead, unless a gateway runs
/// with an earlier text.
async fn show(home: &Home, arguments: &Show) -> Outcome {
    let settings = running_config::settings(home).await?;
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

fn line(setting: &Setting) -> String {
    let value = match (&setting.value, setting.source) {
        (None, _) => return format!("{}: not set", setting.key),
        (Some(value), Origin::Environment | Origin::SecretFile) => {
            value.as_str().unwrap_or_default().to_owned()
        }
        (Some(value), _) => value.to_string(),
    };
    let meaning = match is_no_limit(setting) {
        true => "no limit; ",
        false => "",
    };
    format!("{} = {value}  ({meaning}{})", setting.key, setting.origin())
}

/// Whether a 0 lifts a limit.
fn is_no_limit(setting: &Setting) -> bool {
    let is_zero = setting
        .value
        .as_ref()
        .is_some_and(|value| value.as_f64() == Some(0.0));
    let name = setting.key.rsplit('.').next().unwrap_or_default();
    is_zero && (name.contains("_per_") || name == "turns_at_once" || name == "per_second")
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
    route_tests: Option<usize>,
    problems: Vec<ListedProblem>,
}

/// What a check found.
struct Findings {
    file: PathBuf,
    /// What a usable config has.
    counts: Option<Counts>,
    /// Problems and warnings.
    report: Option<Report>,
    /// Secrets without which `parlor run` does not start.
    needed_secrets: usize,
}

/// How many there are.
#[derive(Clone, Copy)]
struct Counts {
    agents: usize,
    bindings: usize,
    route_tests: usize,
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
    if let Some((config, _)) = &config {
        report.problems.extend(routing::check::idle(config));
    }
    Ok(Findings {
        file: path,
        needed_secrets,
        counts: config.filter(|_| is_usable).map(|(config, _)| Counts {
            agents: config.agents.len(),
            bindings: config.bindings.len(),
            route_tests: config.route_tests.len(),
        }),
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
        (Some(_), Some(_)) if print::is_quiet() => {}
        (Some(report), Some(_)) => {
            // An empty line separates the warnings from the result.
            print::in_colour(&format!("{}\n", report.render_problems(color).trim_end()));
        }
        (None, _) => {}
    }
    if let Some(counts) = found.counts {
        let tests = match counts.route_tests {
            0 => String::new(),
            tests => format!(", {}", count(tests, "route test")),
        };
        data(format_args!(
            "{name} is fine: {}, {}{tests}.",
            count(counts.agents, "agent"),
            count(counts.bindings, "binding")
        ));
    }
    match found.needed_secrets {
        0 => {}
        1 => note(format_args!(
            "`parlor run` would not start from this shell: a secret is missing here."
        )),
        missing => note(format_args!(
            "`parlor run` would not start from this shell: {missing} secrets are missing here."
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
        agents: found.counts.map(|counts| counts.agents),
        bindings: found.counts.map(|counts| counts.bindings),
        route_tests: found.counts.map(|counts| counts.route_tests),
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
        route_tests: None,
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
