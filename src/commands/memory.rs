//! `/memory`: shows the memories of the agent here. Has the shared parts of all three memory
//! commands too.

use super::{CommandError, Context, Outcome};
use crate::agents::memory::{Entry, Stats};
use crate::agents::{Memory, Reader};
use crate::domain::UserError;

/// Memories in a list.
const NEWEST: u32 = 5;
/// Characters of a memory in a list.
const MAX_CHARS: usize = 160;

pub(super) async fn run(context: &Context<'_>) -> Result<Outcome, CommandError> {
    let memory = memory(context)?;
    let reader = reader(context);
    let stats = memory.stats(&reader).await?;
    let newest = memory.newest(&reader, NEWEST).await?;
    Ok(Outcome::say(overview(
        &memory.agent().label(),
        &stats,
        &newest,
    )))
}

/// The memory of this place's agent.
pub(super) fn memory(context: &Context<'_>) -> Result<Memory, UserError> {
    let registry = &context.snapshot.registry;
    let agent = registry
        .get(&context.route.agent)
        .unwrap_or_else(|| registry.default_agent());
    context.services.memories.of(agent).ok_or_else(|| {
        UserError::new(format!(
            "{} has no memory: it is off in the config.",
            agent.label()
        ))
    })
}

/// The person and place that memories are read and saved for.
pub(super) fn reader(context: &Context<'_>) -> Reader {
    let origin = &context.inbound.origin;
    let ids = context.snapshot.config.access.people.ids_of(&origin.person);
    Reader::new(&origin.person, ids, &origin.key, context.role)
}

/// A memory on a line of a list, with the number for `/forget`.
pub(super) fn item(entry: &Entry) -> String {
    let text = entry.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = text.chars().take(MAX_CHARS).collect();
    let cut = if short.len() < text.len() { " …" } else { "" };
    format!("- {} ({}): {short}{cut}", entry.id, entry.visibility)
}

fn pieces(count: u32) -> String {
    if count == 1 {
        "1 piece".to_owned()
    } else {
        format!("{count} pieces")
    }
}

/// The counts for people: memories for the asking person, for this place, of the agent, and the
/// global memories of all agents.
fn remembered(label: &str, stats: &Stats) -> String {
    let things = |count: u32, kind: &str| {
        format!(
            "{count} {kind}{}",
            if count == 1 { "thing" } else { "things" }
        )
    };
    let (counts, global) = (&stats.counts, stats.global_of_all);
    let of_others = match (global, global.saturating_sub(counts.global)) {
        (_, 0) => String::new(),
        (1, 1) => ", from another agent".to_owned(),
        (all, others) if all == others => ", all from other agents".to_owned(),
        (_, others) => format!(", {others} of them from other agents"),
    };
    let kinds = [
        (
            counts.person,
            format!("{} for you", things(counts.person, "")),
        ),
        (
            counts.place,
            format!("{} for this place", things(counts.place, "")),
        ),
        (counts.private, things(counts.private, "private ")),
        (global, format!("{}{of_others}", things(global, "global "))),
    ];
    let kinds: Vec<String> = kinds
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, told)| told)
        .collect();
    match kinds.as_slice() {
        [] => format!("{label} has saved nothing yet."),
        [kind] => format!("{label} remembers {kind}."),
        [before @ .., last] => format!("{label} remembers {} and {last}.", before.join(", ")),
    }
}

fn overview(label: &str, stats: &Stats, newest: &[Entry]) -> String {
    let counts = &stats.counts;
    let file = match stats.memory_file_bytes {
        Some(bytes) => format!("MEMORY.md has {} KiB", bytes.div_ceil(1024)),
        None => "there is no MEMORY.md".to_owned(),
    };
    let mut lines = vec![
        remembered(label, stats),
        format!("From files: {}; {file}.", pieces(counts.pieces)),
    ];
    if !newest.is_empty() {
        lines.push("\nThe newest:".to_owned());
        lines.extend(newest.iter().map(item));
    }
    lines.push(
        "\n`/remember` with a text adds to that, `/forget` with words or a number takes away."
            .to_owned(),
    );
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::memory::Counts;

    #[test]
    fn global_memories_of_others_are_counted() {
        let check = |private, global, global_of_all, expected: &str| {
            let counts = Counts {
                private,
                global,
                ..Counts::default()
            };
            let stats = Stats {
                counts,
                global_of_all,
                memory_file_bytes: None,
            };
            assert_eq!(remembered("Rose", &stats), expected);
        };
        check(0, 0, 0, "Rose has saved nothing yet.");
        check(1, 0, 0, "Rose remembers 1 private thing.");
        check(
            2,
            1,
            1,
            "Rose remembers 2 private things and 1 global thing.",
        );
        check(
            0,
            0,
            1,
            "Rose remembers 1 global thing, from another agent.",
        );
        check(
            1,
            0,
            3,
            "Rose remembers 1 private thing and 3 global things, all from other agents.",
        );
        check(
            1,
            1,
            3,
            "Rose remembers 1 private thing and 3 global things, 2 of them from other agents.",
        );
        let counts = Counts {
            person: 2,
            place: 1,
            private: 3,
            ..Counts::default()
        };
        let stats = Stats {
            counts,
            ..Stats::default()
        };
        assert_eq!(
            remembered("Rose", &stats),
            "Rose remembers 2 things for you, 1 thing for this place and 3 private things."
        );
    }
}
