//! The work in a place: `/stop`, `/queue`, `/new`, `/status`, `/retry`.

use unicode_segmentation::UnicodeSegmentation;

use super::words::{count, duration, grouped, listed, uptime};
use crate::config::{Currency, Money};
use crate::domain::{Labels, Role};
use crate::lanes::{Item, Queue};
use crate::models::Usage;
use crate::turn::budget::{self, Spent};

pub(crate) const RESUMED: &str = "Background work goes on, and jobs that waited for it run now.";
pub(crate) const PAUSED_ALREADY: &str =
    "Background work is paused already. `/resume background` goes on with it.";
pub(crate) const NOT_PAUSED: &str = "Background work is not paused.";
pub(crate) const ONLY_OWNERS_PAUSE: &str = "Only owners can pause and resume background work.";

/// Length of a shown message, in characters as people see them.
const MAX_QUOTE_CHARS: usize = 60;
/// Waiting messages in a list.
const MOST_LISTED: usize = 10;

/// The commands that the reader of a queue may use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hints {
    /// The paused agent.
    pub(crate) paused: Option<String>,
    pub(crate) may_stop: bool,
    pub(crate) may_clear: bool,
}

/// `jobs` have a time ahead.
pub(crate) fn paused(jobs: usize) -> String {
    let rest = match jobs {
        0 => "and jobs rest".to_owned(),
        1 => "and the one job of the house rests".to_owned(),
        jobs => format!("and the {jobs} jobs of the house rest"),
    };
    format!(
        "Background work is paused: no summaries are made, agents begin no subagents that nobody waits for, {rest}. Jobs that come once, such as reminders, run after the pause; others skip their times. People are answered as before, and what has begun is finished. `/resume background` goes on with it."
    )
}

/// The running and waiting work, for `/queue`.
pub(crate) fn queue(queue: &Queue, now: i64, hints: &Hints) -> String {
    if is_idle(queue) && queue.waiting.is_empty() {
        return IDLE.to_owned();
    }
    let next = match (&hints.paused, queue.waiting.is_empty()) {
        (_, true) => None,
        (Some(label), false) => Some(format!(
            "{label} is paused, so these wait until an owner resumes it."
        )),
        (None, false) => Some("These come next.".to_owned()),
    };
    let ways = match (hints.may_stop, hints.may_clear) {
        (true, true) => Some("`/stop` cancels the current answer, `/queue clear` drops the rest."),
        (true, false) => Some("`/stop` cancels the current answer."),
        (false, true) => Some("`/queue clear` drops them."),
        (false, false) => None,
    };
    let hints: Vec<String> = next.into_iter().chain(ways.map(str::to_owned)).collect();
    match hints.is_empty() {
        true => work(queue, now),
        false => format!("{}\n\n{}", work(queue, now), hints.join(" ")),
    }
}

/// The work of a queue without hints, for `/status`.
pub(crate) fn work(queue: &Queue, now: i64) -> String {
    if is_idle(queue) && queue.waiting.is_empty() {
        return IDLE.to_owned();
    }
    let mut lines: Vec<String> = queue
        .current
        .iter()
        .map(|item| working(item, now))
        .collect();
    lines.extend(queue.subagents.iter().map(|item| subagent(item, now)));
    lines.extend(queue.parked.iter().map(parked));
    match queue.waiting.len() {
        0 => lines.push("Nothing waits.".into()),
        1 => lines.push("1 message waits:".into()),
        messages => lines.push(format!("{messages} messages wait:")),
    }
    let shown = queue.waiting.iter().take(MOST_LISTED);
    lines.extend(shown.map(|item| format!("- {}", describe(item))));
    if queue.waiting.len() > MOST_LISTED {
        lines.push(format!("- and {} more", queue.waiting.len() - MOST_LISTED));
    }
    lines.join("\n")
}

fn is_idle(queue: &Queue) -> bool {
    queue.current.is_none() && queue.subagents.is_empty() && queue.parked.is_empty()
}

