//! Switches in a shared place: who may take it from its agent, and how it comes back.

use insta::assert_snapshot;

use crate::support::House;
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Place, User, buttons};

/// Alice owns the house; Carol and Bob are guests. Rose and Main are for everybody, Ada for members.
const TEAM: &str = r#"
[access]
owners = ["telegram:111"]
groups = "open"
require_mention = false
[agents.main]
who = "guest"
[agents.rose]
who = "guest"
name = "Rose"
[agents.ada]
name = "Ada"
[agents.eve]
who = "owner"
name = "Eve"
[[bindings]]
match = "telegram:topic:-1001:5"
agent = "rose"
"#;

struct Scene {
    house: House,
    gateway: parlor::gateway::Gateway,
}

impl Scene {
    async fn new(config: &str) -> Self {
        let house = House::new(config).await;
        house
            .model
            .answer_with(|request| Script::text(name(request)));
        let gateway = house.open().await;
        Scene { house, gateway }
    }

    fn topic(&self, id: i64) -> Place {
        self.house.telegram.forum(-1001).topic(id, "Topic")
    }

    /// The reply without the day and the time in it.
    async fn says(&self, place: &Place, user: User, text: &str) -> String {
        let before = place.texts().len();
        place.says(user, text).await;
        self.house.settled(&self.gateway).await;
        timeless(&place.texts()[before..].join("\n"))
    }

    async fn ends(self) {
        self.house.close(self.gateway).await;
    }
}

fn timeless(text: &str) -> String {
    let day = regex::Regex::new(r"\d{1,2} [A-Z][a-z]{2} \d{4}").expect("a pattern");
    let time = regex::Regex::new(r"\d\d:\d\d( UTC\S*)?").expect("a pattern");
    time.replace_all(&day.replace_all(text, "DAY"), "TIME")
        .into_owned()
}

fn name(request: &Request) -> &'static str {
    ["Rose", "Ada", "Eve", "Main"]
        .into_iter()
        .find(|name| request.system.starts_with(&format!("You are {name}")))
        .unwrap_or("Nobody")
}

/// A switch for a while lies over the lasting one, and a reset takes off one at a time.
#[tokio::test]
async fn a_reset_gives_back_the_switch_from_before() {
    let scene = Scene::new(TEAM).await;
    let topic = scene.topic(5);
    scene.says(&topic, ALICE, "/agent ada").await;
    assert_snapshot!(scene.says(&topic, ALICE, "/agent for 2h main").await, @"Main answers here for 2 hours, until TIME DAY. /agent reset ends that sooner.");
    assert_eq!(scene.says(&topic, BOB, "hi").await, "Main");
    assert_snapshot!(scene.says(&topic, ALICE, "/agent reset").await, @"That switch is undone, and the one before counts again. Ada answers here. You chose Ada just now. /agent reset undoes that one too.");
    assert_eq!(scene.says(&topic, BOB, "hi").await, "Ada");
    scene.says(&topic, ALICE, "/agent main once").await;
    assert_snapshot!(scene.says(&topic, ALICE, "/agent reset").await, @"That switch is undone, and the one before counts again. Ada answers here. You chose Ada just now. /agent reset undoes that one too.");
    assert_eq!(scene.says(&topic, BOB, "hi").await, "Ada");
    assert_snapshot!(scene.says(&topic, ALICE, "/agent reset").await, @"The switch is undone. Rose answers here. Line 26 of config.toml gives this topic to Rose.");
    assert_eq!(scene.says(&topic, BOB, "hi").await, "Rose");
    assert_snapshot!(scene.says(&topic, ALICE, "/agent reset").await, @"Nothing was switched here. Rose answers here. Line 26 of config.toml gives this topic to Rose.");
    scene.ends().await;
}

