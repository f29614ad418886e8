//! `/memory`, `/remember`, `/forget` and `/skills`.

use super::words::{count, listed};
use crate::agents::memory::{Entry, NotSaved, Stats};
use crate::config::Visibility;

/// Characters of a memory in a list.
const MAX_CHARS: usize = 160;

/// A memory on a line of a list, with the number for `/forget`.
pub(crate) fn item(entry: &Entry) -> String {
    let text = entry.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = text.chars().take(MAX_CHARS).collect();
    let cut = if short.len() < text.len() { " …" } else { "" };
    format!("- {} ({}): {short}{cut}", entry.id, entry.visibility)
}

/// `may_forget`: guests may not.
pub(crate) fn overview(label: &str, stats: &Stats, newest: &[Entry], may_forget: bool) -> String {
    let mut lines = vec![remembered(label, stats)];
    lines.extend(from_files(stats));
    if !newest.is_empty() {
        lines.push("\nThe newest:".to_owned());
        lines.extend(newest.iter().map(item));
    }
    lines.push(format!("\n{}", if may_forget { HOW } else { HOW_TO_ADD }));
    lines.join("\n")
}

const HOW_TO_ADD: &str = "`/remember Ann likes tea` adds a memory.";
const HOW: &str =
    "`/remember Ann likes tea` adds a memory, `/forget tea` or `/forget 12` deletes one.";

/// Files are told only where there are some.
fn from_files(stats: &Stats) -> Option<String> {
    let pieces = u64::from(stats.counts.pieces);
    match (pieces, stats.memory_file_bytes) {
        (0, None | Some(0)) => None,
        (0, Some(bytes)) => Some(format!("MEMORY.md has {}.", size(bytes))),
        (pieces, None | Some(0)) => Some(format!("{} from files.", count(pieces, "note"))),
        (pieces, Some(bytes)) => Some(format!(
            "{} from files; MEMORY.md has {}.",
            count(pieces, "note"),
            size(bytes)
        )),
    }
}

/// `120 bytes`, `5 KiB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => count(bytes, "byte"),
        _ => format!("{} KiB", bytes.div_ceil(1024)),
    }
}

/// The counts for people: memories for the asking person, for this place, of the agent, and the
/// global memories of all agents.
fn remembered(label: &str, stats: &Stats) -> String {
    let things = |number: u32, kind: &str| count(u64::from(number), &format!("{kind}thing"));
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
        .filter(|(number, _)| *number > 0)
        .map(|(_, told)| told)
        .collect();
    match kinds.as_slice() {
        [] => format!("{label} has no memories for you here yet."),
        kinds => format!("{label} remembers {}.", listed(kinds)),
    }
}

pub(crate) fn memory_off(label: &str) -> String {
    format!("{label} has no memory: an owner has turned it off.")
}

pub(crate) fn saved(label: &str, visibility: Visibility) -> String {
    match visibility {
        Visibility::Person => format!("{label} remembers that, for you alone."),
        Visibility::Place => format!("{label} remembers that, for this place."),
        Visibility::Private => {
            format!("{label} remembers that, for everybody who talks to this agent.")
        }
        Visibility::Global => format!("{label} remembers that, and every other agent can find it."),
    }
}

pub(crate) fn not_saved(why: &NotSaved) -> String {
    match why {
        NotSaved::ForEverybody => "Only an owner can save a memory for everybody. `/remember` with your text alone saves it for here.".to_owned(),
        NotSaved::Full(most) => format!(
            "You have {most} memories, and that's the limit. `/forget` deletes one."
        ),
        other => other.to_string(),
    }
}

pub(crate) const GUESTS_CANNOT_FORGET: &str = "Guests can't delete memories here.";
/// The answer about memories that the person sees but did not have saved.
pub(crate) const OF_OTHERS: &str =
    "That memory was saved by somebody else. An owner can delete it.";

pub(crate) fn to_forget(entries: &[Entry]) -> String {
    let list = entries.iter().map(item).collect::<Vec<_>>().join("\n");
    let first = entries.first().map_or(0, |entry| entry.id);
    format!("{list}\n\nNothing is deleted yet. `/forget {first} yes` deletes it.")
}

pub(crate) fn forgotten(label: &str, entry: &Entry) -> String {
    format!("{label} has forgotten this:\n{}", item(entry))
}

pub(crate) fn no_such_number(label: &str, id: i64) -> String {
    format!("{label} has no memory with the number {id}.")
}

pub(crate) fn nothing_like_that(label: &str, in_file: Option<&str>) -> String {
    match in_file {
        Some(path) => format!(
            "{label} has no memory like that, but the file {path} does. Ask {label} to change it."
        ),
        None => format!("{label} has no memory like that."),
    }
}

/// The number of skills by their origin. With `listed`, config.toml names the skills.
pub(crate) fn skills(label: &str, shared: usize, own: usize, listed: bool) -> String {
    let all = u64::try_from(shared + own).unwrap_or(u64::MAX);
    match (shared, own) {
        (0, 0) => format!("{label} has no skills."),
        _ if listed => format!("{label} has {}, chosen by an owner.", count(all, "skill")),
        (_, 0) => format!("{label} has {}, shared by all agents.", count(all, "skill")),
        (0, _) => format!("{label} has {} of its own.", count(all, "skill")),
        _ => format!(
            "{label} has {}: {shared} shared, {own} of its own.",
            count(all, "skill")
        ),
    }
}

