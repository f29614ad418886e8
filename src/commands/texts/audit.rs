//! `/audit` and `parlor audit`: changes that people have made, in sentences.

use chrono::TimeZone;

use super::words::{day, time};
use crate::domain::{AgentId, Platform};
use crate::operations::named::Named;
use crate::operations::names::Names;
use crate::records::audit::Entry;

pub(crate) const NEEDS_ADMIN: &str = "Only an owner or admin can read the audit.";
pub(crate) const USAGE: &str =
    "Write `/audit` for the last 20 changes, or a number up to 100, such as `/audit 40`.";
pub(crate) const OLDER: &str = "Older";

/// The newest first. `is_here`: only this place's.
pub(crate) fn audit<Z: TimeZone>(
    entries: &[Entry],
    is_here: bool,
    zone: &Z,
    names: &Names,
) -> String
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
    let line = |entry: &Entry| {
        let when = format!("{}, {}", day(zone, entry.at), time(zone, entry.at));
        let place = match &entry.place {
            Some(place) if !is_here => called(names, place),
            _ => "this place".to_owned(),
        };
        format!("- {when}: {} {}", who(entry), did(entry, &place, names))
    };
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The person's name, or another author of the change.
pub(crate) fn who(entry: &Entry) -> String {
    match (entry.actor.as_str(), &entry.name) {
        ("cli", Some(login)) => format!("{login} at the command line"),
        ("cli", None) => "the command line".to_owned(),
        ("token", Some(name)) => format!("the token {name}"),
        ("dashboard", Some(name)) => format!("{name} at the dashboard"),
        ("config", _) => "config.toml".to_owned(),
        ("gateway", _) => "the gateway".to_owned(),
        (_, Some(name)) if !name.is_empty() => name.clone(),
        (id, _) => format!("`{id}`"),
    }
}

/// The change as the rest of a sentence whose subject is the author: `switched Code from Ada to
/// Rose`.
pub(crate) fn did(entry: &Entry, place: &str, names: &Names) -> String {
    let subject = entry.subject.as_deref().unwrap_or_default();
    let values = (
        entry.before.as_deref().filter(|before| !before.is_empty()),
        entry.after.as_deref().filter(|after| !after.is_empty()),
    );
    let of = match &entry.agent {
        Some(id) => agent_name(names, id),
        None => String::new(),
    };
    to_place(entry, place, values, names)
        .or_else(|| to_people(&entry.action, subject, values, &of, names))
        .or_else(|| to_house(entry, subject, values, &of))
        .unwrap_or_else(|| format!("{} {subject}", entry.action).trim_end().to_owned())
}

/// A change of a place or its conversation.
fn to_place(entry: &Entry, place: &str, values: Values<'_>, names: &Names) -> Option<String> {
    let agent = |id: &str| agent_name(names, id);
    let subject = entry.subject.as_deref().unwrap_or_default();
    Some(match entry.action.as_str() {
        "switch" => switched(values, subject, place, &agent),
        "bind" => {
            // An imported binding is about a pattern.
            let place = if subject.is_empty() { place } else { subject };
            match values {
                (Some(before), Some(after)) if before != after => format!(
                    "took {place} from {} and gave it to {} for good",
                    agent(before),
                    agent(after)
                ),
                (_, Some(after)) => format!("gave {place} to {} for good", agent(after)),
                (_, None) => format!("gave {place} to an agent for good"),
            }
        }
        "unbind" => match values.0 {
            Some(before) => format!(
                "took the binding of {place} to {} out of config.toml",
                agent(before)
            ),
            None => format!("took the binding of {place} out of config.toml"),
        },
        "open" => format!("opened {place}"),
        "close" => format!("closed {place}"),
        "deliver" => format!(
            "switched delivery {} in {place}",
            values.1.unwrap_or_default()
        ),
        "new" | "new conversation" => format!("began a new conversation in {place}"),
        "fork" => format!(
            "copied the conversation in {place} to {}",
            called(names, values.1.unwrap_or_default())
        ),
        "move" => format!(
            "moved the conversation in {} to {}",
            called(names, values.0.unwrap_or_default()),
            called(names, values.1.unwrap_or_default())
        ),
        "stop" if entry.place.is_some() => format!("stopped the answer in {place}"),
        "stop" => "stopped all answers".to_owned(),
        _ => return None,
    })
}

