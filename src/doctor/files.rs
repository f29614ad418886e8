//! Files of the home that no part of Parlor reads.

use std::fs;
use std::path::Path;

use super::Patient;
use super::belongings;
use crate::agents::{IdentityFile, is_as_shipped};
use crate::config::{Keeper, kept_secrets, read_home};
use crate::operations::diagnosis::{Finding, Remedy};

/// Identity files of the operator's in the root while every agent has its own, and files unknown to
/// Parlor.
pub(super) fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let home = patient.home.path();
    let mut findings: Vec<Finding> = IdentityFile::ALL
        .iter()
        .map(|file| file.name())
        .filter(|name| {
            let content = std::fs::read(home.join(name));
            content.is_ok_and(|content| !is_as_shipped(Path::new(name), &content))
        })
        .filter(|name| is_overridden(patient, name))
        .map(|name| unused(home, name, "every agent has its own", "files.overridden"))
        .collect();
    let named = named_by_config(home);
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Hidden files belong to editors, version control and services.
        if name.starts_with('.') || belongings::is_known(&name) || named.contains(&name) {
            continue;
        }
        findings.push(unused(
            home,
            &name,
            "Parlor does not use it",
            "files.unknown",
        ));
    }
    findings.sort_by(|a, b| a.text.cmp(&b.text));
    findings
}

fn is_overridden(patient: &Patient<'_>, name: &str) -> bool {
    let Some(snapshot) = &patient.snapshot else {
        return false;
    };
    let mut agents = snapshot.config.agents.iter();
    let own = |id: &str| {
        patient
            .home
            .path()
            .join("agents")
            .join(id)
            .join(name)
            .is_file()
    };
    agents.all(|agent| own(agent.id.as_str()))
}

/// The first names of paths in the config: secrets, and files by any other key.
fn named_by_config(home: &Path) -> Vec<String> {
    let Ok(source) = read_home(home) else {
        return Vec::new();
    };
    let secrets = kept_secrets(&source.text, home);
    let secrets = secrets.iter().filter_map(|secret| match &secret.keeper {
        Keeper::File(path) => path.strip_prefix(home).ok(),
        Keeper::Variable(_) => None,
    });
    let first = |path: &Path| {
        let name = path.components().next()?.as_os_str();
        Some(name.to_string_lossy().into_owned())
    };
    let mut named: Vec<String> = secrets.filter_map(first).collect();
    let log = source.text.parse::<toml::Table>().ok();
    let log = log.and_then(|table| Some(table.get("log")?.get("file")?.as_str()?.to_owned()));
    named.extend(log.and_then(|path| first(Path::new(&path))));
    named
}

fn unused(home: &Path, name: &str, why: &str, id: &str) -> Finding {
    Finding::note(id, format!("{name} in the home folder is unused: {why}."))
        .fix("parlor doctor --tidy moves it to archive/")
        .remedy(Remedy::Archive(home.join(name)))
}
