//! `parlor status`: whether the gateway runs, what it is doing, and what is wrong.

use std::time::Duration;

use chrono::Local;
use clap::Args;
use serde::Serialize;

use super::json::{Amount, Named, moment, time};
use super::names::Names;
use super::operator::{Line, Operator, odd_reply};
use super::table::{Column, table};
use super::usage::LimitLine;
use super::{Failure, Outcome, data, data_json, database, print, running_config};
use crate::answering::Obstacle;
use crate::commands::texts::place::not_arrived;
use crate::commands::texts::usage::{PRICE_UNKNOWN, against};
use crate::commands::texts::words::grouped;
use crate::config::{Config, Currency};
use crate::delivery::held::{self, Held};
use crate::domain::Platform;
use crate::home::Home;
use crate::operations::budgets::Holder;
use crate::operations::{
    AgentState, Condition, Event, GatewayState, Link, Listed, ListedStage, PlatformState, Reply,
    Request, Status, Subject,
};
use crate::turn::budget::Span;

#[derive(Args)]
pub(super) struct Arguments {
    /// Show it anew every second, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, Arguments { watch, json }: Arguments) -> Outcome {
    if watch && print::is_seen() {
        return redraw(&home).await;
    }
    let request = Request::Status;
    let reply = Operator::open(&home, true).await?.ask(request).await?;
    let Reply::Status(status) = reply else {
        return Err(odd_reply());
    };
    let words = Words::load(&home).await?;
    if json {
        data_json(&words.as_json(&status))?;
    } else {
        data(format_args!("{}", words.text(&home, &status)));
    }
    match status.is_down() {
        true => Err(Failure::told()),
        false => Ok(()),
    }
}

/// Places with answers that have not arrived, each on a line.
const MOST_HELD: usize = 8;

