//! Conversations: every session with its agent, words found in all of them, and the transcript of
//! one with what can be done there.

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::IntoResponse;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::json;

use super::layout::{self, Page, Shell};
use super::markdown;
use super::texts;
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::domain::SessionKey;
use crate::operations::house::{DecidedBy, Holder};
use crate::operations::session_list::{self, Listed, Wanted};
use crate::operations::transcripts::{self, Detail, Kind, Line};
use crate::records::sessions;
use crate::records::transcript::Extent;

/// Sessions on a page.
const MOST: usize = 100;
/// Lines of a transcript on a page.
const LINES: u32 = 200;
/// Lines of a transcript in a file.
const EXPORTED: u32 = 100_000;
/// Messages that a search shows.
const HITS: u32 = 50;

#[derive(Deserialize)]
pub(super) struct Asked {
    agent: Option<String>,
    q: Option<String>,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    Query(query): Query<Asked>,
) -> Result<Markup, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let shell = Shell::new(snapshot, query.agent.as_deref()).seen_by(&caller);
    let words = query.q.unwrap_or_default();
    let body = match words.trim() {
        "" => listed(&state, &shell).await?,
        words => found(&state, &shell, words).await?,
    };
    let body = html! {
        (layout::head("Conversations", "", search(&shell, &words)))
        (body)
    };
    Ok(shell.page(Page::Conversations, &[], body))
}

fn search(shell: &Shell, words: &str) -> Markup {
    html! {
        form.row method="get" action="/conversations" role="search" {
            @if let Some(agent) = &shell.scope { input type="hidden" name="agent" value=(agent); }
            label.sr for="q" { "Search what was said" }
            input #q type="search" name="q" value=(words) placeholder="Words";
            button type="submit" { "Search" }
        }
    }
}

/// Messages with all of the words.
async fn found(state: &AdminState, shell: &Shell, words: &str) -> Result<Markup, Problem> {
    let house = state.operations.house().await?;
    let agent = shell.scope.as_ref().and_then(|id| shell.agent(id.as_str()));
    let agent = agent.map(|agent| agent.uid);
    let sought: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let read = move |connection: &rusqlite::Connection| {
        transcripts::search(connection, &house, &sought, agent, HITS)
    };
    let hits = state.operations.db().read(read).await?;
    Ok(html! {
        @if hits.is_empty() { div.card.empty { p { "Nobody has said " b { (words) } "." } } }
        @for hit in &hits {
            section.card.hit {
                p.small { a href={ "/conversations/" (hit.place.id) } { (hit.place.name.as_deref().unwrap_or(&hit.place.id)) } }
                ol { (said(shell, &hit.line)) }
            }
        }
    })
}

async fn listed(state: &AdminState, shell: &Shell) -> Result<Markup, Problem> {
    let house = state.operations.house().await?;
    let wanted = Wanted {
        agent: shell.scope.clone(),
        limit: MOST,
        ..Wanted::default()
    };
    let read =
        move |connection: &rusqlite::Connection| session_list::list(connection, &house, &wanted);
    let page = state.operations.db().read(read).await?;
    Ok(html! {
        @if page.sessions.is_empty() { div.card.empty { p { "Nobody has written yet." } } }
        @else {
            div.card.scroll-x tabindex="0" role="region" aria-label="Table" {
                table {
                    thead { tr { th { "Place" } th { "Agent" } th.wide { "People" } th.number.wide { "Messages" } th { "Active" } th {} } }
                    tbody { @for session in &page.sessions { (row(shell, session)) } }
                }
            }
            @if page.has_more { p.soft { "There are more; these are the latest." } }
        }
    })
}

fn row(shell: &Shell, session: &Listed) -> Markup {
    let people: Vec<&str> = session
        .people
        .iter()
        .map(|person| person.name.as_deref().unwrap_or(&person.id))
        .collect();
    html! {
        tr {
            td {
                a href={ "/conversations/" (session.place.id) } { (session.place.name.as_deref().unwrap_or(&session.place.id)) }
                @if session.place.name.is_some() { div.small.soft.mono.wide { (session.place.id) } }
            }
            td { @match shell.agent(&session.agent.id) { Some(agent) => (layout::who(agent)), None => (session.agent.id) } }
            td.wide.soft { (people.join(", ")) }
            td.number.wide { (session.messages) }
            td.nowrap.soft { @if let Some(at) = session.last_active_at { (layout::ago(at.0)) } }
            td {
                @if session.waiting > 0 { span.tag.warn { (session.waiting) " waiting" } }
                @if session.undelivered > 0 { span.tag.bad { (session.undelivered) " undelivered" } }
            }
        }
    }
}

pub(super) async fn one(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    Path(key): Path<String>,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    let place = place(&key)?;
    let house = state.operations.house().await?;
    let (names, asked) = (house.clone(), place.clone());
    let read = move |connection: &rusqlite::Connection| {
        let Some(used) = sessions::of(connection, &asked)? else {
            return Ok(None);
        };
        let holder = names.holder(connection, &used)?;
        let extent = (Extent::Current, LINES);
        let lines = transcripts::read(connection, &names, &asked, extent, Detail::Readable)?;
        Ok(Some((holder, lines)))
    };
    let found = state.operations.db().read(read).await?;
    let (holder, lines) = found.ok_or_else(|| unused(&key))?;
    let name = house.names.place(&place).name;
    let name = name.unwrap_or_else(|| key.clone());
    let body = html! {
        (layout::head(&name, &holder.rule, actions(&shell, &place, &holder)))
        div.card {
            @if lines.is_empty() { p.soft { "This conversation is empty." } }
            ol.stack { @for line in &lines { (said(&shell, line)) } }
        }
    };
    Ok(shell.titled(Page::Conversations, &name, &[], body))
}

