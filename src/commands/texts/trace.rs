//! Words of `/trace` and `/dashboard`.

use super::words::grouped;
use crate::operations::named::lasting as time;
use crate::operations::names::Names;
use crate::operations::turns::{Tokens, TurnState, TurnView, What, money};
use crate::routing::because;

pub(in crate::commands) const NEEDS_ADMIN: &str =
    "Only owners and admins can see how an answer came about.";
pub(in crate::commands) const NOT_AN_ANSWER: &str =
    "That message is none of my answers, or too old. Reply to an answer with /trace.";
pub(in crate::commands) const NO_ANSWER_YET: &str =
    "I haven't answered anything here yet. In other places, reply to an answer with /trace.";
pub(in crate::commands) const DASHBOARD_NEEDS_OWNER: &str = "Only owners can open the dashboard.";
pub(in crate::commands) const DASHBOARD_IN_PRIVATE: &str =
    "Others read along here, so ask me in our private chat: /dashboard";
pub(in crate::commands) const OPEN_DASHBOARD: &str = "Open the dashboard";
pub(in crate::commands) const DASHBOARD: &str =
    "The dashboard, for you alone: the button signs you in.";
pub(in crate::commands) const DASHBOARD_ON_MACHINE: &str = "The dashboard has no public address, so I can't open it from here. `parlor dashboard` on the machine prints a link to it.\nTo open it from Telegram, put a web server with TLS in front, and under `[admin]` in config.toml write `behind_proxy = true` and `url = \"https://…\"`.";

pub(in crate::commands) fn dashboard_at(url: &str) -> String {
    format!(
        "The dashboard is at {url}\n`parlor dashboard` on the machine prints a link that signs you in; from Telegram, /dashboard does."
    )
}

/// A person by name, or else by id.
pub(crate) fn called(names: &Names, id: &str) -> String {
    let person = id.parse().map(|id| names.author(&id));
    let words = person.as_ref().ok().and_then(|person| person.words());
    words.map_or_else(|| format!("`{id}`"), str::to_owned)
}