/// A change of people and of what they or an agent (`of`) may use.
fn to_people(
    action: &str,
    subject: &str,
    values: Values<'_>,
    of: &str,
    names: &Names,
) -> Option<String> {
    let whom = person(names, subject);
    Some(match action {
        "pair" => match values.1 {
            Some("owner") => format!("let in {whom} as an owner"),
            _ => format!("let in {whom}"),
        },
        "turn away" => format!("turned away {whom}"),
        "unpair" => format!("put out {whom}"),
        "role" => role(values, &whom, of),
        "link" => format!("linked `{}` to {whom}", values.1.unwrap_or_default()),
        "person add" => format!("added {whom}: {}", values.1.unwrap_or_default()),
        "person remove" => format!("removed {whom}"),
        "allow" => {
            let holder = match (of.is_empty(), subject) {
                (false, _) => of.to_owned(),
                (true, "house") => "the house".to_owned(),
                (true, _) => whom,
            };
            let (before, after) = (values.0.unwrap_or("none"), values.1.unwrap_or("none"));
            format!("raised the limit of {holder} from {before} to {after}")
        }
        _ => return None,
    })
}

/// A change of the house: its config, agents, jobs, memories and tokens.
fn to_house(entry: &Entry, subject: &str, values: Values<'_>, of: &str) -> Option<String> {
    let action = entry.action.as_str();
    Some(match action {
        "reload" => reloaded(entry, values.1),
        "setup" => connected(subject, values.1),
        "config" => "changed config.toml".to_owned(),
        "restore" => format!("brought the home back from the {subject}"),
        "pause" => format!("paused the {subject} work"),
        "resume" => format!("resumed the {subject} work"),
        "retry" => format!("had {subject} sent again"),
        "drop" => format!("deleted {subject} that could not be delivered"),
        "forget" => format!("deleted memory {subject} of {of}"),
        "remember" => format!("added memory {subject} of {of}"),
        "token create" => format!(
            "made the token {subject} ({})",
            values.1.unwrap_or_default()
        ),
        "token revoke" => format!("ended the token {subject}"),
        "sign in" => format!("signed in ({})", values.1.unwrap_or(subject)),
        _ => match (action.strip_prefix("agent "), action.strip_prefix("job ")) {
            (Some(deed), _) => of_agent(deed, of, subject, values.0),
            (_, Some(deed)) => of_job(deed, of, subject, values.1),
            _ => return None,
        },
    })
}

type Values<'a> = (Option<&'a str>, Option<&'a str>);

/// `subject` tells how long the switch counts.
fn switched(
    values: Values<'_>,
    subject: &str,
    place: &str,
    agent: &dyn Fn(&str) -> String,
) -> String {
    let how_long = match subject {
        "" => String::new(),
        subject => format!(" {subject}"),
    };
    match values {
        (Some(before), Some(after)) if before != after => format!(
            "switched {place} from {} to {}{how_long}",
            agent(before),
            agent(after)
        ),
        (_, Some(after)) => format!("switched {place} to {}{how_long}", agent(after)),
        (Some(before), None) => format!("ended the switch of {place} to {}", agent(before)),
        (None, None) => format!("switched {place}"),
    }
}

fn role(values: Values<'_>, whom: &str, agent: &str) -> String {
    let with = match agent {
        "" => String::new(),
        agent => format!(" with {agent}"),
    };
    match values {
        (Some(before), Some(after)) => {
            format!("changed the role of {whom}{with} from {before} to {after}")
        }
        (_, after) => format!(
            "gave {whom} the role {}{with}",
            after.unwrap_or("they had before")
        ),
    }
}

/// A saved file has no person behind it.
fn reloaded(entry: &Entry, changed: Option<&str>) -> String {
    let what = match entry.actor.as_str() {
        "config" => "was saved",
        _ => "reloaded config.toml",
    };
    match changed {
        Some(changed) => format!("{what}: {} changed", changed.replace(' ', ", ")),
        None => what.to_owned(),
    }
}

fn connected(subject: &str, model: Option<&str>) -> String {
    match (model, subject.parse::<Platform>()) {
        (Some(model), _) => format!("connected the model {model}"),
        (None, Ok(Platform::Telegram)) => "connected Telegram".to_owned(),
        (None, Ok(Platform::Discord)) => "connected Discord".to_owned(),
        (None, _) => format!("connected {subject}"),
    }
}

