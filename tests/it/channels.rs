//! The same conversations on every platform. What differs between them is in [`Side`] and [`Spot`],
//! and nothing else may.

use std::sync::Arc;
use std::time::Duration;

use parlor::channels::local::{LocalChannel, Shown, Terminal};
use parlor::commands::SPECS;
use parlor::domain::{Role, SessionKey};
use parlor::gateway::Gateway;
use parlor::home::Home;
use serde_json::json;
use tokio::sync::{Mutex as AsyncMutex, mpsc, watch};

use crate::support::House;
use crate::support::fake_discord::{self, FakeDiscord};
use crate::support::fake_model::Script;
use crate::support::fake_telegram;
use crate::support::house::Process;

/// Who writes. The owner is in the config; nobody else is.
#[derive(Clone, Copy, PartialEq)]
enum Who {
    Owner,
    Member,
    Stranger,
}

/// One platform, as far as a conversation needs it.
trait Side: Sized {
    type Spot: Spot;
    /// Keys of the config begin with it.
    const NAME: &'static str;
    /// The rest of the keys: a bound group, and two bound topics of another.
    const GROUP: &'static str;
    const TOPICS: [&'static str; 2];

    async fn in_house(house: &House) -> Self;
    /// Returns when what people say from now on is heard.
    async fn is_connected(&self, earlier_starts: usize);
    async fn open(&self, house: &House, earlier_starts: usize) -> Gateway {
        let gateway = house.open().await;
        self.is_connected(earlier_starts).await;
        gateway
    }
    fn dm(&self, who: Who) -> Self::Spot;
    fn group(&self) -> Self::Spot;
    fn topic(&self, number: usize) -> Self::Spot;
    /// A group that nothing opens.
    fn elsewhere(&self) -> Self::Spot;
    fn mention() -> String;
}

/// Where people write.
trait Spot {
    async fn says(&self, who: Who, text: &str);
    async fn sends_file(&self, who: Who, name: &str, content: &[u8]);
    /// What the bot's messages here say now, without marks.
    fn texts(&self) -> Vec<String>;
    /// Waits until the bot has sent this many messages here.
    async fn sent(&self, count: usize);
}

struct OnTelegram(fake_telegram::FakeTelegram);
struct OnDiscord(FakeDiscord, fake_discord::GuildHandle);

impl Side for OnTelegram {
    type Spot = (fake_telegram::FakeTelegram, fake_telegram::Place);
    const NAME: &'static str = "telegram";
    const GROUP: &'static str = "group:-2001";
    const TOPICS: [&'static str; 2] = ["topic:-1001:101", "topic:-1001:102"];

    async fn in_house(house: &House) -> Self {
        OnTelegram(house.telegram.clone())
    }

    async fn is_connected(&self, _earlier_starts: usize) {}

    fn dm(&self, who: Who) -> Self::Spot {
        (
            self.0.clone(),
            self.0.dm(telegram_user(who)).place().clone(),
        )
    }

    fn group(&self) -> Self::Spot {
        (self.0.clone(), self.0.supergroup(-2001))
    }

    fn topic(&self, number: usize) -> Self::Spot {
        (
            self.0.clone(),
            self.0.forum(-1001).topic([101, 102][number], "a topic"),
        )
    }

    fn elsewhere(&self) -> Self::Spot {
        (self.0.clone(), self.0.supergroup(-3001))
    }

    fn mention() -> String {
        "@parlor_bot".into()
    }
}

impl Spot for (fake_telegram::FakeTelegram, fake_telegram::Place) {
    async fn says(&self, who: Who, text: &str) {
        self.1.says(telegram_user(who), text).await;
    }

    async fn sends_file(&self, who: Who, name: &str, content: &[u8]) {
        self.0.keeps_file("f", content);
        let document = json!({ "file_id": "f", "file_unique_id": "u", "file_name": name, "file_size": content.len() });
        self.1
            .says(telegram_user(who), "")
            .without("text")
            .with("document", document)
            .await;
    }

    fn texts(&self) -> Vec<String> {
        self.1.texts()
    }

