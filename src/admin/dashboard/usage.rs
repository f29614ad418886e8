//! Usage: turns, tokens and money, by agent, place, person and model.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{self, Page, Shell};
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::clock::now_ms;
use crate::commands::texts::usage as texts;
use crate::config::Currency;
use crate::operations::names::Names;
use crate::records::ledger::{self, By, Period, UsageLine};

/// Lines of a table.
const MOST: usize = 20;

#[derive(Deserialize)]
pub(super) struct Wanted {
    period: Option<String>,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(_): Reads,
    Query(wanted): Query<Wanted>,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None);
    let asked = wanted.period.as_deref();
    let period = Period::ALL
        .into_iter()
        .find(|period| Some(period.as_str()) == asked)
        .unwrap_or(Period::Week);
    let read = move |connection: &rusqlite::Connection| {
        By::ALL
            .into_iter()
            .map(|by| Ok((by, ledger::report(connection, by, period, None, now_ms())?)))
            .collect::<rusqlite::Result<Vec<(By, Vec<UsageLine>)>>>()
    };
    let tables = state.operations.db().read(read).await?;
    let config = shell.snapshot.config.clone();
    let names = state.operations.house().await?.names;
    let total = ledger::total(
        &tables
            .first()
            .map(|(_, lines)| lines.clone())
            .unwrap_or_default(),
    );
    let body = html! {
        (layout::head("Usage", "", periods(period)))
        div.stack {
            div.figures {
                div { b { (layout::grouped(total.turns)) } span { "turns" } }
                div { b { (layout::grouped(total.usage.input_tokens)) } span { "tokens read" } }
                div { b { (layout::grouped(total.usage.cached_tokens)) } span { "of them cached" } }
                div { b { (layout::grouped(total.usage.output_tokens)) } span { "tokens written" } }
                div { b { (cost(&total, &config.currency)) } span { "cost" } }
            }
            @if total.turns == 0 { div.card.empty { p { "No turn ended in this time." } } }
            @else {
                div.columns {
                    @for (by, lines) in &tables {
                        section.card {
                            h2 { "By " (by.as_str()) }
                            (table(&shell, &names, *by, lines, &config.currency))
                        }
                    }
                }
            }
        }
    };
    Ok(shell.page(Page::Usage, &[], body))
}

fn periods(current: Period) -> Markup {
    html! {
        nav.row aria-label="Period" {
            @for period in Period::ALL {
                a.button.quiet href={ "/usage?period=" (period.as_str()) } aria-current=[(period == current).then_some("true")] {
                    @match period { Period::Today => "Today", Period::Week => "7 days", Period::Month => "30 days" }
                }
            }
        }
    }
}

fn table(shell: &Shell, names: &Names, by: By, lines: &[UsageLine], currency: &Currency) -> Markup {
    let tokens = |line: &UsageLine| line.usage.input_tokens + line.usage.output_tokens;
    let most = lines.iter().map(tokens).max().unwrap_or(1).max(1);
    html! {
        table {
            thead { tr { th { (by.as_str()) } th.number { "Turns" } th.number { "Tokens" } th.number { "Cost" } } }
            tbody {
                @for line in lines.iter().take(MOST) {
                    tr {
                        td {
                            (name(shell, names, by, &line.name))
                            meter min="0" max=(most) value=(tokens(line)) aria-label="share of tokens" {}
                        }
                        td.number { (layout::grouped(line.turns)) }
                        td.number { (layout::grouped(tokens(line))) }
                        td.number { (cost(line, currency)) }
                    }
                }
            }
        }
    }
}

fn name(shell: &Shell, names: &Names, by: By, id: &str) -> Markup {
    match by {
        By::Agent => match shell.agent(id) {
            Some(agent) => layout::who(agent),
            None => html! { (id) },
        },
        By::Place => match id.parse() {
            Ok(key) => {
                let named = names.place(&key);
                html! { span title=(id) { (named.words().unwrap_or(id)) } }
            }
            Err(_) => html! { (id) },
        },
        By::Person => match id.parse() {
            Ok(person) => {
                let named = names.person(&person).name;
                html! { span title=(id) { (named.as_deref().unwrap_or(id)) } }
            }
            Err(_) => html! { (id) },
        },
        By::Model => html! { span.mono { (id) } },
    }
}

fn cost(line: &UsageLine, currency: &Currency) -> String {
    texts::cost(line, currency).unwrap_or_else(|| "–".to_owned())
}
