//! `/start`: greets, and names the agent that listens. Telegram's button of a new chat sends this
//! command.

use super::first_minute::{self, Listening};
use super::{Context, agent, not_for_you};
use crate::config::Groups;

pub(super) fn run(context: &Context<'_>) -> String {
    first_minute::greeting(&context.inbound.person_name, &listening(context))
}

fn listening(context: &Context<'_>) -> Listening {
    let (access, place) = (&context.snapshot.config.access, &context.inbound.origin.key);
    let is_open = context.route.opens_place || access.groups == Groups::Open;
    if !place.is_private() && !is_open {
        let offered = context.usable_agents().next();
        return Listening::Nobody {
            offered: offered.map(|agent| agent.id.to_string()),
        };
    }
    if let Some(closed) = context.closed {
        return Listening::NotToYou(not_for_you(context, closed).to_string());
    }
    let needs_mention = !place.is_private()
        && context
            .route
            .require_mention
            .unwrap_or(access.require_mention);
    let agent = agent::current(context).label();
    if needs_mention {
        Listening::WhenMentioned(agent)
    } else {
        Listening::Always(agent)
    }
}
