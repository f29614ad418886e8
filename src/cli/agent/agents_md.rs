//! `parlor agent agents-md`: an agent's identity in one AGENTS.md, for programs that read only that.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;

use super::super::json::Named;
use super::super::{Failure, Outcome, data, data_json};
use crate::agents::{Agent, Identity};

#[derive(Args)]
pub(super) struct AgentsMd {
    /// Id or name of the agent
    pub(super) agent: String,
    /// The file to write [default: print]
    file: Option<PathBuf>,
}

/// Begins a file that this verb has written.
const MARK: &str = "<!-- Written by `parlor agent agents-md";

pub(super) fn run(arguments: &AgentsMd, agent: &Agent, identity: &Identity, json: bool) -> Outcome {
    let text = assembled(agent, identity);
    let file = arguments.file.as_deref();
    if let Some(file) = file {
        write(file, &text)?;
    }
    if json {
        let file = file.map(|file| file.display().to_string());
        return data_json(
            &serde_json::json!({ "agent": Named::new(&agent.id, Some(&agent.name)), "file": file, "text": text }),
        );
    }
    match file {
        Some(file) => data(format_args!("{} is in {}.", agent.id, file.display())),
        None => data(format_args!("{}", text.trim_end())),
    }
    Ok(())
}

/// The identity files in the order of the prompt, and the names of the skills.
fn assembled(agent: &Agent, identity: &Identity) -> String {
    let mut text = format!(
        "{MARK} {}`; changes here are lost. -->\n\n# {}\n",
        agent.id, agent.name
    );
    for file in identity.files() {
        let content = file.content.trim();
        if content.is_empty() {
            continue;
        }
        text.push_str(&format!("\n<!-- {} -->\n\n{content}\n", file.name()));
        let is_soul = file.file == crate::agents::IdentityFile::Soul;
        if let Some(prompt) = identity.system_prompt().filter(|_| is_soul) {
            text.push_str(&format!("\n{}\n", prompt.trim()));
        }
    }
    let skills = identity.skills();
    let names = skills.names();
    if !names.is_empty() {
        text.push_str("\n## Skills\n\n");
    }
    for skill in names.iter().filter_map(|name| skills.get(name)) {
        text.push_str(&format!("- {}: {}\n", skill.name, skill.description));
    }
    text
}

/// A file that a person has written stays.
fn write(path: &Path, text: &str) -> Outcome {
    match fs::read_to_string(path) {
        Ok(old) if old == text => return Ok(()),
        Ok(old) if !old.starts_with(MARK) => {
            return Err(Failure::Failed(format!(
                "{} was not written by this verb, so it stays as it is",
                path.display()
            )));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Failure::Failed(format!("{}: {error}", path.display())));
        }
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
}
