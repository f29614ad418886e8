//! `parlor export openclaw`: agents and bindings of this house for another system.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Failure, Outcome, data, data_json, note};
use crate::config::Secrets;
use crate::home::{CheckedConfig, Home};
use crate::moving;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Merge agents and bindings into an openclaw.json
    Openclaw(OpenClaw),
}

#[derive(Args)]
pub(super) struct OpenClaw {
    /// The file, or - to print [default: ~/.openclaw/openclaw.json]
    file: Option<PathBuf>,
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
    let kept = (is_changed && merged.loses_comments).then(|| beside(&path));
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
            "copy_with_comments": kept.map(|kept| kept.display().to_string()),
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
        note(format_args!(
            "JSON has no comments; the file with them is {}.",
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

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".before-parlor");
    PathBuf::from(name)
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
