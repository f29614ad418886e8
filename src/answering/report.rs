//! The console's line about an ended turn.

use super::active_turn::ActiveTurn;
use crate::clock::now_ms;
use crate::console::{self, Person, Place, Turn, TurnEnd};
use crate::routing::Rule;
use crate::turn::budget;

/// Turns without a person's message have no line: the turn that asked for them has one.
pub(super) fn report(turn: &ActiveTurn, end: TurnEnd) {
    let inbound = &turn.accepted.inbound;
    if inbound.extras.internal.is_some() {
        return;
    }
    let usage = turn.usage();
    let price = turn.snapshot.models.price(turn.model());
    console::turn(&Turn {
        person: Person::of(inbound),
        place: Place::of(inbound),
        agent: &turn.agent.id,
        agent_name: turn.agent.label(),
        rule: rule(&turn.route.rule),
        why: turn.route.rule.to_string(),
        end,
        milliseconds: now_ms() - turn.started_at,
        tokens: budget::tokens(usage),
        cost: price.map(|price| budget::cost(&price, usage)),
        currency: &turn.snapshot.config.currency,
        reference: turn.accepted.id,
    });
}

/// `exact topic, line 52 of config.toml`.
fn rule(rule: &Rule) -> String {
    match rule {
        Rule::Binding { kind, line, .. } => format!("{kind}, line {line} of config.toml"),
        rule => rule.short().to_owned(),
    }
}
