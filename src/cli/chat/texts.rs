//! The words of `parlor chat` itself: notes, and `/help` with its keys.

use crate::domain::LocalName;
use crate::operations::terminal::{Topic, Who};

/// The greeting beside a gateway that runs for itself.
pub(super) const JOINED: &str =
    "You've joined the gateway that is running; it goes on when you leave.";

/// The greeting beside another chat, whose gateway this chat uses.
pub(super) const BESIDE_A_CHAT: &str =
    "Another `parlor chat` is open on this home; both talk to the same agents.";

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

pub(super) const WAITING: &str = "Waiting for the answer before leaving. Ctrl-C leaves at once.";

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
pub(super) fn left(has_gateway: bool, unsent: usize) -> String {
    let answer = match has_gateway {
        true => "The answer was cut short; it is written anew when you next start `parlor chat`.",
        false => "The gateway goes on with the answer.",
    };
    match unsent {
        0 => answer.to_owned(),
        1 => format!("{answer} 1 line that you typed ahead was not sent."),
        lines => format!("{answer} {lines} lines that you typed ahead were not sent."),
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
        let told = [left(true, 0), left(true, 2), left(false, 1)];
        insta::assert_snapshot!(told.join("\n"), @"
        The answer was cut short; it is written anew when you next start `parlor chat`.
        The answer was cut short; it is written anew when you next start `parlor chat`. 2 lines that you typed ahead were not sent.
        The gateway goes on with the answer. 1 line that you typed ahead was not sent.
        ");
    }
}