fn of_agent(deed: &str, agent: &str, subject: &str, before: Option<&str>) -> String {
    match deed {
        "pause" => format!("paused {agent}"),
        "resume" => format!("resumed {agent}"),
        "restart" => format!("restarted {agent}"),
        "reset" => format!("had {agent} start afresh everywhere"),
        "add" => format!("added the agent {agent}"),
        "default" => format!("made {agent} the default agent"),
        "rename" => format!("renamed {} to {agent}", before.unwrap_or("an agent")),
        "remove" => format!("removed the agent {agent}"),
        "restore" => format!("brought the agent {agent} back"),
        "purge" => format!("deleted the agent {agent} for good"),
        "import" => format!("imported the agent {agent}"),
        "edit" | "file" => format!("changed {} of {agent}", subject.replace(' ', ", ")),
        deed => format!("changed {agent} ({deed})"),
    }
}

fn of_job(deed: &str, agent: &str, job: &str, why: Option<&str>) -> String {
    let done = match deed {
        "add" => "added",
        "remove" => "removed",
        "pause" => "paused",
        "resume" => "resumed",
        "run" => "ran",
        _ => "changed",
    };
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("{done} the job {job} of {agent}{why}")
}

fn agent_name(names: &Names, id: &str) -> String {
    let known = AgentId::parse(id).ok().map(|id| names.agent(&id));
    let name = known.as_ref().and_then(Named::words);
    name.unwrap_or(id).to_owned()
}

/// `Bob (`telegram:12`)`, because names on a platform can be anybody's.
fn person(names: &Names, id: &str) -> String {
    let known = id.parse().ok().map(|id| names.person(&id));
    match known.as_ref().and_then(Named::words) {
        Some(name) => format!("{name} (`{id}`)"),
        None => format!("`{id}`"),
    }
}

fn called(names: &Names, key: &str) -> String {
    let known = key.parse().ok().map(|key| names.place(&key));
    match known.as_ref().and_then(Named::words) {
        Some(words) => words.to_owned(),
        None => format!("`{key}`"),
    }
}

#[cfg(test)]
mod tests {
    use chrono::FixedOffset;

    use super::*;

    /// `actor action agent subject before after place`, with `-` for nothing.
    fn entry(line: &str) -> Entry {
        let fields: Vec<Option<String>> = line
            .split('|')
            .map(str::trim)
            .map(|field| (field != "-").then(|| field.to_owned()))
            .collect();
        let [actor, action, agent, subject, before, after, place] = fields.as_slice() else {
            panic!("{line}");
        };
        let actor = actor.clone().unwrap_or_default();
        Entry {
            id: 1,
            at: 1_794_000_000_000,
            name: match actor.as_str() {
                "telegram:11" => Some("Alice".to_owned()),
                "cli" => Some("ann".to_owned()),
                _ => None,
            },
            actor,
            place: place.clone(),
            agent: agent.clone(),
            action: action.clone().unwrap_or_default(),
            subject: subject.clone(),
            before: before.clone(),
            after: after.clone(),
        }
    }

