//! `parlor status`: whether the gateway runs, what it is doing, and what is wrong.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::json::{Amount, Named, moment, time};
use super::names::Names;
use super::operator::{Line, Operator, odd_reply};
use super::table::{Column, table};
use super::usage::LimitLine;
use super::{Failure, Outcome, data, data_json, print};
use crate::commands::texts::usage::against;
use crate::config::{Config, Currency, Secrets};
use crate::home::{CheckedConfig, Home};
use crate::operations::budgets::Holder;
use crate::operations::{
    AgentState, Condition, Event, GatewayState, Link, Listed, ListedStage, PlatformState, Reply,
    Request, Status, Subject,
};
use crate::storage::Db;
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
        let checked = CheckedConfig::load(home, Secrets::WherePresent).ok();
        let config: Option<&Config> = checked.as_ref().map(|checked| &*checked.config);
        let db = Db::open(&home.database()).await?;
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
        parts.extend(self.limits(status));
        parts.extend(status.paused.as_ref().map(paused));
        parts.push(self.work(status));
        parts.extend(letters(status));
        parts.extend(self.errors(status));
        parts.join("\n\n")
    }

    fn gateway(&self, home: &Home, gateway: &GatewayState, now: i64) -> String {
        let mut lines = vec![format!(
            "Parlor {} runs on {} (pid {}), for {}.",
            gateway.version,
            home.path().display(),
            gateway.pid,
            ago(now - gateway.started_at)
        )];
        lines.extend(
            gateway
                .platforms
                .iter()
                .map(|platform| line_of(platform, now)),
        );
        let config = &gateway.config;
        let read = moment(config.read_at);
        lines.push(match (&config.problem, config.differs) {
            (Some(problem), _) => format!(
                "config.toml has a problem, so the config of {read} counts:\n{}",
                problem.trim_end()
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
            Column::Words("TOKENS TODAY"),
            Column::Words("COST TODAY"),
            Column::Words("LAST ERROR"),
        ];
        let cells = agents.iter().map(|agent| {
            let tokens = of_most(
                agent.tokens_today.to_string(),
                agent.tokens_per_day.map(|most| most.to_string()),
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
        lines.push(match (waiting().count(), oldest) {
            (0, _) | (_, None) => "No message waits.".to_owned(),
            (1, Some(oldest)) => format!("1 message waits, for {}.", ago(status.at - oldest)),
            (count, Some(oldest)) => format!(
                "{count} messages wait, the oldest for {}.",
                ago(status.at - oldest)
            ),
        });
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
        let lines: Vec<String> = status.errors.iter().map(line).collect();
        (!lines.is_empty())
            .then(|| format!("Without an answer, in the last day:\n{}", lines.join("\n")))
    }
}

/// A model was used whose price config.toml does not name.
const PRICE_UNKNOWN: &str = "price unknown";

fn no_gateway(home: &Home) -> String {
    format!("No gateway runs on {}.", home.path().display())
}

fn line_of(platform: &PlatformState, now: i64) -> String {
    let name = platform.platform;
    let since = platform
        .since
        .map_or_else(String::new, |since| format!(" for {}", ago(now - since)));
    let state = match (platform.state, &platform.reason) {
        (Link::Connecting, _) => "is being connected".to_owned(),
        (Link::Connected, _) => format!("is connected{since}"),
        (Link::Down, None) => format!("is down{since}"),
        (Link::Down, Some(reason)) => format!("is down{since}: {reason}"),
    };
    let update = platform.last_update_at.map_or_else(
        || "no update yet".to_owned(),
        |at| format!("last update {} ago", ago(now - at)),
    );
    format!("{name} {state}; {update}")
}

fn paused((since, by): &(i64, String)) -> String {
    format!(
        "Background work is paused since {}, by {by}. `parlor resume background` lets it go on.",
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

fn letters(status: &Status) -> Option<String> {
    let counted = |count: i64| match count {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    };
    let slow = (status.letters.slow > 0).then(|| {
        format!(
            "{} could not be sent for more than a minute; still trying.",
            counted(status.letters.slow)
        )
    });
    let failed = (status.letters.failed > 0).then(|| {
        format!(
            "{} could not be delivered; `parlor failed` has the list.",
            counted(status.letters.failed)
        )
    });
    let kept = (status.letters.kept > 0).then(|| {
        format!(
            "Kept, because delivery is off in their place: {}.",
            counted(status.letters.kept)
        )
    });
    let lines: Vec<String> = slow.into_iter().chain(failed).chain(kept).collect();
    (!lines.is_empty()).then(|| print::to_type(&lines.join("\n")).into_owned())
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
    agents: Vec<AgentJson<'a>>,
    limits: Vec<LimitLine>,
    background_paused_since: Option<String>,
    turns: Vec<WorkJson>,
    waiting: Vec<WorkJson>,
    undelivered: i64,
    slow: i64,
    errors: Vec<ErrorJson<'a>>,
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
            undelivered: status.letters.failed,
            slow: status.letters.slow,
            errors: self.errors_json(status),
        }
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
    use crate::operations::{ConfigState, Letters};

    const NOW: i64 = 1_700_000_000_000;

    fn status() -> Status {
        let agent = |id, running, most: Option<u64>| AgentState {
            id: AgentId::parse(id).unwrap(),
            running,
            condition: Condition::Well,
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
            }),
            agents: vec![agent("rose", 1, Some(100)), agent("ada", 0, None)],
            limits: Vec::new(),
            paused: None,
            work: vec![
                work(ListedStage::Running, 4_000),
                work(ListedStage::Waiting, 2_000),
                work(ListedStage::Waiting, 1_000),
            ],
            letters: Letters {
                slow: 0,
                failed: 2,
                kept: 1,
            },
            errors: Vec::new(),
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
        telegram is connected for 4 min; last update 12 s ago
        discord is down for 30 s: connection refused; no update yet
        config.toml was read NOW
        ");
        assert!(
            parts[1].contains("100 of 100") && parts[1].contains("0.02 USD of 1.00 USD"),
            "{text}"
        );
        insta::assert_snapshot!(parts[2..].join("\n"), @"
        rose answers in telegram:topic:-100:7 for 4 s.
        2 messages wait, the oldest for 2 s.
        2 messages could not be delivered; `parlor failed` has the list.
        Kept, because delivery is off in their place: 1 message.
        ");
    }

    #[test]
    fn the_exit_code_tells_whether_something_is_down() {
        let mut known = status();
        assert!(known.is_down(), "Discord is");
        let gateway = known.gateway.as_mut().unwrap();
        gateway.platforms[1].state = Link::Connecting;
        assert!(!known.is_down());
        known.gateway = None;
        assert!(known.is_down());
    }
}
