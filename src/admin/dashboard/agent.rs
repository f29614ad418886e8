//! The editor of an agent: who it is, its files with the inherited text beside, its skills, tools and
//! limits with the reason of each, its memory and places.

use axum::extract::{Path, State};
use maud::{Markup, html};
use serde::Serialize;

use super::agents::{self, ID};
use super::layout::{self, Page, Shell};
use super::texts;
use crate::access::Role;
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::config::Risk;
use crate::operations::agent_view::{
    self, AgentDetails, LimitInfo, MemoryCounts, SkillInfo, ToolInfo,
};
use crate::operations::named::Named;

const ROLES: [Role; 4] = [Role::Owner, Role::Admin, Role::Member, Role::Guest];

/// What the script begins with.
#[derive(Serialize)]
struct First {
    id: String,
    can_edit: bool,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    Path(id): Path<String>,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    if shell.snapshot.registry.find(&id).is_none() {
        return Err(Problem::not_found(format!("No agent is called {id}.")));
    }
    let details = agent_view::details(&state.operations, &id).await?;
    let first = First {
        id: details.line.id.clone(),
        can_edit: shell.administers(),
    };
    let body = html! {
        (layout::head(&details.line.label, &details.line.id, top(&shell, &details)))
        div.columns.editor {
            div.stack {
                (files(&shell, &details))
                (tools(&shell, &details))
            }
            div.stack {
                (identity(&shell, &details))
                (model(&shell, &details))
                (skills(&shell, &details))
                (memory(&details.line.id, details.memory.as_ref()))
                (places(&details))
                (limits(&shell, &details.limits))
            }
        }
        (layout::data("first", &first))
    };
    Ok(shell.titled(Page::Agents, &details.line.name, &["agent.js"], body))
}

fn top(shell: &Shell, details: &AgentDetails) -> Markup {
    let agent = &details.line;
    html! {
        div.row {
            @if agent.default { span.tag.accent { "Default" } }
            (agents::condition(agent))
            a.button href={ "/conversations?agent=" (agent.id) } { "Conversations" }
            @if shell.operates() { (agents::pausing(agent)) }
            @if shell.administers() {
                @if !agent.default { (agents::make_default(shell, agent)) }
                (another_id(agent.id.as_str(), "clone", ("Clone", texts::WHAT_CLONING_DOES)))
                (another_id(agent.id.as_str(), "rename", ("Rename", texts::WHAT_RENAMING_DOES)))
                (agents::removal(agent, Some("")))
            }
        }
    }
}

fn another_id(id: &str, verb: &str, (label, text): (&str, &str)) -> Markup {
    html! {
        button type="button" data-call={ "POST /api/v1/agents/" (id) "/" (verb) } data-ask={ (label) " " (id) } data-text=(text)
            data-field="New id: small letters, digits and hyphens" data-key="to" data-pattern=(ID) data-then="/agents/{id}" { (label) }
    }
}

fn identity(shell: &Shell, details: &AgentDetails) -> Markup {
    let line = &details.line;
    let field = |label: &str, name: &str, value: &Option<String>| {
        html! { label.field.grow { span { (label) } input name=(name) type="text" maxlength="200" value=(value.as_deref().unwrap_or_default()) autocomplete="off"; } }
    };
    html! {
        section.card {
            h2 { "Who it is" }
            form #identity {
                fieldset.stack disabled[!shell.administers()] {
                    div.row {
                        label.field.grow { span { "Name" } input name="name" type="text" maxlength="60" value=(line.name) autocomplete="off"; }
                        label.field { span { "Emoji" } input name="emoji" type="text" size="4" maxlength="8" value=(line.emoji.as_deref().unwrap_or_default()) autocomplete="off"; }
                    }
                    (field("Creature", "creature", &line.creature))
                    (field("Vibe", "vibe", &line.vibe))
                    @if shell.administers() { div.row { button.main type="submit" disabled { "Save" } } }
                }
            }
        }
    }
}

/// The models that it thinks with.
fn model(shell: &Shell, details: &AgentDetails) -> Markup {
    html! {
        section.card {
            h2 { "Model" }
            form #model {
                fieldset.stack disabled[!shell.administers()] {
                    label.field { span { "provider/model, or empty for the default" } input name="model" type="text" maxlength="200" value=(details.line.model.as_deref().unwrap_or_default()) autocomplete="off" spellcheck="false"; }
                    label.field { span { "Where it fails, these in turn, with commas between them" } input name="fallback" type="text" maxlength="600" value=(details.fallback.join(", ")) autocomplete="off" spellcheck="false"; }
                    (review(shell))
                }
            }
        }
    }
}

