//! `/agent pause` and its like, `/agent why`, `/bind`, `/unbind`, and agents for a while.

use chrono::Local;

use super::words::{count, duration_of, time};
use crate::domain::{AgentId, SessionKey};
use crate::tenants::health::{Health, LastError, State};

pub(crate) const OWNERS_ONLY: &str = "Only owners can pause, resume, restart or clear an agent.";

pub(crate) fn paused(label: &str, id: &AgentId, running: usize) -> String {
    let running = match running {
        0 => "",
        _ => " A running answer is finished.",
    };
    format!(
        "{label} is paused everywhere. Messages are kept and answered after `/agent resume {id}`.{running}"
    )
}

pub(crate) fn paused_already(label: &str, who: &str) -> String {
    format!("{label} is paused already, by {who}.")
}

pub(crate) fn resumed(label: &str) -> String {
    format!("{label} is back, and answers what has waited.")
}

pub(crate) fn not_paused(label: &str) -> String {
    format!("{label} is not paused.")
}

pub(crate) fn restarted(label: &str, running: usize) -> String {
    match running {
        0 => format!("{label} is restarted. No answer of it was under way."),
        running => format!(
            "{label} is restarted. {} after the last finished tool call.",
            match running {
                1 => "Its running answer begins again".to_owned(),
                running => format!("Its {running} running answers begin again"),
            }
        ),
    }
}

/// The button under the question.
pub(crate) const CLEAR: &str = "🧹 Start afresh everywhere";

pub(crate) fn clear(label: &str, id: &AgentId, places: usize) -> String {
    let places = count(places as u64, "place");
    format!(
        "{label} would begin a fresh conversation in {places}, as /new does. What was said stays stored, but {label} doesn't read it any more. `/agent clear {id} yes` does it."
    )
}

pub(crate) fn cleared(label: &str) -> String {
    format!("{label} begins a fresh conversation in all its places.")
}

pub(crate) fn nothing_to_clear(label: &str) -> String {
    format!("{label} has no conversation to clear.")
}

/// The switch to an agent for a while.
pub(crate) fn for_a_while(label: &str, ms: i64, until: &str) -> String {
    format!(
        "{label} answers here for {}, until {until}. `/agent reset` ends that sooner.",
        duration_of(ms)
    )
}

/// How long a switch counts, in the audit.
pub(crate) const ONCE: &str = "once";

pub(crate) fn for_so_long(ms: i64) -> String {
    format!("for {}", duration_of(ms))
}

/// The end of a switch for a while, told by the gateway.
pub(crate) fn time_is_over(label: &str, ms: i64, then: &str) -> String {
    format!(
        "{label} was here for {}, and that is over. {then} answers here again.",
        duration_of(ms)
    )
}

pub(crate) const FOR: &str = "For how long, and who? Write `/agent for 2h rose`, with minutes as `30m` and days as `1d`, up to 30 days.";

/// A time that cannot be read, for the agent that was named.
pub(crate) fn for_how_long(agent: &str) -> String {
    match agent {
        "" => FOR.to_owned(),
        agent => format!(
            "For how long? Write `/agent {agent} for 2h`, with minutes as `30m` and days as `1d`, up to 30 days."
        ),
    }
}

pub(crate) const STEER: &str = "Which agent? Write its name, such as `/agent pause rose`.";

pub(crate) const WHY_IN_SHORT: &str = "Owners and admins see every rule here.";

pub(crate) fn why(told: &str, walk: &str) -> String {
    format!("{told}\n```\n{}\n```", walk.trim_end())
}

pub(crate) const BIND: &str =
    "To whom? Write the agent's name, such as `/bind rose`; /unbind takes the binding out again.";
pub(crate) const BIND_NEEDS_OWNER: &str =
    "Only owners can give a place to an agent for good, or take it back. Ask one of them.";

pub(crate) fn bound(
    label: &str,
    this: &str,
    place: &SessionKey,
    agent: &AgentId,
    line: usize,
) -> String {
    format!(
        "{label} answers in {this} for good. config.toml has it from line {line} on:\n```toml\n[[bindings]]\nmatch = \"{place}\"\nagent = \"{agent}\"\n```"
    )
}