/// How long to wait before a gateway is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Draws the status over the last one. Ends with the process.
async fn redraw(home: &Home) -> Outcome {
    let words = Words::load(home).await?;
    loop {
        if let Ok(Some(mut line)) = Line::open(home).await
            && let Ok(stream) = line.watch(Subject::Status).await
        {
            while let Ok(Some(Event::Status(status))) = line.event(stream).await {
                print::screen(&words.text(home, &status));
            }
        }
        print::screen(&no_gateway(home));
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Names and the currency of the home.
struct Words {
    names: Names,
    currency: Currency,
}

impl Words {
    async fn load(home: &Home) -> Result<Self, Failure> {
        let checked = running_config::checked(home).await.ok();
        let config: Option<&Config> = checked.as_ref().map(|checked| &*checked.config);
        let db = database::open(&home.database()).await?;
        Ok(Words {
            names: Names::load(&db, config).await?,
            currency: config
                .map(|config| config.currency.clone())
                .unwrap_or_default(),
        })
    }

    fn text(&self, home: &Home, status: &Status) -> String {
        let mut parts = match &status.gateway {
            None => vec![no_gateway(home)],
            Some(gateway) => vec![self.gateway(home, gateway, status.at)],
        };
        parts.push(self.agents(&status.agents));
        parts.extend(self.failing(&status.agents));
        parts.extend(self.limits(status));
        parts.extend(status.paused.as_ref().map(paused));
        parts.push(self.work(status));
        parts.extend(approvals(status.approvals));
        parts.extend(self.letters(status));
        parts.extend(self.errors(status));
        parts.join("\n\n")
    }

    /// Answers that have not arrived, a line for each place.
    fn letters(&self, status: &Status) -> Option<String> {
        let held = status.held.iter();
        let mut lines: Vec<String> = held
            .flat_map(|(place, held)| {
                let found = Obstacle::of_held(place, held.clone());
                let told = found
                    .into_iter()
                    .filter_map(|found| not_arrived(&found, &Local));
                let place = self.names.place(place).text();
                told.map(move |told| format!("{place}: {told}."))
            })
            .collect();
        let more = lines.len().saturating_sub(MOST_HELD);
        lines.truncate(MOST_HELD);
        if more > 0 {
            lines.push(format!(
                "Likewise in {more} more places; `parlor failed` has the list."
            ));
        }
        if status.letters.kept > 0 {
            let kept = match status.letters.kept {
                1 => "1 message".to_owned(),
                count => format!("{count} messages"),
            };
            lines.push(format!(
                "Kept, because delivery is off in their place: {kept}."
            ));
        }
        (!lines.is_empty()).then(|| print::to_type(&lines.join("\n")).into_owned())
    }

    fn gateway(&self, home: &Home, gateway: &GatewayState, now: i64) -> String {
        let (home, since) = (home.path().display(), ago(now - gateway.started_at));
        let mut lines = vec![match gateway.is_chat {
            true => format!(
                "A `parlor chat` is open on {home} (pid {}), for {since}. No gateway runs.",
                gateway.pid
            ),
            false => format!(
                "Parlor {} runs on {home} (pid {}), for {since}.",
                gateway.version, gateway.pid
            ),
        }];
        // The terminal of a chat is no connection to anybody.
        let platforms = gateway.platforms.iter().filter(|_| !gateway.is_chat);
        lines.extend(platforms.map(|platform| line_of(platform, now)));
        lines.extend(dashboard(gateway));
        lines.extend(
            (gateway.store.as_ref()).map(|trouble| format!("nothing can be stored: {trouble}")),
        );
        let config = &gateway.config;
        let read = moment(config.read_at);
        lines.push(match (&config.problem, config.differs) {
            (Some(problem), _) => format!(
                "config.toml has a problem, so the config of {read} counts:\n{}\n{}",
                problem.trim_end(),
                print::to_type("After a repair outside config.toml, such as of a secret's file, `parlor reload` reads it again.")
            ),
            (None, true) => format!("config.toml was changed after it was read ({read})"),
            (None, false) => format!("config.toml was read {read}"),
        });
        lines.join("\n")
    }

    fn agents(&self, agents: &[AgentState]) -> String {
        let columns = [
            Column::Words("AGENT"),
            Column::Words("STATE"),
            Column::Number("TOKENS TODAY"),
            Column::Words("COST TODAY"),
            Column::Words("LAST ERROR"),
        ];
        let cells = agents.iter().map(|agent| {
            let tokens = of_most(
                grouped(agent.tokens_today),
                agent.tokens_per_day.map(grouped),
            );
            let money = |money| Amount::of(money, &self.currency).text();
            let spent = match (agent.unpriced_today, agent.cost_today.0) {
                (true, 0) => PRICE_UNKNOWN.to_owned(),
                (true, _) => format!("{} and more", money(agent.cost_today)),
                (false, _) => money(agent.cost_today),
            };
            let cost = of_most(spent, agent.cost_per_day.map(money));
            let error = agent.last_error.as_ref();
            [
                self.names.agent(&agent.id).text(),
                state_of(agent).to_owned(),
                tokens,
                cost,
                error.map_or_else(String::new, |(at, reason)| {
                    format!("{}, {reason}", moment(*at))
                }),
            ]
        });
        table(columns, cells.collect())
    }

    /// Why agents fail, a line for each cause, and what to do.
    fn failing(&self, agents: &[AgentState]) -> Option<String> {
        let mut causes: Vec<(&str, Vec<String>)> = Vec::new();
        for agent in agents {
            let Some(why) = agent.failing.as_deref() else {
                continue;
            };
            let name = self.names.agent(&agent.id).text();
            match causes.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(name),
                None => causes.push((why, vec![name])),
            }
        }
        let mut lines: Vec<String> = causes
            .into_iter()
            .map(|(why, names)| format!("{}: {why}", names.join(", ")))
            .collect();
        if lines.is_empty() {
            return None;
        }
        lines.insert(0, "Failing, so no answer is to be expected:".to_owned());
        lines.push(print::to_type("`parlor doctor` tells what to do.").into_owned());
        Some(lines.join("\n"))
    }

    /// The limits that the table of agents has no column for.
    fn limits(&self, status: &Status) -> Option<String> {
        let others = status.limits.iter().filter(|limit| {
            let is_of_agent = matches!(limit.holder, Holder::Agent(_));
            !is_of_agent || limit.span == Span::Month
        });
        let lines: Vec<String> = others
            .map(|limit| {
                let holder = match &limit.holder {
                    Holder::Agent(agent) => self.names.agent(agent).text(),
                    Holder::Person { label, .. } => label.clone(),
                    Holder::House => "All agents together".to_owned(),
                };
                format!("{holder}{}", against(limit, &self.currency))
            })
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn work(&self, status: &Status) -> String {
        let waiting = || {
            let waits = |work: &&Listed| work.stage == ListedStage::Waiting;
            status.work.iter().filter(waits)
        };
        let mut lines: Vec<String> = status
            .work
            .iter()
            .filter(|work| work.stage != ListedStage::Waiting)
            .map(|work| self.turn(work, status.at))
            .collect();
        if lines.is_empty() {
            lines.push("Nothing is being answered.".to_owned());
        }
        let oldest = waiting().map(|work| work.since).min();
        let unsent = unsent(status);
        lines.extend(match (waiting().count(), oldest) {
            (0, _) | (_, None) if unsent.is_some() => None,
            (0, _) | (_, None) => Some("No message waits.".to_owned()),
            (1, Some(oldest)) => Some(format!("1 message waits, for {}.", ago(status.at - oldest))),
            (count, Some(oldest)) => Some(format!(
                "{count} messages wait, the oldest for {}.",
                ago(status.at - oldest)
            )),
        });
        lines.extend(unsent);
        lines.join("\n")
    }

    fn turn(&self, work: &Listed, now: i64) -> String {
        let agent = work.agent.as_ref().map_or_else(
            || "an agent".to_owned(),
            |agent| self.names.agent(agent).text(),
        );
        let parked = match work.stage {
            ListedStage::Parked => ", put aside for newer messages",
            _ => "",
        };
        format!(
            "{agent} answers in {} for {}{parked}.",
            self.names.place(&work.place).text(),
            ago(now - work.since)
        )
    }

    fn errors(&self, status: &Status) -> Option<String> {
        let line = |error: &crate::operations::ErrorSeen| {
            let agent = error.agent.as_ref();
            let agent = agent.map_or_else(
                || "an agent".to_owned(),
                |agent| self.names.agent(agent).text(),
            );
            let place = error.place.as_ref();
            let place = place.map_or_else(String::new, |place| {
                format!(" in {}", self.names.place(place).text())
            });
            format!("{}  {agent}{place}: {}", moment(error.at), error.reason)
        };
        let mut lines: Vec<String> = status.errors.iter().map(line).collect();
        let more = status.more_errors();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        (!lines.is_empty())
            .then(|| format!("Without an answer, in the last day:\n{}", lines.join("\n")))
    }
}

/// Answers that wait to be sent. Beside a gateway, those with a reason have a line of their own.
fn unsent(status: &Status) -> Option<String> {
    let gateway = status.gateway.as_ref();
    let has_gateway = gateway.is_some_and(|gateway| !gateway.is_chat);
    let has_line = |held: &Held| held.paused_until.is_some() || held.trouble.is_some();
    let held = status.held.iter().map(|(_, held)| held);
    let number: i64 = held
        .filter(|held| !(has_gateway && has_line(held)))
        .map(|held| held.waiting)
        .sum();
    (number > 0).then(|| print::to_type(&held::unsent(number, has_gateway)).into_owned())
}

fn approvals(open: u64) -> Option<String> {
    let told = match open {
        0 => return None,
        1 => "1 call of a tool waits".to_owned(),
        open => format!("{open} calls of tools wait"),
    };
    Some(format!(
        "{told} for a yes or no; `parlor approvals` lists them."
    ))
}

fn no_gateway(home: &Home) -> String {
    let start = print::to_type("`parlor run` starts one.");
    format!("No gateway runs on {}. {start}", home.path().display())
}

fn line_of(platform: &PlatformState, now: i64) -> String {
    let name = match platform.platform {
        Platform::Telegram => "Telegram",
        Platform::Discord => "Discord",
        Platform::Local => "The terminal",
        Platform::Web => "The web chat",
    };
    // Nobody connects these two, and they have no updates.
    let is_ours = matches!(platform.platform, Platform::Local | Platform::Web);
    match (is_ours, platform.state, &platform.reason) {
        (true, Link::Connected, _) => return format!("{name} is ready"),
        (true, Link::Down, Some(reason)) => return format!("{name} is off: {reason}"),
        _ => {}
    }
    let since = platform
        .since
        .map_or_else(String::new, |since| format!(" for {}", ago(now - since)));
    let state = match (platform.state, &platform.reason) {
        (Link::Connecting, _) => "is being connected".to_owned(),
        (Link::Connected, _) => format!("is connected{since}"),
        (Link::Down, None) => format!("is down{since}"),
        (Link::Down, Some(reason)) => format!("is down{since}: {}", print::to_type(reason)),
    };
    let update = platform.last_update_at.map_or_else(
        || "no update yet".to_owned(),
        |at| format!("last update {} ago", ago(now - at)),
    );
    format!("{name} {state}; {update}")
}

/// A dashboard that is off. The web chat tells it where there is one.
fn dashboard(gateway: &GatewayState) -> Option<String> {
    let mut platforms = gateway.platforms.iter();
    let has_web = platforms.any(|platform| platform.platform == Platform::Web);
    let reason = gateway.listener.as_ref().filter(|_| !has_web)?;
    Some(format!("The dashboard is off: {reason}"))
}

fn paused((since, by): &(i64, String)) -> String {
    let resume = print::to_type("`parlor resume background` lets it go on.");
    format!(
        "Background work is paused since {}, by {by}. {resume}",
        moment(*since)
    )
}

fn state_of(agent: &AgentState) -> &'static str {
    match (agent.condition, agent.is_over, agent.running) {
        (Condition::Paused, ..) => "paused",
        (_, true, _) => "over budget",
        (Condition::Failing, ..) => "failing",
        (Condition::Well, false, 0) => "ready",
        (Condition::Well, false, _) => "busy",
    }
}

/// `5 of 100`.
fn of_most(spent: String, most: Option<String>) -> String {
    match most {
        Some(most) => format!("{spent} of {most}"),
        None => spent,
    }
}

/// `12 s`, `5 min`, `3 h`, `2 days`.
fn ago(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The status for programs.
#[derive(Serialize)]
struct Json<'a> {
    running: bool,
    down: bool,
    version: Option<&'a str>,
    pid: Option<u32>,
    started_at: Option<String>,
    platforms: Vec<PlatformJson<'a>>,
    config: Option<ConfigJson<'a>>,
    /// Why nothing can be stored now.
    store: Option<&'a str>,
    /// Why the dashboard and the web chat cannot be reached.
    listener: Option<&'a str>,
    agents: Vec<AgentJson<'a>>,
    limits: Vec<LimitLine>,
    background_paused_since: Option<String>,
    turns: Vec<WorkJson>,
    waiting: Vec<WorkJson>,
    approvals: u64,
    undelivered: i64,
    slow: i64,
    /// What has not arrived, by place.
    held: Vec<HeldJson<'a>>,
    errors: Vec<ErrorJson<'a>>,
}

#[derive(Serialize)]
struct HeldJson<'a> {
    place: Named,
    undelivered: i64,
    /// Why the newest of them was given up.
    reason: Option<&'a str>,
    waiting: i64,
    /// The platform asked for a pause until then.
    paused_until: Option<String>,
    /// Why the last try failed.
    trouble: Option<&'a str>,
}