    async fn sent(&self, count: usize) {
        self.1.wait_for_sent(count).await;
    }
}

impl Side for OnDiscord {
    type Spot = fake_discord::Room;
    const NAME: &'static str = "discord";
    const GROUP: &'static str = "channel:8201";
    const TOPICS: [&'static str; 2] = ["thread:8101:8111", "thread:8101:8112"];

    async fn in_house(house: &House) -> Self {
        let discord = house.add_discord("").await;
        let guild = discord.guild(8001, "Garden");
        let side = OnDiscord(discord, guild);
        // They are there before the bot comes.
        let _ = (side.group(), side.topic(0), side.topic(1), side.elsewhere());
        side
    }

    async fn is_connected(&self, earlier_starts: usize) {
        self.0.wait_for_identifies(earlier_starts + 1).await;
        self.0.connected().await;
    }

    fn dm(&self, who: Who) -> Self::Spot {
        self.0.dm(discord_user(who)).room().clone()
    }

    fn group(&self) -> Self::Spot {
        self.1.text_channel(8201, "lobby")
    }

    fn topic(&self, number: usize) -> Self::Spot {
        self.1
            .text_channel(8101, "general")
            .thread([8111, 8112][number], "a thread")
    }

    fn elsewhere(&self) -> Self::Spot {
        self.1.text_channel(8301, "elsewhere")
    }

    fn mention() -> String {
        fake_discord::PARLOR_BOT.mention()
    }
}

impl Spot for fake_discord::Room {
    async fn says(&self, who: Who, text: &str) {
        fake_discord::Room::says(self, discord_user(who), text).await;
    }

    async fn sends_file(&self, who: Who, name: &str, content: &[u8]) {
        fake_discord::Room::says(self, discord_user(who), "")
            .attaching(name, "text/plain", content)
            .await;
    }

    /// Discord is sent Markdown, Telegram is not.
    fn texts(&self) -> Vec<String> {
        fake_discord::Room::texts(self)
            .into_iter()
            .map(|text| text.replace(['`', '\\'], ""))
            .collect()
    }

    async fn sent(&self, count: usize) {
        self.wait_for_sent(count).await;
    }
}

/// The terminal: one person, no groups, and one screen for everything.
struct OnLocal(Arc<CommandServices>);

struct CommandServices {
    terminal: AsyncMutex<Option<Terminal>>,
    /// What was said so far, each once it was complete.
    screen: watch::Sender<Vec<String>>,
}

impl Side for OnLocal {
    type Spot = (Arc<CommandServices>, SessionKey);
    const NAME: &'static str = "local";
    const GROUP: &'static str = "lobby";
    const TOPICS: [&'static str; 2] = ["home:one", "home:two"];

    async fn in_house(_house: &House) -> Self {
        OnLocal(Arc::new(CommandServices {
            terminal: AsyncMutex::new(None),
            screen: watch::Sender::new(Vec::new()),
        }))
    }

    async fn is_connected(&self, _earlier_starts: usize) {}

    async fn open(&self, house: &House, _earlier_starts: usize) -> Gateway {
        let (channel, mut terminal) = LocalChannel::new();
        let mut screen = std::mem::replace(&mut terminal.screen, mpsc::channel(1).1);
        let desk = self.0.clone();
        tokio::spawn(async move {
            let mut saying = String::new();
            while let Some(shown) = screen.recv().await {
                match shown {
                    Shown::Text { text, .. } => saying.push_str(&text),
                    Shown::End => desk
                        .screen
                        .send_modify(|said| said.push(std::mem::take(&mut saying))),
                    Shown::Whole(whole) => desk.screen.send_modify(|said| said.push(whole.text)),
                    Shown::TakenUp { .. } => {}
                }
            }
        });
        *self.0.terminal.lock().await = Some(terminal);
        Gateway::start_local(Home::new(house.home.path()), Arc::new(channel))
            .await
            .expect("the gateway starts")
    }

    fn dm(&self, _who: Who) -> Self::Spot {
        self.place("desk")
    }

    fn group(&self) -> Self::Spot {
        self.place(Self::GROUP)
    }

    fn topic(&self, number: usize) -> Self::Spot {
        self.place(Self::TOPICS[number])
    }

    fn elsewhere(&self) -> Self::Spot {
        self.place("elsewhere")
    }

    fn mention() -> String {
        String::new()
    }
}

impl OnLocal {
    fn place(&self, rest: &str) -> (Arc<CommandServices>, SessionKey) {
        (
            self.0.clone(),
            format!("local:{rest}").parse().expect("a key"),
        )
    }
}

impl Spot for (Arc<CommandServices>, SessionKey) {
    async fn says(&self, _who: Who, text: &str) {
        let terminal = self.0.terminal.lock().await;
        assert!(
            terminal
                .as_ref()
                .expect("it is open")
                .say(self.1.clone(), text.to_owned())
                .await,
            "it is heard"
        );
    }

