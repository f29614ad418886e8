//! Approvals: calls of tools that wait for a person's yes or no, and what was decided before.

use axum::extract::State;
use maud::{Markup, html};

use super::layout::{self, Page, Shell};
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::approvals::{ApprovalLine, MOST_LISTED};
use crate::records::approvals::{self, State as Stage};

/// Approvals of the history.
const MOST_PAST: u32 = 50;

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    let names = state.operations.house().await?.names;
    let page = |state, most| approvals::Page {
        state,
        before: None,
        most,
    };
    let open = page(Some(Stage::Waiting), MOST_LISTED);
    let open = state.operations.approvals(open).await?;
    let past = page(None, MOST_LISTED);
    let past = state.operations.approvals(past).await?;
    let line = |shown| ApprovalLine::of(shown, &names);
    let open: Vec<ApprovalLine> = open.iter().map(line).collect();
    let past = past.iter().filter(|shown| shown.state != Stage::Waiting);
    let past: Vec<ApprovalLine> = past.take(MOST_PAST as usize).map(line).collect();
    let body = html! {
        (layout::head("Approvals", "Calls of tools that wait for a yes or no. Each is decided once, and no answer is a no.", html! {}))
        div.stack {
            @if open.is_empty() { div.card.empty { p { "Nothing waits for a yes or no." } } }
            @for line in &open { (waiting(&shell, line)) }
            @if !past.is_empty() { (history(&shell, &past)) }
        }
    };
    Ok(shell.page(Page::Approvals, &["live.js"], body))
}

fn waiting(shell: &Shell, line: &ApprovalLine) -> Markup {
    let call = |verdict: &str| format!("POST /api/v1/approvals/{}/{verdict}", line.id);
    html! {
        section.card data-approval=(line.id) aria-label={ "Approval " (line.id) } {
            h2 { span.mono { (line.tool) } " " span.soft { "#" (line.id) } }
            @if !line.arguments.is_empty() { pre { (line.arguments) } }
            dl.facts {
                dt { "Agent" } dd { (agent(shell, line)) }
                dt { "For" } dd { (line.person.words().unwrap_or(&line.person.id)) " " span.soft { (line.role) } }
                dt { "Place" } dd { (place(line)) }
                dt { "Because" } dd { (layout::marked(&line.why)) }
                @if let Some(read) = &line.read { dt { "It has read" } dd { (read) } }
                dt { "Decides" } dd { (line.least_role) @if line.least_role != "owner" { " or above" } }
                dt { "Asked" } dd { (layout::ago(line.asked_at.0)) }
                dt { "Until" } dd { (layout::at(line.expires_at.0)) }
                dt { "Turn" } dd { a href={ "/turns/" (line.turn) } { (line.turn) } }
            }
            @if shell.operates() {
                div.row {
                    button type="button" data-call=(call("allow")) data-told="Allowed." { "Allow" }
                    button.danger type="button" data-call=(call("refuse")) data-told="Refused." { "Refuse" }
                }
            }
        }
    }
}

fn history(shell: &Shell, past: &[ApprovalLine]) -> Markup {
    html! {
        h2 { "Before" }
        div.card.scroll-x tabindex="0" role="region" aria-label="Decided before" {
            table {
                thead { tr { th { "Tool" } th { "Agent" } th { "For" } th.wide { "Place" } th { "How it ended" } th { "When" } } }
                tbody {
                    @for line in past {
                        tr data-approval=(line.id) {
                            td { a.mono href={ "/turns/" (line.turn) } { (line.tool) } }
                            td { (agent(shell, line)) }
                            td { (line.person.words().unwrap_or(&line.person.id)) }
                            td.wide { (place(line)) }
                            td { (ended(line)) }
                            td.nowrap.soft { @if let Some(at) = line.decided_at { (layout::ago(at.0)) } }
                        }
                    }
                }
            }
        }
    }
}

fn ended(line: &ApprovalLine) -> Markup {
    html! {
        @match line.state {
            Stage::Allowed => span.tag.good { "allowed" },
            Stage::Refused => span.tag.bad { "refused" },
            state => span.tag { (state.as_str()) },
        }
        @if let Some(by) = &line.decided_by { " by " (by.words().unwrap_or(&by.id)) }
    }
}

fn agent(shell: &Shell, line: &ApprovalLine) -> Markup {
    let known = line.agent.as_ref().map(|agent| agent.id.as_str());
    match known.and_then(|id| shell.agent(id)) {
        Some(agent) => layout::who(agent),
        None => html! { (known.unwrap_or("gone")) },
    }
}

fn place(line: &ApprovalLine) -> Markup {
    let place = &line.place;
    html! { a href={ "/conversations/" (place.id) } { (place.words().unwrap_or(&place.id)) } }
}
