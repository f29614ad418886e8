//! Secrets come from the environment or a file, never from the config's text, and never print.

use std::fmt;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};
use toml::de::DeValue;

use super::lookalikes::{is_variable_name, looks_like_path, looks_like_variable};
use super::reader::Section;
use super::schema;
use super::{Problem, Spanned};

/// A token or key. `Debug` and `Display` hide the text.
#[derive(Clone, Default)]
pub struct Secret(SecretString);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into().into())
    }

    /// The text itself, for the call to the server only.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The purpose of reading a config: running, or only looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// An unreadable secret is a problem.
    Required,
    /// An unreadable secret is empty, because this machine may not have all secrets, and most verbs
    /// need none.
    WherePresent,
}

/// Reads secrets from where the file says they are.
pub(super) struct Vault<'a> {
    /// Relative paths begin here.
    pub(super) home: &'a Path,
    pub(super) secrets: Secrets,
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
}

/// Where a secret is kept.
enum Keeper {
    Environment(Spanned<String>),
    File(Spanned<String>),
}

impl Vault<'_> {
    /// The secret under a key. An unreadable secret is empty; an absent key gives none.
    pub(super) fn secret(&self, section: &Section<'_>, name: &str) -> Option<Secret> {
        section.value(name)?;
        let secret = keeper(section, name)
            .map(|keeper| self.open(&keeper))
            .transpose();
        Some(
            secret
                .map_err(|problem| section.problems.note(problem))
                .ok()
                .flatten()
                .unwrap_or_default(),
        )
    }

    fn open(&self, keeper: &Keeper) -> Result<Secret, Problem> {
        let secret = match keeper {
            Keeper::Environment(variable) => self.read_variable(variable),
            Keeper::File(path) => self.read_file(path),
        };
        match self.secrets {
            Secrets::Required => secret,
            Secrets::WherePresent => Ok(secret.unwrap_or_default()),
        }
    }

    fn read_variable(&self, variable: &Spanned<String>) -> Result<Secret, Problem> {
        let name = match looks_like_variable(&variable.value) {
            true => variable.value.as_str(),
            false => HIDDEN,
        };
        let problem = |what: &str| {
            Problem::new(
                variable.span.clone(),
                format!("the environment variable {name} {what}"),
            )
            .label("needed for this")
            .help("export it before starting, or use { file = \"…\" }")
        };
        match (self.environment)(&variable.value) {
            None => Err(problem("is not set")),
            Some(text) if text.trim().is_empty() => Err(problem("is empty")),
            Some(text) => Ok(Secret::new(text.trim_end().to_owned())),
        }
    }

    fn read_file(&self, path: &Spanned<String>) -> Result<Secret, Problem> {
        let whole_path = self.home.join(&path.value);
        let is_shown = looks_like_path(&path.value);
        let (name, label) = match is_shown {
            true => (
                path.value.as_str(),
                format!("looked for {}", whole_path.display()),
            ),
            false => (
                HIDDEN,
                "hidden, because this may be the secret itself".into(),
            ),
        };
        let problem = |what: String| {
            Problem::new(path.span.clone(), format!("the file {name} {what}"))
                .label(label.clone())
                .help("write the secret into this file, alone, or use { env = \"…\" }")
        };
        match fs::read_to_string(&whole_path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(problem("does not exist".to_owned()))
            }
            Err(error) => Err(problem(format!("cannot be read: {}", error.kind()))),
            Ok(text) if text.trim().is_empty() => Err(problem("is empty".to_owned())),
            Ok(_) if is_open_to_others(&whole_path) => {
                Err(problem("is open to other users of this machine".to_owned())
                    .help(format!("run `chmod 600 {}`", whole_path.display())))
            }
            Ok(text) => Ok(Secret::new(text.trim_end().to_owned())),
        }
    }
}

/// Stands for a name that may be the secret itself.
const HIDDEN: &str = "named here";

/// As ssh does with keys: a file of ours has no rights for others. A file of somebody else, such as
/// a secret that a container is given, has the rights its owner chose.
fn is_open_to_others(path: &Path) -> bool {
    let is_ours = |file: &fs::Metadata| file.uid() == rustix::process::geteuid().as_raw();
    fs::metadata(path).is_ok_and(|file| is_ours(&file) && file.mode() & 0o077 != 0)
}

/// Reads `{ env = "…" }` or `{ file = "…" }` and refuses everything else.
fn keeper(section: &Section<'_>, name: &str) -> Option<Keeper> {
    let value = section.value(name)?;
    match value.get_ref() {
        DeValue::Table(_) => keeper_in_table(section, name),
        DeValue::String(_) => {
            section
                .problems
                .note(literal_secret(section, name, value.span()));
            None
        }
        _ => {
            section.refuse_type(name, "the place where the secret is kept");
            None
        }
    }
}

fn keeper_in_table(section: &Section<'_>, name: &str) -> Option<Keeper> {
    let problems_before = section.problems.count();
    let table = section.section(name, &schema::SECRET)?;
    match (table.value("env"), table.value("file")) {
        (Some(_), None) => environment(section, table.text("env")?),
        (None, Some(_)) => Some(Keeper::File(table.text("file")?)),
        _ => {
            let already_told = section.problems.count() > problems_before;
            if !already_told {
                section.problems.note(not_one_place(section, name));
            }
            None
        }
    }
}

fn environment(section: &Section<'_>, variable: Spanned<String>) -> Option<Keeper> {
    if is_variable_name(&variable.value) {
        return Some(Keeper::Environment(variable));
    }
    section.problems.note(
        Problem::new(variable.span, "`env` takes the name of an environment variable")
            .label("not such a name")
            .help("write the name only, such as `TELEGRAM_BOT_TOKEN`; the secret itself stays outside this file"),
    );
    None
}

fn not_one_place(section: &Section<'_>, name: &str) -> Problem {
    let span = section
        .value(name)
        .map(|value| value.span())
        .unwrap_or_default();
    Problem::new(span, format!("`{name}`: expected either `env` or `file`"))
        .label("exactly one of the two belongs here")
        .help(format!("write it like `{}`", section.usage(name)))
}

fn literal_secret(section: &Section<'_>, name: &str, span: Range<usize>) -> Problem {
    Problem::new(span, format!("`{name}` stands in the config file itself")).label("a secret in plain text, hidden here").help(
        format!(
            "move it to the environment and write `{}`, or to a file and write `{name} = {{ file = \"secrets/{name}\" }}`",
            section.usage(name)
        ),
    )
}
