//! Audit: who changed what.

use axum::extract::State;
use maud::{Markup, html};

use super::layout::{self, Page, Shell};
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::records::audit::{self, Entry, Wanted};

const MOST: u32 = 200;

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(_): Reads,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None);
    let read =
        |connection: &rusqlite::Connection| audit::latest(connection, &Wanted::default(), MOST);
    let entries = state.operations.db().read(read).await?;
    let body = html! {
        (layout::head("Audit", "Every change of agents, places, people and config, the latest first.", html! {}))
        @if entries.is_empty() { div.card.empty { p { "Nothing was changed yet." } } }
        @else {
            div.card.scroll-x tabindex="0" role="region" aria-label="Table" {
                table {
                    thead { tr { th { "When" } th { "Who" } th { "What" } th { "Where" } th { "From" } th { "To" } } }
                    tbody { @for entry in &entries { (row(entry)) } }
                }
            }
        }
    };
    Ok(shell.page(Page::Audit, &[], body))
}

fn row(entry: &Entry) -> Markup {
    let of = entry.subject.as_deref().or(entry.agent.as_deref());
    html! {
        tr {
            td.nowrap.soft { (layout::at(entry.at)) }
            td { (entry.name.as_deref().unwrap_or(&entry.actor)) @if entry.name.is_some() { " " span.soft.small { (entry.actor) } } }
            td { (entry.action) @if let Some(of) = of { " " b { (of) } } }
            td.mono { (entry.place.as_deref().unwrap_or_default()) }
            td { (entry.before.as_deref().unwrap_or_default()) }
            td { (entry.after.as_deref().unwrap_or_default()) }
        }
    }
}
