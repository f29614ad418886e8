//! `/status`: tells the state of a place, and to owners the state of the whole gateway.

use std::time::Duration;

use rusqlite::Connection;

use super::{CommandError, Context, model, queue};
use crate::access::Role;
use crate::clock::now_ms;
use crate::delivery::outbox::{self, Troubles};
use crate::models::Usage;
use crate::records::turn_log::LastTurn;
use crate::records::view::View;
use crate::records::{decisions, inbox, summaries, transcript, turn_log};
use crate::storage::StoreError;

/// How many decisions about waiting messages are told.
const DECISIONS_SHOWN: u32 = 3;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

pub(super) async fn run(context: &Context<'_>) -> Result<String, CommandError> {
    let services = context.services;
    let (agent, chosen) = model::here(context).await?;
    let (place, view) = (
        context.inbound.origin.key.clone(),
        View::of(context.snapshot.config.switch, agent.uid),
    );
    let waiting = services.sessions.depth(&context.inbound.origin);
    let queue = services.sessions.queue(&context.inbound.origin);
    let looked_up = move |connection: &Connection| {
        let conversation = transcript::conversation(connection, &place)?;
        let summary = summaries::of(connection, &place, conversation, view)?;
        let decided = decisions::latest(connection, &place, DECISIONS_SHOWN)?;
        Ok((
            transcript::length(connection, &place, view)?,
            turn_log::last_of(connection, &place)?,
            decided,
            summary,
        ))
    };
    let (messages, last, decided, summary) = services.db.read(looked_up).await?;
    let mut text = format!(
        "{} (`{}`) answers {} with {} ({}).\nThe conversation has {}; {} under way.",
        agent.label(),
        agent.id,
        context
            .inbound
            .origin
            .name
            .as_ref()
            .map_or_else(|| "here".to_owned(), |name| format!("here in “{name}”")),
        chosen.model,
        chosen.source,
        count(messages, "message"),
        count(i64::try_from(waiting).unwrap_or(i64::MAX), "answer"),
    );
    if let Some(summary) = summary {
        text.push_str(&format!(
            "\nThe first {} are summed up; the agent can still look them up.",
            count(summary.messages, "message")
        ));
    }
    if let Some(last) = last {
        text.push_str(&format!("\n{}", last_turn(&last)));
    }
    if queue.current.is_some() || !queue.subagents.is_empty() {
        text.push_str(&format!("\n\n{}", queue::show(&queue, now_ms())));
    }
    if !decided.is_empty() {
        text.push_str(&format!(
            "\n\nLately: {}.",
            decided
                .iter()
                .map(|(what, _)| what.as_str())
                .collect::<Vec<_>>()
                .join("; ")
        ));
    }
    if context.standing.role() >= Role::Admin {
        text.push_str(&house(context).await?);
    }
    Ok(text)
}

fn last_turn(last: &LastTurn) -> String {
    let Usage {
        input_tokens,
        output_tokens,
        cached_tokens,
    } = last.usage;
    match last.answered {
        true => format!(
            "The last answer came from {}: {input_tokens} tokens read, {cached_tokens} of them from the provider's cache, {output_tokens} written.",
            last.model
        ),
        false => format!("The last turn, with {}, had no answer.", last.model),
    }
}

async fn house(context: &Context<'_>) -> Result<String, StoreError> {
    let services = context.services;
    let now = now_ms();
    let looked_up = move |connection: &Connection| {
        let (turns, troubles) = (
            turn_log::count_since(connection, now - DAY_MS)?,
            outbox::troubles(connection, now)?,
        );
        Ok((turns, troubles, inbox::count_broken(connection)?))
    };
    let ((turns, failed), troubles, broken) = services.db.read(looked_up).await?;
    let Troubles {
        failed: undelivered,
        waiting,
        repeated,
        ..
    } = troubles;
    Ok(format!(
        "\n\nThe gateway has been up for {}, with {} busy.\n\
         Last 24 hours: {}, {failed} of them without an answer.\n\
         Undelivered: {undelivered}. Waiting for more than a minute: {waiting}. Sent twice after a lost answer: {repeated}. \
         Unreadable updates: {broken}.",
        uptime(now - services.started_at),
        count(
            i64::try_from(services.sessions.busy()).unwrap_or(i64::MAX),
            "place"
        ),
        count(turns, "turn"),
    ))
}

fn count(number: i64, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

fn uptime(ms: i64) -> String {
    let minutes = Duration::from_millis(u64::try_from(ms).unwrap_or(0)).as_secs() / 60;
    match (minutes / (24 * 60), minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => count(i64::try_from(minutes).unwrap_or(0), "minute"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptimes_read_well() {
        let minute = 60_000;
        assert_eq!(uptime(0), "0 minutes");
        assert_eq!(uptime(minute), "1 minute");
        assert_eq!(uptime(61 * minute), "1 h 1 min");
        assert_eq!(uptime(50 * 60 * minute), "2 d 2 h");
    }
}
