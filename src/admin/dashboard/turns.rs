//! Turns: the latest of them, and one from its message to its delivery, with its prompt by section.

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{self, Page, Shell};
use crate::admin::api::turns as api;
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::domain::SessionKey;
use crate::operations::house::House;
use crate::operations::named::{Named, lasting as time};
use crate::operations::turns::{
    self, Event, PromptView, SectionView, Tokens, TurnLine, TurnState, TurnView, What, Words, money,
};
use crate::records::turn_story::Wanted;

const MOST: u32 = 100;
/// Letters of arguments that are shown.
const ARGUMENTS: usize = 4_000;
/// The width of the picture of all stages.
const WIDTH: i64 = 1_000;
/// The narrowest bar in it.
const THIN: i64 = 3;

#[derive(Deserialize)]
pub(super) struct Scoped {
    agent: Option<String>,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(_): Reads,
    Query(wanted): Query<Scoped>,
) -> Result<Markup, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let shell = Shell::new(snapshot, wanted.agent.as_deref());
    let agent = shell.scope.as_ref().and_then(|id| shell.agent(id.as_str()));
    let wanted = Wanted {
        agent_uid: agent.map(|agent| agent.uid.to_string()),
        ..Wanted::default()
    };
    let house = state.operations.house().await?;
    let read = {
        let house = house.clone();
        move |connection: &rusqlite::Connection| turns::latest(connection, &house, &wanted, MOST)
    };
    let turns = state.operations.db().read(read).await?;
    let body = html! {
        (layout::head("Turns", "What every answer cost, and how long it took.", html! {}))
        @if turns.is_empty() { div.card.empty { p { "No turn has ended yet." } } }
        @else {
            div.card.scroll-x tabindex="0" role="region" aria-label="Turns" {
                table {
                    thead { tr { th { "Ended" } th { "Place" } th { "Agent" } th { "Outcome" } th.number { "Waited" } th.number { "Took" } th.number.wide { "Calls" } th.number.wide { "Tokens" } } }
                    tbody { @for turn in &turns { (row(&shell, &house, turn)) } }
                }
            }
        }
    };
    Ok(shell.page(Page::Turns, &[], body))
}

fn who(shell: &Shell, agent: Option<&Named>) -> Markup {
    let known = agent.and_then(|agent| shell.agent(&agent.id));
    match (known, agent) {
        (Some(agent), _) => layout::who(agent),
        (None, Some(agent)) => html! { span.soft { (agent.text()) } },
        (None, None) => html! { span.soft { "a former agent" } },
    }
}

fn place_name(house: &House, place: &Named) -> String {
    let key = place.id.parse::<SessionKey>().ok();
    // A conversation of a single person has words that tell the group too.
    let path = key.filter(|key| key.only_person().is_none());
    let path = path.and_then(|key| house.names.path(&key));
    path.or_else(|| place.words().map(str::to_owned))
        .unwrap_or_else(|| place.id.clone())
}

fn row(shell: &Shell, house: &House, turn: &TurnLine) -> Markup {
    html! {
        tr {
            td.nowrap { a href={ "/turns/" (turn.id) } { (layout::ago(turn.ended_at.0)) } }
            td title=(turn.place.id) { (place_name(house, &turn.place)) }
            td { (who(shell, turn.agent.as_ref())) }
            td { (outcome(&turn.outcome)) }
            td.number { @if let Some(waited) = turn.waited_ms { (time(waited)) } }
            td.number { (time(turn.took_ms)) }
            td.number.wide { (turn.model_calls) }
            td.number.wide { (layout::grouped(turn.tokens.input + turn.tokens.output)) }
        }
    }
}

fn outcome(text: &str) -> Markup {
    match text {
        "answered" => html! { span.tag.good { "answered" } },
        stopped if stopped.starts_with("stopped") => html! { span.tag { "stopped" } },
        other => html! { span.tag.bad { "no answer" } " " span.small.soft { (other) } },
    }
}