/// After a binding of an agent whose `who` leaves people out.
pub(crate) fn bound_for_all(label: &str, this: &str) -> String {
    format!("Everybody who may write in {this} may use {label} here; its `who` counts elsewhere.")
}

pub(crate) fn bound_already(label: &str, this: &str) -> String {
    format!("config.toml gives {this} to {label} already.")
}

/// `then` names the agent that answers now.
pub(crate) fn unbound(label: &str, this: &str, line: usize, then: &str) -> String {
    format!(
        "The binding of {this} to {label} is taken out of config.toml, where it stood from line {line} on. {then}"
    )
}

/// After the binding is gone.
pub(crate) fn open_from_chat(this: &str, by: &str) -> String {
    format!("{by} opened {this} with `/agent`, so it stays open; `/agent close` closes it.")
}

pub(crate) fn open_as_all(this: &str) -> String {
    let this = sentence_start(this);
    format!("{this} stays open, because all groups are: `groups = \"open\"` under [access].")
}

fn sentence_start(text: &str) -> String {
    let (first, rest) = text.split_at(text.len().min(1));
    format!("{}{rest}", first.to_uppercase())
}

/// For a group in which each member has a conversation of their own.
pub(crate) fn closed_for_others(this: &str) -> String {
    format!("For the others {this} is closed now; `/bind` with an agent's name opens it.")
}

pub(crate) fn not_bound(this: &str, place: &SessionKey) -> String {
    format!(
        "config.toml has no binding for exactly {this} (`{place}`). `/agent why` shows the rules that count."
    )
}

/// The file had a problem before the change. For places where others read along.
pub(crate) const BROKEN_BEFORE: &str =
    "config.toml has a problem, so nothing was changed. /reload in a private chat shows it.";
/// The change is written, but the gateway could not take it in. For places where others read along.
pub(crate) const BROKEN_SINCE: &str = "config.toml is changed, but has a problem, so the running config stays as it was. /reload in a private chat shows it.";

pub(crate) fn not_written(problem: &str) -> String {
    format!("config.toml was not changed:\n```\n{problem}\n```")
}

pub(crate) fn not_taken_in(problem: &str) -> String {
    format!(
        "config.toml is changed, but the running config stays as it was:\n```\n{}\n```",
        problem.trim_end()
    )
}

/// The state of an agent in a line: `🌹 Rose: paused by Alice; 2 messages wait.`
pub(crate) fn health(label: &str, health: &Health) -> String {
    let mut told = format!("{label}: {}", state(&health.state));
    if health.waiting > 0 {
        told += &format!("; {} waiting", count(health.waiting as u64, "message"));
    }
    if health.turns_of_day > 0 {
        told += &format!(
            "; {} of {} failed in 24 hours",
            health.failed_of_day,
            count(health.turns_of_day, "turn")
        );
    }
    if let Some(error) = passed_error(health) {
        told += &format!("; last error {}: {}", time(&Local, error.at), error.reason);
    }
    told
}

/// The error of the last turn, where the next turn may well be answered.
fn passed_error(health: &Health) -> Option<&LastError> {
    let is_well = matches!(health.state, State::Ready | State::Busy);
    let is_last = |error: &&LastError| health.last_success.is_none_or(|at| at < error.at);
    let is_new = health.failed_of_day > 0;
    health
        .last_error
        .as_ref()
        .filter(|error| is_well && is_new && is_last(error))
}

