//! `/agent`, `/agents`, `/model` and `/models`.

use super::place::open_to;
use crate::access::NotForYou;
use crate::domain::AgentId;

/// The agent was chosen for an open place.
pub(crate) fn switched(label: &str, whose: Whose, this: &str) -> String {
    match whose {
        Whose::Everybodys => {
            format!("{label} answers here from now on. `/agent reset` undoes that.")
        }
        Whose::Members => {
            format!("{label} answers you in {this} from now on. `/agent reset` undoes that.")
        }
    }
}

/// The chosen agent is paused.
pub(crate) fn switched_to_paused(label: &str, id: &AgentId) -> String {
    format!(
        "{label} has this place from now on, but is paused: messages wait until an owner writes `/agent resume {id}`. `/agent reset` undoes the switch."
    )
}

/// The people a switch counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Everybodys,
    /// A conversation of a single member in a group.
    Members,
}

/// The agent was chosen for a closed place.
pub(crate) fn opened(label: &str, whose: Whose, this: &str) -> String {
    match whose {
        Whose::Everybodys => format!(
            "{label} answers here from now on, and {this} is open to everybody in it. `/agent reset` undoes the switch, `/agent close` closes {this} again."
        ),
        Whose::Members => format!(
            "{label} answers you in {this} from now on. For the others {this} stays closed. `/agent reset` undoes the switch, `/agent close` closes {this} for you too."
        ),
    }
}

pub(crate) fn once(label: &str, stays_closed: Option<&str>) -> String {
    let closed = stays_closed.map_or_else(String::new, |this| {
        format!(" After that, {this} is closed as before.")
    });
    format!("{label} takes the next message here, and only that one.{closed}")
}

/// A switch for a while opens no place.
pub(crate) fn not_for_a_while(this: &str) -> String {
    format!("Nobody answers in {this} yet. Open it first: `/agent` with an agent's name does that.")
}

pub(crate) fn already(label: &str) -> String {
    format!("{label} already answers here.")
}

/// `then` names the agent after the reset.
pub(crate) fn reset(then: &str) -> String {
    format!("The switch is undone. {then}")
}

/// A switch from before counts again.
pub(crate) fn reset_to_earlier(then: &str) -> String {
    format!(
        "That switch is undone, and the one before counts again. {then} `/agent reset` undoes that one too."
    )
}

pub(crate) fn reset_and_silent(this: &str) -> String {
    format!(
        "The switch is undone. No agent is set for {this}, so I'll stay quiet here until an owner or admin writes `/agent`."
    )
}

pub(crate) fn nothing_switched(then: &str) -> String {
    format!("Nothing was switched here. {then}")
}

pub(crate) fn may_close(this: &str) -> String {
    format!("`/agent close` closes {this}.")
}

/// A reset would leave people in the place without an agent.
pub(crate) fn reset_would_close(label: &str) -> String {
    format!(
        "After that, {label} would answer here, and not everybody in this place may use {label}. Only an owner or admin can undo this switch."
    )
}

/// A switch away from an agent that the person could not fetch back, because the agent is closed to
/// them or to others here. `others` is the id of another agent, for the ways that end by
/// themselves.
pub(crate) fn not_yours_to_take(
    label: &str,
    this: &str,
    (closed, is_for_reader): (&NotForYou, bool),
    others: &AgentId,
    borrows: Borrows,
) -> String {
    let ways = match borrows {
        Borrows::Once => format!("`/agent {others} once` works."),
        Borrows::ForAWhile => {
            format!("`/agent {others} once` and `/agent for 2h {others}` work.")
        }
    };
    format!(
        "Only an owner or admin can take {this} from {label} for good: {}, so you couldn't give it back. {ways}",
        closed_to_some(label, closed, is_for_reader)
    )
}

/// The people of the agent. A reader among them is told that the others here are not.
fn closed_to_some(label: &str, closed: &NotForYou, is_for_reader: bool) -> String {
    let people = open_to(label, closed);
    match is_for_reader {
        true => format!("{people} and guests write here"),
        false => people,
    }
}

