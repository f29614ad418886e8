//! `/people`.

use super::words::{day, grouped};
use crate::access::Role;
use crate::access::grants::Grantor;
use crate::config::Currency;
use crate::operations::known_people::{Known, Source};
use crate::operations::people::Plan;
use crate::turn::budget::Spent;

/// People in a list; the rest is only counted.
const MOST_LISTED: usize = 30;

pub(crate) const ONLY_ADMINS: &str = "Only owners and admins can see who is known here.";
pub(crate) const ONLY_OWNERS: &str = "Only owners can change roles.";
pub(crate) const IN_PRIVATE: &str =
    "Others read along here, so I tell that only in a private chat with me.";

pub(crate) fn list(known: &[Known], currency: &Currency) -> String {
    let mut text = match known.len() {
        0 => "Nobody is known yet.".to_owned(),
        1 => "1 person is known:".to_owned(),
        people => format!("{people} people are known:"),
    };
    for known in known.iter().take(MOST_LISTED) {
        let spent = spent(known.spent, currency);
        let spent = spent.map_or_else(String::new, |spent| format!(", {spent} today"));
        text.push_str(&format!(
            "\n- {}: {}{}{spent}",
            name(known),
            known.role,
            with_agents(known)
        ));
    }
    if known.len() > MOST_LISTED {
        let more = known.len() - MOST_LISTED;
        text.push_str(&format!("\n- and {more} more (`parlor people list`)"));
    }
    text
}

/// `alice (telegram:1, discord:2)`.
fn name(known: &Known) -> String {
    let ids: Vec<String> = known.ids.iter().map(|(id, _)| format!("`{id}`")).collect();
    let ids = ids.join(", ");
    match known.name.as_ref().or(known.called.as_ref()) {
        Some(name) => format!("{name} ({ids})"),
        None => ids,
    }
}

fn with_agents(known: &Known) -> String {
    let with = known.agents.iter();
    with.map(|(agent, role, _)| format!(", {role} with {agent}"))
        .collect()
}

fn spent(spent: Spent, currency: &Currency) -> Option<String> {
    if spent == Spent::default() {
        return None;
    }
    let cost = match spent.cost.0 {
        0 => String::new(),
        _ => format!(", {}", spent.cost.in_currency(currency)),
    };
    Some(format!("{} tokens{cost}", grouped(spent.tokens)))
}

pub(crate) fn show(known: &Known, currency: &Currency) -> String {
    let mut lines = vec![name(known)];
    lines.extend(
        known
            .called
            .iter()
            .filter(|called| known.name.is_some() && known.name.as_ref() != Some(*called))
            .map(|called| format!("- on the platform: {called}")),
    );
    lines.push(format!("- {}: {}", known.role, source(&known.role_from)));
    for (agent, role, from) in &known.agents {
        lines.push(format!("- {role} with {agent}: {}", source(from)));
    }
    for (id, from) in &known.ids {
        lines.push(format!("- `{id}`: {}", source(from)));
    }
    let seen = known.last_seen.map(|at| day(&chrono::Local, at));
    lines.push(format!(
        "- last seen: {}",
        seen.unwrap_or_else(|| "never".to_owned())
    ));
    let spent = spent(known.spent, currency);
    lines.push(format!(
        "- today: {}",
        spent.unwrap_or_else(|| "nothing used".to_owned())
    ));
    lines.join("\n")
}

pub(crate) fn source(source: &Source) -> String {
    let line = |line: usize| format!("line {line} of config.toml");
    match source {
        Source::Owners(at) => {
            let place = at.map_or_else(|| "config.toml".to_owned(), line);
            format!("{place}, owners")
        }
        Source::File(at) => line(*at),
        Source::Granted(by) => format!("granted by {}", granted(by)),
        Source::Paired(by) => format!("let in by {}", granted(by)),
        Source::Nowhere => "only seen".to_owned(),
    }
}

fn granted(by: &Grantor) -> String {
    let at = day(&chrono::Local, by.at);
    match (by.id.as_str(), by.name.as_deref()) {
        ("cli", Some(login)) => format!("{login} at the command line on {at}"),
        ("cli", None) => format!("the command line on {at}"),
        (id, Some(name)) => format!("{name} ({id}) on {at}"),
        (id, None) => format!("{id} on {at}"),
    }
}

/// A person without the code that let them in.
pub(crate) fn put_out(left: &Known) -> String {
    match left.role {
        Role::Guest => format!(
            "{} is a guest again. What was said stays; a new code lets the person in again.",
            left.label()
        ),
        role => format!(
            "The code of {} is taken back, but {} is still {} ({}). {}",
            left.label(),
            left.name
                .as_ref()
                .or(left.called.as_ref())
                .map_or("this person", String::as_str),
            role.with_article(),
            source(&left.role_from),
            how_to_end(left)
        ),
    }
}

/// A person who was never let in with a code.
pub(crate) fn not_let_in(known: &Known) -> String {
    match known.role {
        Role::Guest => format!(
            "{} was not let in with a code; `/pair` lists those who were.",
            known.label()
        ),
        role => format!(
            "{} was not let in with a code, but is {} ({}). {}",
            known.label(),
            role.with_article(),
            source(&known.role_from),
            how_to_end(known)
        ),
    }
}

fn how_to_end(known: &Known) -> String {
    match known.role_from {
        Source::Granted(_) | Source::Paired(_) | Source::Nowhere => {
            format!(
                "An owner's `/people role {} guest` ends that.",
                known.main()
            )
        }
        Source::Owners(_) | Source::File(_) => "Changing that line ends it.".to_owned(),
    }
}

const GUESTS_MAY: &str = " A guest can no longer write to the bot in private, unless private chats are open to everybody or a new code lets them in; in open groups guests are answered.";

