//! `parlor man`: the manual pages, made of the same definition that reads the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use clap_mangen::Man;
use serde_json::json;

use super::{Failure, Outcome, print};

#[derive(Args)]
pub(super) struct Arguments {
    /// Write a page for every verb into this folder, such as
    /// ~/.local/share/man/man1. Without it, the main page is printed
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the names of the written files as JSON
    #[arg(long, requires = "out")]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let Some(folder) = &arguments.out else {
        print::document(&page(super::command())?);
        return Ok(());
    };
    let written = write(folder).map_err(|error| {
        Failure::Failed(format!(
            "{} cannot be written to: {error}",
            folder.display()
        ))
    })?;
    print::result(
        arguments.json,
        &json!({ "folder": folder.display().to_string(), "written": written }),
        format_args!("{} pages are in {}.", written.len(), folder.display()),
    )
}

fn page(command: clap::Command) -> std::io::Result<String> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    let page = String::from_utf8_lossy(&page);
    Ok(with_values(&page))
}

/// The synopsis with the values of the options that every verb has; clap_mangen leaves them away.
fn with_values(page: &str) -> String {
    let option = |name: &str, value: &str| {
        let plain = format!("[\\fB\\-\\-{name}\\fR]");
        (plain, format!("[\\fB\\-\\-{name}\\fR \\fI{value}\\fR]"))
    };
    let options = [option("home", "DIR"), option("color", "WHEN")];
    let mut page = page.to_owned();
    for (plain, whole) in options {
        page = page.replace(&plain, &whole);
    }
    page
}

/// The pages `parlor.1`, `parlor-agent.1`, `parlor-agent-add.1` and so on.
fn write(folder: &Path) -> std::io::Result<Vec<String>> {
    std::fs::create_dir_all(folder)?;
    let mut whole = super::command().disable_help_subcommand(true);
    whole.build();
    let (mut open, mut written) = (vec![whole], Vec::new());
    while let Some(command) = open.pop() {
        open.extend(command.get_subcommands().cloned());
        let name = command
            .get_display_name()
            .unwrap_or_else(|| command.get_name());
        let file = format!("{name}.1");
        std::fs::write(folder.join(&file), page(command.clone())?)?;
        written.push(file);
    }
    written.sort();
    Ok(written)
}