    async fn sends_file(&self, _who: Who, _name: &str, _content: &[u8]) {
        unreachable!("a terminal sends no files");
    }

    fn texts(&self) -> Vec<String> {
        self.0
            .screen
            .borrow()
            .iter()
            .map(|text| text.replace('`', ""))
            .collect()
    }

    async fn sent(&self, count: usize) {
        let mut screen = self.0.screen.subscribe();
        let waited = tokio::time::timeout(
            Duration::from_secs(20),
            screen.wait_for(|said| said.len() >= count),
        )
        .await;
        waited
            .expect("it is answered in time")
            .expect("the desk is there");
    }
}

fn telegram_user(who: Who) -> fake_telegram::User {
    match who {
        Who::Owner => fake_telegram::ALICE,
        Who::Member => fake_telegram::BOB,
        Who::Stranger => fake_telegram::CAROL,
    }
}

fn discord_user(who: Who) -> fake_discord::User {
    match who {
        Who::Owner => fake_discord::ALICE,
        Who::Member => fake_discord::BOB,
        Who::Stranger => fake_discord::CAROL,
    }
}

/// A house with one platform in use, the gateway in it, and how often it was started.
struct Scene<S: Side> {
    house: House,
    side: S,
    gateway: Option<Gateway>,
    starts: usize,
}

impl<S: Side> Scene<S> {
    async fn new(access: &str) -> Self {
        let name = S::NAME;
        let binding = |place: &str, agent: &str| {
            format!("[[bindings]]\nmatch = \"{name}:{place}\"\nagent = \"{agent}\"\n")
        };
        let bindings = binding(S::GROUP, "main")
            + &binding(S::TOPICS[0], "main")
            + &binding(S::TOPICS[1], "rose");
        let agents =
            "[agents.main]\n[agents.rose]\nwho = \"guest\"\nname = \"Rose\"\nemoji = \"🌹\"\n";
        let house = House::new(&format!(
            "[access]\nowners = [\"{name}:111\"]\n{access}\n{agents}{bindings}"
        ))
        .await;
        let side = S::in_house(&house).await;
        let mut scene = Scene {
            house,
            side,
            gateway: None,
            starts: 0,
        };
        scene.open().await;
        scene
    }

    async fn open(&mut self) {
        self.gateway = Some(self.side.open(&self.house, self.starts).await);
        self.starts += 1;
    }

    /// Everything that was sent to the bot so far is dealt with. What comes first is looked at
    /// first, so an answer to the last message says so for all before it.
    async fn settled(&self) {
        let owner = self.side.dm(Who::Owner);
        let count = owner.texts().len();
        owner.says(Who::Owner, "/whoami").await;
        owner.sent(count + 1).await;
        self.gateway.as_ref().expect("it is open").settled().await;
    }

    async fn close(&mut self) {
        self.gateway.take().expect("it is open").shutdown().await;
    }
}

/// Says something and returns what is answered, as the only thing.
async fn ask(spot: &impl Spot, who: Who, text: &str) -> String {
    let count = spot.texts().len();
    spot.says(who, text).await;
    spot.sent(count + 1).await;
    spot.texts().pop().expect("it was answered")
}

const HEARS_ALL: &str = "require_mention = false";

/// What a terminal has too. It has one screen for all its places, and waits for an answer before
/// the next question.
mod local {
    use super::*;

    #[tokio::test]
    async fn a_switch_and_a_new_conversation_are_of_their_place() {
        super::a_switch_and_a_new_conversation_are_of_their_place::<OnLocal>().await;
    }

