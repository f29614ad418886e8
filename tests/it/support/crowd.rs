//! People in many places on both platforms. Their messages have numbers, and the model repeats the
//! numbers of what it answers, so every answer tells which messages it is for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::json;

use super::House;
use super::fake_discord::{self, FakeDiscord, Room};
use super::fake_model::{FakeModel, Request, Script};
use super::fake_telegram::{self, Place};

/// Alice owns the house on both platforms, so her agents may use every tool.
pub(crate) const CONFIG: &str = "[access]\nowners = [\"telegram:111\", \"discord:111\"]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n\
    [agents.main]\n[agents.rose]\nname = \"Rose\"\n\
    [[bindings]]\nmatch = \"telegram:group:-1104\"\nagent = \"main\"\nrequire_mention = true\n\
    [[bindings]]\nmatch = \"telegram:topic:-1001:5\"\nagent = \"main\"\n";

/// Answers begin with this where they are written slowly. The numbers come at the end.
const SLOWLY: &str = "This answer takes its time, so that one can see it being written, piece by piece, up to its end:";
/// Lines of the log in a failure.
const LOG_LINES: usize = 40;
/// Messages, what was said, and what was sent, a line each.
const ROWS: &str = "
    SELECT group_concat(line, char(10)) FROM (
        SELECT 'inbox ' || inbox.id || ' ' || key || ' ' || update_id || ' ' || inbox.state || ' ' || coalesce(outcome, '')
               || ': ' || substr(coalesce(payload, ''), 1, 200) AS line
        FROM inbox JOIN places ON places.id = place_id
        UNION ALL
        SELECT 'said ' || messages.id || ' ' || key || ' ' || kind || ' of ' || coalesce(inbox_id, '-') || ': '
               || replace(substr(text, 1, 200), char(10), ' / ')
        FROM messages JOIN places ON places.id = place_id
        UNION ALL
        SELECT 'outbox ' || outbox.id || ' ' || key || ' ' || kind || ' ' || state || ' of ' || coalesce(inbox_id, '-')
               || ' repeated ' || repeated || ' attempts ' || attempts || ' target ' || coalesce(target, '-')
               || ' as ' || coalesce(message_id, '-') || ' ' || coalesce(error, '') || ': ' || substr(part, 1, 200)
        FROM outbox JOIN places ON places.id = place_id)";
/// Words of the slow answer that are shown before the rest comes.
const SHOWN_FIRST: usize = 12;

/// A place with one person who writes there.
#[derive(Clone)]
pub(crate) enum Spot {
    Telegram(Place, fake_telegram::User),
    Discord(Room, fake_discord::User),
}

impl Spot {
    pub(crate) async fn says(&self, text: &str) -> i64 {
        match self {
            Spot::Telegram(place, user) => place.says(*user, text).await.message_id,
            Spot::Discord(room, user) => {
                let said = room.says(*user, text).await;
                i64::try_from(said.message_id).expect("ids are small here")
            }
        }
    }

    pub(crate) async fn edits(&self, message: i64, text: &str) {
        match self {
            Spot::Telegram(place, _) => {
                place.edits(message, text).await;
            }
            Spot::Discord(room, _) => room.edits(message.cast_unsigned(), text).await,
        }
    }

    /// What the bot's messages here say now.
    pub(crate) fn texts(&self) -> Vec<String> {
        match self {
            Spot::Telegram(place, _) => place.texts(),
            Spot::Discord(room, _) => room.texts(),
        }
    }

    pub(crate) fn is_discord(&self) -> bool {
        matches!(self, Spot::Discord(..))
    }

    fn name(&self) -> String {
        match self {
            Spot::Telegram(place, _) => format!("telegram {} {:?}", place.chat_id, place.thread),
            Spot::Discord(room, _) => format!("discord {}", room.id),
        }
    }
}

/// A message that must be answered, or may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// By exactly one message.
    Once,
    /// By one message or more: the message was edited, and its number is said again.
    AtLeastOnce,
    /// `/stop` may have come before the answer.
    Perhaps,
}