pub(super) async fn one(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    Path(id): Path<i64>,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None);
    let turn = api::turn(&state, &caller, id).await?;
    let house = state.operations.house().await?;
    let place = turn.place.as_ref();
    let title = place.map_or_else(|| "A message".to_owned(), |place| place_name(&house, place));
    let key = place.map_or("", |place| place.id.as_str());
    let right = html! { @if turn.agent.is_some() { (who(&shell, turn.agent.as_ref())) } };
    let body = html! {
        (layout::head(&title, key, right))
        div.columns.story {
            section.card { h2 { "Timeline" } (timeline(&shell, &turn)) }
            (facts(&turn, key))
        }
        (prompt(&turn.prompt, shell.snapshot.config.prompts_kept()))
    };
    let is_over = matches!(turn.state, TurnState::Ended | TurnState::Closed);
    let scripts: &[&str] = if is_over { &[] } else { &["live.js"] };
    Ok(shell.titled(Page::Turns, &title, scripts, body))
}

fn timeline(shell: &Shell, turn: &TurnView) -> Markup {
    let spans = turn.timeline.iter().filter_map(span);
    let whole = spans.map(|(_, end)| end).max().unwrap_or(0).max(1);
    html! {
        ol.timeline {
            @for event in &turn.timeline { (stage(shell, event, whole)) }
            @match turn.state {
                TurnState::Running => (still("Not over", "It runs, or goes on after the next start.")),
                TurnState::Parked => (still("Set aside", "It goes on after the newer messages.")),
                TurnState::Waiting => (still("Waiting", "No turn has begun, or its first model call runs.")),
                TurnState::Ended | TurnState::Closed => {}
            }
        }
    }
}

fn still(title: &str, about: &str) -> Markup {
    html! { li.stage { time {} i {} div { h3 { (title) } div.small.soft { (about) } } } }
}

fn stage(shell: &Shell, event: &Event, whole: i64) -> Markup {
    let (class, title, body) = told(shell, &event.what);
    let bar = span(event).map(|(from, end)| {
        let (from, end) = (from * WIDTH / whole, end * WIDTH / whole);
        (from.min(WIDTH - THIN), (end - from).max(THIN))
    });
    html! {
        li class={ "stage " (class) } {
            time title=(event.at) { "+" (time(event.after_ms)) }
            i {}
            div {
                div.row.between { h3 { (title) } @if let Some(took) = event.took_ms { span.small.count { (time(took)) } } }
                @if let Some((from, wide)) = bar {
                    svg.span viewBox={ "0 0 " (WIDTH) " 4" } preserveAspectRatio="none" aria-hidden="true" { rect x=(from) width=(wide) height="4" {} }
                }
                div.small.soft { (body) }
            }
        }
    }
}

/// When an event began and ended, since the message came. The end of a turn and a delivery are told
/// at their end; a message is told when it is stored.
fn span(event: &Event) -> Option<(i64, i64)> {
    let (at, took) = (event.after_ms.max(0), event.took_ms?);
    match event.what {
        What::Received => None,
        What::Ended { .. } | What::Sent { .. } => Some(((at - took).max(0), at)),
        _ => Some((at, at + took)),
    }
}

