//! Sessions and transcripts for people.
//!
//! Words of a message are indented or quoted, so that nobody's words look like the head of another
//! message.

use std::fmt::Write;

use crate::cli::Failure;
use crate::cli::table::{Column, table};
use crate::operations::ignored_list::{Ignored, Now};
use crate::operations::named::Named;
use crate::operations::session_list::Listed;
use crate::operations::session_state::{
    LastTurn, ModelOverride, PinState, SessionState, Unfinished,
};
use crate::operations::transcripts::{Hit, Kind, Line};
use crate::routing;

/// Letters of a message that a search shows.
const SHOWN_CHARS: usize = 300;
/// People that a row of the list names.
const MOST_PEOPLE: usize = 3;

pub(super) fn list(sessions: &[Listed]) -> String {
    if sessions.is_empty() {
        return "There are no such sessions.".into();
    }
    let columns = [
        Column::Words("PLACE"),
        Column::Words("AGENT"),
        Column::Words("PEOPLE"),
        Column::Number("MESSAGES"),
        Column::Words("LAST"),
        Column::Words("OPEN"),
    ];
    let row = |session: &Listed| {
        [
            session.place.text(),
            match session.silence {
                Some(silence) => format!("nobody: {}", because(silence)),
                None => format!("{}: {}", session.agent.text(), short(&session.rule)),
            },
            people(&session.people),
            session.messages.to_string(),
            session
                .last_active_at
                .map_or_else(|| "-".to_owned(), |at| at.to_string()),
            open([
                session.waiting,
                session.unanswered,
                session.undelivered,
                session.unsent,
            ])
            .unwrap_or_else(|| "-".into()),
        ]
    };
    table(columns, sessions.iter().map(row).collect())
}

/// The rule without the place, which stands beside it anyway: `config.toml line 27: exact topic`.
fn short(rule: &str) -> String {
    if rule.starts_with("pin") {
        return "pin".into();
    }
    if rule == "default_agent" {
        return "default agent".into();
    }
    let is_place = |word: &&str| word.trim_end_matches(':').contains(':');
    let words = rule.split(' ').take_while(|word| !is_place(word));
    words.collect::<Vec<_>>().join(" ")
}

fn people(people: &[Named]) -> String {
    let mut names: Vec<String> = people.iter().take(MOST_PEOPLE).map(Named::text).collect();
    match people.len().saturating_sub(MOST_PEOPLE) {
        0 => {}
        more => names.push(format!("{more} more")),
    }
    match names.is_empty() {
        true => "-".into(),
        false => names.join(", "),
    }
}

/// Why nobody answers.
fn because(silence: &str) -> &'static str {
    match silence {
        "not_let_in" => "not let in",
        "private_chats_closed" => "private chats are closed",
        _ => "no rule opens it",
    }
}

/// Places with ignored messages.
pub(super) fn ignored(ignored: &[Ignored]) -> String {
    if ignored.is_empty() {
        return "No message was ignored.".into();
    }
    let columns = [
        Column::Words("PLACE"),
        Column::Words("IGNORED BECAUSE"),
        Column::Number("MESSAGES"),
        Column::Words("LAST"),
        Column::Words("NOW"),
    ];
    let row = |ignored: &Ignored| {
        let agent = ignored.agent.as_ref();
        let agent = agent.map(|agent| agent.name.as_ref().unwrap_or(&agent.id));
        let now = match (ignored.now, agent) {
            (Now::Open, Some(agent)) => format!("open, {agent}"),
            (Now::Open, None) => "open".to_owned(),
            (Now::Closed, _) => "closed".to_owned(),
            (Now::Depends, _) => "depends on the writer".to_owned(),
        };
        [
            ignored.place.text(),
            ignored.reason.clone(),
            ignored.messages.to_string(),
            ignored.last_at.to_string(),
            now,
        ]
    };
    table(columns, ignored.iter().map(row).collect())
}