/// A message with a number, by the spot it was written in.
#[derive(Debug, Clone)]
pub(crate) struct Numbered {
    pub(crate) spot: usize,
    pub(crate) due: Due,
    /// Messages that came later may be answered before a task with tools.
    pub(crate) is_task: bool,
}

/// The house, its places, and the numbers that were said in them.
pub(crate) struct Crowd {
    pub(crate) house: House,
    pub(crate) discord: FakeDiscord,
    pub(crate) spots: Vec<Spot>,
    pub(crate) said: BTreeMap<u32, Numbered>,
    next: u32,
    releasing: tokio::task::JoinHandle<()>,
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.releasing.abort();
    }
}

impl Crowd {
    /// A crowd in this many places, half of them on Discord. The first of each platform are Alice's.
    pub(crate) async fn new(places: usize) -> Self {
        let house = House::new(CONFIG).await;
        let discord = house.add_discord("").await;
        let on_telegram = telegram_spots(&house, places.div_ceil(2));
        let on_discord = discord_spots(&discord, places / 2);
        house.model.delay(Duration::from_millis(20));
        house.model.answer_with(answer);
        let releasing = tokio::spawn(release_slow_answers(house.model.clone()));
        Crowd {
            house,
            discord,
            spots: on_telegram.into_iter().chain(on_discord).collect(),
            said: BTreeMap::new(),
            next: 1,
            releasing,
        }
    }

    /// Says something with a number, which is returned with the id of the message.
    pub(crate) async fn says(&mut self, spot: usize, words: &str) -> (u32, i64) {
        let number = self.next;
        self.next += 1;
        let is_task = ["use a tool", "spawn"]
            .iter()
            .any(|word| words.contains(word));
        if is_task {
            let path = format!("agents/main/workspace/list-{number}.md");
            self.house.write(&path, "list:");
            let path = format!("agents/rose/workspace/list-{number}.md");
            self.house.write(&path, "list:");
        }
        let due = Due::Once;
        self.said.insert(number, Numbered { spot, due, is_task });
        let message = self.spots[spot].says(&format!("m{number} {words}")).await;
        (number, message)
    }

    /// Numbers that must still be answered.
    fn missing(&self) -> Vec<u32> {
        let shown: Vec<Vec<String>> = self.spots.iter().map(Spot::texts).collect();
        let is_missing = |(number, said): &(&u32, &Numbered)| {
            said.due != Due::Perhaps
                && !shown[said.spot]
                    .iter()
                    .any(|text| numbers(text).contains(number))
        };
        let missing = self.said.iter().filter(is_missing);
        missing.map(|(number, _)| *number).collect()
    }

    /// Rows that a gateway would still take up.
    pub(crate) fn open_rows(&self) -> String {
        self.house.ask(
            "SELECT (SELECT count(*) FROM inbox WHERE state = 'waiting') || ' messages, ' ||
                    (SELECT count(*) FROM outbox WHERE state IN ('waiting', 'sending')) || ' rows, ' ||
                    (SELECT count(*) FROM job_runs WHERE state = 'queued') || ' jobs'",
        )
    }

    /// What was sent twice without a word of the platform, and never a third time.
    fn given_up_in_doubt(&self) -> String {
        self.house.ask("SELECT coalesce(group_concat(part, ' '), '') FROM outbox WHERE state = 'failed' AND repeated = 1")
    }

    pub(crate) fn gave_up_in_doubt(&self) -> bool {
        !self.given_up_in_doubt().is_empty()
    }

    /// Questions in a place that have no answer yet.
    pub(crate) fn unanswered_in(&self, spot: usize) -> Vec<u32> {
        let missing = self.missing().into_iter();
        missing
            .filter(|number| self.said[number].spot == spot)
            .collect()
    }

    pub(crate) fn is_quiet(&self) -> bool {
        let given_up = numbers(&self.given_up_in_doubt());
        self.missing()
            .iter()
            .all(|number| given_up.contains(number))
            && self.open_rows() == "0 messages, 0 rows, 0 jobs"
    }

