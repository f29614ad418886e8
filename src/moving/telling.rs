//! The report of an import, for people.

use super::report::{Item, Kind, Report, State};

/// Kinds in the order of the report.
const KINDS: [Kind; 10] = [
    Kind::Agent,
    Kind::File,
    Kind::Skill,
    Kind::Memory,
    Kind::Binding,
    Kind::Person,
    Kind::Conversation,
    Kind::Secret,
    Kind::Schedule,
    Kind::Setting,
];
/// Shown lines of a group; the rest is counted.
const MOST_SHOWN: usize = 40;

/// All items of the report, by state.
pub(crate) fn told(report: &Report) -> String {
    let mut lines = vec![format!("{} in {}", report.system.name(), report.source)];
    for program in &report.running {
        lines.push(format!(
            "{} (pid {}) uses it right now. Stop it before this gateway talks for the same bot, and import again then.",
            program.name, program.pid
        ));
    }
    let groups: [(&str, &[State]); 6] = [
        ("Would be carried:", &[State::New]),
        ("Carried:", &[State::Done]),
        ("Here already, and different:", &[State::Conflict]),
        ("Could not be carried:", &[State::Failed]),
        ("For you to do:", &[State::Manual]),
        ("Not carried:", &[State::Skipped]),
    ];
    for (title, states) in groups {
        let items = report.items.iter();
        let items = items.filter(|item| states.contains(&item.state));
        group(&mut lines, title, items.collect());
    }
    let same = report.count(State::Same);
    if same > 0 {
        let things = if same == 1 { "thing is" } else { "things are" };
        lines.push(format!("\n{same} {things} here already."));
    }
    if report.more > 0 {
        lines.push(format!("{} more are not listed.", report.more));
    }
    lines.join("\n")
}

fn group(lines: &mut Vec<String>, title: &str, mut items: Vec<&Item>) {
    if items.is_empty() {
        return;
    }
    lines.push(format!("\n{title}"));
    let place = |item: &Item| KINDS.iter().position(|kind| *kind == item.kind);
    items.sort_by_key(|item| place(item));
    for item in items.iter().take(MOST_SHOWN) {
        let target = item.target.as_ref();
        let target = target.map_or_else(String::new, |target| format!(" → {target}"));
        let why = item.why.as_ref();
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        lines.push(format!(
            "  {:<13}{}{target}{why}",
            item.kind.as_str(),
            item.source
        ));
    }
    let more = items.len().saturating_sub(MOST_SHOWN);
    if more > 0 {
        lines.push(format!(
            "  and {more} more; `parlor import … --json` lists all"
        ));
    }
}