/// The button that shows the lines of config.toml before they are written, and a place for problems.
fn review(shell: &Shell) -> Markup {
    html! {
        @if shell.administers() {
            div.problems.stack.tight aria-live="polite" {}
            div.row { button.main type="submit" disabled { "Review and save" } }
        }
    }
}

fn files(shell: &Shell, details: &AgentDetails) -> Markup {
    html! {
        section.card {
            div.row.between {
                h2 { "Files" }
                label.sr for="file" { "File" }
                select #file {
                    @for file in &details.files {
                        option value=(file.file) selected[file.file == "SOUL.md"] { (file.file) " · " (file.origin) }
                    }
                }
            }
            form.stack #file-form {
                label.sr for="file-text" { "Text of the file" }
                textarea.code #file-text rows="18" spellcheck="false" readonly[!shell.administers()] {}
                div.row {
                    @if shell.administers() {
                        button.main type="submit" disabled { "Save" }
                        button.danger #file-remove type="button" hidden { "Use the inherited file" }
                    }
                    span.soft.small #file-note {}
                }
            }
            section #inherited hidden { h3 { "The inherited text" } pre tabindex="0" {} }
        }
    }
}

fn skills(shell: &Shell, details: &AgentDetails) -> Markup {
    let is_denied = details
        .all_skills
        .iter()
        .any(|skill| !skill.readable && details.listed_skills.is_none());
    html! {
        section.card {
            h2 { "Skills" }
            @if details.all_skills.is_empty() { p.soft { "There are none, in the pool or of its own." } }
            @else {
                form #skills {
                    fieldset.stack.tight disabled[!shell.administers()] {
                        label.row { input type="checkbox" name="whole" checked[details.listed_skills.is_none()]; span { "The whole pool" } }
                        ul.stack.tight { @for skill in &details.all_skills { (skill_row(skill)) } }
                        @if is_denied { p.small.soft { "Skills that config.toml denies stay denied." } }
                        (review(shell))
                    }
                }
            }
        }
    }
}

fn skill_row(skill: &SkillInfo) -> Markup {
    html! {
        li {
            label.row {
                input type="checkbox" name="skill" value=(skill.skill) checked[skill.readable];
                span { b { (skill.skill) } " " span.tag { (skill.origin) } " " span.small.soft { (layout::marked(&skill.reason)) } }
            }
        }
    }
}

fn tools(shell: &Shell, details: &AgentDetails) -> Markup {
    html! {
        section.card {
            h2 { "Tools, and for whom it may use them" }
            form #tools {
                fieldset.stack disabled[!shell.administers()] {
                    (which_tools(details))
                    div.scroll-x tabindex="0" role="region" aria-label="Tools" {
                        table {
                            thead { tr { th { "Tool" } th { "Risk" } @for role in ROLES { th { (role.as_str()) } } } }
                            tbody { @for tool in &details.tools { (tool_row(tool, details.listed_tools.has(&tool.tool))) } }
                        }
                    }
                    (risks(shell, details))
                    (review(shell))
                }
            }
        }
    }
}

/// What the ticks are written as.
fn which_tools(details: &AgentDetails) -> Markup {
    let is_allow = details.listed_tools.allow.is_some();
    html! {
        div.stack.tight role="radiogroup" aria-label="How the ticks are written" {
            label.row { input type="radio" name="list" value="deny" checked[!is_allow]; span { "All tools but those without a tick, also tools to come: " code { "deny" } } }
            label.row { input type="radio" name="list" value="allow" checked[is_allow]; span { "Only the tools with a tick: " code { "allow" } } }
        }
    }
}

/// Limits by risk, which count on top of the ticks.
fn risks(shell: &Shell, details: &AgentDetails) -> Markup {
    let profiles = &shell.snapshot.config.tools.profiles;
    let max = details.max_risk.as_deref();
    html! {
        div.row.pair {
            label.field {
                span { "Risk at most" }
                select name="max_risk" {
                    option value="" selected[max.is_none()] { "any" }
                    @for risk in Risk::ALL { option value=(risk.as_str()) selected[max == Some(risk.as_str())] { (risk.as_str()) } }
                }
            }
            @if !profiles.is_empty() {
                label.field {
                    span { "Risk profile" }
                    select name="risk_profile" {
                        option value="" selected[details.risk_profile.is_none()] { "none" }
                        @for name in profiles.keys() { option value=(name) selected[details.risk_profile.as_ref() == Some(name)] { (name) } }
                    }
                }
            }
        }
    }
}

