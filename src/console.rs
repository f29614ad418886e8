//! The console of `parlor run`: a line for each thing an operator wants to see.
//!
//! On a terminal a line names people and places. Names are words of people, so a log that goes
//! anywhere else, such as a file or the journal of the system, has ids in their place.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::Level;

use crate::config::{Currency, Money};
use crate::domain::{AgentId, Inbound, Role, SessionKey};
use crate::figures::grouped;
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
    pub(crate) fn new(name: &str, id: &impl ToString) -> Self {
        Person {
            name: name.to_owned(),
            id: id.to_string(),
        }
    }

    pub(crate) fn of(inbound: &Inbound) -> Self {
        Person::new(&inbound.person_name, &inbound.origin.person)
    }
}

/// A place, on a terminal by name.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    name: Option<String>,
    key: SessionKey,
}

impl Place {
    pub(crate) fn at(key: SessionKey) -> Self {
        Place { name: None, key }
    }

    pub(crate) fn of(inbound: &Inbound) -> Self {
        Place {
            name: inbound.origin.place_name().map(str::to_owned),
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
    /// The rule in a few words.
    pub(crate) rule: String,
    /// The whole rule.
    pub(crate) why: String,
    pub(crate) end: TurnEnd,
    pub(crate) milliseconds: i64,
    pub(crate) tokens: u64,
    pub(crate) cost: Option<Money>,
    pub(crate) currency: Currency,
    pub(crate) stages: Stages,
    pub(crate) reference: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    Answered,
    /// The platform did not take the answer.
    Undelivered,
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
    let cost = turn.cost_in_words();
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
            TurnEnd::Undelivered => " · not delivered".to_owned(),
            TurnEnd::Stopped => " · stopped".to_owned(),
            TurnEnd::Failed => format!(" · no answer, ref {}", self.reference),
        };
        let cost = self
            .cost_in_words()
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
            TurnEnd::Undelivered => "gave an answer that was not delivered",
            TurnEnd::Stopped => "was stopped",
            TurnEnd::Failed => "gave no answer",
        }
    }

    fn cost_in_words(&self) -> Option<String> {
        self.cost.map(|cost| format!("{cost} {}", self.currency))
    }

    /// With one decimal.
    fn seconds(&self) -> String {
        let tenths = (self.milliseconds.max(0) + 50) / 100;
        format!("{}.{}", tenths / 10, tenths % 10)
    }
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
        "{} ({}) in {place}: ignored, {reason}",
        printable_line(&person.name),
        person.id
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

/// A message for an agent that is not open to its writer. `why` follows the agent's name: `is for
/// members`.
pub(crate) fn not_open(person: &Person, role: Role, place: &Place, agent: &AgentId, why: &str) {
    if is_watched() {
        telemetry::console_line(Some(agent), &not_open_line(person, role, place, agent, why));
    }
    tracing::info!(agent.id = %agent, session = %place.key, person = %person.id, role = %role, "not answered: {agent} {why}");
}

fn not_open_line(person: &Person, role: Role, place: &Place, agent: &AgentId, why: &str) -> String {
    format!(
        "{} ({role}) in {place} → {agent}: not answered, {agent} {why}",
        printable_line(&person.name)
    )
}

/// What became of a guest, or of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    LetIn,
    MadeOwner,
    TurnedAway,
    /// Nobody decided within the hour.
    RanOut,
    /// A member is a guest again.
    TakenBack,
}

impl Decision {
    fn in_words(self) -> &'static str {
        match self {
            Decision::LetIn => "is a member now, let in",
            Decision::MadeOwner => "is an owner now, made one",
            Decision::TurnedAway => "was turned away",
            Decision::RanOut => "was not let in within the hour",
            Decision::TakenBack => "is a guest again, put out",
        }
    }
}

/// People were let in, turned away or put out, or have another role. `by` is nobody for a code that
/// ran out.
pub(crate) fn decided(person: &Person, decision: Decision, by: Option<&Person>) {
    if is_watched() {
        telemetry::console_line(None, &decided_line(person, decision, by));
    }
    let (what, by) = (decision.in_words(), by.map(|by| by.id.as_str()));
    tracing::info!(person = %person.id, by, "{} {what}", person.id);
}

fn decided_line(person: &Person, decision: Decision, by: Option<&Person>) -> String {
    let by = by.map_or_else(String::new, |by| {
        format!(" by {}", printable_line(&by.name))
    });
    format!(
        "{} ({}) {}{by}",
        printable_line(&person.name),
        person.id,
        decision.in_words()
    )
}

