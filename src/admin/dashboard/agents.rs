//! Agents: a card for each, what becomes of them, and a way to make one.

use axum::extract::State;
use maud::{Markup, html};
use serde_json::json;

use super::layout::{self, Page, Shell, counted};
use super::texts;
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::agents::IdentityFile;
use crate::operations::agent_files;
use crate::operations::agent_view::{self, AgentLine};
use crate::tenants::Origin;
use crate::tenants::health::State as Condition;

/// Letters of an id, for a field.
pub(super) const ID: &str = "[a-z0-9]+(-[a-z0-9]+)*";
/// Letters of an agent's manner on a card.
const MANNER: usize = 140;

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    let agents = agent_view::list(&state.operations).await?.items;
    let (ours, others): (Vec<AgentLine>, Vec<AgentLine>) = agents
        .into_iter()
        .partition(|agent| matches!(agent.origin, Origin::Configured));
    let mut cards = Vec::new();
    for agent in &ours {
        let manner = manner(&state, agent).await;
        cards.push(card(&shell, agent, manner.as_deref()));
    }
    let right = html! {
        @if shell.administers() { button.main #new-agent type="button" { "New agent" } }
    };
    let body = html! {
        (layout::head("Agents", "", right))
        div.stack {
            div.columns.cards { @for card in &cards { (card) } }
            @if !others.is_empty() {
                section.card {
                    h2 { "Not in use" }
                    table { tbody { @for agent in &others { (unused(&shell, agent)) } } }
                }
            }
        }
        @if shell.administers() { (new_agent()) }
    };
    Ok(shell.page(Page::Agents, &["agents.js"], body))
}

/// The agent's character in a line: its own words for it, else the beginning of its soul.
async fn manner(state: &AdminState, agent: &AgentLine) -> Option<String> {
    let told = [agent.creature.as_deref(), agent.vibe.as_deref()];
    let told: Vec<&str> = told.into_iter().flatten().collect();
    if !told.is_empty() {
        return Some(told.join(", "));
    }
    let soul = agent_files::read(&state.operations, &agent.id, IdentityFile::Soul);
    let soul = soul.await.ok()?.text;
    let lines = soul.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '<', '-']));
    let line: String = lines.next()?.chars().take(MANNER).collect();
    Some(line)
}

fn card(shell: &Shell, agent: &AgentLine, manner: Option<&str>) -> Markup {
    let memories = agent.memories.unwrap_or(0) as usize;
    html! {
        article.card.agent data-agent=(agent.id) {
            div.row {
                @if let Some(known) = shell.agent(&agent.id) { (layout::big_mark(known)) }
                div.grow {
                    h2 { a href={ "/agents/" (agent.id) } { (agent.name) } }
                    p.small.soft { (agent.id) @if let Some(model) = &agent.model { " · " (model) } }
                }
                @if agent.default { span.tag.accent { "Default" } }
                (condition(agent))
            }
            p.soft { (manner.unwrap_or("No character of its own yet.")) }
            p.small {
                (counted(agent.skills.len(), "skill")) " · "
                a href={ "/memory?agent=" (agent.id) } { (counted(memories, "memory")) } " · "
                (counted(agent.bindings + agent.pins, "place")) " of its own"
            }
            div.row {
                a.button href={ "/agents/" (agent.id) } { @if shell.administers() { "Edit" } @else { "Look" } }
                (life(shell, agent))
            }
        }
    }
}

/// What can become of an agent, each with what will happen.
fn life(shell: &Shell, agent: &AgentLine) -> Markup {
    html! {
        @if shell.operates() { (pausing(agent)) }
        @if shell.administers() && !agent.default {
            (make_default(shell, agent))
            (removal(agent, None))
        }
    }
}