    #[test]
    fn changes_are_told_in_sentences() {
        let names = Names::made_of(
            &[("telegram:12", "Bob")],
            &[("telegram:topic:-1001:5", "Code")],
            &[("rose", "Rose"), ("ada", "Ada")],
        );
        let zone = FixedOffset::east_opt(3600).unwrap();
        let lines = [
            "telegram:11 | switch | - | - | ada | rose | telegram:topic:-1001:5",
            "telegram:11 | switch | - | once | ada | rose | telegram:topic:-1001:5",
            "telegram:11 | switch | - | for 2 hours | ada | rose | telegram:topic:-1001:6",
            "telegram:12 | switch | - | - | ada | rose | telegram:dm:12",
            "cli | switch | rose | - | rose | rose | telegram:topic:-1001:5",
            "gateway | switch | - | - | rose | - | telegram:topic:-1001:5",
            "cli | bind | ada | - | - | ada | telegram:topic:-1001:5",
            "telegram:11 | bind | - | - | rose | ada | telegram:topic:-1001:5",
            "cli | bind | ada | telegram:dm | - | ada | -",
            "telegram:11 | unbind | - | - | ada | - | telegram:topic:-1001:5",
            "telegram:11 | open | - | - | - | - | telegram:topic:-1001:5",
            "telegram:11 | deliver | - | - | on | off | telegram:topic:-1001:5",
            "cli | new conversation | - | - | - | - | telegram:topic:-1001:5",
            "cli | fork | - | - | - | local:home | telegram:topic:-1001:5",
            "cli | move | - | - | telegram:topic:-1001:5 | telegram:dm:12 | telegram:topic:-1001:5",
            "cli | stop | - | - | - | - | telegram:topic:-1001:5",
            "cli | pair | - | telegram:12 | - | - | -",
            "cli | pair | - | telegram:13 | - | owner | -",
            "telegram:11 | turn away | - | telegram:12 | - | - | -",
            "telegram:11 | unpair | - | telegram:12 | - | - | -",
            "cli | role | - | telegram:12 | admin | member | -",
            "cli | role | rose | telegram:12 | guest | member | -",
            "cli | role | - | telegram:11 | - | owner | -",
            "cli | link | - | telegram:12 | - | discord:5 | -",
            "cli | person remove | - | telegram:12 | admin | - | -",
            "telegram:11 | allow | rose | - | 100 tokens today | 150 tokens today | -",
            "telegram:11 | allow | - | house | 1.00 USD today | 2.00 USD today | -",
            "config | reload | - | - | - | agents.dot bindings | -",
            "telegram:11 | reload | - | - | - | - | -",
            "cli | setup | - | telegram | - | - | -",
            "cli | setup | - | model | - | local/m1 | -",
            "telegram:11 | agent pause | rose | - | - | - | -",
            "cli | agent rename | rose | - | lily | rose | -",
            "cli | agent edit | rose | model name | - | - | -",
            "gateway | job pause | rose | plan | - | it failed 3 times | -",
            "cli | forget | rose | 12 | - | - | -",
            "cli | token create | - | ci | - | read | -",
            "cli | something new | - | of tomorrow | - | - | -",
        ];
        let entries = lines.map(entry);
        let told = audit(&entries, false, &zone, &names);
        insta::assert_snapshot!(told.replace("- 6 Nov 2026, 22:20 UTC+1: ", ""), @"
        Alice switched Code from Ada to Rose
        Alice switched Code from Ada to Rose once
        Alice switched `telegram:topic:-1001:6` from Ada to Rose for 2 hours
        `telegram:12` switched Bob's private chat from Ada to Rose
        ann at the command line switched Code to Rose
        the gateway ended the switch of Code to Rose
        ann at the command line gave Code to Ada for good
        Alice took Code from Rose and gave it to Ada for good
        ann at the command line gave telegram:dm to Ada for good
        Alice took the binding of Code to Ada out of config.toml
        Alice opened Code
        Alice switched delivery off in Code
        ann at the command line began a new conversation in Code
        ann at the command line copied the conversation in Code to `local:home`
        ann at the command line moved the conversation in Code to Bob's private chat
        ann at the command line stopped the answer in Code
        ann at the command line let in Bob (`telegram:12`)
        ann at the command line let in `telegram:13` as an owner
        Alice turned away Bob (`telegram:12`)
        Alice put out Bob (`telegram:12`)
        ann at the command line changed the role of Bob (`telegram:12`) from admin to member
        ann at the command line changed the role of Bob (`telegram:12`) with Rose from guest to member
        ann at the command line gave `telegram:11` the role owner
        ann at the command line linked `discord:5` to Bob (`telegram:12`)
        ann at the command line removed Bob (`telegram:12`)
        Alice raised the limit of Rose from 100 tokens today to 150 tokens today
        Alice raised the limit of the house from 1.00 USD today to 2.00 USD today
        config.toml was saved: agents.dot, bindings changed
        Alice reloaded config.toml
        ann at the command line connected Telegram
        ann at the command line connected the model local/m1
        Alice paused Rose
        ann at the command line renamed lily to Rose
        ann at the command line changed model, name of Rose
        the gateway paused the job plan of Rose: it failed 3 times
        ann at the command line deleted memory 12 of Rose
        ann at the command line made the token ci (read)
        ann at the command line something new of tomorrow
        ");
        let here = audit(&entries[..1], true, &zone, &names);
        insta::assert_snapshot!(here, @"- 6 Nov 2026, 22:20 UTC+1: Alice switched this place from Ada to Rose");
        insta::assert_snapshot!(audit(&[], true, &zone, &names), @"No changes of this place. In a private chat, /audit shows all places.");
        insta::assert_snapshot!(audit(&[], false, &zone, &names), @"No changes.");
    }
}
