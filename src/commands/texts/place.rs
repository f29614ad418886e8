//! The agent that answers in a place, or the reason for silence: `/whoami`, `/agent`, `/agents`,
//! `/status` and `parlor route explain`.

use chrono::TimeZone;

use super::deliver;
use super::words::{clock, count, day, since, time};
use crate::access::people::AtTheDoor;
use crate::access::{NOT_ADDRESSED_TOLD, NotForYou, Role};
use crate::answering::{Answer, Faltering, Obstacle, Silence, TroubleKind};
use crate::clock::now_ms;
use crate::domain::{AgentId, PersonId, Platform, SessionKey};
use crate::routing::{Pin, Rule};
use crate::turn::budget::{Limit, Over, Whose};

/// The names that a text about a place uses.
pub(crate) struct Wording<'a> {
    /// `here`, or `in Writing (telegram:topic:-1001:101)`.
    pub(crate) here: String,
    /// `this topic`.
    pub(crate) this: String,
    pub(crate) reader: Reader<'a>,
    /// `🌹 Rose`, for the first time an agent is named.
    pub(crate) label: &'a dyn Fn(&AgentId) -> String,
    /// `Rose`.
    pub(crate) name: &'a dyn Fn(&AgentId) -> String,
}

/// The reader of the text.
pub(crate) enum Reader<'a> {
    /// The person that the text is about, in the place itself.
    Person {
        id: &'a PersonId,
        may_open: MayOpen,
        /// Only owners change config.toml, with `/bind` or by hand.
        is_owner: bool,
    },
    /// The operator, who asks about a person or about guests.
    Operator {
        about: &'a str,
        /// How the place is opened for an agent.
        opening: &'a dyn Fn(&AgentId) -> String,
    },
}

/// The reader's right to open a closed place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MayOpen {
    No,
    Yes,
    /// The conversation of a single member in a group.
    ForSelf,
}

impl Wording<'_> {
    fn whom(&self) -> &str {
        match self.reader {
            Reader::Person { .. } => "you",
            Reader::Operator { about, .. } => about,
        }
    }

    fn has(&self) -> &'static str {
        match self.reader {
            Reader::Person { .. } => "have",
            Reader::Operator { .. } => "has",
        }
    }

    fn were(&self) -> &'static str {
        match self.reader {
            Reader::Person { .. } => "were",
            Reader::Operator { .. } => "was",
        }
    }

    fn they(&self) -> &'static str {
        match self.reader {
            Reader::Person { .. } => "You",
            Reader::Operator { .. } => "They",
        }
    }

    /// Whether the reader may know why a model does not answer.
    fn is_told_causes(&self) -> bool {
        !matches!(
            self.reader,
            Reader::Person {
                may_open: MayOpen::No,
                ..
            }
        )
    }

    fn label(&self, agent: &AgentId) -> String {
        (self.label)(agent)
    }

    fn name(&self, agent: &AgentId) -> String {
        (self.name)(agent)
    }
}

/// The agent that answers, or the reason for silence, in one or two sentences.
pub(crate) fn tell<Z: TimeZone>(answer: &Answer, wording: &Wording<'_>, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    match &answer.silence {
        None => {
            let off = answer.resolved.delivery_off.as_ref();
            let until = match wording.is_told_causes() {
                true => deliver::UNTIL_SWITCHED,
                false => deliver::UNTIL_OTHERS_SWITCH,
            };
            let off = off.map(|off| deliver::is_off(off, &wording.this, until, zone));
            let told = [
                answers(answer, wording, zone),
                because(answer, wording, zone),
            ];
            let besides = besides(answer, wording, zone);
            let told = told.into_iter().chain(besides).chain(off);
            told.collect::<Vec<_>>().join(" ")
        }
        Some(silence) => nobody(silence, answer.agent(), wording, zone),
    }
}

/// `🌹 Rose answers here when mentioned.`
fn answers<Z: TimeZone>(answer: &Answer, wording: &Wording<'_>, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    let when = if answer.needs_mention {
        " when mentioned or replied to"
    } else {
        ""
    };
    let (label, here) = (wording.label(answer.agent()), &wording.here);
    let but = match (answer.obstacles.first(), &answer.faltering) {
        (Some(obstacle), _) => format!(", but {}", in_the_way(obstacle, wording, zone)),
        (None, Some(falters)) => but(falters, wording, zone),
        (None, None) => String::new(),
    };
    format!("{label} answers {here}{when}{but}.")
}