pub(super) fn pausing(agent: &AgentLine) -> Markup {
    let path = |verb: &str| format!("POST /api/v1/agents/{}/{verb}", agent.id);
    html! {
        @if is_paused(agent) {
            button type="button" data-call=(path("resume")) { "Resume" }
        } @else {
            button type="button" data-call=(path("pause")) data-ask={ "Pause " (agent.name) "?" } data-text=(texts::WHAT_PAUSING_DOES) { "Pause" }
        }
    }
}

pub(super) fn make_default(shell: &Shell, agent: &AgentLine) -> Markup {
    let now = &shell.snapshot.registry.default_agent().name;
    html! {
        button type="button" data-call="PUT /api/v1/agents/default" data-body=(json!({ "agent": agent.id }))
            data-ask={ "Make " (agent.name) " the default?" } data-text=(texts::what_default_does(&agent.name, now)) { "Make default" }
    }
}

/// The default agent and `main` stay. `tag` is the state that the page shows.
pub(super) fn removal(agent: &AgentLine, tag: Option<&str>) -> Markup {
    html! {
        @if !agent.default && agent.id != "main" {
            button.danger type="button" data-call={ "DELETE /api/v1/agents/" (agent.id) } data-tag=[tag] data-then="/agents"
                data-ask={ "Archive " (agent.name) "?" } data-text=(texts::what_removal_does(&agent.name, agent.bindings + agent.pins, agent.memories.unwrap_or(0))) { "Archive" }
        }
    }
}

fn is_paused(agent: &AgentLine) -> bool {
    let health = agent.health.as_ref();
    health.is_some_and(|health| matches!(health.state, Condition::Paused { .. }))
}

pub(super) fn condition(agent: &AgentLine) -> Markup {
    let state = agent.health.as_ref().map(|health| &health.state);
    html! {
        @match state {
            Some(Condition::Paused { by, .. }) => span.tag.warn title={ "by " (by) } { "paused" },
            Some(Condition::Failing { why }) => span.tag.bad title=(why) { "failing" },
            Some(Condition::Busy) => span.tag.good { "working" },
            Some(Condition::Ready) | None => span.tag { "ready" },
        }
    }
}

fn unused(shell: &Shell, agent: &AgentLine) -> Markup {
    html! {
        tr {
            td { b { (agent.name) } " " span.soft.mono { (agent.archive.as_deref().unwrap_or(&agent.id)) } }
            td {
                @match agent.origin {
                    Origin::Archived => span.tag { "archived" },
                    Origin::Discovered => span.tag { "a folder alone" },
                    _ => span.tag { "only in the database" },
                }
            }
            td.number { @if shell.administers() { (coming_back(agent)) } }
        }
    }
}

fn coming_back(agent: &AgentLine) -> Markup {
    html! {
        @match (&agent.origin, &agent.archive) {
            (Origin::Archived, Some(archive)) => {
                button type="button" data-call={ "POST /api/v1/agents/" (archive) "/restore" } data-body="{}" { "Restore" }
            },
            (Origin::Discovered, _) => {
                button type="button" data-call={ "POST /api/v1/agents/" (agent.id) "/adopt" } { "Adopt" }
            },
            _ => {},
        }
    }
}

fn new_agent() -> Markup {
    html! {
        dialog #new-dialog aria-label="New agent" {
            form #new-form method="dialog" {
                div.stack {
                    h2 { "New agent" }
                    label.field { span { "Id: small letters, digits and hyphens" } input name="id" type="text" required maxlength="64" pattern=(ID) autocomplete="off"; }
                    div.row {
                        label.field.grow { span { "Name" } input name="name" type="text" maxlength="60" autocomplete="off"; }
                        label.field { span { "Emoji" } input name="emoji" type="text" maxlength="8" size="4" autocomplete="off"; }
                    }
                    label.field { span { "Vibe, in a few words" } input name="vibe" type="text" maxlength="200" autocomplete="off"; }
                    label.field { span { "Soul: how it thinks and speaks" } textarea name="soul" rows="6" {} }
                }
                div.row.end {
                    button.cancel type="button" { "Cancel" }
                    button.main type="submit" { "Make" }
                }
            }
        }
    }
}
