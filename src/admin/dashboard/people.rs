//! People: those who wait to be let in, and everybody who is known, with roles.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::layout::{self, Page, Shell};
use super::texts;
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::clock::now_ms;
use crate::domain::{PersonId, Role};
use crate::operations::known_people::{self, Known, Source, Wanted};
use crate::operations::pairing::{self, Waiting};

/// People on a page.
const MOST: usize = 100;

#[derive(Deserialize)]
pub(super) struct Asked {
    q: Option<String>,
    behind: Option<String>,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    Query(query): Query<Asked>,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    // A code lets somebody in, so only those who may do so see it.
    let waiting = match shell.operates() {
        true => pairing::guestbook(&state.operations).await?.waiting,
        false => Vec::new(),
    };
    let config = shell.snapshot.config.clone();
    let words = query.q.unwrap_or_default();
    let wanted = Wanted {
        words: words.clone(),
        limit: MOST,
        behind: query.behind.and_then(|id| id.parse().ok()),
    };
    let is_first = wanted.behind.is_none();
    let read = move |connection: &rusqlite::Connection| {
        known_people::page(connection, &config.access, &wanted, now_ms())
    };
    let known_people::Page { people, has_more } = state.operations.db().read(read).await?;
    let last = people.last().filter(|_| has_more).map(Known::main);
    let body = html! {
        (layout::head("People", "Owners and admins are in config.toml or were made in chat; others were let in, or only wrote.", search(&words)))
        div.stack {
        @if !waiting.is_empty() && is_first { (waiting_list(&waiting)) }
        @if people.is_empty() {
            div.card.empty {
                @if words.is_empty() { p { "Nobody but you is known yet." } }
                @else { p { "Nobody is called " b { (words) } "." } }
            }
        }
        @else {
            div.card.scroll-x tabindex="0" role="region" aria-label="People" {
                table {
                    thead { tr { th { "Person" } th { "Role" } th.wide { "With agents" } th { "Ids" } th { "Seen" } th.number.wide { "Tokens today" } th {} } }
                    tbody { @for known in &people { (row(&shell, known)) } }
                }
            }
            @if let Some(last) = last { (further(&words, last)) }
        }
        }
    };
    Ok(shell.page(Page::People, &[], body))
}

fn search(words: &str) -> Markup {
    html! {
        form.row method="get" action="/people" role="search" {
            label.sr for="q" { "Search people" }
            input #q type="search" name="q" value=(words) placeholder="Name or id";
            button type="submit" { "Search" }
        }
    }
}

/// The way to the people behind this one.
fn further(words: &str, last: &PersonId) -> Markup {
    html! {
        form method="get" action="/people" {
            @if !words.is_empty() { input type="hidden" name="q" value=(words); }
            input type="hidden" name="behind" value=(last);
            button type="submit" { "More people" }
        }
    }
}

fn row(shell: &Shell, known: &Known) -> Markup {
    html! {
        tr data-person=(known.main()) {
            td { b { (known.label()) } }
            td { (role(shell, known)) }
            td.wide { @for (agent, role, _) in &known.agents { (agent) " " span.tag { (role) } " " } }
            td.mono { @for (id, _) in &known.ids { div { (id) } } }
            td.nowrap.soft { @if let Some(at) = known.last_seen { (layout::ago(at)) } }
            td.number.wide { (layout::grouped(known.spent.tokens)) }
            td.number { @if let Some(call) = removal(shell, known) { button.danger type="button" data-call=(call) data-ask={ "Remove " (known.label()) "?" } data-text=(texts::what_removing_a_person_does(&known.label())) { "Remove" } } }
        }
    }
}

/// The role, to be changed where config.toml does not decide it.
fn role(shell: &Shell, known: &Known) -> Markup {
    let is_free = !matches!(known.role_from, Source::Owners(_) | Source::File(_));
    let roles = [Role::Guest, Role::Member, Role::Admin, Role::Owner];
    html! {
        @if is_free && shell.administers() {
            select data-call={ "PUT /api/v1/people/" (known.main()) "/role" } data-key="role" aria-label={ "Role of " (known.label()) }
                data-ask={ "Change the role of " (known.label()) "?" } data-text="It counts for every agent, from the next message on." {
                @for role in roles { option value=(role) selected[role == known.role] { (role) } }
            }
        } @else {
            span.tag.accent[known.role >= Role::Admin] { (known.role) }
        }
    }
}

/// The call that takes back what was granted.
fn removal(shell: &Shell, known: &Known) -> Option<String> {
    match known.role_from {
        Source::Granted(_) if shell.administers() => {
            Some(format!("DELETE /api/v1/people/{}", known.main()))
        }
        Source::Paired(_) if shell.operates() => {
            Some(format!("DELETE /api/v1/pairing/people/{}", known.main()))
        }
        _ => None,
    }
}

fn waiting_list(waiting: &[Waiting]) -> Markup {
    html! {
        section.card #waiting {
            h2 { "Waiting to be let in" }
            table { tbody { @for one in waiting { (knock(one)) } } }
        }
    }
}

fn knock(one: &Waiting) -> Markup {
    let path = format!("POST /api/v1/pairing/{}", one.code);
    let name = one.person.name.as_deref().unwrap_or(&one.person.id);
    html! {
        tr data-code=(one.code) {
            td { b { (name) } " " span.soft.mono { (one.person.id) } }
            td.mono { (one.code) }
            td.nowrap.soft { "until " (layout::at(one.until.0)) }
            td.number.nowrap {
                button.main type="button" data-call=(path) data-body=(json!({ "let_in": true })) data-told={ (name) " is let in." } { "Let in" } " "
                button.danger type="button" data-call=(path) data-body=(json!({ "let_in": false })) data-ask={ "Decline " (name) "?" } data-text="The code ends, and they stay outside." { "Decline" }
            }
        }
    }
}
