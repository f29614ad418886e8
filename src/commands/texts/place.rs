//! Who answers in a place, or why nobody: `/whoami`, `/agent`, `/agents`, `/status` and
//! `parlor route explain`.

use chrono::TimeZone;

use super::deliver;
use super::words::{day, since, time};
use crate::access::{NotForYou, Role};
use crate::answering::{Answer, Faltering, Silence, TroubleKind};
use crate::clock::now_ms;
use crate::domain::{AgentId, PersonId, SessionKey};
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
    Person { id: &'a PersonId, may_open: MayOpen },
    /// The operator, who asks about a person or about guests.
    Operator { about: &'a str },
}

/// What the reader can do about a closed place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MayOpen {
    No,
    Yes,
    /// The conversation of one member in a group.
    ForSelf,
}

impl Wording<'_> {
    fn whom(&self) -> &str {
        match self.reader {
            Reader::Person { .. } => "you",
            Reader::Operator { about } => about,
        }
    }

    fn has(&self) -> &'static str {
        match self.reader {
            Reader::Person { .. } => "have",
            Reader::Operator { .. } => "has",
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

/// Who answers, or why nobody: one or two sentences.
pub(crate) fn tell<Z: TimeZone>(answer: &Answer, wording: &Wording<'_>, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    match &answer.silence {
        None => {
            let off = answer.resolved.delivery_off.as_ref();
            let off = off.map(|off| deliver::is_off(off, &wording.this, zone));
            let told = [
                answers(answer, wording, zone),
                because(answer, wording, zone),
            ];
            told.into_iter().chain(off).collect::<Vec<_>>().join(" ")
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
    let falters = answer.faltering.as_ref();
    let but = falters.map_or_else(String::new, |falters| but(falters, wording, zone));
    format!("{label} answers {here}{when}{but}.")
}

/// `, but its model openai/gpt-5.4 has refused since 14:05 UTC+1: the API key was rejected`. A
/// fallback that answers is of interest only to people who can mend the model.
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
            None => ", but its model isn't working right now".to_owned(),
        };
    }
    let joint = match instead {
        Some(instead) => format!(" with `{instead}` for now, because"),
        None => ", but".to_owned(),
    };
    let state = match trouble.kind {
        TroubleKind::Refuses => "has refused",
        TroubleKind::OutOfReach => "has been out of reach",
    };
    let (since, cause) = (since(zone, trouble.since, now_ms()), &trouble.cause);
    format!("{joint} its model `{model}` {state} since {since}: {cause}")
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
        (false, None) => format!("{who} chose {name} on {}.", day(zone, pin.set_at)),
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
            "Nobody answers {here}: {} (groups = \"bound\"). {}",
            place_closed(this).replace("/agent", "`/agent`"),
            how_to_open(wording)
        ),
        Silence::NotLetIn => format!(
            "Nobody answers {whom} {here}: the bot is private, and {whom} {} not been let in yet. {}",
            wording.has(),
            how_to_let_in(wording)
        ),
        Silence::PrivateChatsClosed => format!(
            "Nobody answers {whom} {here}: private chats are closed to guests (dms = \"closed\")."
        ),
        Silence::NotAddressed => format!("Nobody answers {here}: {NOT_ADDRESSED}."),
        Silence::NotForYou(closed) => {
            format!(
                "{label} answers {here}, but not {whom}: {}.",
                open_to(&name, closed)
            )
        }
        Silence::Paused(pause) => format!(
            "{label} answers {here}, but is paused by {} since {}. Messages are kept until an owner resumes it.",
            pause.who(),
            day(zone, pause.at)
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

/// Why a place is silent, here and in the log.
pub(crate) fn place_closed(this: &str) -> String {
    format!("no binding or /agent opens {this}")
}

/// Why a message in a group is left alone, here and in the log.
pub(crate) const NOT_ADDRESSED: &str = "the message neither mentions the bot nor replies to it";

fn how_to_let_in(wording: &Wording<'_>) -> &'static str {
    match wording.reader {
        Reader::Person { .. } => "An owner can let you in.",
        Reader::Operator { .. } => "A first message gets a code for `parlor pair CODE`.",
    }
}

fn how_to_open(wording: &Wording<'_>) -> &'static str {
    let may_open = match wording.reader {
        Reader::Person { may_open, .. } => may_open,
        Reader::Operator { .. } => return "An owner can write `/agent NAME` there.",
    };
    match may_open {
        MayOpen::No => "An owner can open it with `/agent`.",
        MayOpen::Yes => "`/agent` with an agent's name opens it.",
        MayOpen::ForSelf => "`/agent` with an agent's name opens it for you alone.",
    }
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
        "{why}, add this to config.toml:\n```toml\n[[bindings]]\nmatch = \"{key}\"\nagent = \"{agent}\"\n```{other}"
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
        }
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
        let silences = [
            Silence::PlaceClosed,
            Silence::NotLetIn,
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
            reader: Reader::Person { id: &id, may_open: MayOpen::No },
            label: &label,
            name: &|_: &AgentId| "Rose".to_owned(),
        }), @r#"
        🌹 Rose answers here. Alice chose Rose on 6 Nov 2026.
        🌹 Rose answers here. `telegram:111` chose Rose on 6 Nov 2026.
        🌹 Rose answers here. Alice chose Rose for the next message.
        🌹 Rose answers here. Line 52 of config.toml gives this topic to Rose.
        🌹 Rose answers here when mentioned or replied to. Line 52 of config.toml gives `telegram:group:-1001` to Rose.
        🌹 Rose answers here. Rose is the default agent.
        🌹 Rose answers here, but its model isn't working right now. Rose is the default agent.
        🌹 Rose answers here. Rose is the default agent.
        Nobody answers here: no binding or `/agent` opens this topic (groups = "bound"). An owner can open it with `/agent`.
        Nobody answers you here: the bot is private, and you have not been let in yet. An owner can let you in.
        Nobody answers you here: private chats are closed to guests (dms = "closed").
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
            reader: Reader::Operator { about: "Bob" },
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
        Nobody answers in Writing (telegram:topic:-1001:101): no binding or `/agent` opens this topic (groups = "bound"). An owner can write `/agent NAME` there.
        Nobody answers Bob in Writing (telegram:topic:-1001:101): the bot is private, and Bob has not been let in yet. A first message gets a code for `parlor pair CODE`.
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

        To keep 🌹 Rose here for good, add this to config.toml:
        ```toml
        [[bindings]]
        match = "telegram:topic:-1001:101"
        agent = "rose"
        ```
        For the whole group, write `telegram:group:-1001`.
        "#);
    }
}
