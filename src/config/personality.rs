//! Reads an agent's `personality` and `system_prompt`.

use std::path::{Component, Path};

use super::reader::Section;
use super::{Problem, Spanned};

/// The longest path of a file, in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// A path from the agent's folder on. The room `agents` checks whether the file exists.
pub(super) fn personality(section: &Section<'_>) -> Option<Spanned<String>> {
    let written = section.text("personality")?;
    match inside(&written.value) {
        Ok(value) => Some(Spanned {
            value,
            span: written.span,
        }),
        Err((message, label)) => {
            let advice = format!(
                "write the path from the agent's own folder on, such as `{}`",
                section.usage("personality")
            );
            section.problems.note(
                Problem::new(written.span, message)
                    .label(label)
                    .help(advice),
            );
            None
        }
    }
}

/// The path as plain names, or a problem with its reason.
pub(super) fn inside(path: &str) -> Result<String, (&'static str, &'static str)> {
    let mut names: Vec<&str> = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => names.extend(name.to_str()),
            Component::CurDir => {}
            Component::ParentDir => {
                return Err((
                    "`personality` leaves the agent's folder",
                    "`..` leads out of it",
                ));
            }
            Component::RootDir | Component::Prefix(_) => {
                return Err((
                    "`personality` cannot be an absolute path",
                    "begins at the root of the disk",
                ));
            }
        }
    }
    match names.join("/") {
        joined if joined.is_empty() => {
            Err(("`personality` does not name a file", "no file name in it"))
        }
        joined if joined.len() > MAX_PATH_BYTES || joined.contains(char::is_control) => Err((
            "`personality` is not a usable path",
            "too long, or with control characters in it",
        )),
        joined => Ok(joined),
    }
}

/// Text of any length; the prompt shows as much as of a file.
pub(super) fn system_prompt(section: &Section<'_>) -> Option<String> {
    let written = section.text("system_prompt")?;
    if written.value.trim().is_empty() {
        let problem = Problem::new(written.span, "`system_prompt` is empty").label("no text in it");
        section.problems.note(problem.help(format!(
            "write it like `{}`, or delete the line",
            section.usage("system_prompt")
        )));
        return None;
    }
    Some(written.value)
}
