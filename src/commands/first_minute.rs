//! The texts of the first minute: for guests with their first message, for the owners and admins
//! who let them in, and for `/start`. Markdown.

use crate::access::people::{Acquaintance, Decided, Decision};
use crate::channels::{Choice, escaped};

/// The people asked to let a guest in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// An owner or admin has a message about the guest.
    Owners,
    /// The bot cannot write to any owner, or has told them enough for now.
    Nobody,
    /// The config names no owner.
    NoOwnerYet(HomeFolder),
}

/// The home folder from the view of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HomeFolder {
    /// Without being told.
    Usual,
    /// The folder was named with `--home`.
    Named,
}

/// Whether the first message of a guest is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    Kept,
    NotKept,
}

/// The first words to a guest.
pub(crate) fn hello(name: &str, code: &str, asked: Asked, first: First) -> String {
    let hi = hi(name);
    let told = match asked {
        Asked::Owners => format!(
            "{hi} This bot is private. Its owner has been asked to let you in; I'll write to you once that's decided. Your code is {code}, for one hour."
        ),
        Asked::Nobody => format!(
            "{hi} This bot is private. Ask its owner to let you in with the code {code}, which is valid for one hour."
        ),
        // The path of the folder is not for strangers.
        Asked::NoOwnerYet(HomeFolder::Named) => format!(
            "{hi} This bot has no owner yet. If it's yours, run `parlor --home DIR pair {code} --owner` where it runs, with its home folder for DIR. The code is valid for one hour."
        ),
        Asked::NoOwnerYet(HomeFolder::Usual) => format!(
            "{hi} This bot has no owner yet. If it's yours, run `parlor pair {code} --owner` where it runs. The code is valid for one hour."
        ),
    };
    match first {
        First::Kept => format!("{told} Your message is kept until then."),
        First::NotKept => told,
    }
}

/// To a guest who writes again.
pub(crate) fn still_waiting(asked: Asked) -> &'static str {
    match asked {
        Asked::Owners | Asked::Nobody => {
            "Still waiting for an owner to let you in. I'll write to you once that's decided."
        }
        Asked::NoOwnerYet(_) => {
            "Still waiting for somebody to run the command above. I'll write to you then."
        }
    }
}

/// To a guest who was turned away and uses a slash command, whose answer the platform waits for.
pub(crate) const STAYS_PRIVATE: &str = "This bot is private.";

/// To an owner or admin, with the buttons of [`decisions`].
pub(crate) fn wants_in(guest: &Acquaintance, first: First) -> String {
    let who = who(guest);
    match first {
        First::Kept => format!("{who} wants in. Their first words are kept until you decide."),
        First::NotKept => format!("{who} wants in."),
    }
}

pub(crate) fn decisions(code: &str) -> Vec<Choice> {
    [("Let in", "yes"), ("No", "no")]
        .map(|(label, word)| Choice {
            label: label.into(),
            command: format!("/pair {code} {word}"),
        })
        .into()
}

/// To an owner or admin, in place of further messages about single guests.
pub(crate) fn many_want_in(waiting: i64) -> String {
    format!(
        "{waiting} people wait to be let in now, so I'll stop telling you about each of them for a while. `/pair` or `parlor pair list` shows them all."
    )
}

/// To a guest who was let in.
pub(crate) fn welcome(name: &str, decision: Decision, agent: Option<&str>, first: First) -> String {
    let name = escaped(name);
    let you = match decision {
        Decision::MadeOwner => format!("You're in, {name}, and this bot is yours."),
        _ => format!("You're in, {name}."),
    };
    match (agent.map(escaped), first) {
        (Some(agent), First::Kept) => format!("{you} {agent} reads your first message now."),
        (Some(agent), First::NotKept) => format!("{you} {agent} listens here: just write."),
        (None, _) => you,
    }
}

/// To a guest who was turned away, once.
pub(crate) fn turned_away(name: &str) -> String {
    format!(
        "Sorry, {}. This bot stays private, and your message here was not kept.",
        escaped(name)
    )
}