pub(crate) fn skill(name: &str, mark: Option<&str>, description: &str) -> String {
    let mark = mark.map_or_else(String::new, |mark| format!(" ({mark})"));
    format!("\n- `{name}`{mark}: {description}")
}

pub(crate) const OWN_SKILL: &str = "own";
pub(crate) const OWN_INSTEAD: &str = "own, instead of the shared one";

/// For owners, who can mend files.
pub(crate) fn broken_skills(names: &[String]) -> String {
    format!(
        "\n\nBroken and left out: {}. `parlor skill check` shows why.",
        names.join(", ")
    )
}

pub(crate) const SKILLS_UNREADABLE: &str = "The skills can't be read right now.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::memory::Counts;

    #[test]
    fn global_memories_of_others_are_counted() {
        let told = |private, global, global_of_all| {
            let counts = Counts {
                private,
                global,
                ..Counts::default()
            };
            remembered(
                "Rose",
                &Stats {
                    counts,
                    global_of_all,
                    memory_file_bytes: None,
                },
            )
        };
        let of_person = Stats {
            counts: Counts {
                person: 2,
                place: 1,
                private: 3,
                ..Counts::default()
            },
            ..Stats::default()
        };
        let texts = [
            told(0, 0, 0),
            told(1, 0, 0),
            told(2, 1, 1),
            told(0, 0, 1),
            told(1, 0, 3),
            told(1, 1, 3),
            remembered("Rose", &of_person),
        ];
        insta::assert_snapshot!(texts.join("\n"), @"
        Rose has no memories for you here yet.
        Rose remembers 1 private thing.
        Rose remembers 2 private things and 1 global thing.
        Rose remembers 1 global thing, from another agent.
        Rose remembers 1 private thing and 3 global things, all from other agents.
        Rose remembers 1 private thing and 3 global things, 2 of them from other agents.
        Rose remembers 2 things for you, 1 thing for this place and 3 private things.
        ");
    }

    #[test]
    fn the_texts_about_memories_and_skills_read_well() {
        let rose = "🌹 Rose";
        let files = |pieces, memory_file_bytes| Stats {
            counts: Counts {
                pieces,
                ..Counts::default()
            },
            memory_file_bytes,
            ..Stats::default()
        };
        let texts = [
            overview(rose, &files(0, None), &[], false),
            overview(rose, &files(3, Some(5_000)), &[], true),
            overview(rose, &files(1, None), &[], true),
            memory_off(rose),
            saved(rose, Visibility::Person),
            saved(rose, Visibility::Place),
            saved(rose, Visibility::Private),
            saved(rose, Visibility::Global),
            not_saved(&NotSaved::ForEverybody),
            not_saved(&NotSaved::Full(100)),
            GUESTS_CANNOT_FORGET.to_owned(),
            OF_OTHERS.to_owned(),
            no_such_number(rose, 12),
            nothing_like_that(rose, None),
            nothing_like_that(rose, Some("MEMORY.md")),
            skills(rose, 0, 0, false),
            skills(rose, 1, 1, false),
            skills(rose, 2, 0, false),
            skills(rose, 0, 2, false),
            skills(rose, 1, 0, true),
            skill("tea", Some(OWN_SKILL), "Makes tea."),
            skill("tea", Some(OWN_INSTEAD), "Makes tea."),
            broken_skills(&["`tea`".into()]),
            SKILLS_UNREADABLE.to_owned(),
        ];
        insta::assert_snapshot!(texts.join("\n"), @"
        🌹 Rose has no memories for you here yet.

        `/remember Ann likes tea` adds a memory.
        🌹 Rose has no memories for you here yet.
        3 notes from files; MEMORY.md has 5 KiB.

        `/remember Ann likes tea` adds a memory, `/forget tea` or `/forget 12` deletes one.
        🌹 Rose has no memories for you here yet.
        1 note from files.

        `/remember Ann likes tea` adds a memory, `/forget tea` or `/forget 12` deletes one.
        🌹 Rose has no memory: an owner has turned it off.
        🌹 Rose remembers that, for you alone.
        🌹 Rose remembers that, for this place.
        🌹 Rose remembers that, for everybody who talks to this agent.
        🌹 Rose remembers that, and every other agent can find it.
        Only an owner can save a memory for everybody. `/remember` with your text alone saves it for here.
        You have 100 memories, and that's the limit. `/forget` deletes one.
        Guests can't delete memories here.
        That memory was saved by somebody else. An owner can delete it.
        🌹 Rose has no memory with the number 12.
        🌹 Rose has no memory like that.
        🌹 Rose has no memory like that, but the file MEMORY.md does. Ask 🌹 Rose to change it.
        🌹 Rose has no skills.
        🌹 Rose has 2 skills: 1 shared, 1 of its own.
        🌹 Rose has 2 skills, shared by all agents.
        🌹 Rose has 2 skills of its own.
        🌹 Rose has 1 skill, chosen by an owner.

        - `tea` (own): Makes tea.

        - `tea` (own, instead of the shared one): Makes tea.


        Broken and left out: `tea`. `parlor skill check` shows why.
        The skills can't be read right now.
        ");
    }
}
