//! `parlor agent pause`, `resume`, `restart` and `reset`.

use clap::Args;
use serde_json::json;

use super::super::json::Named;
use super::super::operator::{Operator, odd_reply};
use super::super::{Failure, Outcome, print, question};
use super::texts::counted;
use super::{OpenHome, asking};
use crate::home::Home;
use crate::operations::{AgentReply, AgentRequest, Reply, Request};
use crate::records::transcript;
use crate::tenants::{Steered, Steering};

#[derive(Args)]
pub(in crate::cli) struct Reset {
    /// Id or name of the agent
    agent: String,
    /// Begin afresh without asking
    #[arg(long)]
    yes: bool,
}

pub(super) async fn reset(home: &Home, arguments: &Reset, json: bool) -> Outcome {
    if !arguments.yes {
        confirm(home, &arguments.agent).await?;
    }
    run(home, &arguments.agent, Steering::Reset, json).await
}

/// By the gateway that runs on the home, else on the home itself.
pub(super) async fn run(home: &Home, word: &str, steering: Steering, json: bool) -> Outcome {
    let agent = word.to_owned();
    let request = Request::Agent(AgentRequest::Steer { agent, steering });
    let mut operator = Operator::open(home, request.shares_home()).await?;
    let Reply::Agent(reply) = operator.ask(request).await? else {
        return Err(odd_reply());
    };
    let AgentReply::Steered { agent, steered } = *reply else {
        return Err(odd_reply());
    };
    let open = OpenHome::open(home).await?;
    let agent = open.find(agent.as_str())?;
    let label = agent.label();
    let words = match (&steered, steering) {
        (Steered::Paused(_), _) => {
            format!(
                "{label} is paused. Messages are kept and answered after `parlor agent resume {}`.",
                agent.id
            )
        }
        (Steered::Resumed, _) => match operator.is_gateway() {
            true => format!("{label} is back, and answers what has waited."),
            false => {
                format!("{label} is back, and answers what has waited when the gateway runs.")
            }
        },
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

async fn confirm(home: &Home, word: &str) -> Outcome {
    let open = OpenHome::open(home).await?;
    let (db, agent) = (&open.db, open.find(word)?);
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
