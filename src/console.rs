//! The console of `parlor run`: a line for each thing an operator wants to see.
//!
//! On a terminal a line names people and places. Names are words of people, so a log that goes
//! anywhere else, such as a file or the journal of the system, has ids in their place.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::Level;

use crate::config::Money;
use crate::domain::{AgentId, Inbound, SessionKey};
use crate::metrics::{Stage, Stages};
use crate::printable::printable_line;
use crate::telemetry;

/// Whether an operator watches.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// From now on lines go to the terminal, if there is one.
pub(crate) fn open() {
    IS_WATCHED.store(telemetry::is_seen(), Ordering::Relaxed);
    telemetry::open_console(is_watched());
}

/// A person, on a terminal by name.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    name: String,
    id: String,
}

impl Person {
    pub(crate) fn of(inbound: &Inbound) -> Self {
        Person {
            name: inbound.person_name.clone(),
            id: inbound.origin.person.to_string(),
        }
    }
}

/// A place, on a terminal by name.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    name: Option<String>,
    key: SessionKey,
}

impl Place {
    pub(crate) fn of(inbound: &Inbound) -> Self {
        Place {
            name: inbound.origin.name.clone(),
            key: inbound.origin.key.clone(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "“{}”", printable_line(name)),
            None if self.key.is_private() => f.write_str("private"),
            None => write!(f, "{}", group_of(&self.key)),
        }
    }
}

/// A group in which each member has a conversation of their own is one place to an operator.
pub(crate) fn group_of(place: &SessionKey) -> SessionKey {
    let group = place.whole_group().filter(|_| !place.is_shared());
    group.unwrap_or_else(|| place.clone())
}

/// The end of a turn.
pub(crate) struct Turn {
    pub(crate) person: Person,
    pub(crate) place: Place,
    pub(crate) agent: AgentId,
    /// As people see the agent: `🌹 Rose`.
    pub(crate) agent_name: String,
    /// The rule in two or three words.
    pub(crate) rule: &'static str,
    /// The whole rule.
    pub(crate) why: String,
    pub(crate) end: TurnEnd,
    pub(crate) milliseconds: i64,
    pub(crate) tokens: u64,
    pub(crate) cost: Option<Money>,
    pub(crate) stages: Stages,
    pub(crate) reference: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    Answered,
    Stopped,
    Failed,
}

pub(crate) fn turn(turn: &Turn) {
    if is_watched() {
        telemetry::console_line(Some(&turn.agent), &turn.line());
    }
    let Turn {
        person,
        place,
        agent,
        why,
        ..
    } = turn;
    let (what, seconds) = (turn.end_in_words(), turn.seconds());
    let cost = turn.cost.map(|cost| cost.to_string());
    let spent = |stage| turn.stages.get(stage).map(|time| time.as_secs_f64());
    tracing::info!(
        agent.id = %agent,
        session = %place.key,
        person = %person.id,
        route.rule = %why,
        seconds = %seconds,
        tokens = turn.tokens,
        cost = cost.as_deref(),
        stored = spent(Stage::Stored),
        queued = spent(Stage::Queued),
        slot = spent(Stage::Slot),
        model = spent(Stage::Model),
        tools = spent(Stage::Tools),
        written = spent(Stage::Written),
        sent = spent(Stage::Sent),
        inbox.id = turn.reference,
        "{agent} {what}"
    );
}

impl Turn {
    fn line(&self) -> String {
        let end = match self.end {
            TurnEnd::Answered => String::new(),
            TurnEnd::Stopped => " · stopped".to_owned(),
            TurnEnd::Failed => format!(" · no answer, ref {}", self.reference),
        };
        let cost = self
            .cost
            .map_or_else(String::new, |cost| format!(" · cost {cost}"));
        format!(
            "{} in {} → {} ({}){end} · {} s · {} tokens{cost}",
            printable_line(&self.person.name),
            self.place,
            printable_line(&self.agent_name),
            self.rule,
            self.seconds(),
            grouped(self.tokens),
        )
    }

