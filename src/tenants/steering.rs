//! An agent that is paused, resumed, restarted, or given fresh conversations: the rows, with their
//! audit. A running gateway acts on them after the commit.

use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use crate::agents::agent_rows;
use crate::domain::{AgentId, AgentUid};
use crate::records::agent_pauses::{self, Pause};
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::{model_overrides, transcript};

/// A change of an agent without a change of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Steering {
    /// The agent begins no turn; messages wait.
    Pause,
    Resume,
    /// Its turns begin again from their last recorded result, and past failures do not count.
    Restart,
    /// A fresh conversation in all its places.
    Reset,
}

/// The outcome of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Steered {
    Paused(Pause),
    Resumed,
    Restarted,
    /// The number of places with a fresh conversation.
    Reset(usize),
    /// The agent was paused already, or was not paused.
    Unchanged,
}

pub(crate) fn steer(
    tx: &Transaction<'_>,
    steering: Steering,
    (uid, id): (AgentUid, &AgentId),
    by: &Actor,
    now: i64,
) -> rusqlite::Result<Steered> {
    let steered = match steering {
        Steering::Pause => {
            let pause = Pause::by(by, now);
            match agent_pauses::set(tx, uid, &pause)? {
                true => Steered::Paused(pause),
                false => Steered::Unchanged,
            }
        }
        Steering::Resume => match agent_pauses::clear(tx, uid)? {
            true => Steered::Resumed,
            false => Steered::Unchanged,
        },
        Steering::Restart => {
            agent_rows::mark_restarted(tx, uid, now)?;
            Steered::Restarted
        }
        Steering::Reset => Steered::Reset(reset(tx, uid, now)?),
    };
    if steered != Steered::Unchanged {
        let change = Change::new(steering.action()).of(id);
        let change = match steered {
            Steered::Reset(places) => change.to(format!("{places} places")),
            _ => change,
        };
        audit::note(tx, by, &change, now)?;
    }
    Ok(steered)
}

impl Steering {
    fn action(self) -> Action {
        match self {
            Steering::Pause => Action::AgentPause,
            Steering::Resume => Action::AgentResume,
            Steering::Restart => Action::AgentRestart,
            Steering::Reset => Action::AgentReset,
        }
    }
}

fn reset(tx: &Transaction<'_>, uid: AgentUid, now: i64) -> rusqlite::Result<usize> {
    let places = transcript::places_with(tx, uid)?;
    for place in &places {
        model_overrides::clear(tx, place)?;
        transcript::start_anew(tx, place, now)?;
    }
    Ok(places.len())
}
