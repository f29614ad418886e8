//! Jobs: the next time and the last run of each, and one job with its runs.

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{self, Page, Shell};
use super::texts;
use crate::admin::auth::{Caller, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::jobs::JobView;
use crate::operations::names::Names;
use crate::operations::{JobReply, JobRequest, Reply, Request};
use crate::records::jobs::{RunRow, Source, State as RunState};

#[derive(Deserialize)]
pub(super) struct Wanted {
    agent: Option<String>,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    Query(wanted): Query<Wanted>,
) -> Result<Markup, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let shell = Shell::new(snapshot, wanted.agent.as_deref()).seen_by(&caller);
    let agent = shell.scope.as_ref().map(ToString::to_string);
    let JobReply::List(jobs) = ask(&state, &caller, JobRequest::List { agent }).await? else {
        return Err(Problem::broken());
    };
    let names = state.operations.house().await?.names;
    let body = html! {
        (layout::head("Jobs", "What agents do by themselves, and when.", html! {}))
        @if jobs.is_empty() { div.card.empty { p { (layout::marked(texts::NO_JOBS)) } } }
        @else {
            div.card.scroll-x tabindex="0" role="region" aria-label="Jobs" {
                table {
                    thead { tr { th { "Job" } th { "Agent" } th.wide { "When" } th { "Next" } th.wide { "Place" } th { "Last run" } th {} } }
                    tbody { @for job in &jobs { (row(&shell, &names, job)) } }
                }
            }
        }
    };
    Ok(shell.page(Page::Jobs, &[], body))
}

pub(super) async fn one(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    Path(id): Path<i64>,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    let which = format!("#{id}");
    let shown = ask(&state, &caller, JobRequest::Show { which }).await;
    let shown = shown.map_err(|_| Problem::not_found(texts::NO_SUCH_JOB))?;
    let JobReply::Shown { job, runs } = shown else {
        return Err(Problem::broken());
    };
    let names = state.operations.house().await?.names;
    let body = html! {
        (layout::head(&job.name, "", html! { @if shell.operates() { div.row { (choices(&shell, &job)) } } }))
        div.card {
            dl.facts {
                dt { "Agent" } dd { (agent(&shell, &job)) }
                dt { "When" } dd { (job.when) @if let Some(zone) = &job.zone { " " span.soft { (zone) } } }
                dt { "Next" } dd { @if job.next.is_empty() { (next(&job)) } @else { @for at in &job.next { div { (layout::at(*at)) } } } }
                dt { "Place" } dd { (place(&names, &job)) }
                @if let Some(quiet) = &job.quiet { dt { "Quiet" } dd { (quiet) } }
                dt { "Missed runs" } dd { (texts::of_missed(job.missed)) }
                dt { "Made by" } dd { (maker(&job)) }
                @if let Some(why) = job.paused.as_ref().and_then(|paused| paused.why.as_ref()) {
                    dt { "Paused because" } dd { (why) }
                }
                dt { "Task" } dd { @for line in job.task.lines() { div { (line) } } }
            }
        }
        h2 { "Runs" }
        @if runs.is_empty() { div.card.empty { p { "It has not run yet." } } }
        @else {
            div.card.scroll-x tabindex="0" role="region" aria-label="Runs" {
                table {
                    thead { tr { th { "Time" } th { "State" } th { "Why" } th.number.wide { "Missed before" } } }
                    tbody { @for run in &runs { (run_row(run)) } }
                }
            }
        }
    };
    Ok(shell.titled(Page::Jobs, &job.name, &[], body))
}

async fn ask(
    state: &AdminState,
    caller: &Caller,
    request: JobRequest,
) -> Result<JobReply, Problem> {
    let reply = state.operations.run(&caller.who, Request::Job(request));
    match reply.await? {
        Reply::Job(reply) => Ok(*reply),
        _ => Err(Problem::broken()),
    }
}

fn row(shell: &Shell, names: &Names, job: &JobView) -> Markup {
    html! {
        tr data-row=(job.id) {
            td { a href={ "/jobs/" (job.id) } { (job.name) } }
            td { (agent(shell, job)) }
            td.wide { (job.when) }
            td.nowrap { (next(job)) }
            td.wide { (place(names, job)) }
            td { @if let Some(run) = &job.last { (state_of(run.state)) " " span.small.soft { (layout::ago(run.at)) } } @else { span.soft { "never" } } }
            td.number { @if shell.operates() { (choices(shell, job)) } }
        }
    }
}

fn agent(shell: &Shell, job: &JobView) -> Markup {
    match shell.agent(job.agent.as_str()) {
        Some(agent) => layout::who(agent),
        None => html! { (job.agent) },
    }
}

fn next(job: &JobView) -> Markup {
    match (&job.paused, job.next.first()) {
        (Some(_), _) => html! { span.tag.warn { "paused" } },
        (None, _) if !job.is_enabled => html! { span.tag { "off" } },
        (None, Some(at)) => layout::at(*at),
        (None, None) => html! { span.tag { "over" } },
    }
}

fn place(names: &Names, job: &JobView) -> Markup {
    let Some(key) = &job.place else {
        return html! { span.soft { "sent to nobody" } };
    };
    let place = names.place(key);
    html! { a href={ "/conversations/" (place.id) } { (place.words().unwrap_or(&place.id)) } }
}

fn maker(job: &JobView) -> Markup {
    let from = match job.source {
        Source::Config => "config.toml",
        Source::Chat => "a chat",
        Source::Cli => "the operator",
        Source::Import => "an import",
    };
    match &job.maker_name {
        Some(name) => html! { (name) ", in " (from) },
        None => html! { (from) },
    }
}

fn choices(shell: &Shell, job: &JobView) -> Markup {
    let call = |what: &str| format!("POST /api/v1/jobs/{}/{what}", job.id);
    html! {
        button type="button" data-call=(call("run")) data-told="It has begun." { "Run now" } " "
        @if job.paused.is_some() {
            button type="button" data-call=(call("resume")) data-told="It goes on." { "Resume" }
        } @else {
            button type="button" data-call=(call("pause")) data-told="It is paused." { "Pause" }
        }
        @if shell.administers() && job.source != Source::Config {
            " " button.danger type="button" data-call={ "DELETE /api/v1/jobs/" (job.id) } data-ask="Remove this job?" data-text=(texts::WHAT_REMOVING_A_JOB_DOES) data-then="/jobs" { "Remove" }
        }
    }
}

fn run_row(run: &RunRow) -> Markup {
    html! {
        tr {
            td.nowrap {
                @match run.inbox_id {
                    Some(id) => a href={ "/turns/" (id) } { (layout::at(run.at)) },
                    None => (layout::at(run.at)),
                }
            }
            td { (state_of(run.state)) }
            td { @if let Some(reason) = &run.reason { (reason) } }
            td.number.wide { @if run.missed > 0 { (run.missed) } }
        }
    }
}

fn state_of(state: RunState) -> Markup {
    match state {
        RunState::Done => html! { span.tag.good { "done" } },
        RunState::Nothing => html! { span.tag { "nothing to say" } },
        RunState::Queued => html! { span.tag { "under way" } },
        RunState::Refused => html! { span.tag.warn { "at a limit" } },
        RunState::Undelivered => html! { span.tag.bad { "not delivered" } },
        RunState::Failed => html! { span.tag.bad { "failed" } },
        RunState::Skipped | RunState::Stopped => html! { span.tag { (state.as_str()) } },
    }
}