    #[tokio::test]
    async fn a_restart_keeps_the_pin_and_what_was_said() {
        super::a_restart_keeps_the_pin_and_what_was_said::<OnLocal>().await;
    }
}

macro_rules! on_every_platform {
    ($($(#[$note:meta])* $name:ident)*) => {
        mod telegram {
            $($(#[$note])* #[tokio::test] async fn $name() { super::$name::<super::OnTelegram>().await; })*
        }
        mod discord {
            $($(#[$note])* #[tokio::test] async fn $name() { super::$name::<super::OnDiscord>().await; })*
        }
    };
}

on_every_platform! {
    an_answer_lands_where_it_was_asked_for
    messages_of_a_place_are_answered_in_order
    places_do_not_wait_for_each_other
    commands_say_the_same_everywhere
    /// S1.23
    a_switch_and_a_new_conversation_are_of_their_place
    a_stranger_is_let_in_with_a_code
    where_nothing_opens_a_group_nothing_is_said
    where_a_mention_is_wanted_only_that_is_answered
    a_long_answer_comes_whole_in_several_messages
    a_file_lands_in_the_inbox_of_the_agent
    an_answer_that_is_shown_early_is_finished_once
    a_restart_keeps_the_pin_and_what_was_said
    /// S4.15
    each_topic_has_its_own_history_also_after_a_restart
}

async fn an_answer_lands_where_it_was_asked_for<S: Side>() {
    let mut scene = Scene::<S>::new(HEARS_ALL).await;
    let side = &scene.side;
    assert_eq!(
        ask(&side.dm(Who::Owner), Who::Owner, "in private").await,
        "re: in private"
    );
    assert_eq!(
        ask(&side.group(), Who::Member, "in a group").await,
        "re: in a group"
    );
    assert_eq!(
        ask(&side.topic(0), Who::Member, "in a topic").await,
        "re: [Bob] in a topic"
    );
    assert_eq!(
        ask(&side.topic(1), Who::Member, "in another").await,
        "re: [Bob] in another"
    );
    scene.settled().await;
    let counts = [side.group(), side.topic(0), side.topic(1), side.elsewhere()]
        .map(|spot| spot.texts().len());
    assert_eq!(counts, [1, 1, 1, 0]);
    scene.close().await;
}

async fn messages_of_a_place_are_answered_in_order<S: Side>() {
    let mut scene = Scene::<S>::new(HEARS_ALL).await;
    let topic = scene.side.topic(0);
    let numbers: Vec<String> = (10..30).map(|number| format!("number {number}")).collect();
    for number in &numbers {
        topic.says(Who::Member, number).await;
    }
    scene.settled().await;
    let said = topic.texts().join("\n");
    let positions: Vec<Option<usize>> = numbers
        .iter()
        .map(|number| said.find(number.as_str()))
        .collect();
    assert!(
        positions.iter().all(Option::is_some) && positions.is_sorted(),
        "{said}"
    );
    assert!(
        numbers
            .iter()
            .all(|number| said.matches(number.as_str()).count() == 1),
        "each once: {said}"
    );
    scene.close().await;
}

async fn places_do_not_wait_for_each_other<S: Side>() {
    let mut scene = Scene::<S>::new(HEARS_ALL).await;
    let (slow, quick) = (scene.side.topic(0), scene.side.topic(1));
    scene
        .house
        .model
        .enqueue_when("slow", Script::text("at last").held());
    slow.says(Who::Member, "slow").await;
    scene.house.model.wait_for_open(1).await;
    assert_eq!(ask(&quick, Who::Member, "quick").await, "re: [Bob] quick");
    assert!(slow.texts().is_empty());
    scene.house.model.release();
    slow.sent(1).await;
    assert_eq!(slow.texts(), ["at last"]);
    scene.settled().await;
    scene.close().await;
}

async fn commands_say_the_same_everywhere<S: Side>() {
    let mut scene = Scene::<S>::new("").await;
    let topic = scene.side.topic(0);
    let whoami = ask(&topic, Who::Member, "/whoami").await;
    let place = format!("{}:{}", S::NAME, S::TOPICS[0]);
    let beginning = format!("You are Bob (guest), {}:222.\nThis is the t", S::NAME);
    assert!(whoami.starts_with(&beginning), "{whoami}");
    assert!(whoami.contains(&format!("”, {place}.\n")), "{whoami}");
    let agents = ask(&topic, Who::Member, "/agents").await;
    assert!(
        agents.contains("Main · ") && agents.contains("🌹 Rose · "),
        "{agents}"
    );
    assert_eq!(
        ask(&topic, Who::Member, "/agent nobody").await,
        "No agent is called nobody. You can choose main, rose."
    );
    assert_eq!(
        ask(&scene.side.dm(Who::Owner), Who::Owner, "/agnet").await,
        "There is no command /agnet. Did you mean /agent? /help shows what there is."
    );
    let help = ask(&topic, Who::Member, "/help all").await;
    // Guests may forget nothing here, so that one is not offered.
    let of_guests = SPECS.iter().filter(|spec| spec.least == Role::Guest);
    for spec in of_guests.filter(|spec| spec.name != "forget") {
        assert!(
            help.contains(&format!("/{}", spec.name)),
            "/{} is not in {help}",
            spec.name
        );
    }
    for quiet in ["stop", "queue"]
        .iter()
        .filter(|name| SPECS.iter().any(|spec| spec.name == **name))
    {
        let told = ask(&topic, Who::Member, &format!("/{quiet}")).await;
        assert!(!told.contains("There is no command"), "{told}");
    }
    scene.settled().await;
    assert!(scene.house.model.journal().is_empty(), "no model was asked");
    scene.close().await;
}

async fn a_switch_and_a_new_conversation_are_of_their_place<S: Side>() {
    let mut scene = Scene::<S>::new(HEARS_ALL).await;
    let (here, there) = (scene.side.topic(0), scene.side.group());
    ask(&here, Who::Member, "remember the lamp").await;
    assert_eq!(
        ask(&here, Who::Member, "/agent rose").await,
        "🌹 Rose answers here from now on. /agent reset undoes that."
    );
    ask(&here, Who::Member, "what was it?").await;
    let request = scene.house.model.last_request();
    assert!(
        request.system.contains("Rose") && request.raw.to_string().contains("remember the lamp"),
        "a handoff"
    );
    ask(&there, Who::Member, "and here?").await;
    assert!(
        !scene.house.model.last_request().system.contains("Rose"),
        "another place is not switched"
    );
    ask(&here, Who::Member, "/new").await;
    ask(&here, Who::Member, "and now?").await;
    let request = scene.house.model.last_request();
    assert!(request.system.contains("Rose"), "/new keeps the agent");
    assert!(
        !request.raw.to_string().contains("remember the lamp"),
        "and nothing else"
    );
    scene.settled().await;
    scene.close().await;
}

async fn a_stranger_is_let_in_with_a_code<S: Side>() {
    let mut scene = Scene::<S>::new("").await;
    let stranger = scene.side.dm(Who::Stranger);
    let hint = ask(&stranger, Who::Stranger, "hello").await;
    let code = crate::first_minute::code_in(&hint);
    for _ in 0..5 {
        stranger.says(Who::Stranger, "hello?").await;
    }
    // The owners' notice may come before the answer that `settled` waits for.
    stranger.sent(2).await;
    scene.settled().await;
    assert_eq!(stranger.texts().len(), 2, "told to wait, and not each time");
    let told = ask(
        &scene.side.dm(Who::Owner),
        Who::Owner,
        &format!("/pair {code} yes"),
    )
    .await;
    assert_eq!(
        told,
        format!(
            "Carol ({0}:333) is in, let in by Alice. /unpair {0}:333 takes it back.",
            S::NAME
        )
    );
    scene.settled().await;
    assert_eq!(
        stranger.texts()[2..],
        [
            "You're in, Carol. Main reads your first message now.",
            "re: hello"
        ]
    );
    assert_eq!(
        ask(&stranger, Who::Stranger, "thank you").await,
        "re: thank you"
    );
    scene.settled().await;
    scene.close().await;
}

async fn where_nothing_opens_a_group_nothing_is_said<S: Side>() {
    let mut scene = Scene::<S>::new(HEARS_ALL).await;
    let elsewhere = scene.side.elsewhere();
    for text in [
        "hello",
        &format!("{} hello", S::mention()),
        "/agents",
        "/agent rose",
    ] {
        elsewhere.says(Who::Member, text).await;
    }
    scene.settled().await;
    assert!(elsewhere.texts().is_empty() && scene.house.model.journal().is_empty());
    scene.close().await;
}

async fn where_a_mention_is_wanted_only_that_is_answered<S: Side>() {
    let mut scene = Scene::<S>::new("").await;
    let topic = scene.side.topic(0);
    topic.says(Who::Member, "we talk among ourselves").await;
    scene.settled().await;
    assert!(topic.texts().is_empty() && scene.house.model.journal().is_empty());
    let answer = ask(
        &topic,
        Who::Member,
        &format!("{} are you there?", S::mention()),
    )
    .await;
    assert_eq!(
        answer,
        "re: [Bob] we talk among ourselves\n\n[Bob] are you there?"
    );
    scene.settled().await;
    scene.close().await;
}

async fn a_long_answer_comes_whole_in_several_messages<S: Side>() {
    let mut scene = Scene::<S>::new("").await;
    let paragraph = |number: usize| format!("Paragraph {number}: {}end.", "word ".repeat(40));
    let long = (0..30).map(paragraph).collect::<Vec<_>>().join("\n\n");
    scene.house.model.reply_when("long", &long);
    let dm = scene.side.dm(Who::Owner);
    dm.says(Who::Owner, "something long").await;
    dm.sent(2).await;
    scene.gateway.as_ref().expect("it is open").settled().await;
    let (texts, whole) = (dm.texts(), dm.texts().join("\n\n"));
    assert!(texts.len() >= 2, "{}", texts.len());
    assert_eq!(
        whole.split_whitespace().collect::<Vec<_>>(),
        long.split_whitespace().collect::<Vec<_>>()
    );
    scene.close().await;
}

async fn a_file_lands_in_the_inbox_of_the_agent<S: Side>() {
    let mut scene = Scene::<S>::new(HEARS_ALL).await;
    let topic = scene.side.topic(1);
    topic
        .sends_file(Who::Member, "list.txt", b"milk and bread")
        .await;
    topic.sent(1).await;
    scene.settled().await;
    let told = topic.texts().pop().expect("it was answered");
    let path = told
        .split_once("saved as ")
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(path, _)| path)
        .expect("the agent is told where it is");
    assert!(path.starts_with("inbox/"), "{told}");
    let workspace = scene.house.home.path().join("agents/rose/workspace");
    assert_eq!(
        std::fs::read(workspace.join(path)).expect("it can be read"),
        b"milk and bread"
    );
    scene.close().await;
}

async fn an_answer_that_is_shown_early_is_finished_once<S: Side>() {
    let mut scene = Scene::<S>::new(HEARS_ALL).await;
    let topic = scene.side.topic(0);
    let text = "This answer takes its time, so that one can see it being written, piece by piece, up to its end.";
    scene.house.model.enqueue(Script::Pauses {
        text: text.into(),
        after: vec![12],
    });
    topic.says(Who::Member, "tell me").await;
    topic.sent(1).await;
    let shown = topic.texts().pop().expect("the beginning is shown");
    assert!(
        text.starts_with(&shown) && shown.len() < text.len(),
        "{shown}"
    );
    scene.house.model.release();
    scene.settled().await;
    assert_eq!(topic.texts(), [text]);
    scene.close().await;
}

async fn a_restart_keeps_the_pin_and_what_was_said<S: Side>() {
    let mut scene = Scene::<S>::new(HEARS_ALL).await;
    let topic = scene.side.topic(0);
    ask(&topic, Who::Member, "remember the lamp").await;
    ask(&topic, Who::Member, "/agent rose").await;
    scene.settled().await;
    scene.close().await;
    scene.open().await;
    ask(&topic, Who::Member, "what was it?").await;
    let request = scene.house.model.last_request();
    assert!(request.system.contains("Rose"), "the pin is kept");
    assert!(
        request.raw.to_string().contains("remember the lamp"),
        "and so is what was said"
    );
    scene.settled().await;
    scene.close().await;
}

/// The group and the first topic have the same agent.
async fn each_topic_has_its_own_history_also_after_a_restart<S: Side>() {
    let mut scene = Scene::<S>::new(HEARS_ALL).await;
    let lamps = [
        (scene.side.group(), "green"),
        (scene.side.topic(0), "red"),
        (scene.side.topic(1), "blue"),
    ];
    for (spot, colour) in &lamps {
        ask(spot, Who::Member, &format!("the lamp is {colour}")).await;
    }
    scene.settled().await;
    scene.close().await;
    scene.open().await;
    for (spot, colour) in &lamps {
        ask(spot, Who::Member, "which colour?").await;
        let heard = scene.house.model.last_request().raw.to_string();
        let colours: Vec<&str> = ["green", "red", "blue"]
            .into_iter()
            .filter(|other| heard.contains(&format!("the lamp is {other}")))
            .collect();
        assert_eq!(colours, [*colour], "{heard}");
    }
    scene.settled().await;
    scene.close().await;
}

const BOTH: &str = "[access]\ndms = \"open\"\nrequire_mention = false\n[agents.main]\n\
    [[bindings]]\nmatch = \"telegram:group:-1001\"\nagent = \"main\"\n\
    [[bindings]]\nmatch = \"discord:channel:8101\"\nagent = \"main\"\n";

/// Killed with messages of both platforms in every state, and not one is lost or answered twice.
#[tokio::test]
async fn a_kill_loses_nothing_on_either_platform() {
    let house = House::new(BOTH).await;
    let (telegram, discord) = (
        OnTelegram::in_house(&house).await,
        OnDiscord::in_house(&house).await,
    );
    let threads = [telegram.topic(0), telegram.topic(1)];
    let rooms = [discord.topic(0), discord.topic(1)];
    let process = house.spawn().await;
    discord.is_connected(0).await;
    assert_eq!(
        ask(&threads[0], Who::Member, "first").await,
        "re: [Bob] first"
    );
    assert_eq!(
        ask(&rooms[0], Who::Member, "first").await,
        "re: [Bob] first"
    );
    house.model.hold();
    for number in 1..=5 {
        for spot in &threads {
            spot.says(Who::Member, &format!("t{number}")).await;
        }
        for spot in &rooms {
            Spot::says(spot, Who::Member, &format!("d{number}")).await;
        }
    }
    house.model.wait_for_open(4).await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "20")
        .await;
    process.kill().await;
    discord.0.disconnected().await;
    threads[0].says(Who::Member, "while it was gone").await;
    Spot::says(&rooms[0], Who::Member, "while it was gone").await;
    house.model.release();
    let process = house.spawn().await;
    discord.is_connected(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "0")
        .await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'done'", "24")
        .await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
    let check = |texts: Vec<String>, letter: char, extra: &[&str]| {
        let said = texts.join("\n");
        let expected = (1..=5)
            .map(|number| format!("{letter}{number}"))
            .chain(extra.iter().map(|text| (*text).to_owned()));
        for text in expected {
            assert_eq!(
                said.matches(text.as_str()).count(),
                1,
                "{text} once in {said}"
            );
        }
    };
    check(threads[0].texts(), 't', &["first", "while it was gone"]);
    check(threads[1].texts(), 't', &[]);
    check(rooms[0].texts(), 'd', &["first", "while it was gone"]);
    check(rooms[1].texts(), 'd', &[]);
}

/// A platform that refuses the bot for good is off; the other one is not touched.
#[tokio::test]
async fn a_platform_that_is_refused_leaves_the_other_alone() {
    let house = House::new(BOTH).await;
    let discord = OnDiscord::in_house(&house).await;
    house.write("secrets/telegram", "999:WRONG-TOKEN");
    let process = Process::start(house.home.path(), &["run"]);
    discord.is_connected(0).await;
    process
        .wait_for_log("telegram is off: Telegram does not accept the bot token")
        .await;
    assert_eq!(
        ask(&discord.topic(0), Who::Member, "are you there?").await,
        "re: [Bob] are you there?"
    );
    assert_eq!(process.stop().await, 0);

    house.write("secrets/telegram", house.telegram.token());
    discord.0.close_every_identify(Some(4004));
    let process = house.spawn().await;
    process
        .wait_for_log("discord is off: Discord does not accept the bot token")
        .await;
    let telegram = OnTelegram::in_house(&house).await;
    assert_eq!(
        ask(&telegram.topic(0), Who::Member, "and you?").await,
        "re: [Bob] and you?"
    );
    tokio::time::timeout(Duration::from_secs(30), process.stop())
        .await
        .expect("it stops");
}
