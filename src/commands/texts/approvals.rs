//! Texts of `/approvals`, `/approve` and `/refuse`.

use super::words;
use crate::domain::Role;
use crate::operations::approvals::Shown;
use crate::records::approvals::Approval;

pub(crate) const NEEDS_MEMBER: &str =
    "Only members, admins and owners see what waits for a yes or no.";
pub(crate) const APPROVE: &str =
    "Which one? `/approve 7` allows the call with that number once; `/approvals` lists them.";
pub(crate) const REFUSE: &str =
    "Which one? `/refuse 7` refuses the call with that number; `/approvals` lists them.";

pub(crate) fn unknown(id: i64) -> String {
    format!("There is no approval {id}. `/approvals` lists those that wait.")
}

pub(crate) fn decided_before(id: i64, outcome: &str) -> String {
    format!("Approval {id} waits no longer: {outcome}")
}

pub(crate) fn beyond(least: Role) -> String {
    match least {
        Role::Owner => "Only an owner may decide this.".to_owned(),
        Role::Admin => "Only an admin or an owner may decide this.".to_owned(),
        Role::Guest | Role::Member => {
            "Only members who are in that place, admins and owners may decide this.".to_owned()
        }
    }
}

/// The reply to a written decision.
pub(crate) fn decided(approval: &Approval, outcome: &str) -> String {
    let tool = &approval.wanted.tool;
    format!("`{tool}`, approval {}: {outcome}", approval.id)
}

/// The open approvals, with the place of each that is elsewhere.
pub(crate) fn list(open: &[Shown], now: i64, place: impl Fn(&Shown) -> Option<String>) -> String {
    if open.is_empty() {
        return "Nothing waits for a yes or no.".to_owned();
    }
    let line = |shown: &Shown| {
        let agent = shown.agent.as_ref().map_or("an agent", |id| id.as_str());
        let place = place(shown).map_or_else(String::new, |place| format!(" in {place}"));
        let left = words::duration_of(shown.expires_at - now);
        let arguments = shown
            .arguments
            .lines()
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(", ");
        let arguments: String = arguments.replace('`', "'").chars().take(200).collect();
        let arguments = match arguments.as_str() {
            "" => String::new(),
            arguments => format!(": `{arguments}`"),
        };
        format!(
            "- **{}** {agent} asks to run `{}` for {} ({}){place}, for {left} more{arguments}",
            shown.id, shown.tool, shown.person_name, shown.role
        )
    };
    let lines: Vec<String> = open.iter().map(line).collect();
    format!(
        "{}\n\n`/approve` or `/refuse` with the number decides.",
        lines.join("\n")
    )
}
