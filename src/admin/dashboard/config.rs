//! Config: config.toml as a form and as a text, checked while it is edited, compared with what runs,
//! saved, and put back.

use axum::extract::State;
use maud::{Markup, html};
use serde_json::Value;

use super::layout::{self, Page, Shell};
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::config::settings::{Setting, Source};
use crate::operations::config_file::{self, ConfigText, Earlier};
use crate::operations::config_form::{self, Section};
use crate::operations::status;

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    if !shell.administers() {
        let body = html! {
            (layout::head("Config", "", html! {}))
            div.note { "config.toml is for owners: this needs a key with the scope " code { "admin" } "." }
        };
        return Ok(shell.page(Page::Config, &[], body));
    }
    let text = config_file::read(&state.operations).await?;
    let history = config_file::history(&state.operations).await?;
    let sections = config_form::sections(&state.operations).await?;
    let running = status(&state.operations).await?.gateway;
    let problem = running.and_then(|gateway| gateway.config.problem);
    let body = html! {
        (layout::head("Config", "A text with problems changes nothing. Comments stay as they are.", html! {}))
        @if let Some(problem) = &problem {
            div.note.bad { b { "The file does not count, and the last good one runs on." } pre { (problem) } }
        }
        div.columns.editor {
            div.stack { (editor(&text)) (form(&sections)) }
            div.stack {
                section.card {
                    h2 { "Check" }
                    div #problems aria-live="polite" { p.soft { "Nothing was changed yet." } }
                }
                section.card { h2 { "Different from what runs" } pre #diff tabindex="0" { "Nothing." } }
                (earlier(&history))
            }
        }
        (layout::data("first", &text))
    };
    Ok(shell.page(Page::Config, &["config.js"], body))
}

fn editor(text: &ConfigText) -> Markup {
    html! {
        form.card.stack #config {
            h2 { "config.toml" }
            label.sr for="text" { "Text of config.toml" }
            textarea.code #text rows="24" spellcheck="false" wrap="off" { "\n" (text.text) }
            div.row {
                button.main type="submit" disabled { "Apply" }
                button #undo type="button" disabled { "Undo all" }
            }
        }
    }
}

fn earlier(history: &[Earlier]) -> Markup {
    html! {
        section.card {
            h2 { "Earlier texts" }
            @if history.is_empty() { p.soft { "None was replaced here yet." } }
            table {
                tbody {
                    @for earlier in history {
                        tr {
                            td { (layout::at(earlier.at.0)) p.small.soft { "replaced by " (earlier.by) } }
                            td.number {
                                button.look type="button" data-id=(earlier.id) { "Look" } " "
                                button.back type="button" data-id=(earlier.id) { "Roll back" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn form(sections: &[Section]) -> Markup {
    html! {
        section.card #form {
            div.row.between {
                h2 { "Settings" }
                label.sr for="filter" { "Search settings" }
                input #filter type="search" placeholder="Setting" autocomplete="off";
            }
            @for section in sections {
                details data-section {
                    summary {
                        @if section.name.is_empty() { "Top level" } @else { code { "[" (section.name) "]" } }
                        " " span.small.soft { (written(section)) " set" }
                    }
                    div.stack.tight { @for setting in &section.settings { (field(setting)) } }
                }
            }
        }
    }
}

fn written(section: &Section) -> usize {
    let settings = section.settings.iter();
    settings
        .filter(|setting| setting.source == Source::File)
        .count()
}

fn field(setting: &Setting) -> Markup {
    let name = setting.key.rsplit('.').next().unwrap_or(&setting.key);
    let value = setting.value.as_ref().map(shown).unwrap_or_default();
    html! {
        div.setting data-key=(setting.key) data-kind=(kind(setting)) {
            label.field {
                span { b { (name) } " " @if setting.source == Source::File { span.tag.accent { "set" } } @else { span.tag { (setting.origin()) } } }
                @if setting.choices.is_empty() {
                    input type="text" value=(value) autocomplete="off" spellcheck="false";
                } @else {
                    select {
                        @if value.is_empty() { option value="" selected { "not set" } }
                        @for choice in &setting.choices { option value=(choice) selected[*choice == value] { (choice) } }
                    }
                }
            }
            p.small.soft {
                (layout::marked(&setting.about))
                @if let Some(line) = setting.line { " " button.quiet.to-line type="button" data-line=(line) { "line " (line) } }
                @if setting.source == Source::File { " " button.quiet.unset type="button" { "Take out" } }
            }
        }
    }
}

/// The kind of a value, for the script that sends it.
fn kind(setting: &Setting) -> &'static str {
    match &setting.value {
        Some(Value::Number(_)) => "number",
        Some(Value::Bool(_)) => "switch",
        Some(Value::Array(_)) => "list",
        Some(_) => "text",
        None if setting.choices.is_empty() => "any",
        None => "text",
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
