//! The page of the web chat. Its first answer has everything: agents, places, the last messages.

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::layout::{self, Page, Shell};
use crate::admin::api::chat::{self as api, Chat, Message, Sight};
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::commands::SPECS;
use crate::domain::SessionKey;
use crate::operations::web_chat::first_place;

/// Messages on the first page.
const FIRST: u32 = 60;

#[derive(Deserialize)]
pub(super) struct Wanted {
    place: Option<String>,
}

/// What the script of the page begins with.
#[derive(Serialize)]
struct First {
    chat: Chat,
    messages: Vec<Message>,
    commands: Vec<Command>,
    place: String,
    newest: i64,
    sights: Vec<Sight>,
}

#[derive(Serialize)]
struct Command {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(_): Reads,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let shell = Shell::new(snapshot, None);
    if !shell.snapshot.config.has_web() {
        return Ok(shell.page(Page::Chat, &[], off()).into_response());
    }
    let asked = wanted.place.and_then(|place| place.parse().ok());
    let asked = asked.filter(|place| matches!(place, SessionKey::Web { .. }));
    let here = asked.unwrap_or_else(first_place);
    // Read before the messages, so that no message falls between both.
    let newest = state.monitor.web().newest().await?;
    let first = First {
        chat: api::chat_of(&state).await?,
        messages: api::messages_of(&state, &here, i64::MAX, FIRST).await?,
        commands: SPECS
            .iter()
            .map(|spec| Command {
                name: spec.name,
                arguments: spec.arguments,
                summary: spec.summary,
            })
            .collect(),
        place: here.to_string(),
        newest,
        sights: api::sights_of(&state),
    };
    let body = talk(&shell, &first);
    Ok(shell.page(Page::Chat, &["chat.js"], body).into_response())
}

fn off() -> Markup {
    html! {
        (layout::head("Chat", "", html! {}))
        div.note {
            "The web chat is off. Add " code { "[web]" } " to config.toml to talk to your agents here."
        }
    }
}

fn talk(shell: &Shell, first: &First) -> Markup {
    html! {
        div.chat #chat {
            aside.topics aria-label="Topics" {
                button #new type="button" { "New topic" }
                nav #topic-list aria-label="Topics" {}
            }
            section.talk aria-label="Conversation" {
                (talk_head(shell, first))
                div.messages #scroller tabindex="0" role="log" aria-label="Messages" {
                    div.row { button.quiet #earlier type="button" hidden { "Earlier messages" } }
                    div.empty #greeting hidden {
                        p { "Nothing was said here yet." }
                        p.small { "Write a message, or " code { "/" } " for commands." }
                    }
                    ol #messages {}
                }
                (compose())
            }
        }
        (new_topic(shell))
        (layout::data("first", first))
    }
}

/// The topic and its agent.
fn talk_head(shell: &Shell, first: &First) -> Markup {
    let mut places = first.chat.places.iter();
    let here = places.find(|place| place.key == first.place);
    let agent = here.and_then(|place| shell.agent(&place.agent));
    let agent = agent.unwrap_or_else(|| shell.snapshot.registry.default_agent());
    let name = here.map_or("Main", |place| place.name.as_str());
    html! {
        div.talk-head {
            button.quiet.topics-toggle #topics-toggle type="button" aria-label="Topics" { "☰" }
            span #talk-mark { (layout::mark(agent)) }
            div.grow {
                h1 #talk-title { (name) }
                p { span #talk-agent { (agent.name) } span #talk-rule {} }
            }
            @if shell.agents().len() > 1 {
                label.sr for="agent-picker" { "Agent of this topic" }
                select #agent-picker {
                    @for one in shell.agents() {
                        option value=(one.id) selected[one.id == agent.id] { (one.label()) }
                    }
                }
            }
            button.quiet.wide #renew type="button" { "New conversation" }
        }
    }
}

fn compose() -> Markup {
    html! {
        div.compose {
            div.note.warn #offline hidden { "The connection to the gateway is gone. Trying again…" }
            form #compose {
                div.suggest #suggest role="listbox" aria-label="Commands" hidden {}
                div.attached #attached {}
                label.sr for="words" { "Message" }
                textarea #words rows="1" placeholder="Message" role="combobox" aria-expanded="false" aria-controls="suggest" aria-autocomplete="list" autocomplete="off" {}
                div.row.between {
                    div.row {
                        button.quiet #attach type="button" { "Attach" }
                        input.sr #upload type="file" multiple tabindex="-1" aria-label="Files";
                    }
                    div.row {
                        button.danger #stop type="button" hidden { "Stop" }
                        button.main type="submit" { "Send" }
                    }
                }
            }
        }
    }
}

fn new_topic(shell: &Shell) -> Markup {
    html! {
        dialog #new-topic aria-label="New topic" {
            form #new-form method="dialog" {
                div.stack {
                    h2 { "New topic" }
                    label.field { span { "Name" } input #new-name type="text" maxlength="60" required autocomplete="off"; }
                    @if shell.agents().len() > 1 {
                        label.field {
                            span { "Agent" }
                            select #new-agent {
                                @for one in shell.agents() { option value=(one.id) { (one.label()) } }
                            }
                        }
                    }
                }
                div.row.end {
                    button #new-cancel type="button" { "Cancel" }
                    button.main type="submit" { "Begin" }
                }
            }
        }
    }
}
