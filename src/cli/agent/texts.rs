//! Words that several verbs for agents share: counts of belongings.

use crate::tenants::{Rows, Stake};

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
