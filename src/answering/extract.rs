//! The part of a conversation that a turn may read. A turn that an earlier process began reads what it
//! read then, as far as that still holds.

use std::collections::HashSet;
use std::sync::Arc;

use rusqlite::Connection;

use super::active_turn::view;
use crate::access::numbers;
use crate::agents::Agent;
use crate::agents::memory::Recollection;
use crate::clock::now_ms;
use crate::config::{Access, People};
use crate::domain::{AgentId, AgentUid, PersonId, Said, SessionKey};
use crate::home::Snapshot;
use crate::records::inbox::Accepted;
use crate::records::recent::Recent;
use crate::records::resuming::{self, BegunTurn};
use crate::records::subagents::{self as subagent_rows, SubagentRow};
use crate::records::transcript::{self, History, Message};
use crate::records::view::View;

/// How an earlier process left a turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Earlier {
    /// Parked for other messages. They are in the transcript now.
    Parked(BegunTurn),
    /// In the middle of its work. The turn goes on with the transcript as read at its start.
    Broken(BegunTurn),
}

/// The part of a conversation that a turn may read.
pub(super) struct Extract {
    pub(super) place: SessionKey,
    pub(super) view: View,
    pub(super) agent: AgentId,
    pub(super) people: Arc<People>,
    recent: Arc<Recent>,
    earlier: Option<(Access, Earlier)>,
}

/// Messages with the numbers of their people, as far as they have one.
pub(super) struct Counted {
    pub(super) said: Vec<Said>,
    pub(super) missing: Vec<PersonId>,
}

impl Extract {
    pub(super) fn of(
        snapshot: &Snapshot,
        accepted: &Accepted,
        agent: &Agent,
        (recent, earlier): (&Arc<Recent>, Option<Earlier>),
    ) -> Self {
        let access = &snapshot.config.access;
        Extract {
            place: accepted.inbound.origin.key.clone(),
            view: view(snapshot, agent),
            agent: agent.id.clone(),
            people: Arc::new(access.people.clone()),
            recent: recent.clone(),
            earlier: earlier.map(|earlier| (access.clone(), earlier)),
        }
    }

    pub(super) fn counted(
        &self,
        connection: &Connection,
        mut said: Vec<Said>,
    ) -> rusqlite::Result<Counted> {
        let missing = numbers::fill_in(connection, &self.people, said.iter_mut())?;
        Ok(Counted { said, missing })
    }

    pub(super) fn recollected(
        &self,
        connection: &Connection,
        found: Recollection,
    ) -> rusqlite::Result<Recollection> {
        let said = self.counted(connection, found.said)?.said;
        Ok(Recollection { said, ..found })
    }

    pub(super) fn history(&self, connection: &Connection) -> rusqlite::Result<History> {
        let mut history = self
            .recent
            .history(connection, &self.place, self.view, &self.people)?;
        let (access, turn) = match &self.earlier {
            Some((access, Earlier::Parked(turn))) => (access, turn),
            Some((access, Earlier::Broken(turn))) => {
                self.as_begun(connection, access, *turn, &mut history)?;
                return Ok(history);
            }
            None => return Ok(history),
        };
        let mut unheard = resuming::outranked(connection, access, &self.place, &self.agent, *turn)?;
        if history
            .summary
            .as_ref()
            .is_some_and(|summary| unheard.iter().any(|id| *id <= summary.upto))
        {
            // The summary quotes people who must not influence this turn, so the original messages
            // are used.
            history.summary = None;
            history.messages =
                transcript::after(connection, &self.place, history.conversation, self.view, 0)?;
            let said = history.messages.iter_mut().map(|message| &mut message.said);
            numbers::fill_in_shared(connection, &self.people, said)?;
        }
        unheard.extend(resuming::questions_of_others(
            connection,
            &self.place,
            *turn,
        )?);
        history
            .messages
            .retain(|message| !unheard.contains(&message.id));
        Ok(history)
    }

    /// Leaves the transcript as the turn read it at its start. A task that was open then, and has ended
    /// since, is shown with its answer: the words that told about the open task are gone, and a
    /// question without an answer would be answered once more.
    fn as_begun(
        &self,
        connection: &Connection,
        access: &Access,
        turn: BegunTurn,
        history: &mut History,
    ) -> rusqlite::Result<()> {
        let answered = transcript::answered_since(connection, &self.place, turn.read_upto)?;
        let unheard = match answered.is_empty() {
            true => HashSet::new(),
            false => resuming::outranked(connection, access, &self.place, &self.agent, turn)?,
        };
        let (left_out, told): (Vec<_>, Vec<_>) = answered
            .into_iter()
            .partition(|answered| unheard.contains(&answered.answer));
        history.messages.retain(|Message { id, .. }| {
            let is_left_out = left_out.iter().any(|answered| answered.question == *id);
            let is_told = told.iter().any(|answered| answered.answer == *id);
            (*id <= turn.read_upto && !is_left_out) || is_told
        });
        Ok(())
    }

    /// Ended subagents not yet told to this agent. A parked turn leaves out subagents of people
    /// with a lower role; a later turn tells of them.
    pub(super) fn unseen(
        &self,
        connection: &Connection,
        agent: AgentUid,
    ) -> rusqlite::Result<Vec<SubagentRow>> {
        let mut unseen = subagent_rows::unseen(connection, &self.place, agent, now_ms())?;
        if let Some((_, Earlier::Parked(turn))) = &self.earlier {
            unseen.retain(|known| known.subagent.role >= turn.role);
        }
        Ok(unseen)
    }
}
