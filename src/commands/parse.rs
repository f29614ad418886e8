//! Reads a command line. Pure.

use super::texts::approvals as approval_texts;
use super::texts::audit as audit_texts;
use super::texts::deliver as delivery_texts;
use super::texts::jobs as job_texts;
use super::texts::{help as texts, steering};
use super::{SPECS, Spec};
use crate::config::Visibility;
use crate::domain::{Role, UserError, nearest};
use crate::operations::budgets;
use crate::operations::jobs::JobChange;
use crate::records::approvals::Verdict;
use crate::records::ledger::Period;
use crate::records::pauses::Work;

/// A message, read as a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// A message for the agent.
    Talk,
    Command(Command),
    /// A known command with wrong arguments; the sentence tells the right ones.
    Misused {
        spec: &'static Spec,
        usage: UserError,
    },
    /// An unknown command, perhaps of another bot.
    Mistaken(UserError),
}

impl Parsed {
    /// Whether an unknown command looks like one of ours. In a group it may be another bot's all the
    /// same.
    pub(crate) fn is_near_miss(&self) -> bool {
        matches!(self, Parsed::Mistaken(error) if error.to_string().contains(texts::DID_YOU_MEAN))
    }

    /// Whether the message is a command of ours, and so counts as said to the bot.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Parsed::Command(_) | Parsed::Misused { .. })
    }

    /// The same from a person of this role. A slip of somebody who looks after the bot is not left
    /// without a word.
    pub(crate) fn is_command_of(&self, role: Role) -> bool {
        self.is_command() || (role >= Role::Admin && self.is_near_miss())
    }
}

/// A chat command. A new one needs a variant here and an arm in `read`, a row in `SPECS` (`specs.rs`), an
/// arm in `run` (`mod.rs`) with a file beside it, and its words in `texts/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Agent(AgentWish),
    Agents,
    Model(ModelWish),
    Models,
    Whoami,
    New,
    Stop(Which),
    Queue(QueueWish),
    Status,
    Usage(Period),
    Start,
    Help(HelpWish),
    Pair(PairWish),
    /// An id, or a name.
    Unpair(String),
    Bind(String),
    Unbind,
    Audit(AuditWish),
    People(PeopleWish),
    Allow(budgets::Wish),
    Pause(Work),
    Resume(Work),
    Doctor,
    Jobs(JobsWish),
    Trace,
    Dashboard,
    Reload,
    Retry,
    /// Has a failed message answered once more, by its inbox row.
    Again(i64),
    Skills,
    Memory,
    Remember {
        text: String,
        /// Absent: as the config says.
        visibility: Option<Visibility>,
    },
    Forget(ForgetWish),
    Deliver(DeliverWish),
    Approvals,
    Decide {
        id: i64,
        verdict: Verdict,
    },
}

