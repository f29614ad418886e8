//! `parlor pin`: gives a place to an agent, as `/agent` does in a chat.

use clap::Args;
use serde_json::json;

use super::names::Names;
use super::operator::{self, odd_reply};
use super::{Outcome, database, meant_place, print, running_config};
use crate::home::Home;
use crate::operations::{Given, Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// Name or key of the place, such as Garden, Family/Garden or the key that
    /// /whoami prints
    place: String,
    /// Id or name of the agent
    #[arg(required_unless_present = "reset", conflicts_with = "reset")]
    agent: Option<String>,
    /// Take the pin back, so that the config decides again
    #[arg(long)]
    reset: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let Arguments {
        place, agent, json, ..
    } = arguments;
    let is_reset = agent.is_none();
    let place = meant_place::place(&home, &place).await?;
    let request = match agent {
        Some(agent) => Request::Pin { place, agent },
        None => Request::Unpin { place },
    };
    let Reply::Given(given) = operator::ask(&home, request).await? else {
        return Err(odd_reply());
    };
    let config = running_config::checked(&home).await.ok();
    let config = config.as_ref().map(|checked| &*checked.config);
    let names = Names::load(&database::open(&home.database()).await?, config).await?;
    let (place, agent) = (names.place(&given.place), names.agent(&given.agent));
    let told = told(&given, &place.text(), &agent.text(), is_reset);
    print::result(
        json,
        &json!({
            "place": place,
            "agent": agent,
            "before": names.agent(&given.before),
            "changed": given.is_new,
            "opened": given.opened,
        }),
        format_args!("{told}"),
    )
}

fn told(given: &Given, place: &str, agent: &str, is_reset: bool) -> String {
    match (is_reset, given.is_new) {
        (true, true) => format!("The pin of {place} is taken back. {agent} answers there now."),
        (true, false) => format!("{place} has no pin. {agent} answers there."),
        (false, false) => format!("{agent} has {place} already."),
        (false, true) if given.opened => {
            format!("{agent} answers in {place} now, which was closed before.")
        }
        (false, true) => format!("{agent} answers in {place} now."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::AgentId;

    #[test]
    fn a_pin_reads_well() {
        let told = |is_reset, is_new, opened| {
            let given = Given {
                place: "telegram:topic:-100:7".parse().unwrap(),
                before: AgentId::main(),
                agent: AgentId::parse("rose").unwrap(),
                is_new,
                opened,
            };
            told(
                &given,
                "Notes (telegram:topic:-100:7)",
                "Rose (rose)",
                is_reset,
            )
        };
        let all = [
            told(false, true, false),
            told(false, true, true),
            told(false, false, false),
            told(true, true, false),
            told(true, false, false),
        ];
        insta::assert_snapshot!(all.join("\n"), @"
        Rose (rose) answers in Notes (telegram:topic:-100:7) now.
        Rose (rose) answers in Notes (telegram:topic:-100:7) now, which was closed before.
        Rose (rose) has Notes (telegram:topic:-100:7) already.
        The pin of Notes (telegram:topic:-100:7) is taken back. Rose (rose) answers there now.
        Notes (telegram:topic:-100:7) has no pin. Rose (rose) answers there.
        ");
    }
}
