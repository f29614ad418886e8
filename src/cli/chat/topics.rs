//! Places and topics of the terminal as people call them, and the chat's own words about them.

use std::path::Path;

use super::host::Host;
use super::texts;
use crate::cli::Failure;
use crate::domain::{LocalName, SessionKey};
use crate::operations::terminal::{Topic, Who};

pub(in crate::cli) fn place(room: &str, topic: Option<&str>) -> Result<SessionKey, Failure> {
    let name = |what: &str, text: &str| {
        text.parse::<LocalName>().map_err(|()| {
            let near = nearest_name(text);
            let such = near.map_or_else(String::new, |near| format!(", such as `{near}`"));
            Failure::WrongUse(format!(
                "a {what} is written with a-z, 0-9, - and _{such}, not `{text}`"
            ))
        })
    };
    let topic = topic.map(|topic| name("topic", topic)).transpose()?;
    Ok(SessionKey::Local {
        room: name("room", room)?,
        topic,
    })
}

/// The place of a topic in the same room. The error offers a name that would do.
pub(super) fn beside(here: &SessionKey, topic: Option<&str>) -> Result<SessionKey, String> {
    let SessionKey::Local { room, .. } = here else {
        return Ok(here.clone());
    };
    let topic = match topic.map(|name| (name, name.parse::<LocalName>())) {
        None => None,
        Some((_, Ok(topic))) => Some(topic),
        Some((name, Err(()))) => return Err(texts::no_topic_name(name, nearest_name(name))),
    };
    Ok(SessionKey::Local {
        room: room.clone(),
        topic,
    })
}

/// The name of a place that comes nearest to what a person wrote.
fn nearest_name(text: &str) -> Option<LocalName> {
    let lower = text.to_lowercase();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let words = lower.split(|c| !plain(c)).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-");
    // A rest that nobody would recognize is no offer.
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let is_like_it = letters(&name) * 4 >= letters(text) * 3;
    name.parse().ok().filter(|_| is_like_it)
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
    let joined = match (host.is_joined(), host.ends_with_a_chat()) {
        (false, _) => None,
        (true, false) => Some(texts::JOINED.to_owned()),
        (true, true) => Some(texts::BESIDE_A_CHAT.to_owned()),
    };
    Ok(home.into_iter().chain(joined).chain([greeting]).collect())
}

/// Topics whose agent listens here anyway are no news.
fn greeting(listens: &Who, topics: &[Topic], has_others: bool) -> String {
    let elsewhere: Vec<String> = topics
        .iter()
        .filter(|topic| topic.agent.label != listens.label)
        .filter_map(|topic| Some((topic.name.as_ref()?, topic)))
        .take(MOST_GREETED)
        .map(|(name, topic)| format!("/topic {name} has {}", topic.agent.label))
        .collect();
    let others = match (elsewhere.as_slice(), has_others) {
        ([], false) => String::new(),
        ([], true) => " /agents lists the others.".to_owned(),
        ([one], _) => format!(" {one}."),
        ([before @ .., last], _) => format!(" {} and {last}.", before.join(", ")),
    };
    let here = match listens.is_paused {
        true => texts::paused(listens),
        false => format!("{} listens: just write.", listens.label),
    };
    format!("{here}{others} /help lists the commands, /quit leaves.")
}

/// Topics in the greeting; /topics lists all.
const MOST_GREETED: usize = 4;

/// The words after a walk to another topic.
pub(super) async fn arrived(host: &Host, place: &SessionKey) -> Result<String, Failure> {
    let who = host.who_answers(place).await?;
    let answers = match who.is_paused {
        true => texts::paused(&who),
        false => format!("{} answers here.", who.label),
    };
    Ok(match place {
        SessionKey::Local {
            topic: Some(topic), ..
        } => format!("You're in {topic} now. {answers}"),
        _ => format!("You're back in the main chat. {answers}"),
    })
}

/// The reply to /topics: the main chat, then all topics.
pub(super) async fn topic_list(host: &Host, here: &SessionKey) -> Result<Vec<String>, Failure> {
    let topics = host.topics(here).await?;
    let line = |topic: &Topic| texts::topic(topic, is_here(topic.name.as_deref(), here));
    let mut lines: Vec<String> = topics.iter().map(line).collect();
    if lines.len() == 1 {
        lines.push(texts::NO_TOPICS.to_owned());
    }
    Ok(lines)
}

fn is_here(name: Option<&str>, here: &SessionKey) -> bool {
    match here {
        SessionKey::Local { topic, .. } => topic.as_ref().map(LocalName::as_str) == name,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::AgentId;

    fn who(label: &str) -> Who {
        Who {
            id: AgentId::parse("main").expect("an id"),
            label: label.into(),
            is_paused: false,
        }
    }

    fn topic(name: &str, agent: &str) -> Topic {
        Topic {
            name: Some(name.into()),
            agent: who(agent),
        }
    }

    #[test]
    fn names_that_are_none_have_a_nearest_one() {
        let near = |text| nearest_name(text).map(|name| name.to_string());
        assert_eq!(near("Bee Keeping").as_deref(), Some("bee-keeping"));
        assert_eq!(near("  a/b  c! ").as_deref(), Some("a-b-c"));
        assert_eq!(near("Größere Dinge").as_deref(), Some("gr-ere-dinge"));
        assert_eq!(near("Größe"), None, "nobody would know it again");
        assert_eq!(near("Ünï"), None);
        assert_eq!(near("日本"), None);
    }

    #[test]
    fn the_greeting_names_what_is_there() {
        let check = |topics: &[Topic], others, expected: &str| {
            assert_eq!(greeting(&who("☕ Main"), topics, others), expected);
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
