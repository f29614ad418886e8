//! `/agent pause` and its like, `/agent why`, `/bind`, `/unbind`, `/audit`, and agents for a while.

use chrono::TimeZone;

use super::words::{count, day, duration_of, time};
use crate::domain::{AgentId, SessionKey};
use crate::records::audit::Entry;
use crate::tenants::health::{Health, State};

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
pub(crate) const STEER: &str = "Which agent? Write its name, such as `/agent pause rose`.";

pub(crate) const WHY_IN_SHORT: &str = "Owners and admins see every rule here.";

pub(crate) fn why(told: &str, walk: &str) -> String {
    format!("{told}\n```\n{}\n```", walk.trim_end())
}

pub(crate) const BIND: &str =
    "To whom? Write the agent's name, such as `/bind rose`; /unbind takes the binding out again.";
pub(crate) const BIND_NEEDS_OWNER: &str = "Only owners can change config.toml.";

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

pub(crate) fn bound_already(label: &str, this: &str) -> String {
    format!("config.toml gives {this} to {label} already.")
}

pub(crate) fn unbound(label: &str, this: &str, line: usize) -> String {
    format!(
        "The binding of {this} to {label} is taken out of config.toml, where it stood from line {line} on. `/agent` tells who answers now."
    )
}

pub(crate) fn not_bound(this: &str, place: &SessionKey) -> String {
    format!(
        "config.toml has no binding for exactly {this} (`{place}`). `/agent why` shows the rules that count."
    )
}

pub(crate) fn not_written(problem: &str) -> String {
    format!("config.toml was not changed:\n```\n{problem}\n```")
}

pub(crate) fn not_taken_in(problem: &str) -> String {
    format!(
        "config.toml is changed, but the running config stays as it was:\n```\n{}\n```",
        problem.trim_end()
    )
}

pub(crate) const AUDIT_NEEDS_ADMIN: &str = "Only an owner or admin can read the audit.";
pub(crate) const AUDIT: &str =
    "Write `/audit` for the last 20 changes, or a number up to 100, such as `/audit 40`.";
pub(crate) const OLDER: &str = "Older";

/// The newest first. `is_here`: only this place's.
pub(crate) fn audit<Z: TimeZone>(entries: &[Entry], is_here: bool, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    if entries.is_empty() {
        return match is_here {
            true => "No changes of this place. In a private chat, /audit shows all places.",
            false => "No changes.",
        }
        .to_owned();
    }
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| format!("- {}", line(entry, is_here, zone)))
        .collect();
    lines.join("\n")
}

fn line<Z: TimeZone>(entry: &Entry, is_here: bool, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    let when = format!("{}, {}", day(zone, entry.at), time(zone, entry.at));
    let place = entry.place.as_ref().filter(|_| !is_here);
    let place = place.map_or_else(String::new, |place| format!(" in `{place}`"));
    format!("{when}: {} {}{place}", who(entry), what(entry))
}

/// The person's name, or what else made the change.
pub(crate) fn who(entry: &Entry) -> String {
    match (entry.actor.as_str(), &entry.name) {
        ("cli", Some(login)) => format!("{login} at the command line"),
        ("cli", None) => "the command line".to_owned(),
        ("config", _) => "config.toml".to_owned(),
        ("gateway", _) => "the gateway".to_owned(),
        (_, Some(name)) if !name.is_empty() => name.clone(),
        (id, _) => format!("`{id}`"),
    }
}

/// `switch: main → rose`.
pub(crate) fn what(entry: &Entry) -> String {
    let about = [&entry.agent, &entry.subject]
        .into_iter()
        .flatten()
        .map(|about| format!(" {about}"))
        .collect::<String>();
    let values = match (entry.before.as_deref(), entry.after.as_deref()) {
        (Some(before), Some(after)) => format!(": {before} → {after}"),
        (None, Some("")) | (None, None) => String::new(),
        (None, Some(after)) => format!(": {after}"),
        (Some(before), None) => format!(": {before}"),
    };
    format!("{}{about}{values}", entry.action)
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
    told
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
    use chrono::FixedOffset;

    use super::*;

    fn entry(actor: &str, name: Option<&str>, action: &str) -> Entry {
        Entry {
            id: 1,
            at: 1_794_000_000_000,
            actor: actor.to_owned(),
            name: name.map(str::to_owned),
            place: None,
            agent: None,
            action: action.to_owned(),
            subject: None,
            before: None,
            after: None,
        }
    }

    #[test]
    fn texts() {
        let rose = AgentId::parse("rose").unwrap();
        let topic: SessionKey = "telegram:topic:-1001:5".parse().unwrap();
        let zone = FixedOffset::east_opt(3600).unwrap();
        let switch = Entry {
            place: Some(topic.to_string()),
            before: Some("main".into()),
            after: Some("rose".into()),
            ..entry("telegram:111", Some("Alice"), "switch")
        };
        let pair = Entry {
            subject: Some("telegram:222".into()),
            ..entry("cli", Some("ann"), "pair")
        };
        let reload = Entry {
            after: Some("agents.dot bindings".into()),
            ..entry("config", None, "reload")
        };
        let pause = Entry {
            agent: Some("rose".into()),
            ..entry("telegram:111", Some(""), "agent pause")
        };
        let end = Entry {
            before: Some("rose".into()),
            ..entry("gateway", None, "switch")
        };
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
            bound("🌹 Rose", "this topic", &topic, &rose, 12),
            bound_already("🌹 Rose", "this topic"),
            unbound("🌹 Rose", "this topic", 12),
            not_bound("this topic", &topic),
            audit(&[], true, &zone),
            audit(&[], false, &zone),
            audit(&[switch, pair, reload, pause, end], false, &zone),
            health("🌹 Rose", &sick),
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
        🌹 Rose answers in this topic for good. config.toml has it from line 12 on:
        ```toml
        [[bindings]]
        match = "telegram:topic:-1001:5"
        agent = "rose"
        ```
        config.toml gives this topic to 🌹 Rose already.
        The binding of this topic to 🌹 Rose is taken out of config.toml, where it stood from line 12 on. `/agent` tells who answers now.
        config.toml has no binding for exactly this topic (`telegram:topic:-1001:5`). `/agent why` shows the rules that count.
        No changes of this place. In a private chat, /audit shows all places.
        No changes.
        - 6 Nov 2026, 22:20 UTC+1: Alice switch: main → rose in `telegram:topic:-1001:5`
        - 6 Nov 2026, 22:20 UTC+1: ann at the command line pair telegram:222
        - 6 Nov 2026, 22:20 UTC+1: config.toml reload: agents.dot bindings
        - 6 Nov 2026, 22:20 UTC+1: `telegram:111` agent pause rose
        - 6 Nov 2026, 22:20 UTC+1: the gateway switch: rose
        🌹 Rose: failing (the provider is not reachable); 2 messages waiting; 1 of 4 turns failed in 24 hours
        paused by Alice
        "#);
    }
}