/// The other obstacles to an answer, a sentence for each.
fn besides<Z: TimeZone>(answer: &Answer, wording: &Wording<'_>, zone: &Z) -> Vec<String>
where
    Z::Offset: std::fmt::Display,
{
    let [_, others @ ..] = answer.obstacles.as_slice() else {
        return Vec::new();
    };
    if !wording.is_told_causes() {
        return Vec::new();
    }
    let others = others.iter();
    let others = others.map(|other| format!("Besides, {}.", in_the_way(other, wording, zone)));
    let mut told: Vec<String> = others.collect();
    if let Some(falters) = &answer.faltering {
        let model = but(falters, wording, zone);
        told.extend(
            model
                .strip_prefix(", but ")
                .map(|model| format!("Besides, {model}.")),
        );
    }
    told
}

/// Follows `but`: `the topic is closed`.
fn in_the_way<Z: TimeZone>(obstacle: &Obstacle, wording: &Wording<'_>, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    let now = now_ms();
    let is_own = matches!(obstacle, Obstacle::TooFast { .. });
    if !wording.is_told_causes() && !is_own {
        return match obstacle {
            Obstacle::PrivacyMode => "only when mentioned or replied to".to_owned(),
            _ => "not every answer arrives here right now".to_owned(),
        };
    }
    match obstacle {
        Obstacle::NoGateway => "no gateway runs right now (`parlor run` starts it)".to_owned(),
        Obstacle::Frozen { pid } => format!(
            "the gateway (process {pid}) does not respond right now: it may be starting, suspended or stuck (`kill -CONT {pid}` wakes a suspended one; `parlor run` after ending a stuck one loses nothing)"
        ),
        Obstacle::NotStored { reason } => format!(
            "the gateway cannot store messages right now, so it takes none in: {reason}"
        ),
        Obstacle::Disconnected {
            platform,
            since: at,
            reason,
        } => {
            let platform = on(Some(*platform));
            let state = match at {
                Some(at) => format!("{platform} has not been connected since {}", since(zone, *at, now)),
                None => format!("{platform} is not connected"),
            };
            reason.as_ref().map_or(state.clone(), |reason| format!("{state}: {reason}"))
        }
        Obstacle::Barred { reason, since: at } => {
            format!("nothing can be written there since {}: {reason}", since(zone, *at, now))
        }
        Obstacle::TooFast { until } => {
            let whose = match wording.reader {
                Reader::Person { .. } => "your messages".to_owned(),
                Reader::Operator { about, .. } => format!("messages of {about}"),
            };
            let until = clock(zone, *until);
            format!("{whose} are dropped until {until}: too many came in a minute")
        }
        Obstacle::AskedToWait { .. }
        | Obstacle::NotSent { .. }
        | Obstacle::Undelivered { .. } => not_arrived(obstacle, zone).unwrap_or_default(),
        Obstacle::PrivacyMode => {
            "Telegram shows the bot only mentions, replies and commands: its privacy mode is on (`/setprivacy` at @BotFather)".to_owned()
        }
    }
}

/// Answers that have not arrived, and why. None for other obstacles.
pub(crate) fn not_arrived<Z: TimeZone>(obstacle: &Obstacle, zone: &Z) -> Option<String>
where
    Z::Offset: std::fmt::Display,
{
    Some(match obstacle {
        Obstacle::AskedToWait {
            platform,
            until,
            waiting,
        } => format!(
            "{} to be sent: {} asked for a pause until {}",
            waits(*waiting),
            on(*platform),
            clock(zone, *until)
        ),
        Obstacle::NotSent { waiting, reason } => {
            format!("{} to be sent: {reason}", waits(*waiting))
        }
        Obstacle::Undelivered { count, reason } => format!(
            "{} could not be delivered: {reason} (an owner's `/retry` there or `parlor failed retry` sends {} again)",
            answers_of(*count),
            if *count == 1 { "it" } else { "them" }
        ),
        _ => return None,
    })
}

/// `2 answers wait`.
fn waits(number: i64) -> String {
    match number {
        1 => "1 answer waits".to_owned(),
        number => format!("{} wait", answers_of(number)),
    }
}

fn answers_of(number: i64) -> String {
    count(u64::try_from(number).unwrap_or(0), "answer")
}

/// The name of a platform in a sentence.
pub(crate) fn on(platform: Option<Platform>) -> &'static str {
    match platform {
        Some(Platform::Telegram) => "Telegram",
        Some(Platform::Discord) => "Discord",
        Some(Platform::Web | Platform::Local) | None => "the platform",
    }
}

