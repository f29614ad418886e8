//! Words that several verbs for agents share: counts, and reports about config.toml.

use super::super::Failure;
use super::super::color::Style;
use crate::config::Report;
use crate::tenants::{Rows, Stake, TenantError};

pub(super) fn told(error: TenantError) -> Failure {
    match error {
        TenantError::Unknown(error) => Failure::WrongUse(error.to_string()),
        TenantError::Problems(report) => {
            let errors = if report.problems.len() == 1 {
                "this error"
            } else {
                "these errors"
            };
            Failure::Failed(with_end(
                &report,
                &format!(
                    "Nothing was changed. With your options config.toml would have had {errors}."
                ),
            ))
        }
        TenantError::Broken(report) => Failure::Failed(with_end(
            &report,
            "Nothing was changed. Fix config.toml first.",
        )),
        other => Failure::Failed(other.to_string()),
    }
}

/// A report that ends with the verb's own words.
fn with_end(report: &Report, end: &str) -> String {
    let color = Style::for_stderr().is_coloured();
    format!("{}{end}", report.render_problems(color))
}

/// Conversations with this agent alone are destroyed too, so the question names them.
pub(super) fn at_stake_text(stake: &Stake) -> String {
    let Rows {
        memories,
        messages,
        sessions,
        pins,
        ..
    } = stake.rows;
    let own = [
        counted(stake.files, "file", "files"),
        counted(memories, "memory", "memories"),
        counted(messages, "message of its own", "messages of its own"),
        counted(
            sessions,
            "conversation that only it answered in",
            "conversations that only it answered in",
        ),
        counted(pins, "pin", "pins"),
    ];
    own.join(", ")
}

pub(super) fn belongings(files: usize, rows: &Rows) -> String {
    format!("{}, {}", counted(files, "file", "files"), rows_text(rows))
}

pub(super) fn rows_text(rows: &Rows) -> String {
    let memories = counted(rows.memories, "memory", "memories");
    let (messages, pins) = (
        counted(rows.messages, "message", "messages"),
        counted(rows.pins, "pin", "pins"),
    );
    format!("{memories}, {messages}, {pins}")
}

pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {many}")
    }
}
