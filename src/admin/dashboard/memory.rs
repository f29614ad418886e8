//! Memory: what agents have saved, who sees it and why, and earlier versions of MEMORY.md.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::layout::{self, Page, Shell};
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::agents::memory::Version;
use crate::agents::{Agent, Memories};
use crate::config::Visibility;
use crate::operations::memories::{self, MemoryLine, View};

const MOST: u32 = 100;

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
    // A house with one agent needs no choice.
    let only = shell.agents().first().filter(|_| shell.agents().len() == 1);
    let scope = shell.scope.as_ref().and_then(|id| shell.agent(id.as_str()));
    let agent = scope.or(only);
    let words = wanted.q.unwrap_or_default();
    let found = match agent {
        Some(agent) if !agent.memory.is_on => None,
        _ => Some(lines(&state, agent.map(|agent| &**agent), &words).await?),
    };
    let versions = match agent.and_then(|agent| memories_of(&state, agent)) {
        Some(memory) => memory.versions().await.unwrap_or_default(),
        None => Vec::new(),
    };
    let body = html! {
        (layout::head("Memory", about(agent.map(|agent| &**agent)), search(&shell, &words)))
        div.stack {
            @match &found {
                None => div.note { "Memory is off for this agent: " code { "memory = \"off\"" } " in config.toml." },
                Some(lines) => (list(&shell, agent.map(|agent| &**agent), lines)),
            }
            @if let Some(agent) = agent { (history(&shell, agent, &versions)) }
        }
    };
    Ok(shell.page(Page::Memory, &["memory.js"], body))
}

fn memories_of(state: &AdminState, agent: &std::sync::Arc<Agent>) -> Option<crate::agents::Memory> {
    Memories::new(state.operations.db().clone()).of(agent)
}

async fn lines(
    state: &AdminState,
    agent: Option<&Agent>,
    words: &str,
) -> Result<Vec<MemoryLine>, Problem> {
    let view = View {
        agent: agent.map(|agent| agent.id.to_string()),
        ..View::default()
    };
    let operations = &state.operations;
    Ok(match words.trim() {
        "" => memories::list(operations, &view, i64::MAX, MOST).await?,
        words => memories::search(operations, &view, words, Vec::new(), MOST).await?,
    })
}

fn about(agent: Option<&Agent>) -> &'static str {
    match agent {
        Some(_) => {
            "What this agent sees for itself: its own memories, those of agents it reads from, and global ones."
        }
        None => "Memories that every agent sees. Choose an agent on the left for its own.",
    }
}

fn search(shell: &Shell, words: &str) -> Markup {
    html! {
        form.row method="get" action="/memory" role="search" {
            @if let Some(agent) = &shell.scope { input type="hidden" name="agent" value=(agent); }
            label.sr for="q" { "Search memories" }
            input #q type="search" name="q" value=(words) placeholder="Words";
            button type="submit" { "Search" }
        }
    }
}

fn list(shell: &Shell, agent: Option<&Agent>, lines: &[MemoryLine]) -> Markup {
    html! {
        @if lines.is_empty() { div.card.empty { p { "Nothing is saved here." } } }
        @else {
            div.card.scroll-x tabindex="0" role="region" aria-label="Memories" {
                table #memories {
                    thead { tr { th { "Memory" } th { "Who sees it" } th.wide { "Saved" } th {} } }
                    tbody { @for line in lines { (row(shell, agent, line)) } }
                }
            }
        }
    }
}

fn row(shell: &Shell, viewed: Option<&Agent>, line: &MemoryLine) -> Markup {
    let is_foreign = viewed.is_some_and(|viewed| viewed.id.as_str() != line.agent.id);
    html! {
        tr data-memory=(line.id) {
            td {
                @if is_foreign { span.tag.accent title="A memory of another agent" { "[" (line.agent.id) "]" } " " }
                (line.text)
                @if let Some(file) = &line.file { " " span.soft.small.mono { (file) } }
            }
            td { span.tag { (line.visibility.as_str()) } p.small.soft { (seen_by(shell, line)) } }
            td.wide.nowrap.soft { (layout::ago(line.created_at.0)) }
            td.number {
                @if line.file.is_none() && shell.operates() {
                    button.danger type="button" data-call={ "DELETE /api/v1/memories/" (line.id) "?agent=" (line.agent.id) } data-ask="Forget this for good?" data-text=(line.text) { "Forget" }
                }
            }
        }
    }
}

/// Who sees a memory, and why.
fn seen_by(shell: &Shell, line: &MemoryLine) -> String {
    let owner = line.agent.name.as_deref().unwrap_or(&line.agent.id);
    let name = |named: &Option<crate::operations::named::Named>| {
        let named = named.as_ref();
        named.map_or_else(String::new, |named| {
            named.name.clone().unwrap_or_else(|| named.id.clone())
        })
    };
    match line.visibility {
        Visibility::Person => format!(
            "{owner}, for {}: by itself in their private chats, elsewhere only when they ask",
            name(&line.person)
        ),
        Visibility::Place => format!("{owner}, in {}", name(&line.place)),
        Visibility::Private => match readers(shell, &line.agent.id).join(", ") {
            others if others.is_empty() => format!("{owner}, everywhere"),
            others => format!("{owner}, everywhere; also {others} (read_memory_from)"),
        },
        Visibility::Global => "every agent, everywhere".to_owned(),
    }
}

/// Names of the agents that read an agent's private memories.
fn readers<'a>(shell: &'a Shell, id: &str) -> Vec<&'a str> {
    let owner = shell.agent(id).map(|agent| agent.uid);
    let reads = |agent: &&std::sync::Arc<Agent>| {
        let mut sources = agent.memory.read_from.iter();
        sources.any(|source| Some(source.uid) == owner)
    };
    let readers = shell.agents().iter().filter(reads);
    readers.map(|agent| agent.name.as_str()).collect()
}

fn history(shell: &Shell, agent: &Agent, versions: &[Version]) -> Markup {
    let path = format!("/api/v1/agents/{}/memory", agent.id);
    html! {
        section.card {
            div.row.between {
                h2 { "MEMORY.md, earlier" }
                a.button href={ "/agents/" (agent.id) "?file=MEMORY.md" } { "MEMORY.md of now" }
            }
            @if versions.is_empty() { p.soft { "It was not changed since it began." } }
            table {
                tbody {
                    @for version in versions {
                        tr {
                            td.mono { (version.name) }
                            td.number { (layout::bytes(version.bytes)) }
                            td.number {
                                button.look type="button" data-version={ (path) "/versions/" (version.name) } { "Look" } " "
                                @if shell.administers() {
                                    button type="button" data-call={ "POST " (path) "/restore" } data-body=(json!({ "version": version.name }))
                                        data-ask={ "Bring back the version of " (version.name) "?" } data-text="The text of now becomes an earlier version." { "Revert" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
