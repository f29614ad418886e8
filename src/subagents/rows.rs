//! The rows at the beginning and at the end of a subagent.

use rusqlite::Transaction;

use crate::access::Role;
use crate::domain::{Addressed, Extras, Inbound, Internal, MessageId, Origin};
use crate::fail_points::{self, Write};
use crate::records::inbox::{self, Accepted};
use crate::records::subagents::{self, End, State, Subagent, SubagentRow};
use crate::records::transcript;
use crate::tools::OnFinish;

/// Writes a subagent and its message. None when the subagent is known already.
pub(crate) fn begin(
    tx: &Transaction<'_>,
    subagent: &Subagent,
    by: &str,
    now: i64,
) -> rusqlite::Result<Option<Accepted>> {
    fail_points::writes(Write::SubagentBegin);
    let inbound = Inbound {
        update_id: subagent.run.clone(),
        origin: Origin::new(subagent.session.clone(), subagent.person.clone()),
        person_name: format!("@{by}"),
        text: subagent.task.clone(),
        addressed: Addressed::Privately,
        message: MessageId(String::new()),
        sent_at: now,
        extras: Extras {
            internal: Some(Internal::Subagent {
                run: subagent.run.clone(),
            }),
            ..Extras::default()
        },
    };
    let Some(id) = inbox::insert_internal(tx, &inbound, now)? else {
        return Ok(None);
    };
    subagents::insert(tx, subagent, id)?;
    Ok(Some(Accepted::with_role(id, inbound, subagent.role)))
}

/// Writes the end of a subagent's turn. The message to the parent has no more rights than the
/// subagent's turn had.
pub(crate) fn end(
    tx: &Transaction<'_>,
    run: &str,
    role: Role,
    end: &End,
    now: i64,
) -> rusqlite::Result<Option<Accepted>> {
    if !subagents::finish(tx, run, end, now)? || end.state == State::Stopped {
        return Ok(None);
    }
    let Some(known) =
        subagents::get(tx, run)?.filter(|known| known.subagent.then != OnFinish::Wait)
    else {
        return Ok(None);
    };
    let subagent = &known.subagent;
    transcript::append_event(
        tx,
        &subagent.parent,
        subagent.parent_agent,
        &known.line(),
        &known.meta(),
        now,
    )?;
    if subagent.then != OnFinish::Report {
        return Ok(None);
    }
    insert_report(tx, &known, role, now)
}

fn insert_report(
    tx: &Transaction<'_>,
    known: &SubagentRow,
    role: Role,
    now: i64,
) -> rusqlite::Result<Option<Accepted>> {
    let subagent = &known.subagent;
    let inbound = Inbound {
        update_id: format!("report-{}", subagent.run),
        origin: Origin::new(subagent.parent.clone(), subagent.person.clone()),
        person_name: format!("@{}", known.agent_id),
        text: known.line(),
        addressed: Addressed::Privately,
        message: MessageId(String::new()),
        sent_at: now,
        extras: Extras {
            internal: Some(Internal::Report {
                run: subagent.run.clone(),
            }),
            ..Extras::default()
        },
    };
    let id = inbox::insert_internal(tx, &inbound, now)?;
    Ok(id.map(|id| Accepted::with_role(id, inbound, subagent.role.min(role))))
}
