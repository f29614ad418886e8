//! Reads the form of `[[bindings]]`; `routing` reads the meaning of a `match`.

use super::declared::DeclaredAgents;
use super::items::person;
use super::people::People;
use super::reader::{Section, Value, whole_number, wrong_type};
use super::{Binding, Problem, Spanned, odd_characters, schema};
use crate::domain::{AgentId, PersonId};

pub(super) struct Read {
    pub(super) bindings: Vec<Binding>,
    pub(super) matches_left_out: Vec<Spanned<String>>,
}

/// Leaves out a binding with a problem, because a binding without a filter would match more than
/// its author meant. A binding to an unknown agent stays, so that its `match` is checked too; a
/// config with a problem is never used.
pub(super) fn read(top: &Section<'_>, declared: &DeclaredAgents, people: &People) -> Read {
    let (mut bindings, mut matches_left_out) = (Vec::new(), Vec::new());
    for (index, item) in top.items("bindings").into_iter().enumerate() {
        let before = top.problems.count();
        let Some(section) = item.section(&schema::BINDING) else {
            continue;
        };
        let opened = top.problems.count();
        let agent = agent(&section, declared);
        let about_agent = top.problems.count() - opened;
        let pattern = pattern(&section);
        let binding = binding(index, &section, (pattern.clone(), agent), people);
        match binding {
            Some(binding) if top.problems.count() - about_agent == before => bindings.push(binding),
            _ => matches_left_out.extend(pattern),
        }
    }
    Read {
        bindings,
        matches_left_out,
    }
}

fn agent(section: &Section<'_>, declared: &DeclaredAgents) -> Option<Spanned<AgentId>> {
    let name = section.text("agent")?;
    let id = declared
        .find(&name, section.problems)
        .map_or_else(AgentId::main, |agent| agent.id.clone());
    Some(Spanned {
        value: id,
        span: name.span,
    })
}

fn binding(
    index: usize,
    section: &Section<'_>,
    (pattern, agent): (Option<Spanned<String>>, Option<Spanned<AgentId>>),
    people: &People,
) -> Option<Binding> {
    // All keys are read before a missing key ends the function, so that all problems are noted.
    let locked = section.boolean("locked").unwrap_or(false);
    let require_mention = section.boolean("require_mention");
    let users = section.list("users", |value| user(value, people));
    let roles = section.list("roles", role);
    let name = section.text("name");
    let tag = section.text("tag");
    Some(Binding {
        index,
        // Filled in by the caller, who has the text.
        line: 0,
        pattern: pattern?,
        agent: agent?,
        locked,
        require_mention,
        users,
        roles,
        name,
        tag,
    })
}

/// A person's id. The name of a section of `[people]` is told its ids.
fn user(value: &Value<'_>, people: &People) -> Result<PersonId, Problem> {
    person(value).map_err(|problem| {
        let named = value.get_ref().as_str().and_then(|name| people.named(name));
        let Some(named) = named else {
            return problem;
        };
        let ids: Vec<String> = named.ids.iter().map(|id| format!("\"{id}\"")).collect();
        let advice = format!(
            "write the ids of [people.{}]: `users = [{}]`",
            named.name,
            ids.join(", ")
        );
        problem.help(advice)
    })
}

/// The text of `match`, without characters that only look right.
fn pattern(section: &Section<'_>) -> Option<Spanned<String>> {
    let text = section.text("match")?;
    match odd_characters::refused(&text) {
        Some(problem) => {
            section.problems.note(problem);
            None
        }
        None => Some(text),
    }
}

/// Discord shows role ids as long numbers; people write them with or without quotes.
fn role(value: &Value<'_>) -> Result<u64, Problem> {
    let number = match value.get_ref().as_str() {
        Some(text) => text.parse().ok(),
        None => whole_number(value.get_ref()),
    };
    number.ok_or_else(|| {
        wrong_type("a role's id", value, "a number").help("write it like `roles = [\"9123\"]`")
    })
}
