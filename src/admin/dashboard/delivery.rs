//! Delivery: the send budgets of each platform with their use, and messages that could not be sent,
//! with the reason; sent again, or given up.

use axum::extract::State;
use maud::{Markup, html};
use serde_json::json;

use super::layout::{self, Page, Shell};
use super::texts;
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::delivery::undelivered::{self, Undelivered, Which};
use crate::operations::names::Names;
use crate::operations::send_budgets::{ChatBudget, SendBudget, send_budgets};

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    let read = |connection: &rusqlite::Connection| undelivered::list(connection, &Which::All);
    let rows = state.operations.db().read(read).await?;
    let names = state.operations.house().await?.names;
    let budgets = send_budgets(&state.operations).await?;
    let all = json!({ "all": true });
    let right = html! {
        @if !rows.is_empty() && shell.operates() {
            div.row {
                button type="button" data-call="POST /api/v1/undelivered/retry" data-body=(all) data-told="{count} are sent again." { "Retry all" }
                button.danger type="button" data-call="POST /api/v1/undelivered/drop" data-body=(all) data-ask="Give all up?" data-text=(texts::WHAT_GIVING_UP_DOES) { "Give all up" }
            }
        }
    };
    let body = html! {
        (layout::head("Delivery", "What each bot may send right now, and messages that did not reach their place.", right))
        div.stack {
        (budget_cards(&budgets))
        @if rows.is_empty() { div.card.empty { p { "Everything was delivered." } } }
        @else {
            div.card.scroll-x tabindex="0" role="region" aria-label="Table" {
                table {
                    thead { tr { th { "Place" } th.wide { "Kind" } th { "Why" } th.wide { "Since" } th {} } }
                    tbody { @for row in &rows { (letter(&shell, &names, row)) } }
                }
            }
        }
        }
    };
    Ok(shell.page(Page::Delivery, &["delivery.js"], body))
}

/// Replaced by the script every few seconds.
fn budget_cards(budgets: &[SendBudget]) -> Markup {
    html! {
        div.columns #budgets {
            @for budget in budgets { (budget_card(budget)) }
        }
    }
}

fn budget_card(budget: &SendBudget) -> Markup {
    let name = layout::platform_name(budget.platform);
    html! {
        section.card data-platform=(budget.platform) aria-label={ "What " (name) " takes" } {
            h2 { (name) }
            dl.facts {
                dt { "all chats" } dd {
                    (of(budget.used_in_second, budget.per_second)) " in a second"
                    @if let Some(most) = budget.per_second { (gauge("Calls in the last second", budget.used_in_second, most)) }
                }
                dt { "a chat" } dd { (limit(budget.chat_per_second)) " in a second" }
                dt { "a group" } dd { (limit(budget.group_per_minute)) " in a minute" }
                dt { "waiting" } dd { (layout::counted(budget.waiting, "message")) }
            }
            @if budget.chats.is_empty() { p.small.soft { "Nothing was sent in the last minute, and nothing waits." } }
            @else {
                div.scroll-x tabindex="0" role="region" aria-label={ "Chats of " (name) } {
                    table {
                        thead { tr { th { "Chat" } th { "Used" } th { "Waits" } } }
                        tbody { @for chat in &budget.chats { (chat_row(budget, chat)) } }
                    }
                }
                @if budget.more_chats > 0 { p.small.soft { "And " (layout::counted(budget.more_chats, "chat")) " more." } }
            }
        }
    }
}

fn chat_row(budget: &SendBudget, chat: &ChatBudget) -> Markup {
    html! {
        tr data-chat=(chat.place.id) {
            td { (chat.place.words().unwrap_or(&chat.place.id)) @if chat.place.name.is_some() { div.small.soft.mono.wide { (chat.place.id) } } }
            td {
                @match (chat.used_in_minute, budget.group_per_minute) {
                    (Some(used), Some(most)) => { (used) " of " (most) " in a minute" (gauge("Messages in the last minute", used, most)) },
                    _ => { (of(chat.used_in_second, budget.chat_per_second)) " in a second" },
                }
            }
            td {
                @if chat.waiting > 0 {
                    span.tag.warn { (layout::counted(chat.waiting, "message")) }
                    @if let Some(since) = chat.waiting_since { " " span.small.soft { "since " (layout::ago(since.0)) } }
                }
                @if let Some(left) = chat.asked_to_wait_ms { " " span.tag.bad title="The platform asked for it: 429" { "asked to wait " (seconds(left)) } }
                @if let Some(left) = chat.room_in_ms { " " span.small.soft { "room in " (seconds(left)) } }
                @if chat.waiting == 0 && chat.asked_to_wait_ms.is_none() && chat.room_in_ms.is_none() { span.soft { "nothing" } }
            }
        }
    }
}

fn of(used: usize, most: Option<u32>) -> String {
    match most {
        Some(most) => format!("{used} of {most}"),
        None => format!("{used}, without a limit,"),
    }
}

fn limit(most: Option<u32>) -> String {
    most.map_or_else(|| "any number".to_owned(), |most| format!("{most}"))
}

fn gauge(label: &str, used: usize, most: u32) -> Markup {
    html! { meter aria-label=(label) min="0" max=(most) value=(used) { (used) " of " (most) } }
}

/// Whole seconds, rounded up.
fn seconds(millis: u64) -> String {
    format!("{} s", millis.div_ceil(1000))
}

fn letter(shell: &Shell, names: &Names, row: &Undelivered) -> Markup {
    let place = names.place(&row.place);
    html! {
        tr data-row=(row.id) {
            td {
                a href={ "/conversations/" (place.id) } { (place.words().unwrap_or(&place.id)) }
                @if place.name.is_some() { div.small.soft.mono.wide { (place.id) } }
            }
            td.wide { (row.kind) }
            td { @if row.is_kept { span.tag { "kept" } " delivery is off here" } @else { (row.error) } }
            td.wide.nowrap.soft { (layout::ago(row.created_at)) }
            td.number {
                @if row.retry_at_start { span.tag { "sent again at the next start" } }
                @if shell.operates() { (choices(row)) }
            }
        }
    }
}

fn choices(row: &Undelivered) -> Markup {
    let which = json!({ "id": row.id });
    html! {
        @if !row.is_kept {
            button type="button" data-call="POST /api/v1/undelivered/retry" data-body=(which) data-told="It is sent again." { "Retry" } " "
        }
        button.danger type="button" data-call="POST /api/v1/undelivered/drop" data-body=(which) data-ask="Give this message up?" data-text=(texts::WHAT_GIVING_UP_DOES) { "Give up" }
    }
}