/// The class, the title and the facts of an event.
fn told(shell: &Shell, what: &What) -> (&'static str, String, Markup) {
    match what {
        What::Received => ("", "Received and stored".into(), html! {}),
        What::Queued { turns } => {
            let title = match turns.as_slice() {
                [] => "Waited in the queue of the place",
                _ => "Waited behind earlier messages",
            };
            ("wait", title.into(), links(turns))
        }
        What::Slot => (
            "wait",
            "Waited for a slot".into(),
            html! { "As many turns ran as may run at once." },
        ),
        What::Decided { what } => ("", "Decided".into(), html! { (what) }),
        What::Away => (
            "bad",
            "Nothing ran".into(),
            html! { "The gateway was stopped here. The next one took the message up and went on." },
        ),
        What::Prepared { memories } => (
            "",
            "Prepared".into(),
            html! { @match memories { 0 => "no memory recalled", 1 => "1 memory recalled", many => { (many) " memories recalled" } } },
        ),
        What::Called {
            model,
            first_ms,
            tokens,
            cost_micros,
            error,
        } => called(model, *first_ms, *tokens, *cost_micros, error.as_deref()),
        What::Tool {
            tool,
            round,
            result_bytes,
            arguments,
        } => {
            let result = match result_bytes {
                Some(bytes) => html! { "result of " (layout::bytes(*bytes)) },
                None => html! { "no result" },
            };
            let body = html! {
                "round " (round) ", " (result)
                @if let Some(arguments) = arguments { details { summary { "arguments" } pre { (cut(arguments)) } } }
            };
            ("tool", format!("Tool {tool}"), body)
        }
        What::Subagent {
            run,
            agent,
            turn,
            state,
            tokens,
        } => {
            let body = html! {
                (who(shell, agent.as_ref())) " " span.tag { (state) } " " (layout::grouped(*tokens)) " tokens · "
                a href={ "/turns/" (turn) } { (run) }
            };
            ("model", "Subagent".into(), body)
        }
        What::Shown { times } => (
            "",
            "Shown while it was written".into(),
            html! { (times) @if *times == 1 { " time" } @else { " times" } },
        ),
        What::Ended { outcome: text } => (kind(text), "Turn over".into(), outcome(text)),
        What::Closed { reason } => ("", "Closed without a turn".into(), html! { (reason) }),
        What::Sent { .. } => sent(what),
    }
}

fn links(turns: &[i64]) -> Markup {
    html! {
        @if !turns.is_empty() {
            "answered first: "
            @for (at, turn) in turns.iter().enumerate() { @if at > 0 { ", " } a href={ "/turns/" (turn) } { "turn " (turn) } }
        }
    }
}

fn called(
    model: &str,
    first_ms: Option<u64>,
    tokens: Tokens,
    cost_micros: Option<u64>,
    error: Option<&str>,
) -> (&'static str, String, Markup) {
    let first = first_ms.and_then(|ms| i64::try_from(ms).ok());
    let body = html! {
        @if let Some(error) = error { span.tag.bad { (error) } " " }
        @if let Some(first) = first { "first sign after " (time(first)) }
        @if tokens != Tokens::default() {
            " · " (layout::grouped(tokens.input)) " tokens read"
            @if tokens.cached > 0 { ", " (layout::grouped(tokens.cached)) " of them cached" }
            " · " (layout::grouped(tokens.output)) " written"
        }
        @if let Some(cost) = cost_micros { " · " (money(cost)) }
    };
    let class = if error.is_some() { "bad" } else { "model" };
    (class, format!("Asked {model}"), body)
}

fn cut(text: &str) -> String {
    text.chars().take(ARGUMENTS).collect()
}

fn kind(outcome: &str) -> &'static str {
    match outcome {
        "answered" => "good",
        stopped if stopped.starts_with("stopped") => "",
        _ => "bad",
    }
}

fn sent(what: &What) -> (&'static str, String, Markup) {
    let What::Sent {
        part,
        parts,
        sort,
        state,
        edit,
        file,
        tries,
        asked_to_wait_ms,
        repeated,
        error,
    } = what
    else {
        return ("", String::new(), html! {});
    };
    let (class, title) = match state.as_str() {
        "sent" => ("good", "Delivered"),
        "failed" => ("bad", "Not delivered"),
        "sending" => ("", "Being sent"),
        _ => ("", "Waits to be sent"),
    };
    let body = html! {
        @if *parts > 1 { "part " (part) " of " (parts) ", " }
        (sort)
        @if *edit { ", by changing the preview" }
        @if *file { ", with a file" }
        @if *tries > 1 { ", " (tries) " tries" }
        @if *asked_to_wait_ms > 0 { ", the platform asked to wait " (time(*asked_to_wait_ms)) }
        @if *repeated { ", repeated because no answer came" }
        @if let Some(error) = error { p { (error) } }
    };
    (class, title.to_owned(), body)
}

