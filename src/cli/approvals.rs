//! `parlor approvals …`: lists calls of tools that wait for a person's yes or no, and decides.

use clap::{Args, Subcommand};

use super::json::moment;
use super::names::Names;
use super::operator::{self, odd_reply};
use super::table::{Column, table};
use super::{Outcome, data, data_json, note, running_config};
use crate::home::Home;
use crate::operations::approvals::{ApprovalLine, MOST_LISTED, Shown};
use crate::operations::{ApprovalReply, ApprovalRequest, Reply, Request};
use crate::records::approvals::{State, Verdict};
use crate::storage::Db;

/// Without a verb, open approvals are listed.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// List approvals that wait, the newest first
    #[command(visible_alias = "ls")]
    List {
        /// Also those that were decided, or expired
        #[arg(long)]
        all: bool,
    },
    /// Allow a call, once and with exactly these arguments
    Allow(Which),
    /// Refuse a call; the agent goes on without it
    Refuse(Which),
}

#[derive(Args)]
struct Which {
    /// Number that `parlor approvals` shows
    id: i64,
}

pub(super) async fn run(home: Home, Arguments { verb, json }: Arguments) -> Outcome {
    let (request, is_all) = match verb.unwrap_or(Verb::List { all: false }) {
        Verb::List { all } => {
            let state = (!all).then_some(State::Waiting);
            let most = MOST_LISTED;
            (ApprovalRequest::List { state, most }, all)
        }
        Verb::Allow(Which { id }) => (decide(id, Verdict::Allow), false),
        Verb::Refuse(Which { id }) => (decide(id, Verdict::Refuse), false),
    };
    let Reply::Approval(reply) = operator::ask(&home, Request::Approval(request)).await? else {
        return Err(odd_reply());
    };
    let config = running_config::checked(&home).await.ok();
    let config = config.as_ref().map(|checked| &*checked.config);
    let names = Names::load(&Db::open(&home.database()).await?, config).await?;
    match reply {
        ApprovalReply::Listed(shown) => list(&shown, &names, is_all, json),
        ApprovalReply::Decided(shown) if json => data_json(&ApprovalLine::of(&shown, &names)),
        ApprovalReply::Decided(shown) => {
            let told = format!("{}, approval {}: {}", shown.tool, shown.id, shown.outcome);
            data(format_args!("{told}"));
            Ok(())
        }
    }
}

fn decide(id: i64, verdict: Verdict) -> ApprovalRequest {
    ApprovalRequest::Decide { id, verdict }
}

fn list(shown: &[Shown], names: &Names, is_all: bool, json: bool) -> Outcome {
    let lines = shown.iter().map(|shown| ApprovalLine::of(shown, names));
    let lines: Vec<ApprovalLine> = lines.collect();
    if json {
        return data_json(&lines);
    }
    if lines.is_empty() {
        data(format_args!("Nothing waits for a yes or no."));
        if !is_all {
            note(format_args!(
                "`parlor approvals list --all` shows what was decided before."
            ));
        }
        return Ok(());
    }
    let columns = [
        Column::Number("ID"),
        Column::Words("AGENT"),
        Column::Whole("TOOL"),
        Column::Words("ARGUMENTS"),
        Column::Words("FOR"),
        Column::Words("PLACE"),
        Column::Words("STATE"),
    ];
    let cells = lines.iter().map(|line| {
        [
            line.id.to_string(),
            line.agent
                .as_ref()
                .map_or_else(|| "gone".to_owned(), |agent| agent.text()),
            line.tool.clone(),
            in_short(&line.arguments),
            format!("{} ({})", line.person.text(), line.role),
            line.place.text(),
            match line.state {
                State::Waiting => format!("until {}", moment(line.expires_at.0)),
                _ => line.outcome.clone(),
            },
        ]
    });
    data(format_args!("{}", table(columns, cells.collect())));
    Ok(())
}

/// The arguments on a line.
fn in_short(arguments: &str) -> String {
    const MOST: usize = 100;
    let line = arguments
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(", ");
    match line.char_indices().nth(MOST) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}