pub(crate) fn state(state: &State) -> String {
    match state {
        State::Ready => "ready".to_owned(),
        State::Busy => "busy".to_owned(),
        State::Paused { by, .. } => format!("paused by {by}"),
        State::Failing { why } => format!("failing ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let rose = AgentId::parse("rose").unwrap();
        let topic: SessionKey = "telegram:topic:-1001:5".parse().unwrap();
        let sick = Health {
            agent: rose.clone(),
            state: State::Failing {
                why: "the provider is not reachable".into(),
            },
            last_success: None,
            last_error: None,
            running: 0,
            waiting: 2,
            turns_of_day: 4,
            failed_of_day: 1,
        };
        let texts = [
            paused("🌹 Rose", &rose, 0),
            paused("🌹 Rose", &rose, 1),
            paused_already("🌹 Rose", "Alice"),
            resumed("🌹 Rose"),
            not_paused("🌹 Rose"),
            restarted("🌹 Rose", 0),
            restarted("🌹 Rose", 1),
            restarted("🌹 Rose", 3),
            clear("🌹 Rose", &rose, 1),
            cleared("🌹 Rose"),
            nothing_to_clear("🌹 Rose"),
            for_a_while("🌹 Rose", 7_200_000, "16:30 UTC+1"),
            time_is_over("🌹 Rose", 90 * 60_000, "☕ Main"),
            time_is_over("🌹 Rose", 60_000 - 3, "☕ Main"),
            bound("🌹 Rose", "this topic", &topic, &rose, 12),
            bound_for_all("🌹 Rose", "this topic"),
            bound_already("🌹 Rose", "this topic"),
            unbound("🌹 Rose", "this topic", 12, "☕ Main answers here."),
            closed_for_others("this group"),
            open_from_chat("this topic", "Alice"),
            open_as_all("this topic"),
            not_bound("this topic", &topic),
            BROKEN_BEFORE.to_owned(),
            BROKEN_SINCE.to_owned(),
            health("🌹 Rose", &sick),
            health(
                "🌹 Rose",
                &Health {
                    state: State::Ready,
                    waiting: 0,
                    last_success: Some(2_000),
                    last_error: Some(LastError {
                        at: 1_000,
                        reason: "the model provider limits us".into(),
                    }),
                    ..sick.clone()
                },
            ),
            state(&State::Paused {
                by: "Alice".into(),
                since: 0,
            }),
        ];
        insta::assert_snapshot!(texts.join("\n"), @r#"
        🌹 Rose is paused everywhere. Messages are kept and answered after `/agent resume rose`.
        🌹 Rose is paused everywhere. Messages are kept and answered after `/agent resume rose`. A running answer is finished.
        🌹 Rose is paused already, by Alice.
        🌹 Rose is back, and answers what has waited.
        🌹 Rose is not paused.
        🌹 Rose is restarted. No answer of it was under way.
        🌹 Rose is restarted. Its running answer begins again after the last finished tool call.
        🌹 Rose is restarted. Its 3 running answers begin again after the last finished tool call.
        🌹 Rose would begin a fresh conversation in 1 place, as /new does. What was said stays stored, but 🌹 Rose doesn't read it any more. `/agent clear rose yes` does it.
        🌹 Rose begins a fresh conversation in all its places.
        🌹 Rose has no conversation to clear.
        🌹 Rose answers here for 2 hours, until 16:30 UTC+1. `/agent reset` ends that sooner.
        🌹 Rose was here for 90 minutes, and that is over. ☕ Main answers here again.
        🌹 Rose was here for 1 minute, and that is over. ☕ Main answers here again.
        🌹 Rose answers in this topic for good. config.toml has it from line 12 on:
        ```toml
        [[bindings]]
        match = "telegram:topic:-1001:5"
        agent = "rose"
        ```
        Everybody who may write in this topic may use 🌹 Rose here; its `who` counts elsewhere.
        config.toml gives this topic to 🌹 Rose already.
        The binding of this topic to 🌹 Rose is taken out of config.toml, where it stood from line 12 on. ☕ Main answers here.
        For the others this group is closed now; `/bind` with an agent's name opens it.
        Alice opened this topic with `/agent`, so it stays open; `/agent close` closes it.
        This topic stays open, because all groups are: `groups = "open"` under [access].
        config.toml has no binding for exactly this topic (`telegram:topic:-1001:5`). `/agent why` shows the rules that count.
        config.toml has a problem, so nothing was changed. /reload in a private chat shows it.
        config.toml is changed, but has a problem, so the running config stays as it was. /reload in a private chat shows it.
        🌹 Rose: failing (the provider is not reachable); 2 messages waiting; 1 of 4 turns failed in 24 hours
        🌹 Rose: ready; 1 of 4 turns failed in 24 hours
        paused by Alice
        "#);
    }
}
