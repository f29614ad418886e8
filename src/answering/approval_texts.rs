//! Texts about approvals, for people and models.

use chrono::{Local, TimeZone};
use serde_json::Value;

use crate::channels::Choice;
use crate::domain::{Role, SessionKey};
use crate::records::approvals::{Approval, State};

/// Arguments kept with a row.
const MOST_CHARS: usize = 8_000;
/// Arguments in a message.
const MOST_SHOWN: usize = 1_200;

/// The arguments of a call as people read them, a line for each, with everything invisible made
/// visible.
pub(super) fn arguments(arguments: &Value) -> String {
    let lines = match arguments {
        Value::Object(fields) => {
            let lines = fields.iter();
            let lines =
                lines.map(|(name, value)| format!("{}: {}", visible(name), of_value(value)));
            let lines: Vec<String> = lines.collect();
            lines.join("\n")
        }
        other => of_value(other),
    };
    cut(lines.trim_end(), MOST_CHARS)
}

fn of_value(value: &Value) -> String {
    match value {
        Value::String(text) => visible(text),
        other => visible(&other.to_string()),
    }
}

/// Control characters, and characters that hide or turn round others, are written as their numbers.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\n  "),
            c if is_hidden(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let begin: String = text.chars().take(most).collect();
    format!("{begin}… ({} more characters)", count - most)
}

/// The question, for people. In a place without anybody who may decide, it says who was asked.
pub(super) fn question(
    approval: &Approval,
    agent: &str,
    place: &SessionKey,
    decides: bool,
) -> String {
    let wanted = &approval.wanted;
    let asked = format!("{agent} asks to run {}", call(approval, place));
    let read = wanted.read.below(wanted.role);
    let read = match read.is_empty() {
        true => String::new(),
        false => format!(" It has read {}.", read.in_words()),
    };
    let (who, until) = (deciders(wanted.least), clock(wanted.expires_at));
    let next = match decides {
        true => format!(
            "{who} decides until {until}: `/approve {id}` or `/refuse {id}`. No answer is a no.",
            id = approval.id
        ),
        false => format!("{who} was asked, and decides until {until}. No answer is a no."),
    };
    format!("{asked}\n\nIt asks because {}.{read}\n\n{next}", wanted.why)
}

/// The same message after the end of the approval.
pub(crate) fn ended(approval: &Approval, agent: &str, place: &SessionKey) -> String {
    let asked = format!("{agent} asked to run {}", call(approval, place));
    format!("{asked}\n\n{}", outcome(approval))
}

/// How an approval ended, in a sentence.
pub(crate) fn outcome(approval: &Approval) -> String {
    let by = approval.decider().unwrap_or("somebody");
    match approval.state {
        State::Waiting => format!("It waits until {}.", clock(approval.wanted.expires_at)),
        State::Allowed => format!("Allowed by {by}."),
        State::Refused => format!("Refused by {by}."),
        State::Expired => "Nobody decided in time, so it was not run.".to_owned(),
        State::Cancelled => "The question was taken back, so it was not run.".to_owned(),
    }
}

/// The tool, the person and the arguments. The place is named where it is another one.
fn call(approval: &Approval, shown_in: &SessionKey) -> String {
    let wanted = &approval.wanted;
    let whom = match wanted.person_name.as_str() {
        "" => wanted.person.to_string(),
        name => name.to_owned(),
    };
    let place = match wanted.place == *shown_in {
        true => String::new(),
        false => format!(" in `{}`", wanted.place),
    };
    let tool = visible(&wanted.tool).replace('`', "'");
    let lead = format!("`{tool}` for {whom} ({}){place}", wanted.role);
    match wanted.arguments.is_empty() {
        true => format!("{lead}."),
        false => format!("{lead}:\n\n{}", fenced(&cut(&wanted.arguments, MOST_SHOWN))),
    }
}

/// A block of code that the text cannot end.
fn fenced(text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}\n{text}\n{fence}")
}

fn deciders(least: Role) -> &'static str {
    match least {
        Role::Guest | Role::Member => "A member, an admin or an owner",
        Role::Admin => "An admin or an owner",
        Role::Owner => "An owner",
    }
}

/// The time of day, and the day where it is another one.
pub(crate) fn clock(at: i64) -> String {
    let Some(at) = Local.timestamp_millis_opt(at).single() else {
        return "its end".to_owned();
    };
    match at.date_naive() == Local::now().date_naive() {
        true => at.format("%H:%M").to_string(),
        false => at.format("%-d %B, %H:%M").to_string(),
    }
}

/// The buttons.
pub(crate) fn choices(id: i64) -> Vec<Choice> {
    let choice = |label: &str, command: &str| Choice {
        label: label.to_owned(),
        command: format!("/{command} {id}"),
    };
    vec![choice("Allow", "approve"), choice("Refuse", "refuse")]
}

/// For the model: too many questions are open.
pub(super) fn too_many(tool: &str) -> String {
    format!(
        "The tool `{tool}` was not run: it needs a person's approval, and too many such questions are open already. Go on without it."
    )
}

/// For the model: nobody can be asked.
pub(super) fn nobody(tool: &str, least: Role) -> String {
    format!(
        "The tool `{tool}` was not run: it needs the approval of a person who is at least {}, and no such person can be reached. \
         Go on without it.",
        least.with_article()
    )
}

/// The result of a call that was not allowed, for the model.
pub(super) fn not_allowed(approval: &Approval) -> String {
    let tool = &approval.wanted.tool;
    let why = match approval.state {
        State::Refused => format!("{} said no", approval.decider().unwrap_or("somebody")),
        State::Expired => "it needs a person's approval, and nobody decided in time".to_owned(),
        State::Waiting | State::Allowed | State::Cancelled => {
            "it needs a person's approval, and the question was taken back".to_owned()
        }
    };
    format!(
        "The tool `{tool}` was not run: {why}. Go on without it, and do not ask again for the same."
    )
}

/// The result of a call with other arguments than those that were allowed, for the model.
pub(super) fn other_call(tool: &str) -> String {
    format!("The tool `{tool}` was not run: its arguments are not those that were allowed.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_a_line_each_and_hide_nothing() {
        let check = |value: Value, expected: &str| assert_eq!(arguments(&value), expected);
        check(
            json!({"place": "desk", "count": 3}),
            "place: desk\ncount: 3",
        );
        check(json!({"text": "one\ntwo"}), "text: one\n  two");
        check(
            json!({"text": "a\u{202e}b\u{200b}c\u{7}"}),
            "text: a\\u{202e}b\\u{200b}c\\u{7}",
        );
        check(json!({}), "");
        check(json!("word"), "word");
        let long = arguments(&json!({"text": "x".repeat(MOST_CHARS)}));
        assert!(long.ends_with("… (6 more characters)"), "{long}");
    }

    #[test]
    fn no_text_ends_the_block_it_stands_in() {
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("a\n```\nb"), "````\na\n```\nb\n````");
    }
}