fn tool_row(tool: &ToolInfo, is_listed: bool) -> Markup {
    html! {
        tr {
            td {
                label.row { input type="checkbox" name="tool" value=(tool.tool) checked[is_listed]; span.mono { (tool.tool) } }
                @if let Some(rule) = tool.refused.as_ref().or(tool.asks.as_ref()) { p.small.soft { (layout::marked(rule)) } }
                @else {
                    @for (reason, roles) in reasons(tool) { p.small.soft { (roles.join(", ")) ": " (layout::marked(reason)) } }
                }
            }
            td { (tool.risk) }
            @for role in ROLES {
                @let may = tool.asked_by.iter().any(|known| known == role.as_str());
                td {
                    @if may && tool.asks.is_some() { span.tag { "asks" } }
                    @else if may { span.tag.good { "yes" } }
                    @else { span.tag { "no" } }
                }
            }
        }
    }
}

/// Each reason once, with the roles that it refuses.
fn reasons(tool: &ToolInfo) -> Vec<(&str, Vec<&str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for refused in &tool.withheld {
        match reasons
            .iter_mut()
            .find(|(reason, _)| *reason == refused.reason)
        {
            Some((_, roles)) => roles.push(&refused.role),
            None => reasons.push((&refused.reason, vec![&refused.role])),
        }
    }
    reasons
}

fn memory(id: &str, memory: Option<&MemoryCounts>) -> Markup {
    html! {
        section.card {
            h2 { "Memory" }
            @if let Some(memory) = memory {
                dl.facts {
                    dt { "for people" } dd { (memory.person) }
                    dt { "for places" } dd { (memory.place) }
                    dt { "private" } dd { (memory.private) }
                    dt { "global" } dd { (memory.global) }
                    @if memory.archived > 0 { dt { "archived" } dd { (memory.archived) } }
                    dt { "MEMORY.md" } dd { @match memory.memory_file_bytes { Some(bytes) => (layout::bytes(bytes)), None => "none" } }
                    @if let Some(at) = memory.last_saved_at { dt { "last saved" } dd { (layout::ago(at.0)) } }
                }
                p { a href={ "/memory?agent=" (id) } { "Show them" } }
            } @else { p.soft { "Memory is off." } }
        }
    }
}

fn places(details: &AgentDetails) -> Markup {
    let place = |place: &Named, by: &str| {
        html! { li { span.tag.accent[by == "pin"] { (by) } " " (place.name.as_deref().unwrap_or(&place.id)) @if place.name.is_some() { " " span.soft.mono { (place.id) } } } }
    };
    html! {
        section.card {
            h2 { "Places" }
            @if details.bound.is_empty() && details.pinned.is_empty() {
                p.soft { @if details.line.default { "All that have no rule." } @else { "None of its own: it answers where people fetch it with /agent." } }
            }
            ul.stack.tight {
                @for bound in &details.bound { (place(bound, "binding")) }
                @for pinned in &details.pinned { (place(pinned, "pin")) }
            }
        }
    }
}

fn limits(shell: &Shell, limits: &[LimitInfo]) -> Markup {
    html! {
        section.card {
            h2 { "Limits" }
            form #limits {
                fieldset.stack disabled[!shell.administers()] {
                    table { tbody { @for limit in limits { (limit_row(shell, limit)) } } }
                    @if shell.administers() { p.small.soft { "0 is no limit. An empty field is taken out of config.toml, and the default counts." } }
                    (review(shell))
                }
            }
        }
    }
}

fn limit_row(shell: &Shell, limit: &LimitInfo) -> Markup {
    let id = format!("limit-{}", limit.limit);
    let most = limit.most.as_deref();
    let written = limit.line.map(|_| most.unwrap_or("0"));
    let is_money = limit.limit.starts_with("cost");
    html! {
        tr {
            td { label for=(id) { (limit.limit.replace('_', " ")) } }
            td.number { input.amount id=(id) name=(limit.limit) type="number" min="0" step=(if is_money { "any" } else { "1" }) value=(written.unwrap_or_default()) placeholder=(most.unwrap_or("no limit")) autocomplete="off"; }
            td.small.soft.wide {
                @match limit.line {
                    Some(line) if shell.administers() => a href={ "/config?line=" (line) } { (limit.origin) },
                    _ => (limit.origin),
                }
            }
        }
    }
}
