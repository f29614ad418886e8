//! Secrets come from the environment or a file, never from the config's text, and never print.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};
use toml::de::DeValue;

use super::known_servers;
use super::lookalikes::{
    is_variable_name, looks_like_path, looks_like_variable, variable_behind_dollar,
};
use super::reader::Section;
use super::schema;
use super::system_error::in_words;
use super::{Fault, Problem, Spanned, address};

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

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

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

    /// A secret without which the gateway can start. A failed read is a warning, and its reason is
    /// returned. A key of the wrong form is a problem, and has no reason besides. `needed_by` is
    /// the section that does nothing without the secret.
    pub(super) fn optional(
        &self,
        section: &Section<'_>,
        name: &str,
        needed_by: &str,
    ) -> Option<Result<Secret, String>> {
        section.value(name)?;
        let secret = keeper(section, name).map(|keeper| self.read(&keeper));
        let secret = secret.unwrap_or_else(|| Ok(Secret::default()));
        Some(secret.map_err(|problem| {
            let message = format!("{}; [{needed_by}] needs it", problem.message);
            let why = problem.message.clone();
            let warning = Problem { message, ..problem };
            section.problems.warn(warning.fault(Fault::MissingSecret));
            why
        }))
    }

    fn open(&self, keeper: &Keeper) -> Result<Secret, Problem> {
        let secret = self.read(keeper);
        match self.secrets {
            Secrets::Required => secret,
            Secrets::WherePresent => Ok(secret.unwrap_or_default()),
        }
    }

    fn read(&self, keeper: &Keeper) -> Result<Secret, Problem> {
        match keeper {
            Keeper::Environment(variable) => self.read_variable(variable),
            Keeper::File(path) => self.read_file(path),
        }
    }

    fn read_variable(&self, variable: &Spanned<String>) -> Result<Secret, Problem> {
        let name = match looks_like_variable(&variable.value) {
            true => variable.value.as_str(),
            false => HIDDEN,
        };
        let shown = match name {
            HIDDEN => "NAME",
            name => name,
        };
        let problem = |what: &str, fault: Fault| {
            Problem::new(
                variable.span.clone(),
                format!("the environment variable {name} {what}"),
            )
            .label("the secret is looked for here")
            .help(format!("set it where Parlor is started (`export {shown}=…`), or keep the secret in a file and write {{ file = \"…\" }}"))
            .fault(fault)
        };
        match (self.environment)(&variable.value) {
            None => Err(problem("is not set", Fault::MissingSecret)),
            Some(text) if text.trim().is_empty() => Err(problem("is empty", Fault::MissingSecret)),
            Some(text) => match flaw(&text) {
                Some((what, help)) => Err(problem(what, Fault::BadSecret).help(help)),
                None => Ok(Secret::new(text.trim().to_owned())),
            },
        }
    }

    fn read_file(&self, path: &Spanned<String>) -> Result<Secret, Problem> {
        let whole_path = self.home.join(&path.value);
        let (name, label) = match looks_like_path(&path.value) {
            true => (
                path.value.as_str(),
                format!("looked for {}", whole_path.display()),
            ),
            false => (
                HIDDEN,
                "hidden, because this may be the secret itself".into(),
            ),
        };
        let problem = |what: &str, fault: Fault| {
            Problem::new(path.span.clone(), format!("the file {name} {what}"))
                .label(label.clone())
                .help("write the secret into this file, and nothing else, or use { env = \"…\" }")
                .fault(fault)
        };
        let text = fs::read_to_string(&whole_path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => problem("does not exist", Fault::MissingSecret),
            ErrorKind::PermissionDenied => problem("may not be read by you", Fault::BadSecret)
                .help(format!(
                    "start Parlor as the user who owns the file, or run `chown` and `chmod 600 {}`",
                    whole_path.display()
                )),
            ErrorKind::IsADirectory => problem("is a folder", Fault::BadSecret)
                .help("name the file with the secret, not its folder"),
            ErrorKind::InvalidData => problem("is not text", Fault::BadSecret),
            _ => problem(
                &format!("cannot be read: {}", in_words(&error)),
                Fault::BadSecret,
            ),
        })?;
        if text.trim().is_empty() {
            return Err(problem("is empty", Fault::MissingSecret));
        }
        if let Some((what, help)) = flaw(&text) {
            return Err(problem(what, Fault::BadSecret).help(help));
        }
        if let Some(who) = is_open_to(&whole_path) {
            let fix = format!("run `chmod 600 {}`", whole_path.display());
            return Err(problem(who, Fault::BadSecret).help(fix));
        }
        Ok(Secret::new(text.trim().to_owned()))
    }
}

/// The reason why a text cannot be a token or a key, and the remedy.
fn flaw(text: &str) -> Option<(&'static str, &'static str)> {
    let text = text.trim();
    let is_quoted =
        |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    if text.contains(['\n', '\r']) {
        return Some((
            "has several lines",
            "a secret is one line: keep that line, and delete the others",
        ));
    }
    if ['"', '\''].into_iter().any(is_quoted) {
        return Some((
            "has quotes around the secret",
            "delete the quotes there: only config.toml needs them",
        ));
    }
    None
}