/// The switches left to a person who cannot take a place for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Borrows {
    Once,
    ForAWhile,
}

/// The pin of another person, to an agent that the reader could not fetch back.
pub(crate) fn reset_is_not_yours(
    label: &str,
    (closed, is_for_reader): (&NotForYou, bool),
) -> String {
    format!(
        "Only an owner, an admin or the person who made it can undo this switch: {}, so you couldn't bring it back.",
        closed_to_some(label, closed, is_for_reader)
    )
}

pub(crate) fn closed(this: &str) -> String {
    format!(
        "{} is closed now. I'll stay quiet here until an owner or admin writes `/agent`.",
        capital(this)
    )
}

pub(crate) fn closed_before(this: &str) -> String {
    format!("{} is closed already.", capital(this))
}

pub(crate) fn open_by_config(this: &str, why: &str) -> String {
    format!("{} stays open: {why}.", capital(this))
}

pub(crate) const CLOSE_NEEDS_ADMIN: &str = "Only an owner or admin can close a place.";
pub(crate) const CLOSE_IN_PRIVATE: &str = "A private chat can't be closed here. `dms` under [access] in config.toml decides who may write.";
pub(crate) const ALL_GROUPS_OPEN: &str = "`groups = \"open\"` in config.toml opens every group";

pub(crate) fn bound_by(line: usize, matches: &str) -> String {
    format!("the binding for `{matches}` in line {line} of config.toml opens it")
}

pub(crate) fn locked(label: &str) -> String {
    format!("This place is locked to {label}; only an owner or admin can switch it.")
}

pub(crate) const MODEL_LOCKED: &str =
    "This place is locked; only an owner or admin can change its model.";

pub(crate) fn other(id: &AgentId, label: &str) -> String {
    format!("`/agent {id}` switches to {label}; /agents lists everyone.")
}

pub(crate) fn switches(id: &AgentId, label: &str) -> String {
    format!("`/agent {id}` switches to {label}.")
}

/// Where a lasting switch is not the person's to make.
pub(crate) fn asks_once(id: &AgentId, label: &str) -> String {
    format!("`/agent {id} once` has {label} take the next message here.")
}

pub(crate) const RESET_BUTTON: &str = "↩ undo the switch";

/// An agent of `/agents`.
pub(crate) struct Listed {
    pub(crate) label: String,
    pub(crate) model: String,
    /// Messages to the agent wait.
    pub(crate) is_paused: bool,
    /// None of its models answers at present.
    pub(crate) is_mute: bool,
    /// The agent answers in the place of the list.
    pub(crate) is_here: bool,
}

/// A line of `/agents`.
pub(crate) fn line(listed: &Listed) -> String {
    let Listed { label, model, .. } = listed;
    let state = match (listed.is_paused, listed.is_mute) {
        (true, _) => " (paused)",
        (false, true) => " (not working right now)",
        (false, false) => "",
    };
    let end = match (listed.is_here, listed.is_paused) {
        (true, false) => format!("{state} ← answers here"),
        (true, true) => format!("{state} ← this place's agent"),
        (false, _) => state.to_owned(),
    };
    format!("- {label} · {model}{end}")
}

pub(crate) const NO_AGENT_FOR_YOU: &str =
    "No agent is open to you here. Ask an owner if you need one.";

/// The agent of a place is not open to the person, or the person wants an agent that is not.
pub(crate) fn not_for_you(label: &str, closed: &NotForYou, open: &[String]) -> String {
    let closed = open_to(label, closed);
    match open {
        [] => format!("{closed}. Ask an owner if you need it."),
        open => format!("{closed}. You can use {}.", open.join(", ")),
    }
}

