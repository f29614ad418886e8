//! config.toml as a text: read, checked, compared, replaced, and put back as it was.

use std::path::Path;

use rusqlite::Transaction;
use serde::Serialize;
use utoipa::ToSchema;

use super::agent_files::hash;
use super::agents::take_in;
use super::named::Moment;
use super::{Operations, Refusal};
use crate::clock::now_ms;
use crate::config::{self, ListedProblem, Report, Secrets, Source, store};
use crate::home;
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::config_history;
use crate::routing::Table;

/// The text of the file.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ConfigText {
    pub(crate) text: String,
    /// Of the text.
    pub(crate) hash: String,
}

/// What a check found.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Checked {
    /// No problem is an error.
    pub(crate) ok: bool,
    #[schema(value_type = Vec<Object>)]
    pub(crate) problems: Vec<ListedProblem>,
}

/// A text that was replaced.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Earlier {
    pub(crate) id: i64,
    /// When it was replaced.
    pub(crate) at: Moment,
    pub(crate) by: String,
    pub(crate) bytes: i64,
}

/// Why a text was not written.
#[derive(Debug)]
pub(crate) enum NotApplied {
    /// The file has another text by now.
    Stale(ConfigText),
    Problems(Checked),
    Refused(Refusal),
}

impl<E: Into<Refusal>> From<E> for NotApplied {
    fn from(error: E) -> Self {
        NotApplied::Refused(error.into())
    }
}

pub(crate) async fn read(operations: &Operations) -> Result<ConfigText, Refusal> {
    let home = operations.home.clone();
    blocking(move || {
        let text = store::read(&home).map_err(|error| Refusal::failed(error.to_string()))?;
        let hash = hash(&text);
        Ok(ConfigText { text, hash })
    })
    .await
}

pub(crate) async fn check(operations: &Operations, text: String) -> Result<Checked, Refusal> {
    let home = operations.home.clone();
    blocking(move || Ok(examined(&home, text).1)).await
}

/// Replaces the file. `base` is the hash of the text that was edited.
pub(crate) async fn apply(
    operations: &Operations,
    actor: &Actor,
    base: &str,
    text: String,
) -> Result<ConfigText, NotApplied> {
    let (home, base) = (operations.home.clone(), base.to_owned());
    let replaced = blocking(move || {
        let told = |error: store::StoreConfigError| Refusal::failed(error.to_string());
        let lock = store::lock(&home).map_err(told)?;
        let before = store::read(&home).map_err(told)?;
        let found = hash(&before);
        if found != base {
            return Ok(Err(NotApplied::Stale(ConfigText {
                text: before,
                hash: found,
            })));
        }
        let (usable, checked) = examined(&home, text.clone());
        if usable.is_none() {
            return Ok(Err(NotApplied::Problems(checked)));
        }
        store::replace(&home, &lock, &before, &text).map_err(told)?;
        Ok(Ok((before, text)))
    });
    let (before, text) = replaced.await??;
    let (by, hash) = (actor.clone(), hash(&text));
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        config_history::keep(tx, &by.grantor(now).id, &before, now)?;
        audit::note(tx, &by, &Change::new(Action::Config), now)
    };
    operations.db.write(write).await?;
    take_in(operations, "config.toml").await;
    Ok(ConfigText { text, hash })
}

pub(crate) async fn history(operations: &Operations) -> Result<Vec<Earlier>, Refusal> {
    let rows = operations.db.read(config_history::list).await?;
    let earlier = rows.into_iter().map(|row| Earlier {
        id: row.id,
        at: Moment(row.at),
        by: row.by,
        bytes: row.bytes,
    });
    Ok(earlier.collect())
}

/// None for a number that is not there.
pub(crate) async fn earlier(
    operations: &Operations,
    id: i64,
) -> Result<Option<ConfigText>, Refusal> {
    let read = move |connection: &rusqlite::Connection| config_history::text(connection, id);
    let text = operations.db.read(read).await?;
    Ok(text.map(|text| ConfigText {
        hash: hash(&text),
        text,
    }))
}

/// The config of a usable text, and what was found.
pub(super) fn examined(home: &Path, text: String) -> (Option<(config::Config, Table)>, Checked) {
    let source = Source {
        path: home.join("config.toml"),
        text,
    };
    let draft = config::draft(source, home, Secrets::WherePresent);
    let (source, warnings) = (draft.source.clone(), draft.warnings.clone());
    let (usable, mut problems) = match home::check(draft, home) {
        Ok(usable) => (Some(usable), Vec::new()),
        Err(report) => (None, report.problems),
    };
    problems.extend(warnings);
    let report = Report {
        source,
        problems,
        purpose: Secrets::WherePresent,
    };
    let checked = Checked {
        ok: usable.is_some(),
        problems: report.listed(),
    };
    (usable, checked)
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Refusal::failed(error.to_string()))?
}

/// The lines that differ, each with its mark: ` ` in both, `-` only before, `+` only after.
pub(crate) fn difference(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let common = shared(&old, &new);
    let (mut lines, mut at, mut to) = (Vec::new(), 0, 0);
    for (i, j) in common.into_iter().chain([(old.len(), new.len())]) {
        lines.extend(old[at..i].iter().map(|line| format!("-{line}")));
        lines.extend(new[to..j].iter().map(|line| format!("+{line}")));
        if let Some(line) = old.get(i) {
            lines.push(format!(" {line}"));
        }
        (at, to) = (i + 1, j + 1);
    }
    lines
}

/// Pairs of equal lines, as many as possible (their longest common subsequence). What is equal at
/// both ends is cut off first, because a table of all pairs is made of the rest.
fn shared(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let start = old
        .iter()
        .zip(new)
        .take_while(|(one, other)| one == other)
        .count();
    let (rest_old, rest_new) = (&old[start..], &new[start..]);
    let ends = rest_old.iter().rev().zip(rest_new.iter().rev());
    let end = ends.take_while(|(one, other)| one == other).count();
    let (middle_old, middle_new) = (
        &rest_old[..rest_old.len() - end],
        &rest_new[..rest_new.len() - end],
    );
    let mut pairs: Vec<(usize, usize)> = (0..start).map(|at| (at, at)).collect();
    let middle = pairs_of(middle_old, middle_new).into_iter();
    pairs.extend(middle.map(|(i, j)| (start + i, start + j)));
    pairs.extend((0..end).map(|at| (old.len() - end + at, new.len() - end + at)));
    pairs
}

/// Longer middles are told as replaced.
const MOST_PAIRS: usize = 4_000_000;

fn pairs_of(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        return Vec::new();
    }
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = match old[i] == new[j] {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }
    let (mut pairs, mut i, mut j) = (Vec::new(), 0, 0);
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_went_and_what_came() {
        let check = |before: &str, after: &str, expected: &str| {
            assert_eq!(difference(before, after).join("\n"), expected);
        };
        check("a\nb\nc", "a\nb\nc", " a\n b\n c");
        check("a\nb\nc", "a\nx\nc", " a\n-b\n+x\n c");
        check("a\nc", "a\nb\nc", " a\n+b\n c");
        check("a\nb\nc\nd", "b\nd\ne", "-a\n b\n-c\n d\n+e");
        check("", "a", "+a");
        check("a", "", "-a");
    }
}