/// The story of a turn in a few lines, without anybody's words.
/// `called` names people by their id.
pub(crate) fn told(turn: &TurnView, link: Option<&str>, called: &dyn Fn(&str) -> String) -> String {
    let lines = [
        Some(head(turn, called)),
        waits(turn),
        models(turn),
        tokens(turn),
        tools(turn),
        sends(turn),
        read(turn),
        link.map(str::to_owned),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn head(turn: &TurnView, called: &dyn Fn(&str) -> String) -> String {
    let agent = turn.agent.as_ref();
    let agent = agent.map_or("A former agent", |agent| {
        agent.name.as_deref().unwrap_or(&agent.id)
    });
    // All stages below are part of this time.
    let took = turn.ended_at.map(|ended| ended.0 - turn.received_at.0);
    let took = took.map(|ms| format!(" {} after the message", time(ms)));
    let took = took.unwrap_or_default();
    let why = turn.rule.as_ref().map(|rule| because(rule, called));
    match (turn.state, turn.outcome.as_deref()) {
        (TurnState::Ended, Some("answered")) => {
            let why = why.map(|why| format!(", {why}")).unwrap_or_default();
            format!("{agent} answered{took}{why}.")
        }
        (TurnState::Ended, Some(outcome)) => {
            let outcome = outcome.trim_end_matches('.');
            let why = why.map(|why| format!(" It was asked {why}."));
            format!(
                "{agent} gave no answer: {outcome}.{}",
                why.unwrap_or_default()
            )
        }
        (TurnState::Parked, _) => {
            format!("{agent} is at it, and has put it aside for newer messages.")
        }
        (TurnState::Running, _) => format!("{agent} is still at it."),
        _ => "No agent has begun to answer it.".to_owned(),
    }
}

fn waits(turn: &TurnView) -> Option<String> {
    let waits = turn.timeline.iter().filter_map(|event| {
        let ms = event.took_ms?;
        Some(match event.what {
            What::Received => format!("{} to store it", time(ms)),
            What::Queued { .. } => format!("{} in the queue", time(ms)),
            What::Slot => format!("{} for a slot", time(ms)),
            What::Prepared { memories: 0 } => format!("{} to prepare", time(ms)),
            What::Prepared { memories: 1 } => format!("{} to prepare, with 1 memory", time(ms)),
            What::Prepared { memories } => {
                format!("{} to prepare, with {memories} memories", time(ms))
            }
            What::Away if ms == 0 => return None,
            What::Away => format!("{} while the gateway was off", time(ms)),
            _ => return None,
        })
    });
    joined("Before and between", waits)
}

fn models(turn: &TurnView) -> Option<String> {
    let calls = turn.timeline.iter().filter_map(|event| match &event.what {
        What::Called {
            model,
            first_ms,
            error,
            ..
        } => {
            let took = time(event.took_ms.unwrap_or(0));
            let first = first_ms.and_then(|ms| i64::try_from(ms).ok());
            let first = first.map(|ms| format!(", first sign after {}", time(ms)));
            Some(match error {
                Some(error) => format!("{model} failed after {took} ({error})"),
                None => format!("{model} {took}{}", first.unwrap_or_default()),
            })
        }
        _ => None,
    });
    joined("Model", calls)
}

fn tokens(turn: &TurnView) -> Option<String> {
    let Tokens {
        input,
        cached,
        output,
    } = turn.tokens;
    if turn.tokens == Tokens::default() {
        return None;
    }
    let cost = turn
        .cost_micros
        .map(|micros| format!("; {} {}", money(micros), turn.currency));
    let cached = match cached {
        0 => String::new(),
        cached => format!(" ({} from the cache)", grouped(cached)),
    };
    Some(format!(
        "Tokens: {} read{cached}, {} written{}",
        grouped(input),
        grouped(output),
        cost.unwrap_or_default()
    ))
}

fn tools(turn: &TurnView) -> Option<String> {
    let tools = turn.timeline.iter().filter_map(|event| match &event.what {
        What::Tool {
            tool, result_bytes, ..
        } => {
            let took = event.took_ms.map(|ms| format!(" {}", time(ms)));
            let size = result_bytes.map(|bytes| format!(" ({} bytes)", grouped(bytes)));
            Some(format!(
                "{tool}{}{}",
                took.unwrap_or_default(),
                size.unwrap_or_default()
            ))
        }
        What::Subagent { agent, state, .. } => {
            let agent = agent
                .as_ref()
                .map_or("a former agent", |agent| agent.id.as_str());
            Some(format!("subagent {agent} {state}"))
        }
        _ => None,
    });
    joined("Tools", tools)
}

fn sends(turn: &TurnView) -> Option<String> {
    let sends = turn.timeline.iter().filter_map(|event| match &event.what {
        What::Sent {
            state,
            tries,
            asked_to_wait_ms,
            ..
        } => {
            let took = event.took_ms.map(|ms| format!(" in {}", time(ms)));
            let tries = (*tries > 1).then(|| format!(", {tries} tries"));
            let waited = (*asked_to_wait_ms > 0)
                .then(|| format!(", the platform asked to wait {}", time(*asked_to_wait_ms)));
            let parts = [took, tries, waited].into_iter().flatten();
            Some(format!("{state}{}", parts.collect::<String>()))
        }
        _ => None,
    });
    joined("Delivery", sends)
}

fn read(turn: &TurnView) -> Option<String> {
    joined("It has read", turn.read.iter().cloned())
}

fn joined(name: &str, facts: impl Iterator<Item = String>) -> Option<String> {
    let facts: Vec<String> = facts.collect();
    (!facts.is_empty()).then(|| format!("{name}: {}", facts.join(" · ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::named::{Moment, Named};
    use crate::operations::turns::{Event, PromptView, Words};

    fn event(after_ms: i64, took_ms: Option<i64>, what: What) -> Event {
        Event {
            at: Moment(after_ms),
            after_ms,
            took_ms,
            what,
        }
    }

    fn turn() -> TurnView {
        let tokens = Tokens {
            input: 2_310,
            cached: 1_800,
            output: 140,
        };
        let called = |model: &str, error: Option<&str>| What::Called {
            model: model.to_owned(),
            first_ms: error.is_none().then_some(310),
            tokens,
            cost_micros: Some(12_300),
            error: error.map(str::to_owned),
        };
        TurnView {
            v: 1,
            id: 161,
            place: None,
            agent: Some(Named::new("rose", Some("Rose"))),
            state: TurnState::Ended,
            outcome: Some("answered".into()),
            rule: Some("binding on line 12".into()),
            model: Some("openai/gpt".into()),
            received_at: Moment(0),
            ended_at: Some(Moment(2_700)),
            tokens,
            cost_micros: Some(12_300),
            currency: "USD".into(),
            read: vec!["an owner's words".into(), "memories".into()],
            timeline: vec![
                event(0, Some(2), What::Received),
                event(0, Some(80), What::Queued { turns: vec![160] }),
                event(290, Some(0), What::Away),
                event(290, Some(12), What::Prepared { memories: 2 }),
                event(300, Some(400), called("local/small", Some("overloaded"))),
                event(800, Some(900), called("openai/gpt", None)),
                event(
                    1_700,
                    Some(12),
                    What::Tool {
                        tool: "file_read".into(),
                        round: 1,
                        result_bytes: Some(3_000),
                        arguments: None,
                    },
                ),
                event(
                    2_700,
                    Some(2_400),
                    What::Ended {
                        outcome: "answered".into(),
                    },
                ),
                event(
                    2_900,
                    Some(210),
                    What::Sent {
                        part: 1,
                        parts: 1,
                        sort: "final".into(),
                        state: "sent".into(),
                        edit: false,
                        file: false,
                        tries: 2,
                        asked_to_wait_ms: 3_000,
                        repeated: false,
                        error: None,
                    },
                ),
            ],
            prompt: PromptView {
                words: Words::NotKept,
                sections: Vec::new(),
                compared_with: None,
            },
        }
    }

    #[test]
    fn a_story_has_a_line_for_each_stage() {
        let link = Some("https://parlor.example/turns/161");
        let called = |id: &str| match id {
            "telegram:11" => "Alice".to_owned(),
            id => id.to_owned(),
        };
        insta::assert_snapshot!(told(&turn(), link, &called), @"
        Rose answered 2.7 s after the message, because of binding on line 12.
        Before and between: 2 ms to store it · 80 ms in the queue · 12 ms to prepare, with 2 memories
        Model: local/small failed after 400 ms (overloaded) · openai/gpt 900 ms, first sign after 310 ms
        Tokens: 2,310 read (1,800 from the cache), 140 written; 0.0123 USD
        Tools: file_read 12 ms (3,000 bytes)
        Delivery: sent in 210 ms, 2 tries, the platform asked to wait 3.0 s
        It has read: an owner's words · memories
        https://parlor.example/turns/161
        ");
        let failed = TurnView {
            outcome: Some("stopped after 3 steps without an answer".into()),
            timeline: Vec::new(),
            read: Vec::new(),
            tokens: Tokens::default(),
            rule: None,
            ..turn()
        };
        insta::assert_snapshot!(told(&failed, None, &called), @"Rose gave no answer: stopped after 3 steps without an answer.");
        let chosen = |rule: &str| TurnView {
            timeline: Vec::new(),
            read: Vec::new(),
            tokens: Tokens::default(),
            rule: Some(rule.to_owned()),
            ..turn()
        };
        insta::assert_snapshot!(told(&chosen("default_agent"), None, &called), @"Rose answered 2.7 s after the message, because it is the default agent.");
        insta::assert_snapshot!(told(&chosen("pin set by telegram:11"), None, &called), @"Rose answered 2.7 s after the message, because Alice chose it.");
        insta::assert_snapshot!(told(&chosen("pin for one turn, set by telegram:12"), None, &called), @"Rose answered 2.7 s after the message, because telegram:12 chose it for one turn.");
    }

    #[test]
    fn refusals_say_what_to_do() {
        let told = [
            NEEDS_ADMIN,
            NOT_AN_ANSWER,
            NO_ANSWER_YET,
            DASHBOARD_NEEDS_OWNER,
            DASHBOARD_IN_PRIVATE,
            DASHBOARD,
            DASHBOARD_ON_MACHINE,
            &dashboard_at("https://parlor.example"),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        Only owners and admins can see how an answer came about.
        That message is none of my answers, or too old. Reply to an answer with /trace.
        I haven't answered anything here yet. In other places, reply to an answer with /trace.
        Only owners can open the dashboard.
        Others read along here, so ask me in our private chat: /dashboard
        The dashboard, for you alone: the button signs you in.
        The dashboard has no public address, so I can't open it from here. `parlor dashboard` on the machine prints a link to it.
        To open it from Telegram, put a web server with TLS in front, and under `[admin]` in config.toml write `behind_proxy = true` and `url = "https://…"`.
        The dashboard is at https://parlor.example
        `parlor dashboard` on the machine prints a link that signs you in; from Telegram, /dashboard does.
        "#);
    }
}
