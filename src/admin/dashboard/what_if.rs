//! What if: a message walked through access, rules and abilities, beside an editor of the rules that
//! is tried on the last real messages before it is saved.

use axum::extract::State;
use maud::{Markup, html};
use serde::Serialize;

use super::layout::{self, Page, Shell};
use crate::admin::auth::Administers;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::config_file::{self, ConfigText};
use crate::operations::what_if::{self, Message, Rules};

/// Real messages to choose from.
const MOST: usize = 100;

/// What the script of the page begins with.
#[derive(Serialize)]
struct First {
    config: ConfigText,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    _: Administers,
) -> Result<Markup, Problem> {
    let operations = &state.operations;
    let shell = Shell::new(operations.snapshot().await?, None);
    let config = config_file::read(operations).await?;
    let rules = Rules::running(operations).await?;
    let recent = what_if::recent(operations, &rules.house, i64::MAX, MOST).await?;
    let about = "Who would answer a message, and why. Edited rules are tried on the last 500 real messages before they are saved.";
    let body = html! {
        (layout::head("What if", about, html! {}))
        div.columns.what-if {
            div.stack {
                (message(&recent))
                section.card aria-labelledby="walk-title" {
                    div.row.between {
                        h2 #walk-title { "Its way" }
                        button #keep type="button" disabled { "Keep as route test" }
                    }
                    div #walk aria-live="polite" { p.soft { "Choose a message, or write where one comes from." } }
                }
            }
            div.stack {
                (editor(&config.text))
                section.card aria-labelledby="changed-title" {
                    h2 #changed-title { "What would change" }
                    div #changed aria-live="polite" { p.soft { "These are the rules that count." } }
                }
            }
        }
        (layout::data("first", &First { config }))
    };
    Ok(shell.page(Page::WhatIf, &["what_if.js"], body))
}

fn editor(text: &str) -> Markup {
    html! {
        form.card.stack.tight #rules {
            div.row.between {
                h2 { label for="text" { "Rules" } }
                div.row {
                    button.quiet type="button" data-jump="bindings" { "Bindings" }
                    button.quiet type="button" data-jump="route_tests" { "Route tests" }
                }
            }
            div.code-box {
                pre #lines aria-hidden="true" {}
                // A browser takes the first line break away.
                textarea.code #text name="text" rows="15" spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" { "\n" (text) }
            }
            div #problems aria-live="polite" {}
            div.row {
                button.main type="submit" disabled { "Save" }
                button #undo type="button" disabled { "Undo all" }
                span.soft.small #state { "config.toml" }
            }
        }
    }
}

fn message(recent: &[Message]) -> Markup {
    let mut places: Vec<&Message> = Vec::new();
    for message in recent {
        if !places
            .iter()
            .any(|known| known.place.id == message.place.id)
        {
            places.push(message);
        }
    }
    html! {
        form.card.stack.tight #message {
            h2 { label for="which" { "Message" } }
            select #which name="which" {
                option value="" { "Made up" }
                @for message in recent { option value=(message.id) selected[message.id == recent[0].id] { (in_short(message)) } }
            }
            fieldset.stack.tight #made-up {
                legend.sr { "Made-up message" }
                label.field { span { "Place" }
                    input name="place" type="text" list="places" autocomplete="off" placeholder="telegram:topic:-1001234567890:101";
                }
                datalist #places { @for message in &places { option value=(message.place.id) { (where_it_is(message)) } } }
                div.row.pair {
                    label.field.grow { span { "Person, by id or name" } input name="person" type="text" autocomplete="off" placeholder="anybody"; }
                    label.field { span { "Role" }
                        select name="role" {
                            option value="" { "their own" }
                            @for role in ["guest", "member", "admin", "owner"] { option value=(role) { (role) } }
                        }
                    }
                }
                label.field { span { "Words" } input name="text" type="text" autocomplete="off" placeholder="good morning"; }
                div.row {
                    label.row { input type="checkbox" name="mention" checked; span { "mentions the bot" } }
                    label.row { input type="checkbox" name="reply"; span { "answers the bot" } }
                }
                details {
                    summary { "More about the place" }
                    div.stack.tight {
                        label.field { span { "Name of the topic or thread" } input name="topic" type="text" autocomplete="off"; }
                        div.row.pair {
                            label.field.grow { span { "Discord server" } input name="server" type="text" inputmode="numeric" autocomplete="off"; }
                            label.field.grow { span { "Category" } input name="category" type="text" inputmode="numeric" autocomplete="off"; }
                        }
                        div.row.pair {
                            label.field.grow { span { "Roles on the server" } input name="roles" type="text" autocomplete="off" placeholder="9123, 9124"; }
                            label.field.grow { span { "Tags of the post" } input name="tags" type="text" autocomplete="off" placeholder="question"; }
                        }
                    }
                }
            }
        }
    }
}

/// `Family/Garden · Alice: hello`.
fn in_short(message: &Message) -> String {
    let person = message.person.as_ref();
    let person = person.map(|person| person.name.as_ref().unwrap_or(&person.id));
    let place = where_it_is(message);
    match (person, &message.text) {
        (Some(person), Some(text)) => format!("{place} · {person}: {text}"),
        (Some(person), None) => format!("{place} · {person}"),
        (None, _) => place.to_owned(),
    }
}

fn where_it_is(message: &Message) -> &str {
    let name = message.path.as_ref().or(message.place.name.as_ref());
    name.unwrap_or(&message.place.id)
}