fn place(key: &str) -> Result<SessionKey, Problem> {
    let place = key.parse();
    place.map_err(|_| Problem::not_found(format!("There is no place {key}.")))
}

fn unused(key: &str) -> Problem {
    Problem::not_found(format!("Nobody has written in {key} yet."))
}

/// What can be done in a place.
fn actions(shell: &Shell, place: &SessionKey, holder: &Holder) -> Markup {
    let path = format!("/api/v1/sessions/{place}");
    let is_web = matches!(place, SessionKey::Web { .. });
    html! {
        div.row {
            @if is_web { a.button.main href={ "/chat?place=" (place) } { "Take part" } }
            @if shell.operates() {
                (switcher(shell, &path, holder))
                button type="button" data-call={ "POST " (path) "/new" } data-ask="Begin a new conversation?" data-text=(texts::WHAT_RENEWING_DOES) { "New" }
                (forks(shell, &path))
                button type="button" data-call={ "POST " (path) "/stop" } data-told="Nothing runs here any more." { "Stop" }
            } @else if let Some(agent) = shell.agent(holder.agent.as_str()) { (layout::who(agent)) }
            a.button href={ "/conversations/" (place) "/export" } download { "Export" }
        }
    }
}

/// Copies the conversation: to a topic of the web chat, which is opened, or to the terminal.
fn forks(shell: &Shell, path: &str) -> Markup {
    html! {
        @if shell.snapshot.config.has_web() {
            button type="button" data-call={ "POST " (path) "/fork" } data-body=(json!({ "on": "web" })) data-ask="Fork this conversation to the web chat?" data-text=(texts::WHAT_FORKING_TO_THE_WEB_DOES) data-then="{link}" { "Fork to web chat" }
        }
        button type="button" data-call={ "POST " (path) "/fork" } data-body="{}" data-ask="Fork this conversation to the terminal?" data-text=(texts::WHAT_FORKING_DOES) data-told="A copy is in the terminal: {command}" data-then="/conversations" { "Fork to terminal" }
    }
}

/// Gives the place to another agent, or back to the rules.
fn switcher(shell: &Shell, path: &str, holder: &Holder) -> Markup {
    html! {
        @if shell.agents().len() > 1 {
            label.sr for="agent" { "Agent of this place" }
            select #agent data-call={ "PUT " (path) "/agent" } data-key="agent" {
                @for agent in shell.agents() { option value=(agent.id) selected[agent.id == holder.agent] { (agent.label()) } }
            }
        } @else if let Some(agent) = shell.agent(holder.agent.as_str()) { (layout::who(agent)) }
        @if holder.by == DecidedBy::Pin {
            button type="button" data-call={ "DELETE " (path) "/agent" } data-told="The rules decide here again." { "Let the rules decide" }
        }
    }
}

/// Everything that was said in a place, as a file.
pub(super) async fn export(
    State(state): State<AdminState>,
    Reads(_): Reads,
    Path(key): Path<String>,
) -> Result<impl IntoResponse, Problem> {
    let (place, house) = (place(&key)?, state.operations.house().await?);
    let read = move |connection: &rusqlite::Connection| {
        if sessions::of(connection, &place)?.is_none() {
            return Ok(None);
        }
        let extent = (Extent::All, EXPORTED);
        let lines = transcripts::read(connection, &house, &place, extent, Detail::Readable)?;
        Ok(Some(lines))
    };
    let lines = state.operations.db().read(read).await?;
    let lines = lines.ok_or_else(|| unused(&key))?;
    let text = |line: &Line| format!("## {}, {}\n\n{}\n", line.writer(), line.at, line.words());
    let text: Vec<String> = lines.iter().map(text).collect();
    let name = key.replace(':', "-");
    let head = [
        (
            header::CONTENT_TYPE,
            "text/markdown; charset=utf-8".to_owned(),
        ),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}.md\""),
        ),
    ];
    Ok((head, text.join("\n")))
}

fn said(shell: &Shell, line: &Line) -> Markup {
    if line.kind == Kind::Handoff {
        return html! { li.day { (line.text) } };
    }
    let agent = line.agent.as_ref().and_then(|agent| shell.agent(&agent.id));
    html! {
        li class={ "message " @if line.kind == Kind::Agent { "agent" } @else { "person" } } {
            @match agent {
                Some(agent) if line.kind == Kind::Agent => (layout::mark(agent)),
                _ => span.mark aria-hidden="true" { (line.writer().chars().next().unwrap_or('·')) },
            }
            header { b { (line.writer()) } (layout::at(line.at.0)) }
            div.body {
                div.prose { (PreEscaped(markdown::html(&line.words()))) }
                @if !line.tools.is_empty() { p.small.soft { "used " (line.tools.join(", ")) } }
            }
        }
    }
}
