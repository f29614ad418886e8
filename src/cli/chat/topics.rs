//! Places and topics of the terminal as people call them, and the chat's own words about them.

use std::path::Path;

use super::host::Host;
use crate::cli::Failure;
use crate::domain::{LocalName, SessionKey};
use crate::operations::terminal::Topic;

pub(in crate::cli) fn place(room: &str, topic: Option<&str>) -> Result<SessionKey, Failure> {
    let name = |what: &str, text: &str| {
        text.parse::<LocalName>().map_err(|()| {
            Failure::WrongUse(format!(
                "a {what} is written with a-z, 0-9, - and _, not `{text}`"
            ))
        })
    };
    let topic = topic.map(|topic| name("topic", topic)).transpose()?;
    Ok(SessionKey::Local {
        room: name("room", room)?,
        topic,
    })
}

pub(super) fn prompt(place: &SessionKey) -> String {
    match place {
        SessionKey::Local {
            topic: Some(topic), ..
        } => format!("{topic} › "),
        _ => "› ".to_owned(),
    }
}

/// A place as people at the terminal call it.
pub(super) fn place_name(place: &SessionKey) -> String {
    match place {
        SessionKey::Local {
            topic: Some(topic), ..
        } => format!("the topic {topic}"),
        SessionKey::Local { topic: None, .. } => "the main chat".to_owned(),
        elsewhere => elsewhere.to_string(),
    }
}

/// The first lines: where the home is, who listens, and who is in the topics.
pub(super) async fn welcome(
    host: &Host,
    place: &SessionKey,
    created: Option<&Path>,
) -> Result<Vec<String>, Failure> {
    let listens = host.who_answers(place).await?;
    let topics = host.topics(place).await?;
    let others = host.agent_ids().await?.len() > 1;
    let home =
        created.map(|home| format!("A home for your agents was made in {}.", home.display()));
    let greeting = greeting(&listens, &topics, others);
    let joined = host.is_joined().then(|| JOINED.to_owned());
    Ok(home.into_iter().chain(joined).chain([greeting]).collect())
}

/// Topics whose agent listens here anyway are no news.
fn greeting(listens: &str, topics: &[Topic], has_others: bool) -> String {
    let elsewhere: Vec<String> = topics
        .iter()
        .filter(|topic| topic.agent != listens)
        .take(MOST_GREETED)
        .map(|topic| format!("/topic {} has {}", topic.name, topic.agent))
        .collect();
    let others = match (elsewhere.as_slice(), has_others) {
        ([], false) => String::new(),
        ([], true) => " /agents lists the others.".to_owned(),
        ([one], _) => format!(" {one}."),
        ([before @ .., last], _) => format!(" {} and {last}.", before.join(", ")),
    };
    format!("{listens} listens: just write.{others} /help lists the commands, /quit leaves.")
}

/// Topics in the greeting; /topics lists all.
const MOST_GREETED: usize = 4;

/// The words after a walk to another topic.
pub(super) async fn arrived(host: &Host, place: &SessionKey) -> Result<String, Failure> {
    let answers = host.who_answers(place).await?;
    Ok(match place {
        SessionKey::Local {
            topic: Some(topic), ..
        } => format!("You're in {topic} now. {answers} answers here."),
        _ => format!("You're back in the main chat. {answers} answers here."),
    })
}

/// The reply to /topics.
pub(super) async fn topic_list(host: &Host, here: &SessionKey) -> Result<Vec<String>, Failure> {
    let topics = host.topics(here).await?;
    if topics.is_empty() {
        return Ok(vec![NO_TOPICS.to_owned()]);
    }
    let is_here = |name: &str| matches!(here, SessionKey::Local { topic: Some(topic), .. } if topic.as_str() == name);
    let line = |topic: &Topic| {
        let mark = if is_here(&topic.name) {
            " ← you're here"
        } else {
            ""
        };
        format!("/topic {}: {}{mark}", topic.name, topic.agent)
    };
    Ok(topics.iter().map(line).collect())
}

const JOINED: &str = "You've joined the gateway that is running; it goes on when you leave.";

const NO_TOPICS: &str = "There are no topics yet. /topic NAME makes one.";

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
    ("Ctrl-D", "leave"),
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

pub(super) const NEXT_LINE: &str = "Your next line is being answered now; Ctrl-C stops that too.";

pub(super) const LEAVE_HINT: &str = "Press Ctrl-C again or Ctrl-D to leave.";

pub(super) const SUMMING_UP: &str =
    "The conversation is being summed up; this takes ten seconds at most.";

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, agent: &str) -> Topic {
        Topic {
            name: name.into(),
            agent: agent.into(),
        }
    }

    #[test]
    fn the_greeting_names_what_is_there() {
        let check = |topics: &[Topic], others, expected: &str| {
            assert_eq!(greeting("☕ Main", topics, others), expected);
        };
        check(
            &[],
            false,
            "☕ Main listens: just write. /help lists the commands, /quit leaves.",
        );
        check(
            &[],
            true,
            "☕ Main listens: just write. /agents lists the others. /help lists the commands, /quit leaves.",
        );
        check(
            &[topic("shed", "☕ Main"), topic("writing", "🌹 Rose")],
            true,
            "☕ Main listens: just write. /topic writing has 🌹 Rose. /help lists the commands, /quit leaves.",
        );
        check(
            &[topic("writing", "🌹 Rose"), topic("code", "🛠️ Ada")],
            true,
            "☕ Main listens: just write. /topic writing has 🌹 Rose and /topic code has 🛠️ Ada. /help lists the commands, /quit leaves.",
        );
    }
}
