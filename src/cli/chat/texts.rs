//! The words of `parlor chat` itself: notes, and `/help` with its keys.

use crate::domain::LocalName;
use crate::operations::terminal::{Topic, Who};

/// The greeting beside a gateway that runs for itself.
pub(super) const JOINED: &str =
    "You've joined the gateway that is running; it goes on when you leave.";

/// The greeting beside another chat, whose gateway this chat uses.
pub(super) const BESIDE_A_CHAT: &str =
    "Another `parlor chat` is open on this home; both talk to the same agents.";

/// A line of an earlier chat that is being answered now. `elsewhere` is the place, if the person is
/// not there.
pub(super) fn taken_up(elsewhere: Option<&str>, line: &str) -> String {
    let place = elsewhere.map_or_else(String::new, |place| format!(" in {place}"));
    format!("Answering what you asked before{place}: {}", quoted(line))
}

/// The beginning of a line, in quotation marks.
fn quoted(line: &str) -> String {
    let mut all = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = all.char_indices().nth(MOST_QUOTED) {
        all.truncate(end);
        all.push('…');
    }
    format!("“{all}”")
}

const MOST_QUOTED: usize = 60;

/// The heading of a message of another place.
pub(super) fn from_elsewhere(place: &str) -> String {
    format!("In {place}:")
}

/// A stop where nothing is written.
pub(super) fn written_elsewhere(agent: &str, place: &str) -> String {
    format!("{agent} is writing in {place}; Ctrl-C stops that.")
}

pub(super) const TAKES_NO_MORE: &str = "The gateway takes no more messages.";

/// A line typed while the other chat ends.
pub(super) const SENT_LATER: &str = "The other chat is ending; your line is sent right after.";

/// A line typed while the gateway stops.
pub(super) const STOPPING: &str = "The gateway is stopping and takes no more lines.";

/// The end of a chat whose gateway has stopped.
pub(super) fn gateway_stopped(is_answered: bool, unsent: &[&str]) -> String {
    let rest = match is_answered {
        true => " `parlor chat` goes on without a gateway.",
        false => " What is not answered yet is answered after the next start.",
    };
    let stopped = format!("The gateway has stopped, and this chat ends with it.{rest}");
    match not_sent(unsent) {
        Some(lines) => format!("{stopped} {lines}"),
        None => stopped,
    }
}

/// The lines that nobody has.
fn not_sent(lines: &[&str]) -> Option<String> {
    let quotes: Vec<String> = lines.iter().map(|line| quoted(line)).collect();
    match quotes.as_slice() {
        [] => None,
        [one] => Some(format!("1 line was not sent: {one}.")),
        [before @ .., last] => Some(format!(
            "{} lines were not sent: {} and {last}.",
            lines.len(),
            before.join(", ")
        )),
    }
}

/// The other chat has ended.
pub(super) const TAKEN_OVER: &str = "The other chat has ended; this one goes on by itself.";

pub(super) const NO_TOPICS: &str = "There are no topics yet. /topic NAME makes one.";

/// A line of /topics.
pub(super) fn topic(topic: &Topic, is_here: bool) -> String {
    let place = match &topic.name {
        Some(name) => format!("/topic {name}"),
        None => "/topic (the main chat)".to_owned(),
    };
    let paused = if topic.agent.is_paused {
        " (paused)"
    } else {
        ""
    };
    let mark = if is_here { " ← you're here" } else { "" };
    format!("{place}: {}{paused}{mark}", topic.agent.label)
}

/// Words with capitals and spaces are no name of a topic.
pub(super) fn no_topic_name(name: &str, near: Option<LocalName>) -> String {
    let rule = format!("`{name}` can't be a topic: its name is written with a-z, 0-9, - and _.");
    match near {
        Some(near) => format!("{rule} /topic {near} would do."),
        None => rule,
    }
}

/// The agent of a place answers nothing at present.
pub(super) fn paused(who: &Who) -> String {
    let Who { id, label, .. } = who;
    format!("{label} is paused: lines wait until /agent resume {id}.")
}

pub(super) const NEXT_LINE: &str = "Your next line is being answered now; Ctrl-C stops that too.";

pub(super) const LEAVE_HINT: &str = "Press Ctrl-C again or Ctrl-D to leave.";