fn facts(turn: &TurnView, key: &str) -> Markup {
    let Tokens {
        input,
        cached,
        output,
    } = turn.tokens;
    let (fresh, all) = (input.saturating_sub(cached), (input + output).max(1));
    html! {
        div.stack {
            section.card {
                h2 { "What it cost" }
                dl.facts {
                    dt { "read" } dd { (layout::grouped(fresh)) " tokens" meter min="0" max=(all) value=(fresh) aria-label="tokens read" {} }
                    dt { "from the cache" } dd { (layout::grouped(cached)) " tokens" meter min="0" max=(all) value=(cached) aria-label="tokens from the cache" {} }
                    dt { "written" } dd { (layout::grouped(output)) " tokens" meter min="0" max=(all) value=(output) aria-label="tokens written" {} }
                    @if let Some(cost) = turn.cost_micros { dt { "cost" } dd { (money(cost)) " " (turn.currency) } }
                    @if let Some(model) = &turn.model { dt { "model" } dd.mono { (model) } }
                    @if let Some(rule) = &turn.rule { dt { "rule" } dd { (rule) } }
                    dt { "received" } dd { (layout::at(turn.received_at.0)) }
                    @if !key.is_empty() { dt { "place" } dd { a href={ "/conversations/" (key) } { "its conversation" } } }
                }
            }
            @if !turn.read.is_empty() {
                section.card {
                    h2 { "What it has read" }
                    div.row { @for label in &turn.read { span.tag { (label) } } }
                }
            }
        }
    }
}

fn prompt(prompt: &PromptView, kept: u32) -> Markup {
    if prompt.sections.is_empty() {
        return html! {};
    }
    let all: usize = prompt.sections.iter().map(|section| section.tokens).sum();
    html! {
        section.card.prompt {
            div.row.between { h2 { "The prompt as it was sent" } span.soft { "about " (layout::grouped(all as u64)) " tokens" } }
            p.small.soft { (about(prompt, kept)) }
            @for section in &prompt.sections { (shown(section, all, prompt.compared_with.is_some())) }
        }
    }
}

fn about(prompt: &PromptView, kept: u32) -> Markup {
    let how_long = format!("the newest {kept} turns of each place keep theirs, for a week at most");
    html! {
        @match prompt.words {
            Words::Shown => {
                "Word for word as in the last model call of the turn; " (how_long) ". Tokens are estimates. "
                @if let Some(turn) = prompt.compared_with { "Compared with " a href={ "/turns/" (turn) } { "the turn before" } "." }
                @else { "The prompt of the turn before is not kept, so there is nothing to compare with." }
            }
            Words::Hidden => "Sizes only: the words of people in it are shown to keys with the scope admin. Tokens are estimates.",
            Words::NotKept if kept == 0 => "Sizes only: no prompts are kept here (prompts_kept under [admin]). Tokens are estimates.",
            Words::NotKept => { "Sizes only: the words are not kept any more; " (how_long) ". Tokens are estimates." }
        }
    }
}

fn shown(section: &SectionView, all: usize, is_compared: bool) -> Markup {
    let SectionView {
        name,
        tokens,
        text,
        difference,
    } = section;
    let line = html! {
        span.grow { (name) }
        @if is_compared {
            @match difference.as_deref() {
                Some([]) => span.tag { "as before" },
                Some(_) => span.tag.accent { "changed" },
                None => {}
            }
        }
        span.small.count { (layout::grouped(*tokens as u64)) }
        meter min="0" max=(all.max(1)) value=(tokens) aria-label={ "tokens of " (name) } {}
    };
    let Some(text) = text else {
        return html! { div.part { (line) } };
    };
    html! {
        details.part {
            summary { (line) }
            @if let Some(difference) = difference.as_deref().filter(|lines| !lines.is_empty()) {
                h3 { "Since the turn before" }
                pre.diff { @for line in difference { (changed(line)) } }
                h3 { "Whole text" }
            }
            pre { (text) }
        }
    }
}

fn changed(line: &str) -> Markup {
    match line.starts_with('-') {
        true => html! { del { (line) "\n" } },
        false => html! { ins { (line) "\n" } },
    }
}