/// `, but its model openai/gpt-5.4 has refused since 14:05 UTC+1: the API key was rejected`. A
/// working fallback is of interest only to people who can mend the model.
fn but<Z: TimeZone>(falters: &Faltering, wording: &Wording<'_>, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    let Faltering {
        model,
        trouble,
        instead,
    } = falters;
    if !wording.is_told_causes() {
        return match instead {
            Some(_) => String::new(),
            None if trouble.kind == TroubleKind::Failed => {
                ", but its model didn't work when last asked".to_owned()
            }
            None => ", but its model isn't working right now".to_owned(),
        };
    }
    let joint = match instead {
        Some(instead) => format!(" with `{instead}` for now, because"),
        None => ", but".to_owned(),
    };
    let state = match trouble.kind {
        TroubleKind::Refuses => "has refused since",
        TroubleKind::OutOfReach => "has been out of reach since",
        TroubleKind::NoKey => "has been unusable since",
        TroubleKind::Failed => "failed when last asked, at",
    };
    let (since, cause) = (since(zone, trouble.since, now_ms()), &trouble.cause);
    format!("{joint} its model `{model}` {state} {since}: {cause}")
}

/// `Alice chose Rose on 16 Nov 2026.`
fn because<Z: TimeZone>(answer: &Answer, wording: &Wording<'_>, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    let name = wording.name(answer.agent());
    match (&answer.resolved.route.rule, &answer.resolved.pin) {
        (Rule::Pin { .. }, Some(pin)) => chosen(pin, &name, wording, zone),
        (Rule::Pin { set_by, .. }, None) => format!("{set_by} chose {name}."),
        (Rule::Binding { .. }, _) if !wording.is_told_causes() => {
            format!("An owner gave {} to {name}.", wording.this)
        }
        (Rule::Binding { kind, line, .. }, _) if kind.starts_with("exact") => {
            format!(
                "Line {line} of config.toml gives {} to {name}.",
                wording.this
            )
        }
        (Rule::Binding { line, matches, .. }, _) => {
            format!("Line {line} of config.toml gives `{matches}` to {name}.")
        }
        (Rule::Default, _) => format!("{name} is the default agent."),
    }
}

fn chosen<Z: TimeZone>(pin: &Pin, name: &str, wording: &Wording<'_>, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    let is_reader = matches!(wording.reader, Reader::Person { id, .. } if *id == pin.set_by);
    let who = match &pin.set_by_name {
        _ if is_reader => "You".to_owned(),
        Some(setter) => setter.clone(),
        None => format!("`{}`", pin.set_by),
    };
    match (pin.once, pin.until) {
        (true, _) => format!("{who} chose {name} for the next message."),
        (false, Some(until)) => format!(
            "{who} chose {name} until {}, {}.",
            time(zone, until),
            day(zone, until)
        ),
        (false, None) => {
            let when = moment(zone, pin.set_at, now_ms());
            format!("{who} chose {name} {when}.")
        }
    }
}

/// `just now`, `at 14:05 UTC+1`, before today `on 16 Nov 2026`.
fn moment<Z: TimeZone>(zone: &Z, at: i64, now: i64) -> String
where
    Z::Offset: std::fmt::Display,
{
    const JUST_NOW_MS: i64 = 2 * 60 * 1000;
    match (now - at, day(zone, at)) {
        (ago, _) if (0..JUST_NOW_MS).contains(&ago) => "just now".to_owned(),
        (_, day) if day == self::day(zone, now) => format!("at {}", time(zone, at)),
        (_, day) => format!("on {day}"),
    }
}