    /// Returns once everything is answered. Fails if that takes longer than `patience`.
    pub(crate) async fn quiet(&self, patience: Duration) {
        let began = Instant::now();
        while !self.is_quiet() {
            assert!(
                began.elapsed() < patience,
                "not answered after {patience:?}: {:?}; {}\n{}",
                self.missing(),
                self.open_rows(),
                self.told()
            );
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Compares what was said with what stands in the places.
    pub(crate) fn check(&self) {
        let shown: Vec<Vec<Vec<u32>>> = self.spots.iter().map(answers_in).collect();
        self.check_places(&shown);
        self.check_repeats(&shown);
        let is_answered = |number: &u32| {
            shown
                .iter()
                .flatten()
                .flatten()
                .any(|shown| shown == number)
        };
        let given_up = numbers(&self.given_up_in_doubt());
        let once = self.said.iter().filter(|(_, said)| said.due == Due::Once);
        let lost: Vec<&u32> = once
            .map(|(number, _)| number)
            .filter(|number| !is_answered(number) && !given_up.contains(number))
            .collect();
        assert!(lost.is_empty(), "{lost:?} have no answer\n{}", self.told());
        self.check_order();
        self.check_tools();
    }

    /// Every number is answered where it was said.
    fn check_places(&self, shown: &[Vec<Vec<u32>>]) {
        for (index, answers) in shown.iter().enumerate() {
            for number in answers.iter().flatten() {
                let belongs = self.said.get(number).is_none_or(|said| said.spot == index);
                let place = self.spots[index].name();
                assert!(belongs, "m{number} is answered in {place}\n{}", self.told());
            }
        }
    }

    /// An answer that is there twice is a send that was made once more, on Telegram, with a mark. One
    /// answer may be for several numbers.
    fn check_repeats(&self, shown: &[Vec<Vec<u32>>]) {
        let is_once = |number: &u32| {
            self.said
                .get(number)
                .is_some_and(|said| said.due == Due::Once)
        };
        let mut repeats = 0;
        for (spot, answers) in self.spots.iter().zip(shown) {
            let mut seen: BTreeSet<u32> = BTreeSet::new();
            for answer in answers {
                let numbers: Vec<u32> = answer.iter().copied().filter(is_once).collect();
                let is_repeat = numbers.iter().any(|number| seen.contains(number));
                assert!(
                    !is_repeat || !spot.is_discord(),
                    "{answer:?} are answered twice\n{}",
                    self.told()
                );
                repeats += usize::from(is_repeat);
                seen.extend(numbers);
            }
        }
        let marked = "SELECT count(*) FROM outbox WHERE repeated = 1";
        let marked: usize = self.house.ask(marked).parse().expect("a number");
        assert!(
            repeats <= marked,
            "{repeats} answers are there twice, and {marked} rows say so\n{}",
            self.told()
        );
    }

    /// Where nothing took time, answers come in the order of the messages.
    fn check_order(&self) {
        for (index, spot) in self.spots.iter().enumerate() {
            let here = |number: &u32| self.said.get(number).is_some_and(|said| said.spot == index);
            let mut seen = BTreeSet::new();
            // Messages that were answered with a task waited as long as the task.
            let is_plain = |text: &Vec<u32>| {
                text.iter()
                    .all(|number| self.said.get(number).is_none_or(|said| !said.is_task))
            };
            let texts = spot.texts().into_iter().map(|text| numbers(&text));
            let shown: Vec<u32> = texts.filter(is_plain).flatten().collect();
            let first_times = shown
                .into_iter()
                .filter(|number| here(number) && seen.insert(*number));
            let plain: Vec<u32> = first_times
                .filter(|number| !self.said[number].is_task && self.said[number].due == Due::Once)
                .collect();
            assert!(
                plain.is_sorted(),
                "{} is out of order: {plain:?}\n{}",
                spot.name(),
                self.told()
            );
        }
    }

    /// A tool that ran twice leaves its mark twice.
    fn check_tools(&self) {
        let tasks = self
            .said
            .iter()
            .filter(|(_, said)| said.is_task && said.due == Due::Once);
        for number in tasks.map(|(number, _)| number) {
            let times = ["main", "rose"].map(|agent| {
                let path = format!("agents/{agent}/workspace/list-{number}.md");
                let text = std::fs::read_to_string(self.house.home.path().join(path));
                text.expect("a list")
                    .matches(&format!(" m{number}."))
                    .count()
            });
            assert!(
                times.iter().sum::<usize>() <= 1,
                "the tool of m{number} ran {times:?} times"
            );
        }
    }

    /// Messages that show no number and are no reply to a command: halves of answers.
    pub(crate) fn halves(&self) -> usize {
        let texts = self.spots.iter().flat_map(Spot::texts);
        texts
            .filter(|text| {
                SLOWLY.starts_with(text.trim_end_matches(['…', ' '])) && !text.is_empty()
            })
            .count()
    }

    /// What stands in the places, for a failure.
    pub(crate) fn told(&self) -> String {
        let places = self.spots.iter().enumerate().map(|(index, spot)| {
            let said = self.said.iter().filter(|(_, said)| said.spot == index);
            let said: Vec<String> = said
                .map(|(number, said)| format!("m{number} {:?}", said.due))
                .collect();
            format!("{}: said {said:?}, shown {:?}", spot.name(), spot.texts())
        });
        let places: Vec<String> = places.collect();
        let log = std::fs::read_to_string(self.house.home.path().join("test.log"));
        let log = log.unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(LOG_LINES).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        let requests = self.house.model.journal();
        let requests: Vec<String> = requests.iter().map(request_told).collect();
        format!(
            "{}\n{}\n{}\n{}",
            places.join("\n"),
            self.house.ask(ROWS),
            requests.join("\n"),
            lines.join("\n")
        )
    }
}

/// What a request was answered to, and the end of its messages.
fn request_told(request: &Request) -> String {
    const MESSAGES: usize = 3;
    let messages = request.messages.iter().rev().take(MESSAGES).rev();
    let messages: Vec<String> = messages
        .map(|(role, text)| format!("{role}: {text:?}"))
        .collect();
    format!("asked {:?} by {}", asked(request), messages.join(" | "))
}

/// Slow answers wait in the middle. They go on when they were shown, which takes a second, and
/// nothing new was asked meanwhile.
async fn release_slow_answers(model: FakeModel) {
    const TICK: Duration = Duration::from_millis(100);
    const LONG_ENOUGH: usize = 15;
    let (mut asked, mut ticks) = (0, 0);
    loop {
        tokio::time::sleep(TICK).await;
        let is_still = model.open_now() > 0 && model.requests() == asked;
        (asked, ticks) = (model.requests(), if is_still { ticks + 1 } else { 0 });
        if ticks >= LONG_ENOUGH {
            ticks = 0;
            model.release();
        }
    }
}

fn telegram_spots(house: &House, count: usize) -> Vec<Spot> {
    let forum = house.telegram.forum(-1001);
    let topics = (5..=10).map(|id| forum.topic(id, "Topic"));
    let groups = [-1101, -1102, -1103].map(|id| house.telegram.supergroup(id));
    let owned = topics.chain(groups);
    let owned = owned.map(|place| Spot::Telegram(place, fake_telegram::ALICE));
    let people = [
        fake_telegram::ALICE,
        fake_telegram::BOB,
        fake_telegram::CAROL,
        fake_telegram::User::person(555, "Dora"),
    ];
    let private = people.map(|user| Spot::Telegram(house.telegram.dm(user).place().clone(), user));
    owned.chain(private).take(count).collect()
}

/// Discord does not tell bots about private messages that they have missed, but for those of owners.
fn discord_spots(discord: &FakeDiscord, count: usize) -> Vec<Spot> {
    let guild = discord.guild(8001, "Garden");
    let channels: Vec<Room> = (8101..=8108)
        .map(|id| guild.text_channel(id, &format!("room-{id}")))
        .collect();
    let threads: Vec<Room> = (8201..=8203)
        .map(|id| channels[0].thread(id, &format!("thread-{id}")))
        .collect();
    let private = discord.dm(fake_discord::ALICE).room().clone();
    let rooms = channels.into_iter().chain(threads).chain([private]);
    rooms
        .map(|room| Spot::Discord(room, fake_discord::ALICE))
        .take(count)
        .collect()
}

/// The numbers of each answer in a place.
fn answers_in(spot: &Spot) -> Vec<Vec<u32>> {
    let numbers = spot.texts().into_iter().map(|text| numbers(&text));
    numbers.filter(|numbers| !numbers.is_empty()).collect()
}

/// The numbers in a text: `m7 and m12`.
fn numbers(text: &str) -> Vec<u32> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let found = words.filter_map(|word| word.strip_prefix('m')?.parse().ok());
    let mut seen = BTreeSet::new();
    found.filter(|number| seen.insert(*number)).collect()
}

/// The words that a request is to be answered to.
fn question(request: &Request) -> &str {
    let Some((role, text)) = request.messages.last() else {
        return "";
    };
    let goes_on = ["Go on with your task", "Go on with it."];
    if role != "user" || goes_on.iter().any(|mark| text.contains(mark)) {
        let calls = request
            .messages
            .iter()
            .rposition(|(role, _)| role == "call");
        let before = &request.messages[..calls.unwrap_or(request.messages.len())];
        let asked = before.iter().rfind(|(role, _)| role == "user");
        return asked.map_or("", |(_, text)| newest(text));
    }
    newest(text)
}

/// A message that came during a task stands behind the words about the task, and one that came after
/// a stop behind the stopped question.
fn newest(text: &str) -> &str {
    const ENDS: [&str; 3] = [
        "you will know what was said.",
        "Answer only the next message.",
        "stopped before it was answered",
    ];
    let after = ENDS.iter().filter_map(|end| text.rsplit_once(end));
    let shortest = after
        .map(|(_, newest)| newest)
        .min_by_key(|text| text.len());
    shortest.unwrap_or(text)
}

/// Numbers that the request has an answer to: an agent reads what others have said before it.
fn answered(request: &Request) -> BTreeSet<u32> {
    let lines = request.messages.iter().flat_map(|(_, text)| text.lines());
    let answers = lines.filter_map(|line| line.split_once("re m"));
    answers
        .flat_map(|(_, rest)| numbers(&format!("m{rest}")))
        .collect()
}

/// The numbers that are to be answered. A question that comes again is answered again, so that it is
/// seen.
fn asked(request: &Request) -> Vec<u32> {
    let (all, known) = (numbers(question(request)), answered(request));
    let new: Vec<u32> = all
        .iter()
        .copied()
        .filter(|number| !known.contains(number))
        .collect();
    if new.is_empty() { all } else { new }
}

fn answer(request: &Request) -> Script {
    let question = question(request);
    let numbers = asked(request);
    let list: Vec<String> = numbers.iter().map(|number| format!("m{number}")).collect();
    let said = match list.is_empty() {
        true => "done".to_owned(),
        false => format!("re {}", list.join(" ")),
    };
    let is_first = request
        .messages
        .last()
        .is_some_and(|(role, text)| role == "user" && !text.contains("Go on with"));
    let words = words_for(question, &numbers);
    if is_first && words.contains("use a tool") {
        return mark_lists(&words);
    }
    if is_first && words.contains("spawn") {
        return Script::tool_call("spawn", json!({ "task": "Count the apples." }));
    }
    if words.contains("slowly") {
        let text = format!("{SLOWLY} {said}");
        return Script::Pause {
            text,
            after: SHOWN_FIRST,
        };
    }
    Script::text(said)
}

/// The lines with these numbers.
fn words_for(question: &str, asked: &[u32]) -> String {
    let is_asked = |line: &&str| numbers(line).iter().any(|number| asked.contains(number));
    question
        .lines()
        .filter(is_asked)
        .collect::<Vec<_>>()
        .join("\n")
}

/// One call for each line that asks for a tool. A second run of a call leaves a second mark.
fn mark_lists(question: &str) -> Script {
    let lines = question.lines().filter(|line| line.contains("use a tool"));
    let calls = lines.flat_map(numbers).map(|number| {
        let change = json!({
            "path": format!("list-{number}.md"), "old": "list:", "new": format!("list: m{number}."),
        });
        ("file_edit".to_owned(), change)
    });
    Script::ToolCalls(calls.collect())
}
