//! `parlor restore`: everything back from one file.

use std::path::PathBuf;

use chrono::{DateTime, Local};
use clap::Args;
use serde_json::json;

use super::actor::actor;
use super::json::time;
use super::{Outcome, note, print};
use crate::backups::{self, Restored};
use crate::home::Home;

#[derive(Args)]
pub(super) struct Arguments {
    /// A file that `parlor backup` wrote
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Only look whether the file is whole and fits
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let file = &arguments.file;
    let restored = match arguments.dry_run {
        true => backups::check(file)?,
        false => backups::restore(&home, file, &actor()).await?,
    };
    let value = json!({
        "made_at": time(restored.made_at),
        "parlor": restored.parlor,
        "files": restored.files,
        "schema": restored.schema,
        "secrets": restored.has_secrets,
        "restored": !arguments.dry_run,
        "kept_aside": restored.aside.as_ref().map(|path| path.display().to_string()),
    });
    let told = match arguments.dry_run {
        true => format!("{} is whole: {}.", file.display(), facts(&restored)),
        false => format!("{} is back: {}.", home.path().display(), facts(&restored)),
    };
    print::result(arguments.json, &value, format_args!("{told}"))?;
    for line in remarks(&restored, arguments.dry_run) {
        note(format_args!("{line}"));
    }
    Ok(())
}

fn in_words(at: i64) -> String {
    let time = DateTime::from_timestamp_millis(at).unwrap_or_default();
    time.with_timezone(&Local)
        .format("%Y-%m-%d %H:%M")
        .to_string()
}

fn facts(restored: &Restored) -> String {
    let database = match restored.schema {
        Some(schema) => format!("the database (schema {schema}) and "),
        None => String::new(),
    };
    format!(
        "{database}{} files, as of {}, by Parlor {}",
        restored.files,
        in_words(restored.made_at),
        restored.parlor
    )
}

fn remarks(restored: &Restored, is_dry_run: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if is_dry_run {
        lines.push("Nothing was changed.".to_owned());
        return lines;
    }
    if let Some(aside) = &restored.aside {
        lines.push(format!(
            "What was there is in {}. Delete it when you no longer need it.",
            aside.display()
        ));
    }
    if !restored.has_secrets {
        lines.push("No secrets were in it: put yours back before `parlor run`.".into());
    }
    lines.push(
        "Answers that were under way then are finished at the next start. `parlor doctor` looks whether all is well."
            .into(),
    );
    lines
}