/// `1 waiting, 2 undelivered`; none where nothing is open.
fn open(counts: [i64; 4]) -> Option<String> {
    let words = ["waiting", "unanswered", "undelivered", "to be sent"];
    let parts = counts.into_iter().zip(words);
    let parts = parts.filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `1 message`.
pub(super) fn messages(count: usize) -> String {
    match count {
        1 => "1 message".into(),
        count => format!("{count} messages"),
    }
}

/// The head of a session, a line for each fact. `told` says who answers, where that is known.
pub(super) fn state(state: &SessionState, told: Option<&str>) -> String {
    let agent = || {
        let (agent, rule) = (state.agent.text(), &state.rule);
        format!("agent: {agent}, {}", because_of(rule, state))
    };
    let facts = [
        Some(state.place.text()),
        Some(told.map_or_else(agent, str::to_owned)),
        state.pin.as_ref().map(pin),
        state
            .opened
            .as_ref()
            .map(|opened| format!("opened: by {} on {}", opened.by.text(), opened.at)),
        state
            .locked
            .then(|| "locked: only owners and admins may use /agent here".to_owned()),
        state
            .require_mention
            .map(|required| format!("require_mention: {required}")),
        Some(format!("model: {}", state.model)),
        state.model_override.as_ref().map(model),
        Some(format!(
            "conversation: {}, {}",
            state.conversation,
            messages(usize::try_from(state.messages).unwrap_or(0))
        )),
        (!state.people.is_empty()).then(|| format!("people: {}", people(&state.people))),
        Some(format!("first seen: {}", state.first_seen_at)),
        state.last_active_at.map(|at| format!("last active: {at}")),
        open([
            state.waiting,
            state.unanswered,
            state.undelivered,
            state.unsent,
        ])
        .map(|open| format!("open: {open}")),
    ];
    let unfinished = state.unfinished.iter().map(unfinished);
    let last = state.last_turn.iter();
    let last = last.map(|turn| last_turn(turn, state));
    let facts = facts.into_iter().flatten().chain(unfinished).chain(last);
    facts.collect::<Vec<_>>().join("\n")
}

fn pin(pin: &PinState) -> String {
    let once = if pin.once { " for one message" } else { "" };
    let counts = if pin.counts {
        ""
    } else {
        "; it does not count: the agent is gone or not open to the people here"
    };
    format!(
        "pin: {}{once}, set by {} on {}{counts}",
        pin.agent.text(),
        pin.set_by.text(),
        pin.set_at
    )
}

fn model(chosen: &ModelOverride) -> String {
    let counts = if chosen.counts {
        ""
    } else {
        "; it does not count: the agent may not use it any more"
    };
    format!(
        "model override: {}, set by {} on {}{counts}",
        chosen.model,
        chosen.set_by.text(),
        chosen.set_at
    )
}

fn unfinished(turn: &Unfinished) -> String {
    let state = if turn.parked { "parked" } else { "unfinished" };
    format!(
        "{state} turn: {} since {}, called {}",
        turn.agent.text(),
        turn.started_at,
        turn.tools.join(", ")
    )
}

/// The rule for people, with the names that the session knows.
fn because_of(rule: &str, state: &SessionState) -> String {
    let setter = state.pin.iter().map(|pin| &pin.set_by);
    let known: Vec<&Named> = setter.chain(&state.people).collect();
    routing::because(rule, &|id| {
        let named = known.iter().find(|named| named.id == id);
        named.map_or_else(|| id.to_owned(), |named| named.text())
    })
}

fn last_turn(turn: &LastTurn, state: &SessionState) -> String {
    let agent = turn
        .agent
        .as_ref()
        .map_or("an agent that is gone".into(), Named::text);
    format!(
        "last turn: {agent} with {}, {}, {}, {}",
        turn.model,
        turn.outcome,
        turn.ended_at,
        because_of(&turn.rule, state)
    )
}

/// Who said what, oldest first.
pub(super) fn transcript(lines: &[Line]) -> Result<String, Failure> {
    if lines.is_empty() {
        return Ok("Nothing has been said since the last /new.".into());
    }
    let mut parts = Vec::new();
    let mut conversation = lines.first().map(|line| line.conversation);
    for line in lines {
        if conversation.replace(line.conversation) != Some(line.conversation) {
            parts.push(format!("--- conversation {} ---", line.conversation));
        }
        parts.push(one(line)?);
    }
    Ok(parts.join("\n\n"))
}

fn one(line: &Line) -> Result<String, Failure> {
    let mut text = match line.kind {
        Kind::Handoff | Kind::Gateway => {
            return Ok(format!(
                "{} · {}\n{}{}",
                line.writer(),
                line.at,
                indented(&line.words()),
                raw(line)?
            ));
        }
        Kind::Person | Kind::Agent => format!("{} · {}", line.writer(), line.at),
    };
    for tool in &line.tools {
        // Writing to a text cannot fail.
        let _ = write!(text, "\n  (called {tool})");
    }
    Ok(format!("{text}\n{}{}", indented(&line.words()), raw(line)?))
}

fn raw(line: &Line) -> Result<String, Failure> {
    Ok(match &line.raw {
        Some(raw) => format!("\n  raw: {}", serde_json::to_string(raw)?),
        None => String::new(),
    })
}

fn indented(words: &str) -> String {
    let lines = words.lines().map(|line| format!("  {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The transcript as a page.
pub(super) fn markdown(state: &SessionState, lines: &[Line]) -> Result<String, Failure> {
    let mut text = format!(
        "# {}\n\nAgent: {}\n",
        state.place.text(),
        state.agent.text()
    );
    let mut conversation = None;
    for line in lines {
        if conversation.replace(line.conversation) != Some(line.conversation) {
            let _ = write!(text, "\n## Conversation {}\n", line.conversation);
        }
        let _ = write!(text, "\n### {} · {}\n\n", line.writer(), line.at);
        for tool in &line.tools {
            let _ = write!(text, "*called {tool}*\n\n");
        }
        for words in line.words().lines() {
            let _ = writeln!(text, "{}", format!("> {words}").trim_end());
        }
        if let Some(raw) = &line.raw {
            let raw = serde_json::to_string_pretty(raw)?;
            let _ = write!(text, "\n{}\n", fenced(&raw));
        }
    }
    Ok(text)
}

/// JSON in a fence that no text inside can close.
fn fenced(json: &str) -> String {
    let longest = json.split(|letter| letter != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{fence}json\n{json}\n{fence}")
}

pub(super) fn json_lines(lines: &[Line]) -> Result<String, Failure> {
    let lines: Result<Vec<String>, _> = lines.iter().map(serde_json::to_string).collect();
    Ok(lines?.join("\n"))
}

/// Messages that were found.
pub(super) fn hits(hits: &[Hit]) -> String {
    if hits.is_empty() {
        return "Nothing with these words was said.".into();
    }
    let one = |hit: &Hit| {
        let words = hit.line.words();
        let cut: String = words.chars().take(SHOWN_CHARS).collect();
        let dots = if cut.len() < words.len() { " …" } else { "" };
        format!(
            "{} · {} · {}\n{}{dots}",
            hit.place.text(),
            hit.line.writer(),
            hit.line.at,
            indented(&cut)
        )
    };
    hits.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_shortened_where_the_place_stands_beside_them() {
        let check = |rule, expected: &str| assert_eq!(short(rule), expected);
        check(
            "config.toml line 49: exact topic telegram:topic:-100:7",
            "config.toml line 49: exact topic",
        );
        check(
            "config.toml line 27: group telegram:group:-100",
            "config.toml line 27: group",
        );
        check("pin set by telegram:5", "pin");
        check("default_agent", "default agent");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_it() {
        assert!(fenced("{}").starts_with("```json\n"));
        assert!(fenced("{\"text\":\"````\"}").starts_with("`````json\n"));
    }
}