/// A change that was made.
pub(crate) fn changed(plan: &Plan) -> String {
    match plan {
        Plan::Add {
            name, role, agents, ..
        } => {
            let role = role.map_or_else(|| "known".to_owned(), |role| role.with_article().into());
            let with: String = agents
                .iter()
                .map(|(agent, _, role)| format!(", {} with {agent}", role.with_article()))
                .collect();
            format!("{name} is {role} now{with}.")
        }
        Plan::Role {
            known,
            role,
            agent,
            before,
        } => {
            let with = agent
                .as_ref()
                .map_or_else(String::new, |(agent, _)| format!(" with {agent}"));
            if before == role {
                return format!("{} stays {}{with}.", known.label(), role.with_article());
            }
            // Only the role with all agents opens and closes private chats.
            let then = match (agent, role) {
                (None, Role::Guest) => GUESTS_MAY,
                _ => "",
            };
            format!(
                "{} is {} now{with}, and was {}.{then}",
                known.label(),
                role.with_article(),
                before.with_article()
            )
        }
        Plan::Link { known, id } => format!(
            "{id} belongs to {} now: one person with one role, one budget and one memory.",
            known.label()
        ),
        Plan::Remove { known, stays } => {
            let stays = stays.map_or_else(String::new, |line| {
                format!(" Line {line} of config.toml still counts.")
            });
            format!(
                "Everything granted to {} is taken back. What was said stays.{stays}",
                known.label()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Money;
    use crate::domain::AgentId;

    fn alice() -> Known {
        let by = Grantor {
            id: "telegram:3".into(),
            name: Some("Carol".into()),
            at: 1_800_000_000_000,
        };
        Known {
            name: Some("alice".into()),
            called: Some("Alice A.".into()),
            ids: vec![
                ("telegram:1".parse().unwrap(), Source::File(12)),
                ("discord:1".parse().unwrap(), Source::Granted(by.clone())),
            ],
            role: Role::Member,
            role_from: Source::Paired(Grantor {
                id: "cli".into(),
                name: None,
                at: by.at,
            }),
            agents: vec![(
                AgentId::parse("coding").unwrap(),
                Role::Admin,
                Source::Granted(by),
            )],
            last_seen: None,
            spent: Spent {
                tokens: 1_200,
                cost: Money(20_000),
            },
            unpriced_tokens: 0,
        }
    }

    #[test]
    fn people_read_well() {
        let bob = Known {
            name: None,
            called: None,
            ids: vec![("telegram:2".parse().unwrap(), Source::Nowhere)],
            role: Role::Guest,
            role_from: Source::Nowhere,
            agents: Vec::new(),
            last_seen: None,
            spent: Spent::default(),
            unpriced_tokens: 0,
        };
        let currency = Currency::default();
        insta::assert_snapshot!(list(&[alice(), bob], &currency), @"
        2 people are known:
        - alice (`telegram:1`, `discord:1`): member, admin with coding, 1,200 tokens, 0.02 USD today
        - `telegram:2`: guest
        ");
        insta::assert_snapshot!(show(&alice(), &currency), @"
        alice (`telegram:1`, `discord:1`)
        - on the platform: Alice A.
        - member: let in by the command line on 15 Jan 2027
        - admin with coding: granted by Carol (telegram:3) on 15 Jan 2027
        - `telegram:1`: line 12 of config.toml
        - `discord:1`: granted by Carol (telegram:3) on 15 Jan 2027
        - last seen: never
        - today: 1,200 tokens, 0.02 USD
        ");
        let changes = [
            changed(&Plan::Role {
                known: alice(),
                role: Role::Admin,
                agent: None,
                before: Role::Member,
            }),
            changed(&Plan::Link {
                known: alice(),
                id: "discord:7".parse().unwrap(),
            }),
            changed(&Plan::Remove {
                known: alice(),
                stays: Some(12),
            }),
            changed(&Plan::Add {
                name: "dan".into(),
                main: "telegram:4".parse().unwrap(),
                others: Vec::new(),
                role: Some(Role::Member),
                agents: Vec::new(),
            }),
        ];
        insta::assert_snapshot!(changes.join("\n"), @"
        alice (telegram:1) is an admin now, and was a member.
        discord:7 belongs to alice (telegram:1) now: one person with one role, one budget and one memory.
        Everything granted to alice (telegram:1) is taken back. What was said stays. Line 12 of config.toml still counts.
        dan is a member now.
        ");
        let guest = Known {
            role: Role::Guest,
            role_from: Source::Nowhere,
            ..alice()
        };
        let granted = Known {
            role: Role::Admin,
            role_from: alice().agents[0].2.clone(),
            ..alice()
        };
        let written = Known {
            role: Role::Owner,
            role_from: Source::Owners(Some(12)),
            ..alice()
        };
        let told = [&guest, &granted, &written].map(|known| (put_out(known), not_let_in(known)));
        insta::assert_snapshot!(told.map(|(one, other)| format!("{one}\n{other}")).join("\n"), @"
        alice (telegram:1) is a guest again. What was said stays; a new code lets the person in again.
        alice (telegram:1) was not let in with a code; `/pair` lists those who were.
        The code of alice (telegram:1) is taken back, but alice is still an admin (granted by Carol (telegram:3) on 15 Jan 2027). An owner's `/people role telegram:1 guest` ends that.
        alice (telegram:1) was not let in with a code, but is an admin (granted by Carol (telegram:3) on 15 Jan 2027). An owner's `/people role telegram:1 guest` ends that.
        The code of alice (telegram:1) is taken back, but alice is still an owner (line 12 of config.toml, owners). Changing that line ends it.
        alice (telegram:1) was not let in with a code, but is an owner (line 12 of config.toml, owners). Changing that line ends it.
        ");
    }
}