fn working(item: &Item, now: i64) -> String {
    format!(
        "Working for {} on {}.",
        duration(now - item.since),
        describe(item)
    )
}

fn subagent(item: &Item, now: i64) -> String {
    format!(
        "A subagent has worked for {} on {}.",
        duration(now - item.since),
        describe(item)
    )
}

fn parked(item: &Item) -> String {
    format!("Set aside for newer messages: {}.", describe(item))
}

fn describe(item: &Item) -> String {
    format!("“{}” ({})", head(&item.asks), item.by)
}

fn head(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.grapheme_indices(true).nth(MAX_QUOTE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

const IDLE: &str = "Nothing is being written here, and nothing waits.";

pub(crate) const NOTHING_WAITS: &str = "Nothing waits here.";
pub(crate) const NOTHING_TO_STOP: &str = "Nothing is being written here.";

/// Work ended by `/stop`. `by` is the author of the command, named where the work was for another
/// person.
pub(crate) struct Stopped<'a> {
    pub(crate) by: &'a str,
    pub(crate) ended: usize,
    /// The other people whose answers were stopped.
    pub(crate) others: Vec<String>,
    pub(crate) dropped: usize,
    /// Running work and waiting messages of people with a higher role, which go on.
    pub(crate) kept: &'a [Item],
    pub(crate) left: &'a [Item],
}

pub(crate) fn stopped(stopped: &Stopped<'_>) -> String {
    let Stopped {
        by,
        ended,
        others,
        dropped,
        kept,
        left,
    } = stopped;
    let mut sentences = Vec::new();
    match (ended, dropped) {
        (0, 0) if kept.is_empty() && left.is_empty() => return NOTHING_TO_STOP.to_owned(),
        (0, 1..) if kept.is_empty() => sentences.push("Nothing was being written.".to_owned()),
        (0, _) => {}
        _ if !others.is_empty() => {
            sentences.push(format!("{by} stopped the answer to {}.", listed(others)));
        }
        (1, _) => sentences.push("Stopped.".to_owned()),
        (answers, _) => sentences.push(format!("{answers} answers are stopped.")),
    }
    sentences.extend(self::dropped(*dropped));
    if !kept.is_empty() {
        sentences.push(format!(
            "The current answer is for {}. Only people with the same or a higher role can stop it.",
            for_whom(kept)
        ));
    }
    sentences.extend(stays(left));
    sentences.join(" ")
}

pub(crate) fn dropped(messages: usize) -> Option<String> {
    match messages {
        0 => None,
        1 => Some("1 waiting message is dropped.".to_owned()),
        messages => Some(format!("{messages} waiting messages are dropped.")),
    }
}

/// Waiting messages of people with a higher role, which are not dropped.
pub(crate) fn stays(left: &[Item]) -> Option<String> {
    match left.len() {
        0 => None,
        1 => Some(format!("1 waiting message stays, from {}.", for_whom(left))),
        messages => Some(format!(
            "{messages} waiting messages stay, from {}.",
            for_whom(left)
        )),
    }
}

/// `Alice (owner) and Dan (member)`.
fn for_whom(items: &[Item]) -> String {
    let mut people: Vec<String> = items
        .iter()
        .map(|item| format!("{} ({})", item.by, item.role))
        .collect();
    people.dedup();
    listed(&people)
}

pub(crate) const NEW: &str =
    "A fresh conversation begins here. What was said before is kept, but I no longer look at it.";

pub(crate) fn new_with_model(label: &str, model: &str) -> String {
    format!("{NEW}\n{label} uses `{model}` again.")
}

pub(crate) const OTHERS_TALK: &str = "People with a higher role talk here too, so a guest can't start a fresh conversation. A member can, with `/new`.";

pub(crate) fn conversation(messages: u64, summed_up: Option<u64>, label: &str) -> String {
    let summed_up = summed_up.map_or_else(String::new, |first| {
        format!(
            " The first {} are summed up; {label} can still look them up.",
            count(first, "message")
        )
    });
    format!(
        "This conversation has {}.{summed_up}",
        count(messages, "message")
    )
}

/// The asker's use of today.
pub(crate) fn used_today(spent: Spent, currency: &Currency) -> String {
    match spent.tokens {
        0 => "You have used no tokens today.".to_owned(),
        tokens => format!(
            "You have used {} tokens today{}.",
            grouped(tokens),
            costs(spent.cost, currency)
        ),
    }
}

fn costs(cost: Money, currency: &Currency) -> String {
    match cost.0 {
        0 => String::new(),
        _ => format!(" ({})", cost.in_currency(currency)),
    }
}

/// The sources of the running or the last answer. `alone` is the role of the reader in a private
/// chat.
pub(crate) fn based_on(
    running: Option<Labels>,
    last: Option<Labels>,
    alone: Option<Role>,
) -> Option<String> {
    let (answer, read) = match (running, last) {
        (Some(read), _) => ("The answer that is being written", read),
        (None, last) => ("The last answer here", last?),
    };
    let words = match alone {
        Some(role) => read.in_words_for(role),
        None => read.in_words(),
    };
    // A person alone with the agent knows about their own words.
    let is_news = alone.is_none_or(|role| read != Labels::of(role));
    (is_news && !read.is_empty()).then(|| format!("{answer} is based on {words}."))
}

/// A broken file. `read` is the time of the file in use.
pub(crate) fn broken_config(line: Option<u32>, read: &str) -> String {
    let line = line.map_or_else(String::new, |line| format!(" in line {line}"));
    format!(
        "config.toml has a mistake{line}; the gateway runs with the one from {read}. An owner's `/reload` reads it again, also after a repair outside the file, and shows what is left."
    )
}

/// The state of the gateway, for admins and owners.
pub(crate) struct House {
    /// The file does not count.
    pub(crate) config: Option<String>,
    /// The process is a chat at a terminal, and no gateway for others.
    pub(crate) is_chat: bool,
    pub(crate) up_ms: i64,
    pub(crate) busy: u64,
    pub(crate) turns: u64,
    pub(crate) failed: u64,
    /// Turns stopped by people.
    pub(crate) stopped: u64,
    /// Questions refused at a limit, before any turn.
    pub(crate) over_limit: u64,
    /// Calls of tools that wait for a person's yes or no.
    pub(crate) approvals: u64,
    pub(crate) undelivered: u64,
    /// Where delivery is off.
    pub(crate) kept: u64,
    pub(crate) slow: u64,
    /// Slow ones and others.
    pub(crate) on_the_way: u64,
    pub(crate) repeated: u64,
    pub(crate) unreadable: u64,
    /// The time and the author of a pause of background work.
    pub(crate) paused: Option<String>,
    /// The tokens of the last turn here, its model, and whether the turn had an answer.
    pub(crate) last: Option<(Usage, String, bool)>,
    pub(crate) lately: Vec<String>,
    /// A line for each agent.
    pub(crate) agents: Vec<String>,
}

pub(crate) fn house(house: &House) -> String {
    let mut lines = vec!["For owners and admins:".to_owned()];
    lines.extend(house.config.iter().map(|told| format!("- {told}")));
    lines.extend([
        match house.is_chat {
            true => format!("- This chat has been open for {}.", up(house)),
            false => format!("- The gateway has been up for {}.", up(house)),
        },
        format!("- {}", last_day(house)),
    ]);
    lines.extend(house.paused.as_ref().map(|by| {
        format!("- Background work is paused, since {by}. An owner's `/resume background` goes on with it.")
    }));
    lines.extend(troubles(house).into_iter().map(|told| format!("- {told}")));
    lines.extend(
        house
            .last
            .as_ref()
            .map(|last| format!("- {}", last_turn(last))),
    );
    lines.extend(house.agents.iter().map(|told| format!("- {told}.")));
    if !house.lately.is_empty() {
        lines.push(format!("- Lately here: {}.", house.lately.join("; ")));
    }
    lines.join("\n")
}

fn up(house: &House) -> String {
    match house.busy {
        0 => uptime(house.up_ms),
        busy => format!(
            "{}, and is working in {}",
            uptime(house.up_ms),
            count(busy, "place")
        ),
    }
}

fn last_day(house: &House) -> String {
    let asked = house.turns.saturating_add(house.over_limit);
    if asked == 0 {
        return "Nothing was asked in the last 24 hours.".to_owned();
    }
    let ends: Vec<String> = [
        (house.failed, "without an answer"),
        (house.stopped, "stopped"),
        (house.over_limit, "refused at a limit"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, end)| format!("{} {end}", grouped(number)))
    .collect();
    let ends = match ends.as_slice() {
        [] => "all answered".to_owned(),
        ends => ends.join(", "),
    };
    format!(
        "In the last 24 hours: {}, {ends}.",
        count(asked, "question")
    )
}

fn troubles(house: &House) -> Vec<String> {
    let troubles = [
        (
            house.undelivered,
            "could not be delivered; `/retry` sends again",
        ),
        (house.kept, "kept where delivery is off"),
        (house.slow, "not sent for more than a minute"),
        (
            house.repeated,
            "may have arrived twice, because the platform's receipt got lost",
        ),
    ];
    let mut told: Vec<String> = troubles
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}.", count(number, "message")))
        .collect();
    if house.approvals > 0 {
        told.push(format!(
            "{} for a yes or no; `/approvals` in private lists them.",
            match house.approvals {
                1 => "1 call of a tool waits".to_owned(),
                open => format!("{} calls of tools wait", grouped(open)),
            }
        ));
    }
    if house.unreadable > 0 {
        told.push(format!(
            "{} from the platform could not be read; the log says more.",
            count(house.unreadable, "update")
        ));
    }
    if told.is_empty() {
        told.push(match house.on_the_way {
            0 => "Nothing waits to be delivered.".to_owned(),
            1 => "1 message is on its way.".to_owned(),
            messages => format!("{} messages are on their way.", grouped(messages)),
        });
    }
    told
}