/// The decision about a guest, in place of [`wants_in`] and in reply to a late press.
pub(crate) fn decided(decided: &Decided) -> String {
    let (who, id) = (who(&decided.known), &decided.known.person);
    let by = decided
        .decider
        .as_ref()
        .map_or_else(|| "somebody".to_owned(), |by| escaped(&by.name));
    match decided.decision {
        Decision::LetIn => format!("{who} is in, let in by {by}. `/unpair {id}` takes it back."),
        Decision::MadeOwner => format!("{who} is in, and was made an owner by {by}."),
        Decision::TurnedAway => {
            format!(
                "{who} was turned away by {by}. They can ask again tomorrow; an owner's `/people role {id} member` lets them in now."
            )
        }
        Decision::RanOut => format!(
            "{who} wanted in, and nobody decided within the hour. They get a new code by writing again."
        ),
    }
}

/// To an owner or admin who asks about a code.
pub(crate) fn shown(guest: &Acquaintance, code: &str) -> String {
    format!(
        "{} has this code. Nobody is let in yet: `/pair {code} yes` does it, `/pair {code} no` turns them away.",
        who(guest)
    )
}

pub(crate) const NO_SUCH_CODE: &str = "No such code is open. A code is valid for one hour; the person gets a new one by writing to the bot again.";

/// The agent that listens in a place, for `/start`.
pub(crate) enum Listening {
    /// The agent listens to everything said there.
    Always(String),
    WhenMentioned(String),
    /// The agent is closed to the person; the text says which agents are not.
    NotToYou(String),
    /// No rule opens the place. An agent that could be given the place.
    Nobody {
        offered: Option<String>,
    },
}

/// The reply to `/start`.
pub(crate) fn greeting(name: &str, listening: &Listening) -> String {
    let hi = hi(name);
    match listening {
        Listening::Always(agent) => format!(
            "{hi} {} listens here: just write.\n/help lists the commands.",
            escaped(agent)
        ),
        Listening::WhenMentioned(agent) => format!(
            "{hi} {} listens here: mention me, or reply to one of my messages.\n/help lists the commands.",
            escaped(agent)
        ),
        Listening::NotToYou(why) => format!("{hi} {why}\n/help lists the commands."),
        Listening::Nobody { offered: None } => {
            format!("{hi} No agent listens here yet.\n/help lists the commands.")
        }
        Listening::Nobody {
            offered: Some(agent),
        } => format!(
            "{hi} No agent listens here yet. `/agent {agent}` gives this place to one.\n/help lists the commands."
        ),
    }
}

/// People without a name are called somebody elsewhere.
fn hi(name: &str) -> String {
    match name {
        "" | "somebody" => "Hi.".to_owned(),
        name => format!("Hi {}.", escaped(name)),
    }
}

