//! Remembers the notices to owners about providers: the `provider_notices` table.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::config::ModelRef;

/// The quiet time after a notice about a provider: the next trouble is not told, because a flapping
/// server would cause messages all day.
const QUIET_MS: i64 = 60 * 60 * 1000;

/// The kind of trouble of a server that cannot be reached, for any reason.
pub(crate) const OUT_OF_REACH: &str = "unreachable";

pub(crate) fn is_out_of_reach(trouble: &str) -> bool {
    trouble == OUT_OF_REACH
}

/// The trouble of a model or its provider that owners were told last, and the time.
pub(crate) fn trouble_of(
    connection: &Connection,
    model: &ModelRef,
) -> rusqlite::Result<Option<(String, i64)>> {
    let ModelRef::Of { provider, .. } = model else {
        return Ok(None);
    };
    for subject in [provider, &model.to_string()] {
        if let Some(Last {
            trouble: Some(trouble),
            told_at,
        }) = last(connection, subject)?
        {
            return Ok(Some((trouble, told_at)));
        }
    }
    Ok(None)
}

/// The due notice about a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Trouble,
    WorksAgain,
    /// Owners know already, or nothing was ever wrong.
    Nothing,
    /// A notice is due, but too soon after the last notice.
    Later,
}

/// Decides about the state of a provider, and records the notice. `trouble` is its kind, or none if
/// the provider answers.
pub(crate) fn take(
    tx: &Transaction<'_>,
    subject: &str,
    trouble: Option<&str>,
    now: i64,
) -> rusqlite::Result<Verdict> {
    let verdict = decide(last(tx, subject)?, trouble, now);
    if matches!(verdict, Verdict::Trouble | Verdict::WorksAgain) {
        tx.prepare_cached(
            "INSERT INTO provider_notices (subject, trouble, told_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (subject) DO UPDATE SET trouble = ?2, told_at = ?3",
        )?
        .execute(params![subject, trouble, now])?;
    }
    Ok(verdict)
}

struct Last {
    trouble: Option<String>,
    told_at: i64,
}

fn last(connection: &Connection, subject: &str) -> rusqlite::Result<Option<Last>> {
    connection
        .prepare_cached("SELECT trouble, told_at FROM provider_notices WHERE subject = ?1")?
        .query_row([subject], |row| {
            Ok(Last {
                trouble: row.get(0)?,
                told_at: row.get(1)?,
            })
        })
        .optional()
}

fn decide(last: Option<Last>, trouble: Option<&str>, now: i64) -> Verdict {
    let Some(last) = last else {
        return match trouble {
            Some(_) => Verdict::Trouble,
            None => Verdict::Nothing,
        };
    };
    match trouble {
        _ if last.trouble.as_deref() == trouble => Verdict::Nothing,
        None => Verdict::WorksAgain,
        Some(_) if now.saturating_sub(last.told_at) < QUIET_MS => Verdict::Later,
        Some(_) => Verdict::Trouble,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_and_not_too_often() {
        let check = |last: Option<(Option<&str>, i64)>, trouble, expected| {
            let last = last.map(|(trouble, told_at)| Last {
                trouble: trouble.map(str::to_owned),
                told_at,
            });
            assert_eq!(decide(last, trouble, QUIET_MS), expected);
        };
        check(None, None, Verdict::Nothing);
        check(None, Some("key"), Verdict::Trouble);
        check(Some((Some("key"), 0)), Some("key"), Verdict::Nothing);
        check(Some((Some("key"), 0)), Some("credit"), Verdict::Trouble);
        check(Some((Some("key"), 1)), Some("credit"), Verdict::Later);
        check(Some((Some("key"), 1)), None, Verdict::WorksAgain);
        check(Some((None, 1)), Some("key"), Verdict::Later);
        check(Some((None, 0)), Some("key"), Verdict::Trouble);
        check(Some((None, 0)), None, Verdict::Nothing);
    }
}
