//! The house at a glance: platforms, agents, work, what went wrong.

use axum::extract::State;
use maud::{Markup, html};

use super::layout::{self, Page, Shell};
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::{Condition, Link, Status, status};

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(_): Reads,
) -> Result<Markup, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let overview = state.operations.overview(&snapshot).await?;
    let status = status(&state.operations).await?;
    let shell = Shell::new(snapshot, None);
    let running = status
        .agents
        .iter()
        .map(|agent| agent.running)
        .sum::<usize>();
    let tokens: u64 = status.agents.iter().map(|agent| agent.tokens_today).sum();
    let body = html! {
        (layout::head("Overview", "", html! {}))
        div.stack {
            @if let Some(problem) = status.gateway.as_ref().and_then(|gateway| gateway.config.problem.as_ref()) {
                div.note.bad { b { "config.toml does not count. " } "The last good one runs on." pre { (problem) } }
            }
            div.figures {
                (figure(running, "turns running"))
                (figure(overview.turns.all, "turns, last 24 hours"))
                (figure(overview.turns.failed, "of them without an answer"))
                (figure(layout::grouped(tokens), "tokens today"))
                (figure(status.letters.failed, "messages undelivered"))
                @if status.approvals > 0 { a href="/approvals" { (figure(status.approvals, "calls that wait for a yes or no")) } }
            }
            div.columns {
                section.card { h2 { "Platforms" } (platforms(&status)) }
                section.card { h2 { "Agents" } (agents(&shell, &status)) }
            }
            section.card {
                h2 { "What went wrong in the last day" }
                @if status.errors.is_empty() { p.soft { "Nothing." } }
                @else {
                    table {
                        tbody {
                            @for error in &status.errors {
                                tr {
                                    td.nowrap.soft { (layout::ago(error.at)) }
                                    td.nowrap { @if let Some(agent) = error.agent.as_ref().and_then(|id| shell.agent(id.as_str())) { (layout::who(agent)) } }
                                    td { (error.reason) @if let Some(place) = &error.place { " " span.soft.mono { (place) } } }
                                }
                            }
                        }
                    }
                    @if status.more_errors() > 0 { p.small.soft { "and " (status.more_errors()) " more" } }
                }
            }
        }
    };
    Ok(shell.page(Page::Overview, &[], body))
}

fn figure(number: impl ToString, what: &str) -> Markup {
    html! { div { b { (number.to_string()) } span { (what) } } }
}

fn platforms(status: &Status) -> Markup {
    let Some(gateway) = &status.gateway else {
        return html! {};
    };
    html! {
        table {
            tbody {
                @for platform in &gateway.platforms {
                    tr {
                        td { (layout::platform_name(platform.platform)) }
                        td {
                            @match platform.state {
                                Link::Connected => span.tag.good { "connected" },
                                Link::Connecting => span.tag.warn { "connecting" },
                                Link::Down => span.tag.bad { "down" },
                            }
                            @if let Some(reason) = &platform.reason { p.small.soft { (reason) } }
                        }
                        td.soft { @if let Some(at) = platform.last_update_at { "heard " (layout::ago(at)) } }
                    }
                }
            }
        }
        p.small.soft { "Parlor " (gateway.version) ", up since " (layout::at(gateway.started_at)) }
    }
}

fn agents(shell: &Shell, status: &Status) -> Markup {
    html! {
        table {
            tbody {
                @for state in &status.agents {
                    @if let Some(agent) = shell.agent(state.id.as_str()) {
                        tr {
                            td { (layout::who(agent)) }
                            td {
                                (condition(state.condition, state.running))
                                @if let Some(why) = &state.failing { p.small.soft { (why) } }
                            }
                            td.number { (layout::grouped(state.tokens_today)) " tokens" }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn condition(condition: Condition, running: usize) -> Markup {
    html! {
        @match (condition, running) {
            (Condition::Paused, _) => span.tag.warn { "paused" },
            (Condition::Failing, _) => span.tag.bad { "failing" },
            (Condition::Well, 0) => span.tag { "ready" },
            (Condition::Well, _) => span.tag.good { "working" },
        }
    }
}