/// In a shared place, for an agent with a limited `who`.
pub(crate) fn not_for_guests(
    label: &str,
    closed: &NotForYou,
    owners_agent: Option<&AgentId>,
) -> String {
    let closed = open_to(label, closed);
    match owners_agent {
        Some(id) => format!(
            "{closed}, but guests can write here. To open it here, bind this place to it in config.toml, or write `who = \"guest\"` under [agents.{id}]."
        ),
        None => format!("{closed}, but guests can write here. An owner can give this place to it."),
    }
}

pub(crate) fn no_such_agent(word: &str, near: &[String], known: &[String]) -> String {
    match near {
        [] => format!(
            "No agent is called {word}. You can choose {}.",
            known.join(", ")
        ),
        near => format!(
            "No agent is called {word}. Did you mean {}?",
            near.join(" or ")
        ),
    }
}

pub(crate) const NO_AGENT_IN_CONFIG: &str = "The config names no agent for this place.";

pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        format!("{}{}", first.to_uppercase(), letters.as_str())
    })
}

/// `source`: absent for people who cannot change the setting.
pub(crate) fn model_here(label: &str, model: &str, source: Option<&str>) -> String {
    let source = source.map_or_else(String::new, |source| format!(" ({source})"));
    format!("{label} uses {model} here{source}.")
}

pub(crate) fn models(label: &str, lines: &[String]) -> String {
    format!("{label} can use:\n{}", lines.join("\n"))
}

pub(crate) fn model_chosen(label: &str, model: &str) -> String {
    format!("{label} uses `{model}` here from now on. `/model reset` or /new undoes that.")
}

pub(crate) fn model_already(label: &str, model: &str) -> String {
    format!("{label} already uses `{model}` here.")
}

pub(crate) fn model_reset(label: &str, model: &str, source: &str) -> String {
    format!("{label} uses {model} here again ({source}).")
}

pub(crate) fn no_model_chosen(label: &str, model: &str, source: &str) -> String {
    format!("No model was chosen here. {label} uses {model} ({source}).")
}

pub(crate) fn model_back(model: &str) -> String {
    format!("`/model reset` goes back to `{model}`.")
}

pub(crate) fn other_model(model: &str) -> String {
    format!("`/model {model}` switches to that one.")
}

pub(crate) const NO_OTHER_MODEL: &str =
    "There is no other model. An owner can add some with `models` under a provider in config.toml.";

pub(crate) fn model_not_offered(model: &str) -> String {
    format!("`{model}` was chosen here, but it is no longer offered.")
}

pub(crate) const STALE_MODEL: &str = "That model is no longer offered. /models lists the others.";