/// A guest got a code. `home` is the folder of this process.
pub(crate) fn wants_in(person: &Person, code: &str, has_owner: bool, home: &Path) {
    let command = pair_command(code, has_owner, named_home(home).as_deref());
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

/// `home` is the folder to name, if another terminal would not find it.
fn pair_command(code: &str, has_owner: bool, home: Option<&str>) -> String {
    let owner = if has_owner { "" } else { " --owner" };
    let home = home.map_or_else(String::new, |home| format!(" --home {home}"));
    format!("parlor{home} pair {code}{owner}")
}

/// The folder as a shell takes it, unless it is the one that `parlor` uses without being told.
pub(crate) fn named_home(home: &Path) -> Option<String> {
    let usual = std::env::home_dir().map(|user| user.join(".parlor"));
    let whole = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
    (usual.as_deref() != Some(&whole)).then(|| quoted(&whole.display().to_string()))
}

/// As one word of a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+@:".contains(letter);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A line without names of people and places, the same for all readers.
pub(crate) fn say(line: &str) {
    if is_watched() {
        telemetry::console_line(None, line);
    }
    tracing::info!("{line}");
}

/// Tells a person at the terminal what no log may keep.
pub(crate) fn show(line: &str) {
    if is_watched() {
        telemetry::console_line(None, line);
    }
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
    fn the_command_names_a_home_that_another_terminal_would_not_find() {
        let usual = std::env::home_dir().unwrap().join(".parlor");
        assert_eq!(named_home(&usual), None);
        let check = |home: &str, expected: &str| {
            assert_eq!(named_home(Path::new(home)).as_deref(), Some(expected));
        };
        check("/srv/parlor", "/srv/parlor");
        check("/srv/my parlor", "'/srv/my parlor'");
        check("/srv/it's", r"'/srv/it'\''s'");
    }

    #[test]
    fn the_lines_of_the_console() {
        let rose = AgentId::parse("rose").unwrap();
        let ended = |end| Turn {
            person: alice(),
            place: place(Some("Writing"), "telegram:topic:-100:7"),
            agent: rose.clone(),
            agent_name: "🌹 Rose".into(),
            rule: "pin".into(),
            why: "pin set by telegram:11".into(),
            end,
            milliseconds: 3249,
            tokens: 1_234_567,
            cost: Some(Money(3343)),
            currency: Currency::default(),
            stages: Stages::default(),
            reference: 12,
        };
        let private = Turn {
            place: place(None, "telegram:dm:11"),
            cost: None,
            tokens: 99,
            milliseconds: 40,
            rule: "default agent".into(),
            ..ended(TurnEnd::Answered)
        };
        let group = place(None, "telegram:group:-100");
        let bob = Person::new("Bob", &"telegram:12");
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
            not_open_line(&alice(), Role::Guest, &group, &rose, "is for members"),
            wants_in_line(&alice(), &pair_command("HHM9LW2A", true, None), true),
            wants_in_line(
                &alice(),
                &pair_command("HHM9LW2A", false, Some("/srv/parlor")),
                false,
            ),
            decided_line(&alice(), Decision::LetIn, Some(&bob)),
            decided_line(&alice(), Decision::MadeOwner, Some(&bob)),
            decided_line(&alice(), Decision::TurnedAway, Some(&bob)),
            decided_line(&alice(), Decision::RanOut, None),
            decided_line(&alice(), Decision::TakenBack, Some(&bob)),
            bot(3, None, Some("https://t.me/parlor_bot")),
            bot(1, Some(2), None),
        ];
        insta::assert_snapshot!(lines.join("\n"), @"
        Alice[2J and more in “Writing” → 🌹 Rose (pin) · 3.2 s · 1,234,567 tokens · cost 0.0033 USD
        Alice[2J and more in “Writing” → 🌹 Rose (pin) · stopped · 3.2 s · 1,234,567 tokens · cost 0.0033 USD
        Alice[2J and more in “Writing” → 🌹 Rose (pin) · no answer, ref 12 · 3.2 s · 1,234,567 tokens · cost 0.0033 USD
        Alice[2J and more in private → 🌹 Rose (default agent) · 0.0 s · 99 tokens
        Alice[2J and more (telegram:11) in telegram:group:-100: ignored, not addressed to the bot
        Alice[2J and more in telegram:group:-100 → rose: not answered, over budget (tokens of the day, of the agent)
        Alice[2J and more (guest) in telegram:group:-100 → rose: not answered, rose is for members
        Alice[2J and more (telegram:11) wants in: parlor pair HHM9LW2A
        Alice[2J and more (telegram:11) wants in, and this bot has no owner yet: parlor --home /srv/parlor pair HHM9LW2A --owner
        Alice[2J and more (telegram:11) is a member now, let in by Bob
        Alice[2J and more (telegram:11) is an owner now, made one by Bob
        Alice[2J and more (telegram:11) was turned away by Bob
        Alice[2J and more (telegram:11) was not let in within the hour
        Alice[2J and more (telegram:11) is a guest again, put out by Bob
        connected as @parlor_bot · polling · 3 agents · https://t.me/parlor_bot
        connected as @parlor_bot · polling · 2 servers · 1 agent
        ");
    }
}