impl Vault<'_> {
    /// Notes a token with a form unknown to Telegram, so that the mistake shows before the
    /// connection.
    pub(super) fn check_token(&self, section: &Section<'_>, token: &Secret) {
        let is_read = self.secrets == Secrets::Required && !token.expose().is_empty();
        let (number, rest) = token.expose().split_once(':').unwrap_or_default();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if !is_read || is_number && !rest.is_empty() {
            return;
        }
        let span = section.value("token").map(toml::Spanned::span);
        section.problems.note(
            Problem::new(span.unwrap_or_default(), "this is not a token of a Telegram bot")
                .label("the secret kept there has another form")
                .help("a token is a number, a colon and many letters; @BotFather shows it with /mybots or /token")
                .fault(Fault::BadSecret),
        );
    }
}

/// Stands for a name that may be the secret itself.
const HIDDEN: &str = "named here";

fn is_open_to(path: &Path) -> Option<&'static str> {
    let file = fs::metadata(path).ok()?;
    let is_ours = file.uid() == rustix::process::geteuid().as_raw();
    openness(file.mode(), is_ours)
}

/// The access of other users to a file, in words. As ssh does with keys: a file of ours has no
/// rights for others. A file of another user, such as a secret given to a container, may be
/// readable as its owner chose, but a file that all users can change keeps no secret.
fn openness(mode: u32, is_ours: bool) -> Option<&'static str> {
    const ANY_OTHER: u32 = 0o077;
    const CHANGED_BY_ALL: u32 = 0o002;
    if mode & CHANGED_BY_ALL != 0 {
        Some("can be changed by every user of this machine")
    } else if is_ours && mode & ANY_OTHER != 0 {
        Some("is open to other users of this machine")
    } else {
        None
    }
}

/// Reads `{ env = "…" }` or `{ file = "…" }` and refuses everything else.
fn keeper(section: &Section<'_>, name: &str) -> Option<Keeper> {
    let value = section.value(name)?;
    match value.get_ref() {
        DeValue::Table(_) => keeper_in_table(section, name),
        DeValue::String(text) => {
            let usage = usage(section, name);
            section
                .problems
                .note(literal_secret(name, &usage, text, value.span()));
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
        (None, Some(_)) => {
            let path = table.text("file")?;
            match address::tilde(&path) {
                Some(problem) => {
                    section.problems.note(problem);
                    None
                }
                None => Some(Keeper::File(path)),
            }
        }
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
    let problem = match variable_behind_dollar(&variable.value) {
        Some(name) => Problem::new(variable.span, "`env` takes the variable's name without `$`")
            .label("the name alone is enough")
            .help(format!("write `env = \"{name}\"`")),
        None => Problem::new(variable.span, "`env` takes the name of an environment variable")
            .label("not a variable's name")
            .help("write only the name, such as `TELEGRAM_BOT_TOKEN`, and keep the secret itself out of this file"),
    };
    section.problems.note(problem);
    None
}

fn not_one_place(section: &Section<'_>, name: &str) -> Problem {
    let span = section
        .value(name)
        .map(|value| value.span())
        .unwrap_or_default();
    Problem::new(span, format!("`{name}` needs either `env` or `file`"))
        .label("exactly one of the two belongs here")
        .help(format!("write it like `{}`", section.usage(name)))
        .fault(Fault::WrongType)
}

/// The line to write. A known server's key has a variable that its users know.
fn usage(section: &Section<'_>, name: &str) -> String {
    let address = (section.shape_name() == schema::PROVIDER.name)
        .then(|| section.value("base_url")?.get_ref().as_str())
        .flatten();
    match address.and_then(known_servers::variable_at) {
        Some(variable) => format!("{name} = {{ env = \"{variable}\" }}"),
        None => section.usage(name),
    }
}

fn literal_secret(name: &str, usage: &str, text: &str, span: Range<usize>) -> Problem {
    let problem = match variable_behind_dollar(text) {
        Some(variable) => Problem::new(span, format!("`{name}` is text, and variables are not filled in"))
            .label(format!("this is not the value of {variable}"))
            .help(format!("write `{name} = {{ env = \"{variable}\" }}`")),
        None => Problem::new(span, format!("`{name}` is in the config file itself"))
            .label("a secret in plain text, hidden here")
            .help(format!(
                "move it to the environment and write `{usage}`, or to a file and write `{name} = {{ file = \"secrets/{name}\" }}`"
            )),
    };
    problem.fault(Fault::WrongType)
}

#[cfg(test)]
mod tests {
    use super::openness;

    #[test]
    fn a_file_that_everybody_can_change_is_refused_whoever_owns_it() {
        let check = |mode, is_ours, is_refused| {
            assert_eq!(
                openness(mode, is_ours).is_some(),
                is_refused,
                "{mode:o} {is_ours}"
            );
        };
        for mode in [0o602, 0o606, 0o646, 0o666, 0o777] {
            check(mode, true, true);
            check(mode, false, true);
        }
        for mode in [0o640, 0o604, 0o644, 0o660, 0o444] {
            check(mode, true, true);
            check(mode, false, false);
        }
        for mode in [0o600, 0o400] {
            check(mode, true, false);
        }
    }
}