fn nobody<Z: TimeZone>(
    silence: &Silence,
    agent: &AgentId,
    wording: &Wording<'_>,
    zone: &Z,
) -> String
where
    Z::Offset: std::fmt::Display,
{
    let (here, this, whom) = (&wording.here, &wording.this, wording.whom());
    let (label, name) = (wording.label(agent), wording.name(agent));
    match silence {
        Silence::PlaceClosed => format!(
            "Nobody answers {here}: {}. {}",
            why_closed(this, wording),
            how_to_open(wording, agent)
        ),
        Silence::NotLetIn(Some(AtTheDoor::TurnedAway { by, until })) => {
            let by = by
                .as_ref()
                .map_or_else(String::new, |by| format!(" by {by}"));
            let (until, day) = (time(zone, *until), day(zone, *until));
            let (were, they) = (wording.were(), wording.they());
            let now = match wording.reader {
                Reader::Person { .. } => "",
                Reader::Operator { .. } => {
                    " `parlor people role PERSON member` lets them in at once."
                }
            };
            format!(
                "Nobody answers {whom} {here}: the bot is private, and {whom} {were} turned away{by}. {they} get no reply until {until}, {day}, and can ask again then.{now}"
            )
        }
        Silence::NotLetIn(door) => format!(
            "Nobody answers {whom} {here}: the bot is private, and {whom} {} not been let in yet. {}",
            wording.has(),
            how_to_let_in(wording, door.as_ref(), zone)
        ),
        Silence::PrivateChatsClosed if !wording.is_told_causes() => format!(
            "Nobody answers {whom} {here}: private chats are closed to guests. Ask an owner if you need one."
        ),
        Silence::PrivateChatsClosed => format!(
            "Nobody answers {whom} {here}: private chats are closed to guests (dms = \"closed\")."
        ),
        Silence::NotAddressed => format!("Nobody answers {here}: {NOT_ADDRESSED_TOLD}."),
        Silence::NotForYou(closed) => {
            format!(
                "{label} answers {here}, but not {whom}: {}.",
                open_to(&name, closed)
            )
        }
        Silence::Paused(pause) => format!(
            "{label} answers {here}, but {} paused it {}. Messages are kept until an owner resumes it.",
            pause.who(),
            moment(zone, pause.at, now_ms())
        ),
        Silence::OverBudget(over) => {
            let nobody = match (over.whose, &wording.reader) {
                (Whose::Agents | Whose::House, _) => format!("Nobody answers {here}"),
                (Whose::Persons, Reader::Person { .. }) => "Nobody answers you".to_owned(),
                (Whose::Persons, Reader::Operator { .. }) => {
                    format!("Nobody answers {whom} {here}")
                }
            };
            let (until, why) = (time(zone, over.free_at), used_up(over, &name, wording));
            format!("{nobody} until {until}: {why}.")
        }
    }
}

/// The setting is of use only to people who can change it.
fn why_closed(this: &str, wording: &Wording<'_>) -> String {
    match wording.is_told_causes() {
        true => format!(
            "{} (groups = \"bound\")",
            place_closed(this).replace("/agent", "`/agent`")
        ),
        false => format!("{this} is not open yet"),
    }
}

/// Why a place is silent, here and in the log.
pub(crate) fn place_closed(this: &str) -> String {
    format!("no binding or /agent opens {this}")
}

fn how_to_let_in<Z: TimeZone>(wording: &Wording<'_>, door: Option<&AtTheDoor>, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    match (&wording.reader, door) {
        (Reader::Person { .. }, _) => "An owner can let you in.".to_owned(),
        (Reader::Operator { .. }, Some(AtTheDoor::Waits { code, until })) => format!(
            "Their code is {code}, until {}: `parlor pair {code}` lets them in.",
            time(zone, *until)
        ),
        (Reader::Operator { .. }, _) => {
            "A first message gets a code for `parlor pair CODE`.".to_owned()
        }
    }
}

/// `agent` would answer, were the place open.
fn how_to_open(wording: &Wording<'_>, agent: &AgentId) -> String {
    let (may_open, is_owner) = match wording.reader {
        Reader::Person {
            may_open, is_owner, ..
        } => (may_open, is_owner),
        Reader::Operator { opening, .. } => return opening(agent),
    };
    let how = match may_open {
        MayOpen::No => "An owner can open it with `/bind`.",
        MayOpen::Yes if !is_owner => {
            "`/agent` with an agent's name opens it; an owner can open it for good with `/bind`."
        }
        MayOpen::ForSelf if !is_owner => {
            "`/agent` with an agent's name opens it for you alone; an owner can open it for everybody with `/bind`."
        }
        MayOpen::Yes => {
            "`/agent` with an agent's name opens it; `/bind` with one opens it for good."
        }
        MayOpen::ForSelf => {
            "`/agent` with an agent's name opens it for you alone; `/bind` with one opens it for everybody."
        }
    };
    how.to_owned()
}

