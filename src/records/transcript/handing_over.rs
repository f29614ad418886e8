//! The agent that a conversation is with, as far as its rows tell.

use rusqlite::{Connection, OptionalExtension, params};

use super::Conversation;
use crate::domain::{PersonId, SessionKey};
use crate::routing::places;

/// The agent that a conversation is with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct With {
    /// The id of the agent.
    pub(crate) agent: String,
    /// The inbox row of the agent's last answer. Absent after a handoff.
    pub(crate) answer_to: Option<i64>,
}

/// The agent that a conversation is with: the agent of the last answer, and of the handoffs since
/// its question came. A switch during an answer stands above the answer in the transcript. With
/// `people`, only answers to them count, because others in the place may have another agent. None
/// without an answer.
pub(crate) fn current_agent(
    connection: &Connection,
    place: &SessionKey,
    conversation: Conversation,
    people: Option<&[PersonId]>,
) -> rusqlite::Result<Option<With>> {
    let place = places::id(connection, place)?;
    let people = people.map(|people| {
        let ids: Vec<String> = people.iter().map(PersonId::to_string).collect();
        serde_json::json!(ids).to_string()
    });
    let mut last = connection.prepare_cached(
        "SELECT messages.id, coalesce(archived_id, slug), inbox_id FROM messages JOIN agents ON uid = agent_uid
         WHERE place_id = ?1 AND conversation = ?2 AND kind = 'agent'
           AND (?3 IS NULL OR person IN (SELECT value FROM json_each(?3)))
         ORDER BY messages.id DESC LIMIT 1",
    )?;
    let found = last.query_row(params![place, conversation.0, people], |row| {
        let with = With {
            agent: row.get(1)?,
            answer_to: row.get(2)?,
        };
        Ok((row.get::<_, i64>(0)?, with))
    });
    let Some((id, mut with)) = found.optional()? else {
        return Ok(None);
    };
    let mut since = connection.prepare_cached(
        "SELECT text FROM messages WHERE place_id = ?1 AND conversation = ?2
           AND (id > ?3 OR created_at > (SELECT received_at FROM inbox WHERE inbox.id = ?4))
           AND kind = 'handoff' AND part_uid IS NULL ORDER BY messages.id",
    )?;
    let lines = since.query_map(params![place, conversation.0, id, with.answer_to], |row| {
        row.get::<_, String>(0)
    })?;
    for line in lines {
        // A handoff from another agent was for other people.
        if let Some((from, to)) = handoff(&line?)
            && from == with.agent
        {
            with = With {
                agent: to,
                answer_to: None,
            };
        }
    }
    Ok(Some(with))
}

/// The agents of a line such as `from main to rose`.
fn handoff(line: &str) -> Option<(String, String)> {
    let line = line.strip_prefix("handed over ").unwrap_or(line);
    let (from, rest) = line.strip_prefix("from ")?.split_once(" to ")?;
    let to = rest.split_whitespace().next()?;
    Some((from.to_owned(), to.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handoffs_are_told_from_other_lines() {
        let check = |line: &str, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(from, to)| (from.to_owned(), to.to_owned()));
            assert_eq!(handoff(line), expected, "{line}");
        };
        check("from main to rose", Some(("main", "rose")));
        check(
            "handed over from main to rose by config.toml",
            Some(("main", "rose")),
        );
        check("stopped before it was answered", None);
        check("from here on", None);
    }
}