fn who(guest: &Acquaintance) -> String {
    format!("{} (`{}`)", escaped(&guest.name), guest.person)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::people::Decider;

    fn dave() -> Acquaintance {
        Acquaintance {
            person: "telegram:14".parse().unwrap(),
            name: "Dave".into(),
        }
    }

    #[test]
    fn guests_are_told_what_happens_next() {
        let asked = [
            Asked::Owners,
            Asked::Nobody,
            Asked::NoOwnerYet(HomeFolder::Usual),
            Asked::NoOwnerYet(HomeFolder::Named),
        ];
        let hellos = asked.map(|asked| hello("Dave", "HHM9LW2A", asked, First::NotKept));
        let kept = hello("Dave *", "HHM9LW2A", Asked::Owners, First::Kept);
        insta::assert_snapshot!(format!("{}\n{kept}\n{}\n{}", hellos.join("\n"), still_waiting(Asked::Owners), still_waiting(Asked::NoOwnerYet(HomeFolder::Usual))), @r#"
        Hi Dave. This bot is private. Its owner has been asked to let you in; I'll write to you once that's decided. Your code is HHM9LW2A, for one hour.
        Hi Dave. This bot is private. Ask its owner to let you in with the code HHM9LW2A, which is valid for one hour.
        Hi Dave. This bot has no owner yet. If it's yours, run `parlor pair HHM9LW2A --owner` where it runs. The code is valid for one hour.
        Hi Dave. This bot has no owner yet. If it's yours, run `parlor --home DIR pair HHM9LW2A --owner` where it runs, with its home folder for DIR. The code is valid for one hour.
        Hi Dave \*. This bot is private. Its owner has been asked to let you in; I'll write to you once that's decided. Your code is HHM9LW2A, for one hour. Your message is kept until then.
        Still waiting for an owner to let you in. I'll write to you once that's decided.
        Still waiting for somebody to run the command above. I'll write to you then.
        "#);
        let agent = Some("☕ Main");
        let ends = [
            welcome("Dave", Decision::LetIn, agent, First::Kept),
            welcome("Dave", Decision::LetIn, agent, First::NotKept),
            welcome("Dave", Decision::LetIn, None, First::Kept),
            welcome("Dave", Decision::MadeOwner, agent, First::NotKept),
            turned_away("Dave"),
        ];
        insta::assert_snapshot!(ends.join("\n"), @r"
        You're in, Dave. ☕ Main reads your first message now.
        You're in, Dave. ☕ Main listens here: just write.
        You're in, Dave.
        You're in, Dave, and this bot is yours. ☕ Main listens here: just write.
        Sorry, Dave. This bot stays private, and your message here was not kept.
        ");
    }

    #[test]
    fn owners_are_asked_and_told() {
        let notices = [
            wants_in(&dave(), First::Kept),
            wants_in(&dave(), First::NotKept),
            many_want_in(6),
            shown(&dave(), "HHM9LW2A"),
        ];
        let ends = [
            Decision::LetIn,
            Decision::MadeOwner,
            Decision::TurnedAway,
            Decision::RanOut,
        ];
        let ends = ends.map(|decision| {
            decided(&Decided {
                known: dave(),
                code: "HHM9LW2A".into(),
                decision,
                decider: Some(Decider {
                    id: "telegram:11".into(),
                    name: "Alice".into(),
                }),
                first_message: None,
            })
        });
        insta::assert_snapshot!(format!("{}\n{}", notices.join("\n"), ends.join("\n")), @r"
        Dave (`telegram:14`) wants in. Their first words are kept until you decide.
        Dave (`telegram:14`) wants in.
        6 people wait to be let in now, so I'll stop telling you about each of them for a while. `/pair` or `parlor pair list` shows them all.
        Dave (`telegram:14`) has this code. Nobody is let in yet: `/pair HHM9LW2A yes` does it, `/pair HHM9LW2A no` turns them away.
        Dave (`telegram:14`) is in, let in by Alice. `/unpair telegram:14` takes it back.
        Dave (`telegram:14`) is in, and was made an owner by Alice.
        Dave (`telegram:14`) was turned away by Alice. They can ask again tomorrow; an owner's `/people role telegram:14 member` lets them in now.
        Dave (`telegram:14`) wanted in, and nobody decided within the hour. They get a new code by writing again.
        ");
    }

    #[test]
    fn start_says_who_listens() {
        let all = [
            Listening::Always("🌹 Rose".into()),
            Listening::WhenMentioned("🌹 Rose".into()),
            Listening::NotToYou("Rose is for members. Open to you here: `/agent main`.".into()),
            Listening::Nobody {
                offered: Some("rose".into()),
            },
            Listening::Nobody { offered: None },
        ];
        let texts: Vec<String> = all.iter().map(|one| greeting("Alice", one)).collect();
        insta::assert_snapshot!(texts.join("\n\n"), @r"
        Hi Alice. 🌹 Rose listens here: just write.
        /help lists the commands.

        Hi Alice. 🌹 Rose listens here: mention me, or reply to one of my messages.
        /help lists the commands.

        Hi Alice. Rose is for members. Open to you here: `/agent main`.
        /help lists the commands.

        Hi Alice. No agent listens here yet. `/agent rose` gives this place to one.
        /help lists the commands.

        Hi Alice. No agent listens here yet.
        /help lists the commands.
        ");
        assert_eq!(hi("somebody"), "Hi.");
    }
}