/// `🌹 Rose is for members`.
pub(crate) fn open_to(label: &str, closed: &NotForYou) -> String {
    format!("{label} {}", is_for(closed))
}

/// The people that an agent is open to, after its name.
pub(crate) fn is_for(closed: &NotForYou) -> &'static str {
    match closed.least {
        Some(Role::Guest) => "is for everybody",
        Some(Role::Member) => "is for members",
        Some(Role::Admin) => "is for admins and owners",
        Some(Role::Owner) => "is for owners",
        None => "is only for the people and places named in its `who`",
    }
}

fn used_up(over: &Over, name: &str, wording: &Wording<'_>) -> String {
    let what = match over.limit {
        Limit::Tokens(_) => "tokens",
        Limit::Cost(_) => "money",
        Limit::TurnsPerMinute(_) => "messages",
    };
    let when = match over.limit {
        Limit::Tokens(span) | Limit::Cost(span) => span.as_str(),
        Limit::TurnsPerMinute(_) => "this minute",
    };
    match (over.whose, &wording.reader) {
        (Whose::Agents, _) => format!("{name} has used up its {what} for {when}"),
        (Whose::House, _) => format!("all agents together have used up their {what} for {when}"),
        (Whose::Persons, Reader::Person { .. }) => {
            format!("you have used up your {what} for {when}")
        }
        (Whose::Persons, Reader::Operator { .. }) => {
            format!("this person has used up their {what} for {when}")
        }
    }
}

/// `You are Alice (owner), telegram:111.`
pub(crate) fn you_are(name: &str, id: &PersonId, role: Role) -> String {
    match name {
        "" | "somebody" => format!("You are {} `{id}`.", a_role(role)),
        name => format!("You are {name} ({role}), `{id}`."),
    }
}

fn a_role(role: Role) -> &'static str {
    match role {
        Role::Owner => "an owner,",
        Role::Admin => "an admin,",
        Role::Member => "a member,",
        Role::Guest => "a guest,",
    }
}

/// `This is the topic “Writing”, telegram:topic:-1001:101.`
pub(crate) fn this_is(kind: &str, name: Option<&str>, key: &SessionKey) -> String {
    match name {
        Some(name) => format!("This is the {kind} “{name}”, `{key}`."),
        None => format!("This {kind} is `{key}`."),
    }
}

/// Lines for config.toml that `parlor config check` accepts. `other` is a further key to write
/// instead, and its meaning.
pub(crate) fn to_paste(
    why: &str,
    key: &SessionKey,
    agent: &AgentId,
    other: Option<(&str, &SessionKey)>,
) -> String {
    let other = other.map_or_else(String::new, |(meaning, key)| {
        format!("\nFor {meaning}, write `{key}`.")
    });
    format!(
        "{why}, write `/bind {agent}`, or add this to config.toml:\n```toml\n[[bindings]]\nmatch = \"{key}\"\nagent = \"{agent}\"\n```{other}"
    )
}

/// The binding that is there already.
pub(crate) fn bound_already(this: &str, line: usize, label: &str) -> String {
    format!("Line {line} of config.toml gives {this} to {label}.")
}

pub(crate) const CONFIG_HAS_PROBLEMS: &str =
    "config.toml has a problem right now; `parlor config check` shows it.";

#[cfg(test)]
mod tests {
    use chrono::FixedOffset;

    use super::*;
    use crate::access::Verdict;
    use crate::answering::Trouble;
    use crate::routing::{Rank, Resolved, Route};
    use crate::turn::budget::Span;

    fn answer(rule: Rule, pin: Option<Pin>, silence: Option<Silence>) -> Answer {
        let agent = AgentId::parse("rose").unwrap();
        Answer {
            resolved: Resolved {
                route: Route {
                    agent,
                    rule,
                    locked: false,
                    require_mention: None,
                    opens_place: true,
                },
                pin,
                stale_pin: None,
                opened: None,
                delivery_off: None,
            },
            is_open: true,
            needs_mention: false,
            verdict: Verdict::Admit,
            silence,
            faltering: None,
            obstacles: Vec::new(),
        }
    }

    fn behind(obstacles: Vec<Obstacle>) -> Answer {
        answer(Rule::Default, None, None).behind(obstacles)
    }

    fn falters(kind: TroubleKind, cause: &str, instead: Option<&str>) -> Answer {
        let falters = Faltering {
            model: "openai/gpt-5.4".parse().unwrap(),
            trouble: Trouble {
                since: 1_794_000_000_000,
                kind,
                cause: cause.into(),
            },
            instead: instead.map(|model| model.parse().unwrap()),
        };
        answer(Rule::Default, None, None).with_models(Some(falters))
    }

