//! What happened in the house, as a stream that can be taken up again: messages of conversations,
//! ended turns and changes. Read from their tables, so nothing is missed between two looks.

use rusqlite::Connection;
use serde::Serialize;
use serde_json::{Value, json};

use super::house::House;
use super::named::{Moment, Named};
use super::{Operations, Refusal};
use crate::domain::SessionKey;
use crate::records::approvals::{self, Approval};
use crate::records::{audit, transcript, turn_log};

/// Rows of each kind in one look.
const PORTION: u32 = 100;

/// How far a reader has come: the last row of each table. Its text form is the id of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    message: i64,
    turn: i64,
    change: i64,
    approval: i64,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Position {
            message,
            turn,
            change,
            approval,
        } = self;
        write!(f, "{message}-{turn}-{change}-{approval}")
    }
}

impl std::str::FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text
            .split('-')
            .map(|part| part.parse::<i64>().ok().filter(|id| *id >= 0));
        let position = Position {
            message: parts.next().flatten().ok_or(())?,
            turn: parts.next().flatten().ok_or(())?,
            change: parts.next().flatten().ok_or(())?,
            // An id of an earlier version has no fourth number.
            approval: parts.next().map_or(Ok(0), |part| part.ok_or(()))?,
        };
        parts.next().map_or(Ok(position), |_| Err(()))
    }
}

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Happening {
    /// The position behind it.
    #[serde(skip)]
    pub(crate) position: Position,
    /// message, turn, change or approval.
    #[serde(skip)]
    pub(crate) kind: &'static str,
    pub(crate) at: Moment,
    pub(crate) place: Option<Named>,
    #[serde(flatten)]
    pub(crate) facts: Value,
}

/// Behind everything that has happened so far.
pub(crate) async fn now(operations: &Operations) -> Result<Position, Refusal> {
    let read = |connection: &Connection| {
        Ok(Position {
            message: transcript::newest_id(connection)?,
            turn: turn_log::newest_id(connection)?,
            change: audit::newest_id(connection)?,
            approval: approvals::newest_id(connection)?,
        })
    };
    Ok(operations.db.read(read).await?)
}

/// What has happened since then, oldest first within each kind, and at most a portion of each.
pub(crate) async fn since(
    operations: &Operations,
    mut position: Position,
) -> Result<Vec<Happening>, Refusal> {
    let unchanged = now(operations).await?;
    if unchanged == position {
        return Ok(Vec::new());
    }
    let house = operations.house().await?;
    let read = move |connection: &Connection| {
        let mut all = Vec::new();
        for row in transcript::rows_after(connection, position.message, PORTION)? {
            position.message = row.id;
            let agent = row.agent.and_then(|uid| house.agent_of(uid));
            all.push(Happening {
                position,
                kind: "message",
                at: Moment(row.at),
                place: row.place.as_deref().map(|key| place(&house, key)),
                facts: json!({
                    "id": row.id,
                    "conversation": row.conversation,
                    "from": row.kind,
                    "agent": agent.map(|id| house.agent(id)),
                    "person": row.person.and_then(|id| id.parse().ok()).map(|id| house.names.person(&id)),
                }),
            });
        }
        for row in turn_log::rows_after(connection, position.turn, PORTION)? {
            position.turn = row.id;
            let agent = house.agent_of(row.agent);
            all.push(Happening {
                position,
                kind: "turn",
                at: Moment(row.ended_at),
                place: row.place.as_deref().map(|key| place(&house, key)),
                facts: json!({
                    "id": row.id,
                    "agent": agent.map(|id| house.agent(id)),
                    "model": row.model,
                    "rule": row.route,
                    "outcome": row.outcome,
                    "took_ms": row.ended_at - row.started_at,
                    "input_tokens": row.usage.input_tokens,
                    "output_tokens": row.usage.output_tokens,
                }),
            });
        }
        for row in audit::after(connection, position.change, PORTION)? {
            position.change = row.id;
            all.push(Happening {
                position,
                kind: "change",
                at: Moment(row.at),
                place: row.place.as_deref().map(|key| place(&house, key)),
                facts: json!({
                    "id": row.id,
                    "by": Named::new(&row.actor, row.name.as_deref()),
                    "action": row.action,
                    "agent": row.agent,
                    "subject": row.subject,
                    "before": row.before,
                    "after": row.after,
                }),
            });
        }
        for row in approvals::after(connection, position.approval, PORTION)? {
            position.approval = row.id;
            all.push(asked(&house, position, &row));
        }
        Ok(all)
    };
    Ok(operations.db.read(read).await?)
}

/// People were asked about a call.
fn asked(house: &House, position: Position, row: &Approval) -> Happening {
    let agent = house.agent_of(row.wanted.agent);
    Happening {
        position,
        kind: "approval",
        at: Moment(row.wanted.asked_at),
        place: Some(house.names.place(&row.wanted.place)),
        facts: json!({
            "id": row.id,
            "agent": agent.map(|id| house.agent(id)),
            "tool": row.wanted.tool,
            "turn": row.wanted.call.inbox_id,
        }),
    }
}

fn place(house: &House, key: &str) -> Named {
    let parsed = key.parse::<SessionKey>();
    parsed.map_or_else(|_| Named::new(key, None), |key| house.names.place(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_back() {
        let position = Position {
            message: 12,
            turn: 0,
            change: 345,
            approval: 6,
        };
        assert_eq!(position.to_string(), "12-0-345-6");
        assert_eq!("12-0-345-6".parse(), Ok(position));
        let earlier = Position {
            approval: 0,
            ..position
        };
        assert_eq!("12-0-345".parse(), Ok(earlier), "an earlier version's");
        for odd in [
            "",
            "1",
            "1-2",
            "1-2-3-4-5",
            "1-2-3-",
            "a-2-3",
            "1-2--3",
            "1--2-3",
        ] {
            assert_eq!(odd.parse::<Position>(), Err(()), "{odd}");
        }
    }
}
