//! Secrets: there, for their owner alone, and used.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::config::{
    ENVIRONMENT_FILE, Fault, Keeper, KeptSecret, Problem, Secrets, kept_secrets, load, read_home,
    sets_variable,
};
use crate::home::Home;
use crate::operations::diagnosis::{Finding, Remedy};

/// `is_gateway`: the environment belongs to the running gateway.
pub(super) fn check(home: &Home, is_gateway: bool) -> Vec<Finding> {
    let text = read_home(home.path()).map(|source| source.text);
    let text = text.unwrap_or_default();
    let named = kept_secrets(&text, home.path());
    let mut findings: Vec<Finding> = named
        .iter()
        .filter_map(|secret| missing(home.path(), secret, is_gateway))
        .collect();
    let refused = refused(home.path());
    let files = files(home.path(), &named);
    let open = files.iter().filter_map(|path| {
        let refused = refused.iter().find(|refused| refused.is_about(path));
        let found = refused.map(|refused| refused.found(path));
        found.or_else(|| open_to_others(home.path(), path))
    });
    findings.extend(open);
    let used: HashSet<&Path> = named.iter().filter_map(file).collect();
    // A file with a mistake names no secrets, but they are needed all the same.
    let is_readable = text.parse::<toml::Table>().is_ok();
    let unused = if is_readable {
        in_folder(home.path())
    } else {
        Vec::new()
    };
    let unused = unused.iter().filter(|path| !used.contains(path.as_path()));
    findings.extend(unused.map(|path| unused_file(path)));
    if findings.is_empty() {
        let text = match named.len() {
            0 if !is_readable => {
                "config.toml has a mistake, so its secrets are not looked at.".to_owned()
            }
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

/// A secret that is there, and that the config does not take from its file.
struct Refused {
    label: String,
    cause: String,
    help: String,
}

impl Refused {
    fn is_about(&self, path: &Path) -> bool {
        self.label.ends_with(&path.display().to_string())
    }

    fn found(&self, path: &Path) -> Finding {
        let text = format!("Parlor does not use the secret in {}.", path.display());
        let found = Finding::bad("secrets.modes", text).cause(self.cause.as_str());
        let chmod = self
            .help
            .strip_prefix("run `")
            .and_then(|fix| fix.strip_suffix('`'));
        match chmod {
            Some(chmod) => found
                .fix(format!("{chmod}, then parlor reload"))
                .remedy(Remedy::CloseToOthers(path.to_owned())),
            None => found.fix(self.help.as_str()),
        }
    }
}

/// The judgement of the config itself, with the rules of a gateway that starts.
fn refused(home: &Path) -> Vec<Refused> {
    let Ok(draft) = load(home, Secrets::Required) else {
        return Vec::new();
    };
    let found = draft.problems.into_iter().chain(draft.warnings);
    let found = found.filter(|problem| {
        problem.fault == Fault::MissingSecret || problem.fault == Fault::BadSecret
    });
    let is_open = |problem: &Problem| {
        problem
            .help
            .as_deref()
            .is_some_and(|help| help.starts_with("run `chmod"))
    };
    let found = found.filter(is_open);
    found
        .map(|problem| Refused {
            label: problem.label,
            cause: problem.message,
            help: problem.help.unwrap_or_default(),
        })
        .collect()
}

/// A closed home folder keeps others out of files that no secret is read from.
fn open_to_others(home: &Path, path: &Path) -> Option<Finding> {
    let is_open = |path: &Path| {
        let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
        Some(mode).filter(|mode| mode & 0o077 != 0)
    };
    let mode = is_open(path)?;
    if path.starts_with(home) && is_open(home).is_none() {
        return None;
    }
    Some(
        Finding::bad(
            "secrets.modes",
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
