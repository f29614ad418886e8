//! `parlor export openclaw`: agents and bindings of this house for another system.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Failure, Outcome, data, data_json, note, question};
use crate::config::Secrets;
use crate::home::{CheckedConfig, Home};
use crate::moving;
use crate::operations::config_file::difference;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Merge agents and bindings into an openclaw.json
    Openclaw(OpenClaw),
}

#[derive(Args)]
pub(super) struct OpenClaw {
    /// The file, or - to print [default: ~/.openclaw/openclaw.json]
    file: Option<PathBuf>,
    /// Write without asking
    #[arg(long, short)]
    yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Home, verb: Verb) -> Outcome {
    let Verb::Openclaw(arguments) = verb;
    let path = arguments.file.or_else(usual);
    let path = path.ok_or_else(|| Failure::WrongUse("name the file".into()))?;
    let is_printed = path == Path::new("-");
    let old = match fs::read_to_string(&path) {
        _ if is_printed => String::new(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?,
    };
    let checked = CheckedConfig::load(home, Secrets::WherePresent)?;
    let folder = std::path::absolute(home.path())?;
    let merged = moving::export_openclaw(&old, &checked.config, &folder)
        .map_err(|why| Failure::Failed(format!("{} was left as it is: {why}", path.display())))?;
    if is_printed {
        data(format_args!("{}", merged.text.trim_end()));
        return Ok(());
    }
    let is_changed = merged.text != old;
    let is_there = path.exists();
    if is_changed && is_there && !arguments.yes {
        let changes = difference(&old, &merged.text);
        if !is_allowed(&path, &changes, arguments.json)? {
            note(format_args!("Nothing was changed."));
            return Ok(());
        }
    }
    let kept = (is_changed && is_there).then(|| beside(&path));
    if is_changed {
        if let Some(kept) = &kept {
            fs::copy(&path, kept)?;
        }
        replace(&path, &merged.text)?;
    }
    if arguments.json {
        let left = merged.left.iter();
        let left = left.map(|(binding, why)| json!({ "match": binding, "why": why }));
        return data_json(&json!({
            "file": path.display().to_string(),
            "changed": is_changed,
            "agents": merged.agents,
            "bindings": merged.bindings,
            "left_out": left.collect::<Vec<_>>(),
            "copy": kept.map(|kept| kept.display().to_string()),
        }));
    }
    let file = path.display();
    match is_changed {
        true => data(format_args!(
            "{file} has {} and {} of this house.",
            some(merged.agents, "agent", "agents"),
            some(merged.bindings, "binding", "bindings")
        )),
        false => data(format_args!("{file} has everything already.")),
    }
    for (binding, why) in &merged.left {
        data(format_args!("not written: {binding} ({why})"));
    }
    if let Some(kept) = kept {
        let comments = match merged.loses_comments {
            true => ", with its comments",
            false => "",
        };
        note(format_args!(
            "The file as it was before is {}{comments}.",
            kept.display()
        ));
    }
    Ok(())
}

fn usual() -> Option<PathBuf> {
    let named = std::env::var_os("OPENCLAW_CONFIG_PATH").map(PathBuf::from);
    let folder = std::env::var_os("OPENCLAW_STATE_DIR").map(PathBuf::from);
    let folder = folder.or_else(|| Some(std::env::home_dir()?.join(".openclaw")));
    named.or_else(|| Some(folder?.join("openclaw.json")))
}

/// Shows the changes of a file and asks. Without a terminal nobody can be asked.
fn is_allowed(path: &Path, changes: &[String], json: bool) -> Result<bool, Failure> {
    if json || !io::stdin().is_terminal() {
        return Err(Failure::Failed(format!(
            "{} is there already, and nobody can be asked here; nothing was changed",
            path.display()
        ))
        .hint(
            "`--yes` writes it and keeps a copy; `parlor export openclaw -` prints what would be written",
        ));
    }
    let changed = changes.iter().filter(|line| !line.starts_with(' '));
    let changed: Vec<String> = changed.map(|line| without_secret(line)).collect();
    data(format_args!(
        "These lines of {} change:\n{}\n",
        path.display(),
        changed.join("\n")
    ));
    question(format_args!("Write it? A copy is kept. [y/N] "));
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let line = line.trim().to_ascii_lowercase();
    Ok(matches!(line.as_str(), "y" | "yes"))
}

/// The line of a token or key without its value: the file has secrets of the other system.
fn without_secret(line: &str) -> String {
    const SECRET: [&str; 5] = ["token", "secret", "key", "password", "auth"];
    match line.split_once(':') {
        Some((name, value))
            if SECRET
                .iter()
                .any(|word| name.to_ascii_lowercase().contains(word))
                && !value.trim_start().starts_with(['{', '[']) =>
        {
            format!("{name}: (hidden)")
        }
        _ => line.to_owned(),
    }
}

/// A name for the copy that no earlier copy has.
fn beside(path: &Path) -> PathBuf {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(".before-parlor");
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    (1..)
        .map(named)
        .find(|copy| !copy.exists())
        .unwrap_or_else(|| named(1))
}

/// Replaces a file in one step; it keeps its rights.
fn replace(path: &Path, text: &str) -> Outcome {
    // A link stays a link: the file behind it is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        fs::create_dir_all(folder)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&new)?;
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(fs::rename(&new, path)?)
}

fn some(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}
