//! System: what is wrong, with the fix for each, and what the home is made of.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{self, Page, Shell};
use super::texts;
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::doctor::{self, Depth};
use crate::operations::diagnosis::{Belonging, Finding, State as Health};

#[derive(Deserialize)]
pub(super) struct Wanted {
    /// Also asks every model and every platform.
    #[serde(default)]
    full: bool,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    Query(wanted): Query<Wanted>,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    let depth = match wanted.full {
        true => Depth::Full,
        false => Depth::Quick,
    };
    let diagnosis = doctor::in_gateway(&state.operations, depth).await?;
    let right = html! {
        div.row {
            a.button href="/system?full=true" title="Also asks every model and every platform, which takes some seconds" { "Run all checks" }
            @if shell.operates() { button type="button" data-call="POST /api/v1/reload" data-told="config.toml, tokens and keys were read anew." { "Reload" } }
            @if shell.administers() {
                button type="button" data-call="POST /api/v1/backup" data-ask="Make a backup?" data-text=(texts::WHAT_A_BACKUP_IS) data-told="The backup {file} is written." { "Back up" }
            }
        }
    };
    let body = html! {
        (layout::head("System", "What the doctor finds, and what the home is made of.", right))
        div.stack {
            section.card {
                h2 { "Checks" }
                table { tbody { @for finding in &diagnosis.findings { (check(finding)) } } }
            }
            section.card.scroll-x tabindex="0" aria-label="In the home folder" {
                h2 { "In the home folder" }
                table {
                    thead { tr { th { "Path" } th { "What" } th.number { "Files" } th.number { "Size" } } }
                    tbody { @for belonging in &diagnosis.belongings { (kept(belonging)) } }
                }
            }
        }
    };
    Ok(shell.page(Page::System, &[], body))
}

fn check(finding: &Finding) -> Markup {
    html! {
        tr {
            td {
                @match finding.state {
                    Health::Ok => span.tag.good { "ok" },
                    Health::Note => span.tag { "note" },
                    Health::Warn => span.tag.warn { "look" },
                    Health::Bad => span.tag.bad { "wrong" },
                }
            }
            td {
                (layout::marked(&finding.text))
                @if let Some(cause) = finding.cause.as_ref().filter(|cause| !cause.is_empty()) { p.small.soft { (cause) } }
                @if let Some(fix) = &finding.fix { p.small { "Fix: " code { (fix) } } }
            }
        }
    }
}

fn kept(belonging: &Belonging) -> Markup {
    html! {
        tr {
            td.mono { (belonging.path) }
            td { (belonging.what) }
            td.number { (layout::grouped(belonging.files)) }
            td.number.nowrap { (layout::bytes(belonging.bytes)) }
        }
    }
}