pub(super) const WAITING: &str =
    "Waiting for the answer before leaving. Ctrl-C or Ctrl-D leaves at once.";

pub(super) const SUMMING_UP: &str =
    "The conversation is being summed up; this takes ten seconds at most.";

/// Lines that were typed ahead and never sent.
pub(super) fn dropped(lines: usize) -> Option<String> {
    match lines {
        0 => None,
        1 => Some("1 line that you typed ahead is dropped.".to_owned()),
        lines => Some(format!("{lines} lines that you typed ahead are dropped.")),
    }
}

/// The last words of a person who did not wait. `has_gateway`: the answers end with this chat.
pub(super) fn left(has_gateway: bool, unsent: &[&str]) -> String {
    let answer = match has_gateway {
        true => "The answer was cut short; it is written anew when you next start `parlor chat`.",
        false => "The gateway goes on with the answer.",
    };
    match not_sent(unsent) {
        Some(lines) => format!("{answer} {lines}"),
        None => answer.to_owned(),
    }
}

/// `/help`: what a person needs first, in groups.
pub(super) const HELP: &str = "\
Just write. Lines you type while an answer is being written wait for their turn.

**Who answers**
/agents: everyone, and who answers here
/agent `NAME`: switch to another agent; /agent `reset` undoes that
/topic `NAME`: go to a topic; /topic alone goes back, /topics lists them

**This conversation**
/new: start a fresh conversation
/stop: cancel the answer, as Ctrl-C does
/status: what is going on here

**What the agent knows**
/memory, /remember `TEXT`, /forget `WORDS`
/skills: what the agent can do

**Leaving**
/quit or Ctrl-D; Ctrl-C twice does it too

/help `all` lists every command and key.";

/// The terminal's own commands and keys, added to the gateway's list.
pub(super) fn here_too() -> String {
    let line = |(what, does): (&str, &str)| format!("{what}: {does}");
    let lines = |all: &[(&str, &str)]| all.iter().copied().map(line).collect::<Vec<_>>().join("\n");
    format!(
        "**Only in this terminal**\n{}\n\n**Keys**\n{}",
        lines(&OWN_COMMANDS),
        lines(&KEYS)
    )
}

const OWN_COMMANDS: [(&str, &str); 3] = [
    (
        "/topic `[name]`",
        "go to another topic; without a name, back to the main chat",
    ),
    ("/topics", "all topics, and who answers there"),
    ("/quit", "leave; /exit does the same"),
];

const KEYS: [(&str, &str); 6] = [
    (
        "Ctrl-C",
        "clear the line; on an empty line, stop the answer; when nothing is being written, press twice to leave",
    ),
    ("Ctrl-D", "leave, after the answer that is being written"),
    ("Tab", "complete a command, an agent or a topic"),
    (
        "↑ and ↓",
        "your earlier lines, from earlier chats too; Ctrl-R searches them",
    ),
    (
        "Enter",
        "send, also while an answer is being written; lines wait for their turn",
    ),
    ("Paste", "several lines at once are one message"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_who_do_not_wait_are_told_what_becomes_of_their_lines() {
        let told = [
            left(true, &[]),
            left(true, &["/agent rose", "a  long\nline"]),
            left(false, &["one"]),
            gateway_stopped(true, &[]),
            gateway_stopped(false, &["one", "two", "three"]),
        ];
        insta::assert_snapshot!(told.join("\n"), @"
        The answer was cut short; it is written anew when you next start `parlor chat`.
        The answer was cut short; it is written anew when you next start `parlor chat`. 2 lines were not sent: “/agent rose” and “a long line”.
        The gateway goes on with the answer. 1 line was not sent: “one”.
        The gateway has stopped, and this chat ends with it. `parlor chat` goes on without a gateway.
        The gateway has stopped, and this chat ends with it. What is not answered yet is answered after the next start. 3 lines were not sent: “one”, “two” and “three”.
        ");
    }

    #[test]
    fn lines_from_before_are_quoted_in_short() {
        assert_eq!(
            taken_up(None, "a slow\nstory"),
            "Answering what you asked before: “a slow story”"
        );
        let told = taken_up(Some("the topic code"), &"word ".repeat(30));
        assert!(told.starts_with("Answering what you asked before in the topic code: “word word"));
        assert!(told.ends_with("…”"), "{told}");
    }
}