impl Command {
    /// Whether the command shows or changes something of the place's agent. Such a command is only
    /// for people who may use the agent.
    pub(crate) fn is_about_the_agent(&self) -> bool {
        match self {
            Command::Model(_)
            | Command::Models
            | Command::New
            | Command::Stop(_)
            | Command::Queue(_)
            | Command::Again(_)
            | Command::Status
            | Command::Skills
            | Command::Jobs(_)
            | Command::Memory
            | Command::Remember { .. }
            | Command::Forget(_) => true,
            Command::Agent(_)
            | Command::Agents
            | Command::Whoami
            | Command::Usage(_)
            | Command::Start
            | Command::Help(_)
            | Command::Pair(_)
            | Command::Unpair(_)
            | Command::Bind(_)
            | Command::Unbind
            | Command::Audit(_)
            | Command::People(_)
            | Command::Allow(_)
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Doctor
            | Command::Trace
            | Command::Dashboard
            | Command::Reload
            | Command::Retry
            | Command::Approvals
            | Command::Decide { .. }
            | Command::Deliver(_) => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobsWish {
    List,
    Change { change: JobChange, which: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ForgetWish {
    /// Show the memory first.
    Find(String),
    Show(i64),
    /// The memory was shown before.
    Confirmed(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliverWish {
    Show,
    Off,
    On,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PairWish {
    /// Show open codes and members.
    List,
    /// Show the person of the code first.
    Show(String),
    /// The person was shown before.
    LetIn(String),
    TurnAway(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PeopleWish {
    List,
    Show(String),
    Role {
        who: String,
        role: Role,
        agent: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentWish {
    Show,
    /// Show every rule.
    Why,
    Switch {
        to: String,
        once: bool,
    },
    /// For some milliseconds.
    SwitchFor {
        to: String,
        ms: i64,
    },
    Reset,
    Close,
    Steer {
        wish: SteerWish,
        agent: String,
    },
}

/// What to do with an agent in all its places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SteerWish {
    Pause,
    Resume,
    Restart,
    /// Begin a fresh conversation in all places of the agent.
    Clear {
        is_sure: bool,
    },
}

/// How much of the help is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HelpWish {
    InShort,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditWish {
    /// So many entries, or a page.
    Latest(Option<u32>),
    /// A page of entries older than this one.
    Before(i64),
}

/// The subject of `/stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The running turn alone, and no parked turn.
    Running,
    /// The running turn and parked turns.
    Current,
    /// And all waiting messages.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueWish {
    Show,
    Clear,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelWish {
    Show,
    Choose(String),
    Reset,
}

pub(crate) fn parse(text: &str) -> Parsed {
    let text = text.trim();
    let Some(line) = text.strip_prefix('/') else {
        return Parsed::Talk;
    };
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = name.to_lowercase();
    // A path such as /etc/hosts is talk, and so is a lone slash.
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Parsed::Talk;
    }
    let spec = SPECS.iter().find(|spec| spec.name == name);
    match (read(&name, rest.trim()), spec) {
        (Parsed::Mistaken(usage), Some(spec)) => Parsed::Misused { spec, usage },
        (parsed, _) => parsed,
    }
}

fn read(name: &str, rest: &str) -> Parsed {
    match (name, rest) {
        ("agent", rest) => agent(rest),
        ("agents", _) => Parsed::Command(Command::Agents),
        ("model", "") => Parsed::Command(Command::Model(ModelWish::Show)),
        ("model", "reset") => Parsed::Command(Command::Model(ModelWish::Reset)),
        ("model", model) => Parsed::Command(Command::Model(ModelWish::Choose(model.to_owned()))),
        ("models", _) => Parsed::Command(Command::Models),
        ("whoami", _) => Parsed::Command(Command::Whoami),
        ("new", _) => Parsed::Command(Command::New),
        ("stop", "") => Parsed::Command(Command::Stop(Which::Current)),
        ("stop", "this") => Parsed::Command(Command::Stop(Which::Running)),
        ("stop", "all") => Parsed::Command(Command::Stop(Which::All)),
        ("stop", _) => Parsed::Mistaken(UserError::new(texts::STOP)),
        ("queue", "") => Parsed::Command(Command::Queue(QueueWish::Show)),
        ("queue", "clear") => Parsed::Command(Command::Queue(QueueWish::Clear)),
        ("queue", _) => Parsed::Mistaken(UserError::new(texts::QUEUE)),
        ("status", _) => Parsed::Command(Command::Status),
        ("usage", rest) => usage(rest),
        // Telegram sends /start when a person opens the bot for the first time, and with a payload
        // after a link. A payload has no meaning here.
        ("start", _) => Parsed::Command(Command::Start),
        ("help", rest) => Parsed::Command(Command::Help(match rest.eq_ignore_ascii_case("all") {
            true => HelpWish::All,
            false => HelpWish::InShort,
        })),
        ("pair", rest) => pair(rest),
        ("unpair", rest) => unpair(rest),
        ("bind", "") => Parsed::Mistaken(UserError::new(steering::BIND)),
        ("bind", name) => Parsed::Command(Command::Bind(name.to_owned())),
        ("unbind", _) => Parsed::Command(Command::Unbind),
        ("audit", rest) => audit(rest),
        ("people", rest) => people(rest),
        ("allow", rest) => allow(rest),
        ("jobs", rest) => jobs(rest),
        ("pause", rest) => switch(rest, Command::Pause, texts::PAUSE),
        ("resume", rest) => switch(rest, Command::Resume, texts::RESUME),
        ("skills", _) => Parsed::Command(Command::Skills),
        ("doctor", _) => Parsed::Command(Command::Doctor),
        ("trace", _) => Parsed::Command(Command::Trace),
        ("dashboard", _) => Parsed::Command(Command::Dashboard),
        ("reload", _) => Parsed::Command(Command::Reload),
        ("retry", rest) => Parsed::Command(match rest.parse() {
            Ok(id) => Command::Again(id),
            Err(_) => Command::Retry,
        }),
        ("memory", _) => Parsed::Command(Command::Memory),
        ("remember", rest) => remember(rest),
        ("forget", rest) => forget(rest),
        ("approvals", _) => Parsed::Command(Command::Approvals),
        ("approve", rest) => decision(rest, Verdict::Allow, approval_texts::APPROVE),
        ("refuse", rest) => decision(rest, Verdict::Refuse, approval_texts::REFUSE),
        ("deliver", "") => Parsed::Command(Command::Deliver(DeliverWish::Show)),
        ("deliver", "off") => Parsed::Command(Command::Deliver(DeliverWish::Off)),
        ("deliver", "on") => Parsed::Command(Command::Deliver(DeliverWish::On)),
        ("deliver", _) => Parsed::Mistaken(UserError::new(delivery_texts::HOW)),
        (unknown, _) => Parsed::Mistaken(no_such_command(unknown)),
    }
}

fn decision(rest: &str, verdict: Verdict, usage: &'static str) -> Parsed {
    match rest.trim_start_matches('#').parse() {
        Ok(id) => Parsed::Command(Command::Decide { id, verdict }),
        Err(_) => Parsed::Mistaken(UserError::new(usage)),
    }
}

fn usage(rest: &str) -> Parsed {
    let period = match rest.to_lowercase().as_str() {
        "" => Some(Period::Today),
        word => Period::ALL
            .into_iter()
            .find(|period| period.as_str() == word),
    };
    period.map_or_else(
        || Parsed::Mistaken(UserError::new(texts::USAGE)),
        |period| Parsed::Command(Command::Usage(period)),
    )
}

fn audit(rest: &str) -> Parsed {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let wish = match words.as_slice() {
        [] => Some(AuditWish::Latest(None)),
        ["before", id] => id.parse().ok().map(AuditWish::Before),
        [count] => count
            .parse()
            .ok()
            .map(|count| AuditWish::Latest(Some(count))),
        _ => None,
    };
    wish.map_or_else(
        || Parsed::Mistaken(UserError::new(audit_texts::USAGE)),
        |wish| Parsed::Command(Command::Audit(wish)),
    )
}

/// The longest time for `/agent for`.
const LONGEST_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// `for 2 hours` as `for 2h`.
fn with_short_time(words: Vec<&str>) -> Vec<String> {
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let Some(at) = words.iter().position(|word| word == "for") else {
        return words;
    };
    let unit = words.get(at + 2).map(|word| word.to_lowercase());
    let unit = match unit.as_deref().unwrap_or_default() {
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        _ => return words,
    };
    if words[at + 1].parse::<i64>().is_ok() {
        words[at + 1] += unit;
        words.remove(at + 2);
    }
    words
}

/// `30m`, `2h` or `1d` in milliseconds.
fn time(word: &str) -> Option<i64> {
    let unit = word.chars().last()?;
    let number: i64 = word.strip_suffix(unit)?.parse().ok()?;
    let minutes = match unit.to_ascii_lowercase() {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        _ => return None,
    };
    let ms = number.checked_mul(minutes * 60_000)?;
    (1..=LONGEST_MS).contains(&ms).then_some(ms)
}

/// `pause rose`, or `rose pause` from forms with a field for each word.
fn steer<'a>(words: &[&'a str]) -> Option<(SteerWish, Vec<&'a str>)> {
    let wish = |word: &str| match word {
        "pause" => Some(SteerWish::Pause),
        "resume" => Some(SteerWish::Resume),
        "restart" => Some(SteerWish::Restart),
        "clear" => Some(SteerWish::Clear { is_sure: false }),
        _ => None,
    };
    let (words, is_sure) = match words {
        [words @ .., "yes"] if words.len() > 1 => (words, true),
        words => (words, false),
    };
    let found = match words {
        [first, name @ ..] if let Some(wish) = wish(first) => Some((wish, name)),
        [name @ .., last] if let Some(wish) = wish(last) => Some((wish, name)),
        _ => None,
    };
    let (found, name) = found?;
    let found = match found {
        SteerWish::Clear { .. } => SteerWish::Clear { is_sure },
        _ if is_sure => return None,
        other => other,
    };
    Some((found, name.to_vec()))
}

fn agent(rest: &str) -> Parsed {
    let words: Vec<&str> = rest.split_whitespace().collect();
    if let Some((wish, name)) = steer(&words) {
        // Without a name too: the answer depends on who asks.
        let agent = name.join(" ");
        return Parsed::Command(Command::Agent(AgentWish::Steer { wish, agent }));
    }
    let words = with_short_time(words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Parsed::Command(Command::Agent(match words.as_slice() {
        [] => AgentWish::Show,
        ["why", ..] => AgentWish::Why,
        ["reset"] => AgentWish::Reset,
        ["close"] => AgentWish::Close,
        ["for"] => return Parsed::Mistaken(UserError::new(steering::FOR)),
        ["for", long, name @ ..] | [name @ .., "for", long] => match time(long) {
            Some(ms) if !name.is_empty() => AgentWish::SwitchFor {
                to: name.join(" "),
                ms,
            },
            _ => {
                let told = steering::for_how_long(&name.join(" "));
                return Parsed::Mistaken(UserError::new(told));
            }
        },
        // A name may have several words, so everything but a last `once` is the name.
        [name @ .., "once"] | ["once", name @ ..] if !name.is_empty() => AgentWish::Switch {
            to: name.join(" "),
            once: true,
        },
        name => AgentWish::Switch {
            to: name.join(" "),
            once: false,
        },
    }))
}

fn remember(rest: &str) -> Parsed {
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let (before, last) = rest.rsplit_once(char::is_whitespace).unwrap_or(("", rest));
    // People take it for the opposite of what it meant.
    if [first, last]
        .iter()
        .any(|word| flag(word) == Some(Visibility::Private) && word.ends_with("private"))
    {
        return Parsed::Mistaken(UserError::new(texts::NOT_PRIVATE));
    }
    if let Some(unknown) = unknown_flag(first) {
        return Parsed::Mistaken(UserError::new(texts::unknown_remember_flag(unknown)));
    }
    // Forms with the text first put the flag at the end.
    let (visibility, text) = match (flag(first), flag(last)) {
        (Some(visibility), _) => (Some(visibility), after.trim()),
        (None, Some(visibility)) => (Some(visibility), before.trim()),
        (None, None) => (None, rest),
    };
    match text {
        "" => Parsed::Mistaken(UserError::new(texts::REMEMBER)),
        text => Parsed::Command(Command::Remember {
            text: text.to_owned(),
            visibility,
        }),
    }
}

/// A first word such as `--gloabl`, which is meant as a flag and is none.
fn unknown_flag(word: &str) -> Option<&str> {
    let bare = word.strip_prefix("--").or_else(|| word.strip_prefix('—'))?;
    let is_word = !bare.is_empty() && bare.chars().all(char::is_alphanumeric);
    (is_word && flag(word).is_none()).then_some(bare)
}

/// Phones turn two hyphens into a dash.
fn flag(word: &str) -> Option<Visibility> {
    match word.trim_start_matches(['-', '–', '—']) {
        bare if bare.len() == word.len() => None,
        // For everybody who talks to the agent.
        "agent" => Some(Visibility::Private),
        word => word.parse().ok(),
    }
}

fn pair(rest: &str) -> Parsed {
    let words: Vec<&str> = rest.split_whitespace().collect();
    match words.as_slice() {
        [] => Parsed::Command(Command::Pair(PairWish::List)),
        [code] => Parsed::Command(Command::Pair(PairWish::Show((*code).to_owned()))),
        [code, "yes"] => Parsed::Command(Command::Pair(PairWish::LetIn((*code).to_owned()))),
        [code, "no"] => Parsed::Command(Command::Pair(PairWish::TurnAway((*code).to_owned()))),
        _ => Parsed::Mistaken(UserError::new(
            "Write `/pair` to see who waits, or `/pair ABCD2345` for one code.",
        )),
    }
}

fn people(rest: &str) -> Parsed {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let wish = match words.as_slice() {
        [] | ["list"] => PeopleWish::List,
        ["show", who @ ..] if !who.is_empty() => PeopleWish::Show(who.join(" ")),
        ["role", who @ .., role, agent]
            if !who.is_empty()
                && agent.parse::<Role>().is_err()
                && role.parse::<Role>().is_ok() =>
        {
            PeopleWish::Role {
                who: who.join(" "),
                role: role.parse().unwrap_or(Role::Guest),
                agent: Some((*agent).to_owned()),
            }
        }
        ["role", who @ .., role] if !who.is_empty() && role.parse::<Role>().is_ok() => {
            PeopleWish::Role {
                who: who.join(" "),
                role: role.parse().unwrap_or(Role::Guest),
                agent: None,
            }
        }
        _ => return Parsed::Mistaken(UserError::new(texts::PEOPLE)),
    };
    Parsed::Command(Command::People(wish))
}

fn allow(rest: &str) -> Parsed {
    let words: Vec<&str> = rest.split_whitespace().collect();
    budgets::parse(&words).map_or_else(
        || Parsed::Mistaken(UserError::new(texts::ALLOW)),
        |wish| Parsed::Command(Command::Allow(wish)),
    )
}

fn switch(rest: &str, command: fn(Work) -> Command, otherwise: &str) -> Parsed {
    Work::parse(&rest.to_lowercase()).map_or_else(
        || Parsed::Mistaken(UserError::new(otherwise)),
        |work| Parsed::Command(command(work)),
    )
}

fn jobs(rest: &str) -> Parsed {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let change = |word: &str| match word {
        "pause" => Some(JobChange::Pause),
        "resume" => Some(JobChange::Resume),
        "remove" => Some(JobChange::Remove),
        _ => None,
    };
    let wish = match words.as_slice() {
        [] | ["list"] => Some(JobsWish::List),
        [word, which] => change(word).map(|change| JobsWish::Change {
            change,
            which: (*which).to_owned(),
        }),
        _ => None,
    };
    wish.map_or_else(
        || Parsed::Mistaken(UserError::new(job_texts::USAGE)),
        |wish| Parsed::Command(Command::Jobs(wish)),
    )
}

fn unpair(rest: &str) -> Parsed {
    match rest {
        "" => Parsed::Mistaken(UserError::new(
            "Who should lose access? Write the id, such as `/unpair telegram:12345678`; `/pair` lists everyone who was let in.",
        )),
        who => Parsed::Command(Command::Unpair(who.to_owned())),
    }
}

fn forget(rest: &str) -> Parsed {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let number = |word: &str| word.parse::<i64>().ok();
    Parsed::Command(Command::Forget(match words.as_slice() {
        [] => {
            return Parsed::Mistaken(UserError::new(texts::FORGET));
        }
        [id] if let Some(id) = number(id) => ForgetWish::Show(id),
        [id, "yes"] if let Some(id) = number(id) => ForgetWish::Confirmed(id),
        _ => ForgetWish::Find(rest.to_owned()),
    }))
}

fn no_such_command(name: &str) -> UserError {
    if matches!(name, "topic" | "topics") {
        return UserError::new(texts::TOPIC);
    }
    let known = SPECS.iter().map(|spec| spec.name).chain(["topic"]);
    UserError::new(texts::no_such_command(name, nearest(name, known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Command) {
        assert_eq!(parse(text), Parsed::Command(expected), "{text}");
    }

    #[test]
    fn commands_are_read() {
        let switch = |to: &str, once| {
            Command::Agent(AgentWish::Switch {
                to: to.into(),
                once,
            })
        };
        check("/agent", Command::Agent(AgentWish::Show));
        check("/agent rose", switch("rose", false));
        check("  /Agent   Rose  ", switch("Rose", false));
        check("/agent night desk once", switch("night desk", true));
        check("/agent reset", Command::Agent(AgentWish::Reset));
        check("/agent close", Command::Agent(AgentWish::Close));
        check("/agent why", Command::Agent(AgentWish::Why));
        let switch_for = |to: &str, minutes: i64| {
            Command::Agent(AgentWish::SwitchFor {
                to: to.into(),
                ms: minutes * 60_000,
            })
        };
        check("/agent for 2h rose", switch_for("rose", 120));
        check("/agent night desk for 30m", switch_for("night desk", 30));
        check("/agent rose for 2 hours", switch_for("rose", 120));
        check("/agent for 1 day rose", switch_for("rose", 24 * 60));
        check("/agent once rose", switch("rose", true));
        check("/agent why rose", Command::Agent(AgentWish::Why));
        check("/agent for 1D rose", switch_for("rose", 24 * 60));
        let steer = |wish, agent: &str| {
            Command::Agent(AgentWish::Steer {
                wish,
                agent: agent.into(),
            })
        };
        check("/agent pause rose", steer(SteerWish::Pause, "rose"));
        check("/agent pause", steer(SteerWish::Pause, ""));
        check("/agent rose resume", steer(SteerWish::Resume, "rose"));
        check(
            "/agent restart night desk",
            steer(SteerWish::Restart, "night desk"),
        );
        let clear = |is_sure| SteerWish::Clear { is_sure };
        check("/agent clear rose", steer(clear(false), "rose"));
        check("/agent clear rose yes", steer(clear(true), "rose"));
        check("/bind rose", Command::Bind("rose".into()));
        check("/unbind", Command::Unbind);
        check("/audit", Command::Audit(AuditWish::Latest(None)));
        check("/audit 40", Command::Audit(AuditWish::Latest(Some(40))));
        check("/audit before 7", Command::Audit(AuditWish::Before(7)));
        check("/agents", Command::Agents);
        check("/models", Command::Models);
        check("/model", Command::Model(ModelWish::Show));
        check("/model reset", Command::Model(ModelWish::Reset));
        check(
            "/model  openai/gpt-5.4 ",
            Command::Model(ModelWish::Choose("openai/gpt-5.4".into())),
        );
        check("/whoami", Command::Whoami);
        check("/new please", Command::New);
        check("/stop", Command::Stop(Which::Current));
        check("/stop all", Command::Stop(Which::All));
        check("/queue", Command::Queue(QueueWish::Show));
        check("/queue clear", Command::Queue(QueueWish::Clear));
        check("/status", Command::Status);
        check("/usage", Command::Usage(Period::Today));
        check("/usage today", Command::Usage(Period::Today));
        check("/usage 30D", Command::Usage(Period::Month));
        check("/help", Command::Help(HelpWish::InShort));
        check("/help me", Command::Help(HelpWish::InShort));
        check("/help all", Command::Help(HelpWish::All));
        check("/start", Command::Start);
        check("/start abc_-123", Command::Start);
        check("/reload", Command::Reload);
        check("/retry", Command::Retry);
        check("/deliver", Command::Deliver(DeliverWish::Show));
        check("/deliver off", Command::Deliver(DeliverWish::Off));
        check("/deliver  on ", Command::Deliver(DeliverWish::On));
        let code = || "ABCD2345".to_owned();
        check("/pair", Command::Pair(PairWish::List));
        check("/pair ABCD2345", Command::Pair(PairWish::Show(code())));
        check("/pair ABCD2345 yes", Command::Pair(PairWish::LetIn(code())));
        check(
            "/pair ABCD2345 no",
            Command::Pair(PairWish::TurnAway(code())),
        );
        check(
            "/unpair telegram:5",
            Command::Unpair("telegram:5".to_owned()),
        );
        check("/people", Command::People(PeopleWish::List));
        check(
            "/people show Bob the Builder",
            Command::People(PeopleWish::Show("Bob the Builder".into())),
        );
        let role = |who: &str, agent: Option<&str>| {
            Command::People(PeopleWish::Role {
                who: who.into(),
                role: Role::Admin,
                agent: agent.map(str::to_owned),
            })
        };
        check("/people role telegram:5 admin", role("telegram:5", None));
        check("/people role bob admin rose", role("bob", Some("rose")));
        check("/people role member admin", role("member", None));
        check(
            "/allow rose 2.00 today",
            Command::Allow(budgets::parse(&["rose", "2.00", "today"]).unwrap()),
        );
        check("/pause background", Command::Pause(Work::Background));
        check("/jobs", Command::Jobs(JobsWish::List));
        let pause = JobsWish::Change {
            change: JobChange::Pause,
            which: "3".into(),
        };
        check("/jobs pause 3", Command::Jobs(pause));
        check("/resume Background", Command::Resume(Work::Background));
        let remember = |text: &str, visibility| Command::Remember {
            text: text.into(),
            visibility,
        };
        check("/memory", Command::Memory);
        check("/remember tea at four", remember("tea at four", None));
        check(
            "/remember --global  tea\nat four",
            remember("tea\nat four", Some(Visibility::Global)),
        );
        check(
            "/remember —agent tea",
            remember("tea", Some(Visibility::Private)),
        );
        check(
            "/remember tea at four --global",
            remember("tea at four", Some(Visibility::Global)),
        );
        check("/remember -5 degrees", remember("-5 degrees", None));
        check("/remember global warming", remember("global warming", None));
        check("/forget 12", Command::Forget(ForgetWish::Show(12)));
        check("/forget 12 yes", Command::Forget(ForgetWish::Confirmed(12)));
        check(
            "/forget 12 angry men",
            Command::Forget(ForgetWish::Find("12 angry men".into())),
        );
    }

    #[test]
    fn talk_is_left_to_the_agent() {
        for talk in [
            "hello",
            "",
            "/",
            "/ agent",
            "/etc/hosts is empty",
            "see /agent",
            "/rose's garden",
        ] {
            assert_eq!(parse(talk), Parsed::Talk, "{talk}");
        }
    }

    #[test]
    fn a_near_miss_is_suggested() {
        let told = |text| match parse(text) {
            Parsed::Mistaken(error) | Parsed::Misused { usage: error, .. } => error.to_string(),
            other => panic!("{text} gave {other:?}"),
        };
        insta::assert_snapshot!(told("/agnet rose"), @"There is no command /agnet. Did you mean /agent? /help shows what there is.");
        insta::assert_snapshot!(told("/frobnicate"), @"There is no command /frobnicate. /help shows what there is.");
        assert_eq!(told("/usage year"), texts::USAGE);
        assert_eq!(told("/people role bob"), texts::PEOPLE);
        assert_eq!(told("/people role bob boss"), texts::PEOPLE);
        assert_eq!(told("/allow rose"), texts::ALLOW);
        assert_eq!(told("/pause"), texts::PAUSE);
        assert_eq!(told("/jobs pause"), job_texts::USAGE);
        assert_eq!(told("/resume everything"), texts::RESUME);
        assert_eq!(told("/remember --global"), texts::REMEMBER);
        assert_eq!(told("/remember --private mine"), texts::NOT_PRIVATE);
        insta::assert_snapshot!(told("/remember --gloabl tea"), @"Nothing is saved: there is no `--gloabl`. The flags are `--person`, `--place`, `--agent` and `--global`.");
        assert_eq!(told("/forget"), texts::FORGET);
        for wrong in ["/agent for", "/agent for 2h"] {
            assert_eq!(told(wrong), steering::FOR, "{wrong}");
        }
        for wrong in [
            "/agent for 2x rose",
            "/agent rose for 99x",
            "/agent for 31d rose",
        ] {
            assert!(told(wrong).contains("`/agent rose for 2h`"), "{wrong}");
        }
        assert_eq!(told("/bind"), steering::BIND);
        assert_eq!(told("/audit all of it"), audit_texts::USAGE);
        assert_eq!(told("/topics"), texts::TOPIC);
        insta::assert_snapshot!(told("/topc"), @"There is no command /topc. Did you mean /topic? /help shows what there is.");
        insta::assert_snapshot!(told("/pair AB CD"), @"Write `/pair` to see who waits, or `/pair ABCD2345` for one code.");
        insta::assert_snapshot!(told("/unpair"), @"Who should lose access? Write the id, such as `/unpair telegram:12345678`; `/pair` lists everyone who was let in.");
    }
}
