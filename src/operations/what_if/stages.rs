//! What a message is asked on its way, one after the other, each with the setting behind it.

use serde::Serialize;
use utoipa::ToSchema;

use super::super::abilities::{Cause, cause};
use super::super::texts;
use super::{Present, Rules};
use crate::access::{self, Role, Verdict};
use crate::answering::Answer;
use crate::domain::Addressed;
use crate::routing::{Rule, Visit};

/// A question on the way of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Stage {
    /// `access`, `place`, `mention`, `who`, `pause` or `budget`.
    pub(crate) stage: &'static str,
    pub(crate) state: State,
    pub(crate) text: String,
    /// The setting that decides.
    pub(crate) because: Option<Cause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Passes,
    Stops,
    /// The message was stopped before.
    NotAsked,
}

/// A question with its answer: whether the message passes, why, and the setting behind it.
type Asked = (&'static str, bool, String, Option<String>);

pub(super) fn of(
    rules: &Rules,
    answer: &Answer,
    present: &Present,
    visit: Visit<'_>,
    (addressed, is_command): (Addressed, bool),
) -> Vec<Stage> {
    let mut is_stopped = false;
    let asked = [
        speaking(answer, visit),
        place(rules, answer, visit),
        mention(answer, visit, (addressed, is_command)),
        who(answer, visit),
        pause(answer, present),
        budget(answer, present),
    ];
    let stages = asked.into_iter().map(|(stage, passes, text, setting)| {
        let state = match (is_stopped, passes) {
            (true, _) => State::NotAsked,
            (false, true) => State::Passes,
            (false, false) => State::Stops,
        };
        is_stopped |= !passes;
        Stage {
            stage,
            state,
            text,
            because: setting.and_then(|setting| cause(&rules.settings, &setting)),
        }
    });
    stages.collect()
}

fn speaking(answer: &Answer, visit: Visit<'_>) -> Asked {
    let role = visit.standing.highest();
    let dms = || Some("access.dms".to_owned());
    match (visit.origin.key.is_private(), answer.verdict) {
        (true, Verdict::Hint) => ("access", false, texts::GETS_A_CODE.to_owned(), dms()),
        (true, Verdict::Ignore(reason)) => ("access", false, reason.to_owned(), dms()),
        (true, _) => {
            let setting = (role == Role::Guest).then(dms).flatten();
            ("access", true, texts::may_write_privately(role), setting)
        }
        (false, _) => ("access", true, texts::may_write_here(role), None),
    }
}

fn place(rules: &Rules, answer: &Answer, visit: Visit<'_>) -> Asked {
    let groups = Some("access.groups".to_owned());
    let resolved = &answer.resolved;
    if visit.origin.key.is_private() {
        return ("place", true, texts::PRIVATE_IS_OPEN.to_owned(), None);
    }
    if !answer.is_open {
        let passes = answer.verdict == Verdict::Admit;
        return ("place", passes, access::PLACE_CLOSED.to_owned(), groups);
    }
    match (&resolved.opened, resolved.route.opens_place) {
        (Some(opened), _) => {
            let by = match &opened.by_name {
                Some(name) => name.clone(),
                None => rules.house.names.person(&opened.by).text(),
            };
            ("place", true, texts::opened_by(&by), None)
        }
        (None, true) => ("place", true, texts::BOUND_IS_OPEN.to_owned(), None),
        (None, false) => ("place", true, texts::ALL_ARE_OPEN.to_owned(), groups),
    }
}

fn mention(answer: &Answer, visit: Visit<'_>, (addressed, is_command): (Addressed, bool)) -> Asked {
    if visit.origin.key.is_private() {
        return ("mention", true, texts::PRIVATE_IS_FOR_US.to_owned(), None);
    }
    let route = &answer.resolved.route;
    let setting = match (&route.rule, route.require_mention) {
        (Rule::Binding { index, .. }, Some(_)) => format!("bindings[{index}].require_mention"),
        _ => "access.require_mention".to_owned(),
    };
    let (passes, text) = match (answer.needs_mention, addressed) {
        (false, _) => (true, texts::NO_MENTION_NEEDED),
        (true, _) if is_command => (true, texts::COMMAND_COUNTS),
        (true, Addressed::ByReply) => (true, texts::REPLY_COUNTS),
        (true, Addressed::NotAtAll) => (false, texts::MENTION_MISSING),
        (true, _) => (true, texts::MENTION_COUNTS),
    };
    ("mention", passes, text.to_owned(), Some(setting))
}

fn who(answer: &Answer, visit: Visit<'_>) -> Asked {
    let agent = answer.agent();
    let setting = Some(format!("agents.{agent}.who"));
    match (answer.not_for_you(), &answer.resolved.pin) {
        (Some(closed), _) => ("who", false, closed.to_string(), setting),
        (None, Some(_)) => ("who", true, texts::pin_was_checked(agent), setting),
        (None, None) => {
            let role = visit.standing.with(agent);
            ("who", true, texts::is_open_to(agent, role), setting)
        }
    }
}

fn pause(answer: &Answer, present: &Present) -> Asked {
    let agent = answer.agent();
    match &present.pause {
        Some(pause) => ("pause", false, texts::is_paused(agent, pause), None),
        None => ("pause", true, texts::is_not_paused(agent), None),
    }
}

fn budget(answer: &Answer, present: &Present) -> Asked {
    match &present.over {
        Some(_) => ("budget", false, texts::OVER_BUDGET.to_owned(), None),
        None => {
            let text = texts::is_within_limits(answer.agent());
            ("budget", true, text, None)
        }
    }
}