#[derive(Serialize)]
struct PlatformJson<'a> {
    platform: &'a str,
    state: Link,
    since: Option<String>,
    last_update_at: Option<String>,
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct ConfigJson<'a> {
    read_at: String,
    differs: bool,
    problem: Option<&'a str>,
}

#[derive(Serialize)]
struct AgentJson<'a> {
    agent: Named,
    state: &'static str,
    tokens_today: u64,
    tokens_per_day: Option<u64>,
    cost_today: Amount,
    /// A model without a price was used, so the cost is not all.
    unpriced_today: bool,
    cost_per_day: Option<Amount>,
    last_error: Option<LastErrorJson<'a>>,
}

#[derive(Serialize)]
struct LastErrorJson<'a> {
    at: String,
    reason: &'a str,
}

#[derive(Serialize)]
struct WorkJson {
    place: Named,
    agent: Option<Named>,
    state: ListedStage,
    by: String,
    since: String,
    seconds: i64,
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    at: String,
    agent: Option<Named>,
    place: Option<Named>,
    reason: &'a str,
}

impl Words {
    fn as_json<'a>(&self, status: &'a Status) -> Json<'a> {
        let gateway = status.gateway.as_ref();
        let work = |is_waiting: bool| {
            let wanted = |work: &&Listed| (work.stage == ListedStage::Waiting) == is_waiting;
            let wanted = status.work.iter().filter(wanted);
            wanted.map(|work| self.work_json(work, status.at)).collect()
        };
        Json {
            running: gateway.is_some(),
            down: status.is_down(),
            version: gateway.map(|gateway| gateway.version.as_str()),
            pid: gateway.map(|gateway| gateway.pid),
            started_at: gateway.map(|gateway| time(gateway.started_at)),
            platforms: gateway.map(platforms_json).unwrap_or_default(),
            config: gateway.map(|gateway| ConfigJson {
                read_at: time(gateway.config.read_at),
                differs: gateway.config.differs,
                problem: gateway.config.problem.as_deref(),
            }),
            store: gateway.and_then(|gateway| gateway.store.as_deref()),
            listener: gateway.and_then(|gateway| gateway.listener.as_deref()),
            agents: status
                .agents
                .iter()
                .map(|agent| self.agent_json(agent))
                .collect(),
            limits: (status.limits.iter())
                .map(|limit| LimitLine::of(limit, &self.currency))
                .collect(),
            background_paused_since: status.paused.as_ref().map(|(since, _)| time(*since)),
            turns: work(false),
            waiting: work(true),
            approvals: status.approvals,
            undelivered: status.letters.failed,
            slow: status.letters.slow,
            held: self.held_json(status),
            errors: self.errors_json(status),
        }
    }

    fn held_json<'a>(&self, status: &'a Status) -> Vec<HeldJson<'a>> {
        let held = status.held.iter().map(|(place, held)| HeldJson {
            place: self.names.place(place),
            undelivered: held.undelivered,
            reason: held.reason.as_deref(),
            waiting: held.waiting,
            paused_until: held.paused_until.map(time),
            trouble: held.trouble.as_deref(),
        });
        held.collect()
    }

    fn agent_json<'a>(&self, agent: &'a AgentState) -> AgentJson<'a> {
        AgentJson {
            agent: self.names.agent(&agent.id),
            state: state_of(agent),
            tokens_today: agent.tokens_today,
            tokens_per_day: agent.tokens_per_day,
            cost_today: Amount::of(agent.cost_today, &self.currency),
            unpriced_today: agent.unpriced_today,
            cost_per_day: agent
                .cost_per_day
                .map(|most| Amount::of(most, &self.currency)),
            last_error: agent.last_error.as_ref().map(|(at, reason)| LastErrorJson {
                at: time(*at),
                reason,
            }),
        }
    }

    fn work_json(&self, work: &Listed, now: i64) -> WorkJson {
        WorkJson {
            place: self.names.place(&work.place),
            agent: work.agent.as_ref().map(|agent| self.names.agent(agent)),
            state: work.stage,
            by: work.by.clone(),
            since: time(work.since),
            seconds: (now - work.since).max(0) / 1000,
        }
    }

    fn errors_json<'a>(&self, status: &'a Status) -> Vec<ErrorJson<'a>> {
        let errors = status.errors.iter().map(|error| ErrorJson {
            at: time(error.at),
            agent: error.agent.as_ref().map(|agent| self.names.agent(agent)),
            place: error.place.as_ref().map(|place| self.names.place(place)),
            reason: &error.reason,
        });
        errors.collect()
    }
}

