//! The console's line about an ended turn, and its numbers.

use super::active_turn::ActiveTurn;
use super::job_turns::job_of;
use crate::clock::now_ms;
use crate::config::{ModelRef, Money};
use crate::console::{self, Person, Place, Turn, TurnEnd};
use crate::delivery::{FirstPart, FirstSent};
use crate::metrics::{Stage, TurnOutcome};
use crate::routing::Rule;
use crate::turn::budget;

/// The line waits for the answer to be sent, because it tells that time too. Turns that another turn
/// asked for have no line: the other turn has one.
pub(super) fn report(turn: &ActiveTurn, end: TurnEnd, sent: Option<FirstSent>) {
    let (inbound, usage) = (&turn.accepted.inbound, turn.usage());
    let price = turn.snapshot.models.price(turn.model());
    let cost = price.map(|price| budget::cost(&price, usage));
    let counts = turn.agent.counts.clone();
    counts.turn(match end {
        TurnEnd::Answered | TurnEnd::Undelivered => TurnOutcome::Answered,
        TurnEnd::Stopped => TurnOutcome::Stopped,
        TurnEnd::Failed => TurnOutcome::Failed,
    });
    counts.input_tokens.add(usage.input_tokens);
    counts.output_tokens.add(usage.output_tokens);
    counts.cost.add(cost.unwrap_or(Money(0)).0);
    let job = job_of(&turn.accepted);
    if inbound.extras.internal.is_some() && job.is_none() {
        counts.subagents.add(u64::from(turn.subagent().is_some()));
        return counts.took(&turn.stages);
    }
    let line = Turn {
        person: Person::of(inbound),
        place: match job.and_then(|run| run.to.clone()) {
            Some(to) => Place::at(to),
            None => Place::of(inbound),
        },
        agent: turn.agent.id.clone(),
        agent_name: turn.agent.label(),
        rule: match job {
            Some(_) => "its job".to_owned(),
            None => rule(&turn.route.rule),
        },
        why: turn.route.rule.to_string(),
        end,
        milliseconds: now_ms() - turn.started_at,
        tokens: budget::tokens(usage),
        currency: turn.snapshot.config.currency.clone(),
        // The demo model costs nothing, and nobody asks.
        cost: cost.filter(|_| *turn.model() != ModelRef::Demo),
        stages: turn.stages,
        reference: turn.accepted.id,
    };
    let tell = move |first| {
        let mut line = line;
        match first {
            FirstPart::Sent(time) => line.stages.spend(Stage::Sent, time),
            FirstPart::GivenUp if line.end == TurnEnd::Answered => {
                line.end = TurnEnd::Undelivered;
            }
            FirstPart::GivenUp | FirstPart::NotYet => {}
        }
        counts.took(&line.stages);
        console::turn(&line);
    };
    match sent {
        Some(sent) => sent.then(tell),
        None => tell(FirstPart::NotYet),
    }
}

/// `exact topic, line 52 of config.toml`.
fn rule(rule: &Rule) -> String {
    match rule {
        Rule::Binding { kind, line, .. } => format!("{kind}, line {line} of config.toml"),
        Rule::Default => "default agent".to_owned(),
        rule => rule.short().to_owned(),
    }
}
