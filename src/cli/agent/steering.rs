//! `parlor agent pause`, `resume`, `restart` and `reset`, on a home without a running gateway.

use clap::Args;
use serde_json::json;

use super::super::actor::actor;
use super::super::json::Named;
use super::super::{Failure, Outcome, print, question};
use super::asking;
use super::texts::counted;
use crate::agents::Agent;
use crate::clock::now_ms;
use crate::records::transcript;
use crate::storage::Db;
use crate::tenants::{Steered, Steering, steer};

#[derive(Args)]
pub(in crate::cli) struct Reset {
    /// Id or name of the agent
    agent: String,
    /// Begin afresh without asking
    #[arg(long)]
    yes: bool,
}

impl Reset {
    pub(super) fn agent(&self) -> &str {
        &self.agent
    }
}

pub(super) async fn reset(db: &Db, agent: &Agent, arguments: &Reset, json: bool) -> Outcome {
    if !arguments.yes {
        confirm(db, agent).await?;
    }
    run(db, agent, Steering::Reset, json).await
}

pub(super) async fn run(db: &Db, agent: &Agent, steering: Steering, json: bool) -> Outcome {
    let (uid, id) = (agent.uid, agent.id.clone());
    let write =
        move |tx: &rusqlite::Transaction<'_>| steer(tx, steering, (uid, &id), &actor(), now_ms());
    let steered = db.write(write).await?;
    let label = agent.label();
    let words = match (&steered, steering) {
        (Steered::Paused(_), _) => {
            format!(
                "{label} is paused. Messages are kept and answered after `parlor agent resume {}`.",
                agent.id
            )
        }
        (Steered::Resumed, _) => {
            format!("{label} is back, and answers what has waited when the gateway runs.")
        }
        (Steered::Restarted, _) => {
            format!("{label} is restarted: its past failures do not count any more.")
        }
        (Steered::Reset(places), _) => format!(
            "{label} begins a fresh conversation in {}.",
            counted(*places, "place", "places")
        ),
        (Steered::Unchanged, Steering::Pause) => format!("{label} is paused already."),
        (Steered::Unchanged, _) => format!("{label} is not paused."),
    };
    let places = match steered {
        Steered::Reset(places) => Some(places),
        _ => None,
    };
    let value = json!({
        "agent": Named::new(&agent.id, Some(&agent.name)),
        "changed": steered != Steered::Unchanged,
        "places": places,
    });
    print::result(json, &value, format_args!("{words}"))
}

async fn confirm(db: &Db, agent: &Agent) -> Outcome {
    let uid = agent.uid;
    let places = move |connection: &rusqlite::Connection| transcript::places_with(connection, uid);
    let places = db.read(places).await?.len();
    question(format_args!(
        "{} would begin a fresh conversation in {}. Type {} to go on: ",
        agent.label(),
        counted(places, "place", "places"),
        agent.id
    ));
    match asking::read_line()? {
        Some(word) if word == agent.id.as_str() => Ok(()),
        _ => Err(Failure::Failed(format!(
            "that is not {}; nothing was changed",
            agent.id
        ))),
    }
}