    fn end_in_words(&self) -> &'static str {
        match self.end {
            TurnEnd::Answered => "answered",
            TurnEnd::Stopped => "was stopped",
            TurnEnd::Failed => "gave no answer",
        }
    }

    /// With one decimal.
    fn seconds(&self) -> String {
        let tenths = (self.milliseconds.max(0) + 50) / 100;
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

/// `1,234`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A message was left without an answer.
pub(crate) fn ignored(person: &Person, place: &Place, reason: &str) {
    if is_watched() {
        telemetry::console_line(None, &ignored_line(person, place, reason));
    }
    tracing::info!(session = %place.key, person = %person.id, "ignored: {reason}");
}

fn ignored_line(person: &Person, place: &Place, reason: &str) -> String {
    format!(
        "{} in {place}: ignored, {reason}",
        printable_line(&person.name)
    )
}

/// A message met a limit.
pub(crate) fn over_limit(person: &Person, place: &Place, agent: &AgentId, limit: &str) {
    if is_watched() {
        telemetry::console_line(Some(agent), &over_limit_line(person, place, agent, limit));
    }
    tracing::info!(agent.id = %agent, session = %place.key, person = %person.id, "over budget: {limit}");
}

fn over_limit_line(person: &Person, place: &Place, agent: &AgentId, limit: &str) -> String {
    format!(
        "{} in {place} → {agent}: not answered, over budget ({limit})",
        printable_line(&person.name)
    )
}

/// A guest got a code.
pub(crate) fn wants_in(person: &Person, code: &str, has_owner: bool) {
    let command = pair_command(code, has_owner);
    if is_watched() {
        telemetry::console_line(None, &wants_in_line(person, &command, has_owner));
    }
    tracing::info!("{} wants in: {command}", person.id);
}

fn wants_in_line(person: &Person, command: &str, has_owner: bool) -> String {
    let owner = if has_owner {
        ""
    } else {
        ", and this bot has no owner yet"
    };
    format!(
        "{} ({}) wants in{owner}: {command}",
        printable_line(&person.name),
        person.id
    )
}

fn pair_command(code: &str, has_owner: bool) -> String {
    let owner = if has_owner { "" } else { " --owner" };
    format!("parlor pair {code}{owner}")
}

/// A line without names of people and places, the same for all readers.
pub(crate) fn say(line: &str) {
    if is_watched() {
        telemetry::console_line(None, line);
    }
    tracing::info!("{line}");
}

/// A platform has accepted the bot, and brings its messages.
pub(crate) fn connected(connected: &Connected<'_>) {
    say(&connected.to_string());
}

pub(crate) struct Connected<'a> {
    /// As people find the bot: `@parlor_bot`.
    pub(crate) name: &'a str,
    /// The way of messages: `polling`.
    pub(crate) by: &'a str,
    pub(crate) servers: Option<usize>,
    pub(crate) agents: usize,
    /// Where people write to the bot.
    pub(crate) link: Option<String>,
}

impl fmt::Display for Connected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "connected as {} · {}",
            printable_line(self.name),
            self.by
        )?;
        if let Some(servers) = self.servers {
            write!(f, " · {}", counted(servers, "server"))?;
        }
        write!(f, " · {}", counted(self.agents, "agent"))?;
        self.link
            .as_ref()
            .map_or(Ok(()), |link| write!(f, " · {}", printable_line(link)))
    }
}

/// `1 agent`, `3 agents`.
pub(crate) fn counted(number: usize, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

fn is_watched() -> bool {
    IS_WATCHED.load(Ordering::Relaxed) && tracing::enabled!(Level::INFO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> Person {
        Person {
            name: "Alice\u{1b}[2J\nand more".into(),
            id: "telegram:11".into(),
        }
    }

    fn place(name: Option<&str>, key: &str) -> Place {
        Place {
            name: name.map(str::to_owned),
            key: key.parse().unwrap(),
        }
    }

    #[test]
    fn the_lines_of_the_console() {
        let rose = AgentId::parse("rose").unwrap();
        let ended = |end| Turn {
            person: alice(),
            place: place(Some("Writing"), "telegram:topic:-100:7"),
            agent: rose.clone(),
            agent_name: "🌹 Rose".into(),
            rule: "pin",
            why: "pin set by telegram:11".into(),
            end,
            milliseconds: 3249,
            tokens: 1_234_567,
            cost: Some(Money(3343)),
            stages: Stages::default(),
            reference: 12,
        };
        let private = Turn {
            place: place(None, "telegram:dm:11"),
            cost: None,
            tokens: 99,
            milliseconds: 40,
            rule: "default_agent",
            ..ended(TurnEnd::Answered)
        };
        let group = place(None, "telegram:group:-100");
        let bot = |agents, servers, link: Option<&str>| {
            let (name, by, link) = ("@parlor_bot", "polling", link.map(str::to_owned));
            Connected {
                name,
                by,
                servers,
                agents,
                link,
            }
            .to_string()
        };
        let lines = [
            ended(TurnEnd::Answered).line(),
            ended(TurnEnd::Stopped).line(),
            ended(TurnEnd::Failed).line(),
            private.line(),
            ignored_line(&alice(), &group, "not addressed to the bot"),
            over_limit_line(&alice(), &group, &rose, "tokens of the day, of the agent"),
            wants_in_line(&alice(), &pair_command("HHM9LW2A", true), true),
            wants_in_line(&alice(), &pair_command("HHM9LW2A", false), false),
            bot(3, None, Some("https://t.me/parlor_bot")),
            bot(1, Some(2), None),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r"
        Alice[2J and more in “Writing” → 🌹 Rose (pin) · 3.2 s · 1,234,567 tokens · cost 0.003343
        Alice[2J and more in “Writing” → 🌹 Rose (pin) · stopped · 3.2 s · 1,234,567 tokens · cost 0.003343
        Alice[2J and more in “Writing” → 🌹 Rose (pin) · no answer, ref 12 · 3.2 s · 1,234,567 tokens · cost 0.003343
        Alice[2J and more in private → 🌹 Rose (default_agent) · 0.0 s · 99 tokens
        Alice[2J and more in telegram:group:-100: ignored, not addressed to the bot
        Alice[2J and more in telegram:group:-100 → rose: not answered, over budget (tokens of the day, of the agent)
        Alice[2J and more (telegram:11) wants in: parlor pair HHM9LW2A
        Alice[2J and more (telegram:11) wants in, and this bot has no owner yet: parlor pair HHM9LW2A --owner
        connected as @parlor_bot · polling · 3 agents · https://t.me/parlor_bot
        connected as @parlor_bot · polling · 2 servers · 1 agent
        ");
    }
}