/// DESIGN §10: `/agent` obeys `who`, so a person who cannot fetch an agent cannot send it away
/// either, but may borrow the place and give it back.
#[tokio::test]
async fn a_guest_takes_no_place_that_they_could_not_give_back() {
    let scene = Scene::new(TEAM).await;
    let topic = scene.topic(5);
    scene.says(&topic, ALICE, "/agent ada").await;
    assert_snapshot!(scene.says(&topic, BOB, "/agent main").await, @"Only an owner or admin can take this topic from Ada for good: Ada is for members, so you couldn't give it back. /agent main once and /agent for 2h main work.");
    assert_snapshot!(scene.says(&topic, BOB, "/agent reset").await, @"Only an owner, an admin or the person who made it can undo this switch: Ada is for members, so you couldn't bring it back.");
    topic.says(BOB, "/agent").await;
    scene.house.settled(&scene.gateway).await;
    let shown = topic.wait_for_sent(4).await;
    assert_eq!(
        buttons(&shown.reply_markup),
        Vec::new(),
        "no button that would be refused"
    );
    assert_snapshot!(timeless(&shown.text), @"Ada answers here. Alice chose Ada just now.");
    assert_snapshot!(scene.says(&topic, BOB, "/agent main once").await, @"Main takes the next message here, and only that one.");
    assert_eq!(scene.says(&topic, BOB, "hi").await, "Main");
    assert_eq!(scene.says(&topic, BOB, "hi").await, "Ada");
    // For a while, and back before its time.
    scene.says(&topic, BOB, "/agent for 2h main").await;
    assert_eq!(scene.says(&topic, CAROL, "hi").await, "Main");
    assert_snapshot!(scene.says(&topic, BOB, "/agent main").await, @"Only an owner or admin can take this topic from Ada for good: Ada is for members, so you couldn't give it back. /agent main once and /agent for 2h main work.");
    assert_snapshot!(scene.says(&topic, BOB, "/agent reset").await, @"That switch is undone, and the one before counts again. Ada answers here. Alice chose Ada just now. /agent reset undoes that one too.");
    assert_eq!(scene.says(&topic, CAROL, "hi").await, "Ada");
    scene.ends().await;
}

/// An agent that a guest may not even talk to keeps its place, also for a while.
#[tokio::test]
async fn a_guest_takes_no_place_from_an_agent_that_is_closed_to_them() {
    let house = House::with_top("default_agent = \"eve\"", TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(9, "Eve's");
    let said = async |user, text| {
        let before = topic.texts().len();
        topic.says(user, text).await;
        house.settled(&gateway).await;
        topic.texts()[before..].join("\n")
    };
    assert_snapshot!(said(BOB, "/agent main").await, @"Only an owner or admin can take this topic from Eve for good: Eve is for owners, so you couldn't give it back. /agent main once works.");
    assert_snapshot!(said(BOB, "/agent for 30d main").await, @"Only an owner or admin can take this topic from Eve for good: Eve is for owners, so you couldn't give it back. /agent main once works.");
    assert_snapshot!(said(BOB, "hello").await, @"Eve is for owners. Ask an owner if you need it.");
    house.close(gateway).await;
}

/// Where everybody may use every agent, everybody switches as before, and back.
#[tokio::test]
async fn what_a_guest_switched_a_guest_resets() {
    let scene = Scene::new(TEAM).await;
    let topic = scene.topic(5);
    assert_snapshot!(scene.says(&topic, BOB, "/agent main").await, @"Main answers here from now on. /agent reset undoes that.");
    assert_snapshot!(scene.says(&topic, CAROL, "/agent reset").await, @"The switch is undone. Rose answers here. An owner gave this topic to Rose.");
    scene.ends().await;
}

/// A command of ours counts as said to the bot, with or without its argument; another bot's does
/// not.
#[tokio::test]
async fn a_command_without_its_argument_tells_its_usage() {
    let config = TEAM.replace("require_mention = false\n", "");
    let scene = Scene::new(&config).await;
    let topic = scene.topic(5);
    assert_snapshot!(scene.says(&topic, ALICE, "/bind").await, @"To whom? Write the agent's name, such as /bind rose; /unbind takes the binding out again.");
    assert_snapshot!(scene.says(&topic, BOB, "/bind").await, @"Only owners can use /bind.");
    assert_snapshot!(scene.says(&topic, BOB, "/remember").await, @"Write the text to remember behind the command: /remember Ann likes tea.");
    assert_snapshot!(scene.says(&topic, BOB, "/agent for").await, @"For how long, and who? Write /agent for 2h rose, with minutes as 30m and days as 1d, up to 30 days.");
    assert_eq!(scene.says(&topic, BOB, "/frobnicate").await, "");
    scene.ends().await;
    // A closed place stays silent for guests.
    let closed = Scene::new(&config.replace("groups = \"open\"\n", "")).await;
    assert_eq!(closed.says(&closed.topic(6), BOB, "/remember").await, "");
    closed.ends().await;
}