fn last_turn((usage, model, answered): &(Usage, String, bool)) -> String {
    if !answered {
        return format!("The last question here, to {model}, had no answer.");
    }
    let cached = match usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({} from the provider's cache)", grouped(cached)),
    };
    format!(
        "The last answer here came from {model}: {} tokens read{cached}, {} written.",
        grouped(budget::tokens(*usage).saturating_sub(usage.output_tokens)),
        grouped(usage.output_tokens)
    )
}

pub(crate) fn resent(messages: usize) -> String {
    match messages {
        0 => "There are no failed messages.".to_owned(),
        1 => "1 failed message is sent again.".to_owned(),
        messages => format!("{messages} failed messages are sent again."),
    }
}

pub(crate) const RETRY_NEEDS_OWNER: &str = "Only an owner can resend failed messages.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_of_a_prompt_is_told_in_a_line() {
        let (owner, guest) = (Labels::of(Role::Owner), Labels::of(Role::Guest));
        let line = |running, last, alone| based_on(running, last, alone).unwrap_or_default();
        insta::assert_snapshot!(line(Some(owner | guest), Some(owner), None), @"The answer that is being written is based on an owner's words and a guest's words.");
        insta::assert_snapshot!(line(None, Some(owner), Some(Role::Owner)), @"");
        insta::assert_snapshot!(line(None, Some(owner | guest), Some(Role::Owner)), @"The last answer here is based on your words and a guest's words.");
        insta::assert_snapshot!(line(None, Some(Labels::NONE), None), @"");
        insta::assert_snapshot!(line(None, None, None), @"");
    }

    fn item(asks: &str, by: &str, role: Role) -> Item {
        Item {
            ids: vec![1],
            by: by.into(),
            person: "telegram:1".parse().unwrap(),
            role,
            asks: asks.into(),
            since: 0,
        }
    }

    /// S2.36
    #[test]
    fn a_queue_reads_well() {
        let alices = |asks: &str| item(asks, "Alice", Role::Owner);
        let may = Hints {
            paused: None,
            may_stop: true,
            may_clear: true,
        };
        assert_eq!(queue(&Queue::default(), 0, &may), IDLE);
        let one = Queue {
            current: Some(alices("write me a poem")),
            ..Queue::default()
        };
        insta::assert_snapshot!(queue(&one, 2_000, &Hints { may_clear: false, ..may.clone() }), @"
        Working for 2 s on “write me a poem” (Alice).
        Nothing waits.

        `/stop` cancels the current answer.
        ");
        let waiting = (0..12).map(|number| alices(&format!("question {number}")));
        let many = Queue {
            current: Some(alices(&"long ".repeat(30))),
            parked: vec![alices("the report")],
            waiting: waiting.collect(),
            subagents: vec![alices("the sources")],
        };
        insta::assert_snapshot!(queue(&many, 75_000, &may), @"
        Working for 1 min 15 s on “long long long long long long long long long long long long …” (Alice).
        A subagent has worked for 1 min 15 s on “the sources” (Alice).
        Set aside for newer messages: “the report” (Alice).
        12 messages wait:
        - “question 0” (Alice)
        - “question 1” (Alice)
        - “question 2” (Alice)
        - “question 3” (Alice)
        - “question 4” (Alice)
        - “question 5” (Alice)
        - “question 6” (Alice)
        - “question 7” (Alice)
        - “question 8” (Alice)
        - “question 9” (Alice)
        - and 2 more

        These come next. `/stop` cancels the current answer, `/queue clear` drops the rest.
        ");
    }

    #[test]
    fn a_stop_tells_what_ended_and_what_goes_on() {
        let (alice, dan) = (
            item("something", "Alice", Role::Owner),
            item("something", "Dan", Role::Member),
        );
        let told = |ended, others: &[&str], dropped, kept: &[Item], left: &[Item]| {
            stopped(&Stopped {
                by: "Bob",
                ended,
                others: others.iter().map(ToString::to_string).collect(),
                dropped,
                kept,
                left,
            })
        };
        let alices = std::slice::from_ref(&alice);
        let texts = [
            told(0, &[], 0, &[], &[]),
            told(1, &[], 0, &[], &[]),
            told(1, &["Carol"], 0, &[], &[]),
            told(2, &["Carol", "Dan"], 1, &[], &[]),
            told(2, &[], 1, &[], &[]),
            told(0, &[], 2, &[], &[]),
            told(0, &[], 0, alices, &[]),
            told(1, &[], 1, alices, &[]),
            told(0, &[], 0, &[], &[alice.clone(), dan]),
            stays(alices).unwrap(),
        ];
        insta::assert_snapshot!(texts.join("\n"), @"
        Nothing is being written here.
        Stopped.
        Bob stopped the answer to Carol.
        Bob stopped the answer to Carol and Dan. 1 waiting message is dropped.
        2 answers are stopped. 1 waiting message is dropped.
        Nothing was being written. 2 waiting messages are dropped.
        The current answer is for Alice (owner). Only people with the same or a higher role can stop it.
        Stopped. 1 waiting message is dropped. The current answer is for Alice (owner). Only people with the same or a higher role can stop it.
        2 waiting messages stay, from Alice (owner) and Dan (member).
        1 waiting message stays, from Alice (owner).
        ");
    }

    #[test]
    fn the_other_texts_about_work_read_well() {
        let usage = |cached_tokens| Usage {
            input_tokens: 1_217,
            output_tokens: 30,
            cached_tokens,
        };
        let bad = House {
            config: Some(broken_config(Some(27), "14:05")),
            stopped: 1,
            on_the_way: 3,
            is_chat: false,
            up_ms: 61 * 60_000,
            busy: 1,
            turns: 3,
            failed: 1,
            over_limit: 2,
            approvals: 2,
            undelivered: 2,
            kept: 3,
            slow: 1,
            repeated: 1,
            unreadable: 4,
            paused: Some("16 Nov 2026, by Alice".into()),
            last: Some((usage(0), "openai/gpt-5.4".into(), false)),
            lately: Vec::new(),
            agents: Vec::new(),
        };
        let spent = |tokens, cost| Spent {
            tokens,
            cost: Money(cost),
        };
        let texts = [
            NEW.to_owned(),
            new_with_model("🌹 Rose", "openai/gpt-5.4"),
            OTHERS_TALK.to_owned(),
            conversation(0, None, "🌹 Rose"),
            conversation(1, None, "🌹 Rose"),
            conversation(120, Some(80), "🌹 Rose"),
            used_today(spent(0, 0), &Currency::default()),
            used_today(spent(1_247, 0), &Currency::default()),
            used_today(spent(1_247, 3_343), &Currency::default()),
            house(&bad),
            house(&House {
                config: None,
                stopped: 0,
                busy: 0,
                approvals: 0,
                undelivered: 0,
                kept: 0,
                slow: 0,
                repeated: 0,
                unreadable: 0,
                paused: None,
                turns: 12,
                failed: 0,
                over_limit: 0,
                lately: vec!["stopped on request".into()],
                agents: Vec::new(),
                last: Some((usage(1_000), "openai/gpt-5.4".into(), true)),
                ..bad
            }),
            resent(0),
            resent(1),
            resent(2),
            RETRY_NEEDS_OWNER.to_owned(),
            NOTHING_WAITS.to_owned(),
        ];
        insta::assert_snapshot!(texts.join("\n"), @"
        A fresh conversation begins here. What was said before is kept, but I no longer look at it.
        A fresh conversation begins here. What was said before is kept, but I no longer look at it.
        🌹 Rose uses `openai/gpt-5.4` again.
        People with a higher role talk here too, so a guest can't start a fresh conversation. A member can, with `/new`.
        This conversation has 0 messages.
        This conversation has 1 message.
        This conversation has 120 messages. The first 80 messages are summed up; 🌹 Rose can still look them up.
        You have used no tokens today.
        You have used 1,247 tokens today.
        You have used 1,247 tokens today (0.0033 USD).
        For owners and admins:
        - config.toml has a mistake in line 27; the gateway runs with the one from 14:05. An owner's `/reload` reads it again, also after a repair outside the file, and shows what is left.
        - The gateway has been up for 1 h 1 min, and is working in 1 place.
        - In the last 24 hours: 5 questions, 1 without an answer, 1 stopped, 2 refused at a limit.
        - Background work is paused, since 16 Nov 2026, by Alice. An owner's `/resume background` goes on with it.
        - 2 messages could not be delivered; `/retry` sends again.
        - 3 messages kept where delivery is off.
        - 1 message not sent for more than a minute.
        - 1 message may have arrived twice, because the platform's receipt got lost.
        - 2 calls of tools wait for a yes or no; `/approvals` in private lists them.
        - 4 updates from the platform could not be read; the log says more.
        - The last question here, to openai/gpt-5.4, had no answer.
        For owners and admins:
        - The gateway has been up for 1 h 1 min.
        - In the last 24 hours: 12 questions, all answered.
        - 3 messages are on their way.
        - The last answer here came from openai/gpt-5.4: 1,217 tokens read (1,000 from the provider's cache), 30 written.
        - Lately here: stopped on request.
        There are no failed messages.
        1 failed message is sent again.
        2 failed messages are sent again.
        Only an owner can resend failed messages.
        Nothing waits here.
        ");
    }
}