fn platforms_json(gateway: &GatewayState) -> Vec<PlatformJson<'_>> {
    let platforms = gateway.platforms.iter().map(|platform| PlatformJson {
        platform: platform.platform.as_str(),
        state: platform.state,
        since: platform.since.map(time),
        last_update_at: platform.last_update_at.map(time),
        reason: platform.reason.as_deref(),
    });
    platforms.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Money;
    use crate::domain::{AgentId, Platform};
    use crate::operations::{ConfigState, ErrorSeen, Letters};

    const NOW: i64 = 1_700_000_000_000;

    fn status() -> Status {
        let agent = |id, running, most: Option<u64>| AgentState {
            id: AgentId::parse(id).unwrap(),
            running,
            condition: Condition::Well,
            failing: None,
            tokens_today: 100,
            cost_today: Money(20_000),
            unpriced_today: false,
            tokens_per_day: most,
            cost_per_day: most.map(|_| Money(1_000_000)),
            is_over: most.is_some_and(|most| most <= 100),
            last_error: None,
        };
        let work = |stage, since| Listed {
            place: "telegram:topic:-100:7".parse().unwrap(),
            agent: (stage != ListedStage::Waiting).then(|| AgentId::parse("rose").unwrap()),
            paused: false,
            by: "Alice".to_owned(),
            stage,
            since: NOW - since,
        };
        Status {
            at: NOW,
            gateway: Some(GatewayState {
                version: "0.1.0".to_owned(),
                pid: 7,
                is_chat: false,
                started_at: NOW - 300_000,
                platforms: vec![
                    PlatformState {
                        platform: Platform::Telegram,
                        state: Link::Connected,
                        since: Some(NOW - 299_000),
                        last_update_at: Some(NOW - 12_000),
                        reason: None,
                    },
                    PlatformState {
                        platform: Platform::Discord,
                        state: Link::Down,
                        since: Some(NOW - 30_000),
                        last_update_at: None,
                        reason: Some("connection refused".to_owned()),
                    },
                ],
                config: ConfigState {
                    read_at: NOW,
                    differs: false,
                    problem: None,
                },
                store: None,
                listener: None,
            }),
            agents: vec![agent("rose", 1, Some(100)), agent("ada", 0, None)],
            limits: Vec::new(),
            paused: None,
            work: vec![
                work(ListedStage::Running, 4_000),
                work(ListedStage::Waiting, 2_000),
                work(ListedStage::Waiting, 1_000),
            ],
            approvals: 1,
            letters: Letters {
                slow: 0,
                failed: 2,
                kept: 1,
            },
            held: vec![
                (
                    "telegram:topic:-1001:101".parse().unwrap(),
                    Held {
                        undelivered: 2,
                        reason: Some("the topic is closed".into()),
                        ..Held::default()
                    },
                ),
                (
                    "telegram:topic:-1001:102".parse().unwrap(),
                    Held {
                        waiting: 1,
                        trouble: Some("no answer from Telegram".into()),
                        ..Held::default()
                    },
                ),
            ],
            errors: Vec::new(),
            all_errors: 0,
        }
    }

    fn words() -> Words {
        Words {
            names: Names::default(),
            currency: Currency::default(),
        }
    }

    #[test]
    fn a_status_reads_well() {
        let text = words().text(&Home::new("/srv/parlor"), &status());
        let text = text.replace(&moment(NOW), "NOW");
        let parts: Vec<&str> = text.split("\n\n").collect();
        insta::assert_snapshot!(parts[0], @"
        Parlor 0.1.0 runs on /srv/parlor (pid 7), for 5 min.
        Telegram is connected for 4 min; last update 12 s ago
        Discord is down for 30 s: connection refused; no update yet
        config.toml was read NOW
        ");
        assert!(
            parts[1].contains("100 of 100") && parts[1].contains("0.02 USD of 1.00 USD"),
            "{text}"
        );
        insta::assert_snapshot!(parts[2..].join("\n"), @"
        rose answers in telegram:topic:-100:7 for 4 s.
        2 messages wait, the oldest for 2 s.
        1 call of a tool waits for a yes or no; `parlor approvals` lists them.
        telegram:topic:-1001:101: 2 answers could not be delivered: the topic is closed (an owner's `/retry` there or `parlor failed retry` sends them again).
        telegram:topic:-1001:102: 1 answer waits to be sent: no answer from Telegram.
        Kept, because delivery is off in their place: 1 message.
        ");
    }

    #[test]
    fn answers_that_wait_to_be_sent_are_told() {
        let mut known = status();
        known.work.clear();
        known.held[0].1.waiting = 1;
        insta::assert_snapshot!(words().work(&known), @"
        Nothing is being answered.
        1 answer waits to be sent.
        ");
        known.gateway = None;
        insta::assert_snapshot!(words().work(&known), @"
        Nothing is being answered.
        2 answers wait to be sent; they go out at the next `parlor run`.
        ");
        known.held.clear();
        insta::assert_snapshot!(words().work(&known), @"
        Nothing is being answered.
        No message waits.
        ");
    }

    #[test]
    fn the_exit_code_tells_whether_something_is_down() {
        let mut known = status();
        assert!(known.is_down(), "Discord is");
        let gateway = known.gateway.as_mut().unwrap();
        gateway.platforms[1].state = Link::Connecting;
        assert!(!known.is_down());
        let gateway = known.gateway.as_mut().unwrap();
        gateway.store = Some("the disk is full".to_owned());
        assert!(known.is_down());
        let text = words().text(&Home::new("/srv/parlor"), &known);
        assert!(
            text.contains("nothing can be stored: the disk is full"),
            "{text}"
        );
        known.gateway = None;
        assert!(known.is_down());
    }

    #[test]
    fn errors_that_are_not_shown_are_counted() {
        let mut known = status();
        known.errors.push(ErrorSeen {
            at: NOW,
            agent: None,
            place: None,
            reason: "no answer from openai".to_owned(),
        });
        known.all_errors = 1;
        let told = |known: &Status| {
            let told = words().errors(known).unwrap();
            told.replace(&moment(NOW), "NOW")
        };
        insta::assert_snapshot!(told(&known), @"
        Without an answer, in the last day:
        NOW  an agent: no answer from openai
        ");
        known.all_errors = 15;
        insta::assert_snapshot!(told(&known), @"
        Without an answer, in the last day:
        NOW  an agent: no answer from openai
        and 14 more
        ");
    }

    #[test]
    fn a_listener_that_is_off_is_told_once() {
        let mut known = status();
        let gateway = known.gateway.as_mut().unwrap();
        gateway.platforms.truncate(1);
        gateway.listener = Some("port 7717 is taken by another program".to_owned());
        assert!(known.is_down());
        let first = |known: &Status| {
            let text = words().text(&Home::new("/srv/parlor"), known);
            let lines = text.lines().filter(|line| line.contains("7717"));
            lines.collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(first(&known), @"The dashboard is off: port 7717 is taken by another program");
        let gateway = known.gateway.as_mut().unwrap();
        gateway.platforms.push(PlatformState {
            platform: Platform::Web,
            state: Link::Down,
            since: None,
            last_update_at: None,
            reason: gateway.listener.clone(),
        });
        insta::assert_snapshot!(first(&known), @"The web chat is off: port 7717 is taken by another program");
    }
}