    fn pin(once: bool, name: Option<&str>) -> (Rule, Option<Pin>) {
        let set_by: PersonId = "telegram:111".parse().unwrap();
        let rule = Rule::Pin {
            set_by: set_by.clone(),
            once,
        };
        let pin = Pin {
            agent: AgentId::parse("rose").unwrap(),
            once,
            set_by,
            set_by_name: name.map(str::to_owned),
            set_at: 1_794_000_000_000,
            until: None,
        };
        (rule, Some(pin))
    }

    fn binding(kind: &'static str, matches: &str) -> Rule {
        Rule::Binding {
            index: 0,
            line: 52,
            rank: Rank::ExactTopic,
            kind,
            matches: matches.into(),
        }
    }

    fn answers_to_tell() -> Vec<Answer> {
        let (lasting, chosen) = pin(false, Some("Alice"));
        let (_, nameless) = pin(false, None);
        let (once, chosen_once) = pin(true, Some("Alice"));
        let over = |whose, limit| {
            Silence::OverBudget(Over {
                whose,
                limit,
                free_at: 1_794_000_000_000,
            })
        };
        let closed = |least| {
            Silence::NotForYou(NotForYou {
                agent: AgentId::parse("rose").unwrap(),
                least,
            })
        };
        let mut all = vec![
            answer(lasting.clone(), chosen, None),
            answer(lasting, nameless, None),
            answer(once, chosen_once, None),
            answer(
                binding("exact topic", "telegram:topic:-1001:101"),
                None,
                None,
            ),
            Answer {
                needs_mention: true,
                ..answer(binding("group", "telegram:group:-1001"), None, None)
            },
            answer(Rule::Default, None, None),
            falters(
                TroubleKind::Refuses,
                "the API key for `openai` was rejected (401)",
                None,
            ),
            falters(
                TroubleKind::OutOfReach,
                "could not connect to HOST, the connection was refused",
                Some("ollama/llama"),
            ),
        ];
        let at = 1_794_000_000_000;
        all.extend([
            behind(vec![Obstacle::NoGateway]),
            behind(vec![Obstacle::Disconnected {
                platform: Platform::Telegram,
                since: Some(at),
                reason: Some("another program uses this bot token".into()),
            }]),
            behind(vec![
                Obstacle::Undelivered {
                    count: 2,
                    reason: "I was removed from the group. Add me again".into(),
                },
                Obstacle::Barred {
                    reason: "I was removed from the group. Add me again".into(),
                    since: at,
                },
            ]),
            behind(vec![Obstacle::TooFast { until: at }]),
            behind(vec![Obstacle::AskedToWait {
                platform: Some(Platform::Telegram),
                until: at,
                waiting: 2,
            }]),
            behind(vec![Obstacle::NotSent {
                waiting: 1,
                reason: "no answer from Telegram".into(),
            }]),
            behind(vec![Obstacle::PrivacyMode]),
        ]);
        let silences = [
            Silence::PlaceClosed,
            Silence::NotLetIn(None),
            Silence::NotLetIn(Some(AtTheDoor::Waits {
                code: "HHM9LW2A".into(),
                until: at,
            })),
            Silence::NotLetIn(Some(AtTheDoor::TurnedAway {
                by: Some("Alice".into()),
                until: at,
            })),
            Silence::PrivateChatsClosed,
            Silence::NotAddressed,
            closed(Some(Role::Member)),
            closed(None),
            over(Whose::Agents, Limit::Tokens(Span::Day)),
            over(Whose::Agents, Limit::Cost(Span::Day)),
            over(Whose::Persons, Limit::Tokens(Span::Day)),
        ];
        all.extend(silences.map(|silence| answer(Rule::Default, None, Some(silence))));
        all
    }

