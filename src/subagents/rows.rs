//! What is written when a subagent begins and when it ends.

use rusqlite::Transaction;

use crate::access::Standing;
use crate::domain::{Addressed, Besides, Inbound, Internal, MessageId, Origin};
use crate::records::inbox::{self, Accepted};
use crate::records::subagents::{self, Child, End, Known, State};
use crate::records::transcript;
use crate::tools::Then;

/// Writes a subagent and its message. None when the subagent is known already.
pub(crate) fn begin(tx: &Transaction<'_>, child: &Child, by: &str, now: i64) -> rusqlite::Result<Option<Accepted>> {
    let inbound = Inbound {
        update_id: child.run.clone(),
        origin: Origin::new(child.session.clone(), child.person.clone()),
        person_name: format!("@{by}"),
        text: child.task.clone(),
        addressed: Addressed::Privately,
        message: MessageId(String::new()),
        sent_at: now,
        besides: Besides { internal: Some(Internal::Child { run: child.run.clone() }), ..Besides::default() },
    };
    let Some(id) = inbox::insert_internal(tx, &inbound, now)? else { return Ok(None) };
    subagents::insert(tx, child, id)?;
    Ok(Some(Accepted { standing: child.standing, ..Accepted::new(id, inbound) }))
}

/// Writes the end of a subagent's turn. The message that wakes the parent has no more rights than that turn had.
pub(crate) fn end(
    tx: &Transaction<'_>,
    run: &str,
    standing: Standing,
    end: &End,
    now: i64,
) -> rusqlite::Result<Option<Accepted>> {
    if !subagents::finish(tx, run, end, now)? || end.state == State::Stopped {
        return Ok(None);
    }
    let Some(known) = subagents::get(tx, run)?.filter(|known| known.child.then != Then::Wait) else { return Ok(None) };
    let child = &known.child;
    transcript::append_event(tx, &child.parent, child.parent_agent, &known.line(), &known.meta(), now)?;
    if child.then != Then::Report {
        return Ok(None);
    }
    Ok(insert_report(tx, &known, now)?.map(|report| Accepted { standing: report.standing.min(standing), ..report }))
}

fn insert_report(tx: &Transaction<'_>, known: &Known, now: i64) -> rusqlite::Result<Option<Accepted>> {
    let child = &known.child;
    let inbound = Inbound {
        update_id: format!("report-{}", child.run),
        origin: Origin::new(child.parent.clone(), child.person.clone()),
        person_name: format!("@{}", known.agent_id),
        text: known.line(),
        addressed: Addressed::Privately,
        message: MessageId(String::new()),
        sent_at: now,
        besides: Besides { internal: Some(Internal::Report { run: child.run.clone() }), ..Besides::default() },
    };
    let id = inbox::insert_internal(tx, &inbound, now)?;
    Ok(id.map(|id| Accepted { standing: child.standing, ..Accepted::new(id, inbound) }))
}
