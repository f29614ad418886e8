//! Live: turns that run, and messages that wait; stopped, or dropped.

use axum::extract::State;
use maud::{Markup, html};

use super::layout::{self, Page, Shell};
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::names::Names;
use crate::operations::{Listed, ListedStage, status};

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    let names = state.operations.house().await?.names;
    let work = status(&state.operations).await?.work;
    let body = html! {
        (layout::head("Live", "Turns under way and messages that wait for one.", html! {}))
        @if work.is_empty() { div.card.empty { p { "Nothing runs right now." } } }
        @else {
            div.card.scroll-x tabindex="0" role="region" aria-label="Table" {
                table {
                    thead { tr { th { "Place" } th { "Agent" } th { "For" } th { "State" } th { "Since" } th {} } }
                    tbody { @for item in &work { (row(&shell, &names, item)) } }
                }
            }
        }
    };
    Ok(shell.page(Page::Live, &["live.js"], body))
}

fn row(shell: &Shell, names: &Names, item: &Listed) -> Markup {
    let place = names.place(&item.place);
    let agent = item.agent.as_ref().and_then(|id| shell.agent(id.as_str()));
    html! {
        tr {
            td { a href={ "/conversations/" (place.id) } { (place.words().unwrap_or(&place.id)) } }
            td { @if let Some(agent) = agent { (layout::who(agent)) } }
            td { (item.by) }
            td {
                @match item.stage {
                    ListedStage::Running => span.tag.good { "running" },
                    ListedStage::Parked => span.tag { "goes on later" },
                    ListedStage::Waiting => span.tag { "waiting" },
                }
                @if item.paused { " " span.tag.warn { "agent paused" } }
            }
            td.nowrap.soft { (layout::ago(item.since)) }
            td.number {
                @if shell.operates() {
                    @match item.stage {
                        ListedStage::Waiting => button.danger type="button" data-call={ "DELETE /api/v1/queue?place=" (place.id) } data-ask="Drop what waits here?" data-text="The messages are not answered, and the place is told." { "Drop" },
                        _ => button.danger type="button" data-call={ "POST /api/v1/sessions/" (place.id) "/stop" } data-told="Stopped." { "Stop" },
                    }
                }
            }
        }
    }
}