pub(crate) fn no_such_model(
    label: &str,
    word: &str,
    near: Option<&str>,
    known: &[String],
) -> String {
    match near {
        Some(near) => format!(
            "{label} has no model `{word}`. Did you mean `/model {near}`? /models lists all of them."
        ),
        None => format!(
            "{label} has no model `{word}`. It can use {}.",
            known.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Role;

    #[test]
    fn the_texts_about_agents_and_models_read_well() {
        let (rose, this) = ("🌹 Rose", "this topic");
        let id = AgentId::parse("rose").unwrap();
        let closed_to = |least| NotForYou {
            agent: id.clone(),
            least,
        };
        let desk = "Night Desk (`night-desk`)";
        let listed = |label: &str, model: &str, is_here, is_mute| Listed {
            label: label.to_owned(),
            model: model.to_owned(),
            is_paused: false,
            is_mute,
            is_here,
        };
        let paused = |is_here| Listed {
            is_paused: true,
            ..listed(rose, "openai/gpt-5.4", is_here, false)
        };
        let (members, named) = (closed_to(Some(Role::Member)), closed_to(None));
        let some = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
        let texts = [
            switched(rose, Whose::Everybodys, this),
            switched(rose, Whose::Members, "this group"),
            switched_to_paused(rose, &id),
            opened(rose, Whose::Everybodys, this),
            opened(rose, Whose::Members, "this group"),
            once(rose, None),
            once(rose, Some(this)),
            already(rose),
            reset("☕ Main answers here. ☕ Main is the default agent."),
            reset_to_earlier("🌹 Rose answers here. Alice chose Rose on 16 Nov 2026."),
            not_yours_to_take(
                rose,
                this,
                (&members, false),
                &AgentId::main(),
                Borrows::ForAWhile,
            ),
            not_yours_to_take(
                rose,
                this,
                (&members, true),
                &AgentId::main(),
                Borrows::ForAWhile,
            ),
            not_yours_to_take(rose, this, (&named, false), &AgentId::main(), Borrows::Once),
            reset_is_not_yours(rose, (&members, false)),
            reset_is_not_yours(rose, (&members, true)),
            reset_and_silent(this),
            nothing_switched("☕ Main answers here. ☕ Main is the default agent."),
            may_close(this),
            reset_would_close("☕ Main"),
            closed(this),
            closed_before(this),
            open_by_config(this, &bound_by(52, "telegram:group:-1001")),
            open_by_config(this, ALL_GROUPS_OPEN),
            CLOSE_NEEDS_ADMIN.to_owned(),
            CLOSE_IN_PRIVATE.to_owned(),
            locked(rose),
            MODEL_LOCKED.to_owned(),
            other(&id, rose),
            switches(&id, rose),
            asks_once(&id, rose),
            RESET_BUTTON.to_owned(),
            line(&listed(rose, "demo model (echoes only)", true, false)),
            line(&listed(desk, "openai/gpt-5.4", false, false)),
            line(&listed(rose, "openai/gpt-5.4", true, true)),
            line(&listed(desk, "openai/gpt-5.4", false, true)),
            line(&paused(true)),
            line(&paused(false)),
            NO_AGENT_FOR_YOU.to_owned(),
            not_for_you(rose, &members, &[]),
            not_for_you(rose, &named, &some(&["`/agent main`", "`/agent ada`"])),
            not_for_guests(rose, &members, Some(&id)),
            not_for_guests(rose, &members, None),
            no_such_agent("ros", &some(&["`/agent rose`"]), &[]),
            no_such_agent("xyzzy", &[], &some(&["main", "rose"])),
            NO_AGENT_IN_CONFIG.to_owned(),
            model_here(rose, "`a/b`", Some("the default model")),
            model_here(rose, "`a/b`", None),
            model_here(
                rose,
                "the demo model (echoes only)",
                Some("no other model is set"),
            ),
            model_chosen(rose, "a/b"),
            model_already(rose, "a/b"),
            model_reset(rose, "`a/b`", "the default model"),
            no_model_chosen(rose, "`a/b`", "the default model"),
            model_back("a/b"),
            other_model("a/b"),
            NO_OTHER_MODEL.to_owned(),
            model_not_offered("a/b"),
            STALE_MODEL.to_owned(),
            no_such_model(rose, "a/c", Some("a/b"), &[]),
            no_such_model(rose, "xyzzy", None, &some(&["a/b", "c/d"])),
        ];
        insta::assert_snapshot!(texts.join("\n"), @r#"
        🌹 Rose answers here from now on. `/agent reset` undoes that.
        🌹 Rose answers you in this group from now on. `/agent reset` undoes that.
        🌹 Rose has this place from now on, but is paused: messages wait until an owner writes `/agent resume rose`. `/agent reset` undoes the switch.
        🌹 Rose answers here from now on, and this topic is open to everybody in it. `/agent reset` undoes the switch, `/agent close` closes this topic again.
        🌹 Rose answers you in this group from now on. For the others this group stays closed. `/agent reset` undoes the switch, `/agent close` closes this group for you too.
        🌹 Rose takes the next message here, and only that one.
        🌹 Rose takes the next message here, and only that one. After that, this topic is closed as before.
        🌹 Rose already answers here.
        The switch is undone. ☕ Main answers here. ☕ Main is the default agent.
        That switch is undone, and the one before counts again. 🌹 Rose answers here. Alice chose Rose on 16 Nov 2026. `/agent reset` undoes that one too.
        Only an owner or admin can take this topic from 🌹 Rose for good: 🌹 Rose is for members, so you couldn't give it back. `/agent main once` and `/agent for 2h main` work.
        Only an owner or admin can take this topic from 🌹 Rose for good: 🌹 Rose is for members and guests write here, so you couldn't give it back. `/agent main once` and `/agent for 2h main` work.
        Only an owner or admin can take this topic from 🌹 Rose for good: 🌹 Rose is only for the people and places named in its `who`, so you couldn't give it back. `/agent main once` works.
        Only an owner, an admin or the person who made it can undo this switch: 🌹 Rose is for members, so you couldn't bring it back.
        Only an owner, an admin or the person who made it can undo this switch: 🌹 Rose is for members and guests write here, so you couldn't bring it back.
        The switch is undone. No agent is set for this topic, so I'll stay quiet here until an owner or admin writes `/agent`.
        Nothing was switched here. ☕ Main answers here. ☕ Main is the default agent.
        `/agent close` closes this topic.
        After that, ☕ Main would answer here, and not everybody in this place may use ☕ Main. Only an owner or admin can undo this switch.
        This topic is closed now. I'll stay quiet here until an owner or admin writes `/agent`.
        This topic is closed already.
        This topic stays open: the binding for `telegram:group:-1001` in line 52 of config.toml opens it.
        This topic stays open: `groups = "open"` in config.toml opens every group.
        Only an owner or admin can close a place.
        A private chat can't be closed here. `dms` under [access] in config.toml decides who may write.
        This place is locked to 🌹 Rose; only an owner or admin can switch it.
        This place is locked; only an owner or admin can change its model.
        `/agent rose` switches to 🌹 Rose; /agents lists everyone.
        `/agent rose` switches to 🌹 Rose.
        `/agent rose once` has 🌹 Rose take the next message here.
        ↩ undo the switch
        - 🌹 Rose · demo model (echoes only) ← answers here
        - Night Desk (`night-desk`) · openai/gpt-5.4
        - 🌹 Rose · openai/gpt-5.4 (not working right now) ← answers here
        - Night Desk (`night-desk`) · openai/gpt-5.4 (not working right now)
        - 🌹 Rose · openai/gpt-5.4 (paused) ← this place's agent
        - 🌹 Rose · openai/gpt-5.4 (paused)
        No agent is open to you here. Ask an owner if you need one.
        🌹 Rose is for members. Ask an owner if you need it.
        🌹 Rose is only for the people and places named in its `who`. You can use `/agent main`, `/agent ada`.
        🌹 Rose is for members, but guests can write here. To open it here, bind this place to it in config.toml, or write `who = "guest"` under [agents.rose].
        🌹 Rose is for members, but guests can write here. An owner can give this place to it.
        No agent is called ros. Did you mean `/agent rose`?
        No agent is called xyzzy. You can choose main, rose.
        The config names no agent for this place.
        🌹 Rose uses `a/b` here (the default model).
        🌹 Rose uses `a/b` here.
        🌹 Rose uses the demo model (echoes only) here (no other model is set).
        🌹 Rose uses `a/b` here from now on. `/model reset` or /new undoes that.
        🌹 Rose already uses `a/b` here.
        🌹 Rose uses `a/b` here again (the default model).
        No model was chosen here. 🌹 Rose uses `a/b` (the default model).
        `/model reset` goes back to `a/b`.
        `/model a/b` switches to that one.
        There is no other model. An owner can add some with `models` under a provider in config.toml.
        `a/b` was chosen here, but it is no longer offered.
        That model is no longer offered. /models lists the others.
        🌹 Rose has no model `a/c`. Did you mean `/model a/b`? /models lists all of them.
        🌹 Rose has no model `xyzzy`. It can use a/b, c/d.
        "#);
    }
}