    fn told(wording: &Wording<'_>) -> String {
        let zone = FixedOffset::east_opt(3600).unwrap();
        let texts = answers_to_tell();
        let texts = texts.iter().map(|answer| tell(answer, wording, &zone));
        texts.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn people_are_told_who_answers_or_why_nobody() {
        let (id, label) = ("telegram:222".parse().unwrap(), |_: &AgentId| {
            "🌹 Rose".to_owned()
        });
        insta::assert_snapshot!(told(&Wording {
            here: "here".into(),
            this: "this topic".into(),
            reader: Reader::Person { id: &id, may_open: MayOpen::No, is_owner: false },
            label: &label,
            name: &|_: &AgentId| "Rose".to_owned(),
        }), @r#"
        🌹 Rose answers here. Alice chose Rose on 6 Nov 2026.
        🌹 Rose answers here. `telegram:111` chose Rose on 6 Nov 2026.
        🌹 Rose answers here. Alice chose Rose for the next message.
        🌹 Rose answers here. An owner gave this topic to Rose.
        🌹 Rose answers here when mentioned or replied to. An owner gave this topic to Rose.
        🌹 Rose answers here. Rose is the default agent.
        🌹 Rose answers here, but its model isn't working right now. Rose is the default agent.
        🌹 Rose answers here. Rose is the default agent.
        🌹 Rose answers here, but not every answer arrives here right now. Rose is the default agent.
        🌹 Rose answers here, but not every answer arrives here right now. Rose is the default agent.
        🌹 Rose answers here, but not every answer arrives here right now. Rose is the default agent.
        🌹 Rose answers here, but your messages are dropped until 22:20:00 UTC+1: too many came in a minute. Rose is the default agent.
        🌹 Rose answers here, but not every answer arrives here right now. Rose is the default agent.
        🌹 Rose answers here, but not every answer arrives here right now. Rose is the default agent.
        🌹 Rose answers here, but only when mentioned or replied to. Rose is the default agent.
        Nobody answers here: this topic is not open yet. An owner can open it with `/bind`.
        Nobody answers you here: the bot is private, and you have not been let in yet. An owner can let you in.
        Nobody answers you here: the bot is private, and you have not been let in yet. An owner can let you in.
        Nobody answers you here: the bot is private, and you were turned away by Alice. You get no reply until 22:20 UTC+1, 6 Nov 2026, and can ask again then.
        Nobody answers you here: private chats are closed to guests. Ask an owner if you need one.
        Nobody answers here: the message neither mentions the bot nor replies to it.
        🌹 Rose answers here, but not you: Rose is for members.
        🌹 Rose answers here, but not you: Rose is only for the people and places named in its `who`.
        Nobody answers here until 22:20 UTC+1: Rose has used up its tokens for today.
        Nobody answers here until 22:20 UTC+1: Rose has used up its money for today.
        Nobody answers you until 22:20 UTC+1: you have used up your tokens for today.
        "#);
    }

    #[test]
    fn operators_are_told_who_answers_or_why_nobody() {
        let label = |_: &AgentId| "🌹 Rose".to_owned();
        insta::assert_snapshot!(told(&Wording {
            here: "in Writing (telegram:topic:-1001:101)".into(),
            this: "this topic".into(),
            reader: Reader::Operator {
                about: "Bob",
                opening: &|agent| format!("`/bind {agent}`, written there by an owner, opens it."),
            },
            label: &label,
            name: &|_: &AgentId| "Rose".to_owned(),
        }), @r#"
        🌹 Rose answers in Writing (telegram:topic:-1001:101). Alice chose Rose on 6 Nov 2026.
        🌹 Rose answers in Writing (telegram:topic:-1001:101). `telegram:111` chose Rose on 6 Nov 2026.
        🌹 Rose answers in Writing (telegram:topic:-1001:101). Alice chose Rose for the next message.
        🌹 Rose answers in Writing (telegram:topic:-1001:101). Line 52 of config.toml gives this topic to Rose.
        🌹 Rose answers in Writing (telegram:topic:-1001:101) when mentioned or replied to. Line 52 of config.toml gives `telegram:group:-1001` to Rose.
        🌹 Rose answers in Writing (telegram:topic:-1001:101). Rose is the default agent.
        🌹 Rose answers in Writing (telegram:topic:-1001:101), but its model `openai/gpt-5.4` has refused since 6 Nov 2026, 22:20 UTC+1: the API key for `openai` was rejected (401). Rose is the default agent.
        🌹 Rose answers in Writing (telegram:topic:-1001:101) with `ollama/llama` for now, because its model `openai/gpt-5.4` has been out of reach since 6 Nov 2026, 22:20 UTC+1: could not connect to HOST, the connection was refused. Rose is the default agent.
        🌹 Rose answers in Writing (telegram:topic:-1001:101), but no gateway runs right now (`parlor run` starts it). Rose is the default agent.
        🌹 Rose answers in Writing (telegram:topic:-1001:101), but Telegram has not been connected since 6 Nov 2026, 22:20 UTC+1: another program uses this bot token. Rose is the default agent.
        🌹 Rose answers in Writing (telegram:topic:-1001:101), but nothing can be written there since 6 Nov 2026, 22:20 UTC+1: I was removed from the group. Add me again. Rose is the default agent. Besides, 2 answers could not be delivered: I was removed from the group. Add me again (an owner's `/retry` there or `parlor failed retry` sends them again).
        🌹 Rose answers in Writing (telegram:topic:-1001:101), but messages of Bob are dropped until 22:20:00 UTC+1: too many came in a minute. Rose is the default agent.
        🌹 Rose answers in Writing (telegram:topic:-1001:101), but 2 answers wait to be sent: Telegram asked for a pause until 22:20:00 UTC+1. Rose is the default agent.
        🌹 Rose answers in Writing (telegram:topic:-1001:101), but 1 answer waits to be sent: no answer from Telegram. Rose is the default agent.
        🌹 Rose answers in Writing (telegram:topic:-1001:101), but Telegram shows the bot only mentions, replies and commands: its privacy mode is on (`/setprivacy` at @BotFather). Rose is the default agent.
        Nobody answers in Writing (telegram:topic:-1001:101): no binding or `/agent` opens this topic (groups = "bound"). `/bind rose`, written there by an owner, opens it.
        Nobody answers Bob in Writing (telegram:topic:-1001:101): the bot is private, and Bob has not been let in yet. A first message gets a code for `parlor pair CODE`.
        Nobody answers Bob in Writing (telegram:topic:-1001:101): the bot is private, and Bob has not been let in yet. Their code is HHM9LW2A, until 22:20 UTC+1: `parlor pair HHM9LW2A` lets them in.
        Nobody answers Bob in Writing (telegram:topic:-1001:101): the bot is private, and Bob was turned away by Alice. They get no reply until 22:20 UTC+1, 6 Nov 2026, and can ask again then. `parlor people role PERSON member` lets them in at once.
        Nobody answers Bob in Writing (telegram:topic:-1001:101): private chats are closed to guests (dms = "closed").
        Nobody answers in Writing (telegram:topic:-1001:101): the message neither mentions the bot nor replies to it.
        🌹 Rose answers in Writing (telegram:topic:-1001:101), but not Bob: Rose is for members.
        🌹 Rose answers in Writing (telegram:topic:-1001:101), but not Bob: Rose is only for the people and places named in its `who`.
        Nobody answers in Writing (telegram:topic:-1001:101) until 22:20 UTC+1: Rose has used up its tokens for today.
        Nobody answers in Writing (telegram:topic:-1001:101) until 22:20 UTC+1: Rose has used up its money for today.
        Nobody answers Bob in Writing (telegram:topic:-1001:101) until 22:20 UTC+1: this person has used up their tokens for today.
        "#);
    }

    #[test]
    fn people_are_told_who_and_where_they_are() {
        let (alice, topic): (PersonId, SessionKey) = (
            "telegram:111".parse().unwrap(),
            "telegram:topic:-1001:101".parse().unwrap(),
        );
        let rose = AgentId::parse("rose").unwrap();
        let group: SessionKey = "telegram:group:-1001".parse().unwrap();
        let texts = [
            you_are("Alice", &alice, Role::Owner),
            you_are("somebody", &alice, Role::Owner),
            this_is("topic", Some("Writing"), &topic),
            this_is("group", None, &group),
            bound_already("this topic", 52, "🌹 Rose"),
            to_paste(
                "To keep 🌹 Rose here for good",
                &topic,
                &rose,
                Some(("the whole group", &group)),
            ),
        ];
        insta::assert_snapshot!(texts.join("\n\n"), @r#"
        You are Alice (owner), `telegram:111`.

        You are an owner, `telegram:111`.

        This is the topic “Writing”, `telegram:topic:-1001:101`.

        This group is `telegram:group:-1001`.

        Line 52 of config.toml gives this topic to 🌹 Rose.

        To keep 🌹 Rose here for good, write `/bind rose`, or add this to config.toml:
        ```toml
        [[bindings]]
        match = "telegram:topic:-1001:101"
        agent = "rose"
        ```
        For the whole group, write `telegram:group:-1001`.
        "#);
    }
}
