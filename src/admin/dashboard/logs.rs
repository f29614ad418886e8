//! Logs: the newest lines of the log file.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{self, Page, Shell};
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::log_lines::{self, Sought};

const MOST: usize = 400;

#[derive(Deserialize)]
pub(super) struct Wanted {
    agent: Option<String>,
    q: Option<String>,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    Query(wanted): Query<Wanted>,
) -> Result<Markup, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let shell = Shell::new(snapshot, wanted.agent.as_deref()).seen_by(&caller);
    let sought = Sought {
        agent: shell.scope.as_ref().map(ToString::to_string),
        contains: wanted.q.filter(|words| !words.is_empty()),
    };
    let words = sought.contains.clone().unwrap_or_default();
    let found = log_lines::newest(&state.operations, sought, MOST).await;
    let body = html! {
        (layout::head("Logs", "The newest lines, the latest at the end.", search(&shell, &words)))
        @match found {
            Ok(lines) if lines.is_empty() => div.card.empty { p { "No line fits." } },
            Ok(lines) => pre.log tabindex="0" role="region" aria-label="Lines" { @for line in &lines { (line) "\n" } },
            Err(refusal) => div.note {
                p { (layout::sentence(&refusal.text)) }
                @if let Some(hint) = &refusal.hint { p { (layout::sentence(hint)) } }
            },
        }
    };
    Ok(shell.page(Page::Logs, &[], body))
}

fn search(shell: &Shell, words: &str) -> Markup {
    html! {
        form.row method="get" action="/logs" role="search" {
            @if let Some(agent) = &shell.scope { input type="hidden" name="agent" value=(agent); }
            label.sr for="q" { "Search lines" }
            input #q type="search" name="q" value=(words) placeholder="Words";
            button type="submit" { "Search" }
        }
    }
}
