//! `parlor doctor`: what is wrong with this house, and the fix for each.

use std::path::PathBuf;

use chrono::Utc;
use clap::Args;
use serde_json::{Value, json};

use super::fitting::hanging;
use super::operator::{Line, odd_reply, told};
use super::{Failure, Outcome, data, data_json, note, print};
use crate::console;
use crate::doctor::fixing::{self, Asked};
use crate::doctor::{self, bundle};
use crate::home::Home;
use crate::operations::diagnosis::{Belonging, Diagnosis, Finding, State};
use crate::operations::{Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// Repair what is safe to repair: rights of files, leftovers
    #[arg(long)]
    fix: bool,
    /// Move unused files of the home folder to its archive
    #[arg(long)]
    tidy: bool,
    /// Write an archive for a bug report, without secrets, names and words
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    bundle: Option<PathBuf>,
    /// Show every file and folder of the home, and what is in it
    #[arg(long)]
    state: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let mut diagnosis = examine(&home).await?;
    let asked = Asked {
        fix: arguments.fix,
        tidy: arguments.tidy,
    };
    let done = repair(&home, &diagnosis, asked)?;
    if !done.is_empty() {
        diagnosis = examine(&home).await?;
    }
    if let Some(file) = &arguments.bundle {
        bundle::write(home.path(), &diagnosis, file).map_err(|error| {
            Failure::Failed(format!("cannot write {}: {error}", file.display()))
        })?;
    }
    if arguments.json {
        data_json(&in_json(&diagnosis, &done, arguments.bundle.as_ref()))?;
    } else {
        show(&diagnosis, &done, &arguments);
    }
    match diagnosis.count(State::Bad) {
        0 => Ok(()),
        _ => Err(Failure::told()),
    }
}

/// Asks the running gateway, which has its tokens and its connections; else looks by itself. A
/// gateway that cannot be talked to is no reason to look at nothing.
async fn examine(home: &Home) -> Result<Diagnosis, Failure> {
    match Line::open(home).await {
        Ok(Some(mut line)) => match line.ask(Request::Doctor).await?.map_err(told)? {
            Reply::Doctor(diagnosis) => Ok(*diagnosis),
            _ => Err(odd_reply()),
        },
        Ok(None) | Err(_) => Ok(doctor::on_home(home).await),
    }
}

fn repair(home: &Home, diagnosis: &Diagnosis, asked: Asked) -> Result<Vec<String>, Failure> {
    let remedies = diagnosis
        .findings
        .iter()
        .filter_map(|found| found.remedy.as_ref());
    let mut done = Vec::new();
    for remedy in remedies.filter(|remedy| asked.covers(remedy)) {
        done.push(fixing::apply(home.path(), remedy, Utc::now())?);
    }
    Ok(done)
}

fn in_json(diagnosis: &Diagnosis, done: &[String], bundle: Option<&PathBuf>) -> Value {
    let findings = diagnosis.findings.iter().map(|found| {
        json!({
            "id": found.id,
            "state": found.state,
            "text": found.text,
            "cause": found.cause,
            "fix": found.fix.as_deref().map(print::command_to_type),
            "repairable": found.remedy.is_some(),
        })
    });
    json!({
        "findings": findings.collect::<Vec<_>>(),
        "home": diagnosis.belongings,
        "repaired": done,
        "bundle": bundle.map(|path| path.display().to_string()),
    })
}

fn show(diagnosis: &Diagnosis, done: &[String], arguments: &Arguments) {
    for line in done {
        note(format_args!("{line}"));
    }
    let width = print::width().map_or(usize::MAX, usize::from);
    let ids = diagnosis.findings.iter().map(|found| found.id.len());
    let ids = ids.max().unwrap_or_default();
    for found in &diagnosis.findings {
        data(format_args!("{}", in_words(found, ids, width)));
    }
    if arguments.state {
        data(format_args!("\n{}", belongings(diagnosis)));
    }
    let counted = |state: State| diagnosis.count(state);
    note(format_args!(
        "{} bad, {}, {}, {} fine.",
        counted(State::Bad),
        console::counted(counted(State::Warn), "warning"),
        console::counted(counted(State::Note), "note"),
        counted(State::Ok)
    ));
    if let Some(file) = &arguments.bundle {
        note(format_args!(
            "{} is for a bug report: findings, versions, the shape of the config, numbers of rows. Look into it before you send it.",
            file.display()
        ));
    }
}

/// `ids` is the width of the column of ids.
fn in_words(found: &Finding, ids: usize, width: usize) -> String {
    let (state, id) = (found.state.as_str(), &found.id);
    let mut lines = vec![hanging(
        &format!("{state:<4}  {id:<ids$}  {}", found.text),
        FURTHER,
        width,
    )];
    let further = [("because", &found.cause), ("fix", &found.fix)];
    for (word, text) in further {
        let Some(text) = text else { continue };
        let text = print::command_to_type(text).replace('\n', &format!("\n{:1$}", "", FURTHER + 2));
        let text = format!("{:1$}{word}: {text}", "", FURTHER);
        let wrapped = text.lines().map(|line| hanging(line, FURTHER + 2, width));
        lines.extend(wrapped);
    }
    lines.join("\n")
}

/// The column of everything below a finding's first line.
const FURTHER: usize = 6;

fn belongings(diagnosis: &Diagnosis) -> String {
    let line = |belonging: &Belonging| {
        format!(
            "{:<24} {:>10}  {:>6} files  {}",
            belonging.path,
            print::size(belonging.bytes),
            belonging.files,
            belonging.what
        )
    };
    diagnosis
        .belongings
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}
