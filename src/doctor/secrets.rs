//! Secrets: there, for their owner alone, and used.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::config::{ENVIRONMENT_FILE, Keeper, KeptSecret, kept_secrets, read_home, sets_variable};
use crate::home::Home;
use crate::operations::diagnosis::{Finding, Remedy, State};

/// `is_gateway`: the environment belongs to the running gateway.
pub(super) fn check(home: &Home, is_gateway: bool) -> Vec<Finding> {
    let text = read_home(home.path()).map(|source| source.text);
    let named = kept_secrets(&text.unwrap_or_default(), home.path());
    let mut findings: Vec<Finding> = named
        .iter()
        .filter_map(|secret| missing(home.path(), secret, is_gateway))
        .collect();
    let files = files(home.path(), &named);
    let open = files
        .iter()
        .filter_map(|path| open_to_others(home.path(), path));
    findings.extend(open);
    let used: HashSet<&Path> = named.iter().filter_map(file).collect();
    let unused = in_folder(home.path());
    let unused = unused.iter().filter(|path| !used.contains(path.as_path()));
    findings.extend(unused.map(|path| unused_file(path)));
    if findings.is_empty() {
        let text = match named.len() {
            0 => "config.toml names no secrets.".to_owned(),
            1 => "The one secret of config.toml is there.".to_owned(),
            count => format!("All {count} secrets of config.toml are there."),
        };
        findings.push(Finding::ok("secrets", text));
    }
    findings
}

fn file(secret: &KeptSecret) -> Option<&Path> {
    match &secret.keeper {
        Keeper::File(path) => Some(path),
        Keeper::Variable(_) => None,
    }
}

fn missing(home: &Path, secret: &KeptSecret, is_gateway: bool) -> Option<Finding> {
    let key = &secret.key;
    match &secret.keeper {
        Keeper::File(path) => {
            let text = fs::read_to_string(path);
            if text.as_ref().is_ok_and(|text| !text.trim().is_empty()) {
                return None;
            }
            let cause = text
                .err()
                .map_or("it is empty".into(), |error| error.to_string());
            let found = Finding::bad(
                "secrets.missing",
                format!("The secret of `{key}` cannot be read."),
            );
            let found = found.cause(format!("{}: {cause}", path.display()));
            Some(found.fix(format!("Put it into {}, mode 600.", path.display())))
        }
        Keeper::Variable(name) => {
            let is_set = std::env::var(name).is_ok_and(|text| !text.trim().is_empty());
            // A service has its variables from this file.
            let of_service = fs::read_to_string(home.join(ENVIRONMENT_FILE)).unwrap_or_default();
            if is_set || !is_gateway && sets_variable(&of_service, name) {
                return None;
            }
            let text = format!("The secret of `{key}` is not set.");
            let found = match is_gateway {
                true => Finding::bad("secrets.missing", text),
                // The service may have variables unknown to this terminal.
                false => Finding::warn("secrets.missing", text),
            };
            let found = found.cause(format!("the environment variable {name} is not set here"));
            Some(found.fix(format!(
                "Set {name} where Parlor is started, or keep it in a file: {{ file = \"secrets/…\" }}"
            )))
        }
    }
}

/// Files of the folder `secrets`, and files elsewhere named by the config.
fn files(home: &Path, named: &[KeptSecret]) -> Vec<PathBuf> {
    let mut files = in_folder(home);
    files.extend([home.join("secrets"), home.join(ENVIRONMENT_FILE)]);
    files.extend(named.iter().filter_map(file).map(Path::to_owned));
    files.sort();
    files.dedup();
    files
}

fn in_folder(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.join("secrets")).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// A closed home folder keeps others out of all its files, until a person opens the folder.
fn open_to_others(home: &Path, path: &Path) -> Option<Finding> {
    let is_open = |path: &Path| {
        let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
        Some(mode).filter(|mode| mode & 0o077 != 0)
    };
    let mode = is_open(path)?;
    let state = match path.starts_with(home) && is_open(home).is_none() {
        true => State::Warn,
        false => State::Bad,
    };
    Some(
        Finding::new(
            "secrets.modes",
            state,
            format!("Other users of this machine may read {}.", path.display()),
        )
        .cause(format!("its mode is {mode:03o}"))
        .fix(format!("chmod go-rwx {}", path.display()))
        .remedy(Remedy::CloseToOthers(path.to_owned())),
    )
}

fn unused_file(path: &Path) -> Finding {
    Finding::note(
        "secrets.unused",
        format!("config.toml does not name {}.", path.display()),
    )
    .fix("Delete it if nothing else uses it.")
}
