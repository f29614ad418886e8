//! `parlor backup`: everything in one file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::json::paths;
use super::{Outcome, data, data_json, note, print};
use crate::backups::{self, BACKUPS, KeepSecrets, Written};
use crate::home::Home;

#[derive(Args)]
pub(super) struct Arguments {
    /// The file to write [default: a name with the time, in backups/ of the
    /// home folder]
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Write into this folder, under a name with the time
    #[arg(long, value_name = "DIR", conflicts_with = "file", value_hint = clap::ValueHint::DirPath)]
    to: Option<PathBuf>,
    /// Then delete all but the newest N backups of the folder
    #[arg(long, value_name = "N", conflicts_with = "file", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Leave out secrets/ and other files that config.toml names for secrets
    #[arg(long)]
    without_secrets: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Home, arguments: &Arguments) -> Outcome {
    let folder = arguments.to.clone();
    let folder = folder.unwrap_or_else(|| home.path().join(BACKUPS));
    let keep = match arguments.without_secrets {
        true => KeepSecrets::No,
        false => KeepSecrets::Yes,
    };
    let written = backups::write(home, arguments.file.as_deref(), &folder, keep)?;
    let removed = match arguments.keep {
        Some(keep) => backups::rotate(&folder, keep as usize)?,
        None => Vec::new(),
    };
    if arguments.json {
        return data_json(&json!({
            "path": written.path.display().to_string(),
            "bytes": written.bytes,
            "files": written.files,
            "schema": written.schema,
            "secrets": paths(&written.secrets),
            "secrets_elsewhere": written.secrets_elsewhere,
            "left_out": paths(&written.left_out),
            "removed": paths(&removed),
        }));
    }
    data(format_args!("{}", written.path.display()));
    for line in remarks(&written, removed.len()) {
        note(format_args!("{line}"));
    }
    Ok(())
}

fn remarks(written: &Written, removed: usize) -> Vec<String> {
    let database = match written.schema {
        Some(schema) => format!("the database (schema {schema}) and "),
        None => String::new(),
    };
    let mut lines = vec![format!(
        "Written and verified: {database}{} files, {}.",
        written.files,
        print::size(written.bytes)
    )];
    lines.push(match written.secrets.is_empty() {
        true => "It has everything that people wrote, and no secrets. Keep it safe.".into(),
        false => format!(
            "It has everything that people wrote, and secrets: {}. Keep it as safe as the home folder.",
            paths(&written.secrets).join(", ")
        ),
    });
    if !written.secrets_elsewhere.is_empty() {
        let elsewhere = written.secrets_elsewhere.join(", ");
        lines.push(format!(
            "Not in it, and needed after a restore: {elsewhere}."
        ));
    }
    if !written.left_out.is_empty() {
        let left_out = paths(&written.left_out).join(", ");
        lines.push(format!(
            "Left out, because they are no plain files: {left_out}."
        ));
    }
    if removed > 0 {
        lines.push(format!("Deleted {removed} older."));
    }
    lines
}
