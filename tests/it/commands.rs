//! What the gateway says to commands. Every text is a snapshot: read the diff as a person would.

use insta::assert_snapshot;

use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB, Place};

const TEAM: &str = r#"
[access]
owners = ["telegram:111"]
require_mention = false
[agents.main]
emoji = "☕"
[agents.rose]
who = "guest"
name = "Rose"
emoji = "🌹"
model = "demo"
[agents.night-desk]
who = "guest"
name = "Night Desk"
[[bindings]]
match = "telegram:group:-1001"
agent = "main"
[[bindings]]
match = "telegram:topic:-1001:9"
agent = "rose"
locked = true
"#;

struct Talk {
    house: House,
    gateway: parlor::gateway::Gateway,
    place: Place,
    said: usize,
}

impl Talk {
    async fn in_topic(topic: i64) -> Self {
        let house = House::new(TEAM).await;
        let gateway = house.open().await;
        let place = house.telegram.forum(-1001).topic(topic, "A topic");
        Talk {
            house,
            gateway,
            place,
            said: 0,
        }
    }

    /// What comes back.
    async fn alice(&mut self, text: &str) -> String {
        self.place.says(ALICE, text).await;
        self.next().await
    }

    async fn bob(&mut self, text: &str) -> String {
        self.place.says(BOB, text).await;
        self.next().await
    }

    async fn next(&mut self) -> String {
        self.said += 1;
        self.place.wait_for_sent(self.said).await.text
    }

    /// The agent that the model was last asked as.
    fn asked(&self) -> String {
        self.house
            .model
            .last_request()
            .system
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    async fn end(self) {
        self.house.settled(&self.gateway).await;
        self.gateway.shutdown().await;
    }
}

/// S2.3, S2.4
#[tokio::test]
async fn agent_shows_switches_and_resets() {
    let mut talk = Talk::in_topic(5).await;
    assert_snapshot!(talk.alice("/agent").await, @"
    ☕ Main answers here. Line 25 of config.toml gives telegram:group:-1001 to Main.
    /agent rose switches to 🌹 Rose; /agents lists everyone.
    ");
    assert_snapshot!(talk.alice("/agents").await, @"
    • ☕ Main · fake/any ← answers here
    • 🌹 Rose · demo model (echoes only)
    • Night Desk (night-desk) · fake/any

    /agent rose switches to 🌹 Rose.
    ");
    assert_snapshot!(talk.alice("/agent night desk").await, @"Night Desk answers here from now on. /agent reset undoes that.");
    assert_snapshot!(talk.alice("/agent NIGHT-DESK").await, @"Night Desk already answers here.");
    talk.alice("hello").await;
    assert_eq!(talk.asked(), "You are Night Desk (agent id: night-desk).");
    assert_snapshot!(talk.alice("/agents").await, @"
    • ☕ Main · fake/any
    • 🌹 Rose · demo model (echoes only)
    • Night Desk (night-desk) · fake/any ← answers here

    /agent main switches to ☕ Main.
    ");
    assert_snapshot!(talk.alice("/agent reset").await, @"The switch is undone. ☕ Main answers here. Line 25 of config.toml gives telegram:group:-1001 to Main.");
    assert_snapshot!(talk.alice("/agent reset").await, @"Nothing was switched here. ☕ Main answers here. Line 25 of config.toml gives telegram:group:-1001 to Main.");
    talk.alice("hello again").await;
    assert_eq!(talk.asked(), "You are Main ☕ (agent id: main).");
    talk.end().await;
}

/// S2.4: a prefix does not switch.
#[tokio::test]
async fn a_near_miss_switches_nothing_and_is_suggested() {
    let mut talk = Talk::in_topic(5).await;
    assert_snapshot!(talk.alice("/agent ros").await, @"No agent is called ros. Did you mean /agent rose?");
    assert_snapshot!(talk.alice("/agent night").await, @"No agent is called night. Did you mean /agent night-desk?");
    assert_snapshot!(talk.alice("/agent xyzzy").await, @"No agent is called xyzzy. You can choose main, rose, night-desk.");
    assert_snapshot!(talk.alice("/agnet rose").await, @"There is no command /agnet. Did you mean /agent? /help shows what there is.");
    assert_snapshot!(talk.alice("/agent").await, @"
    ☕ Main answers here. Line 25 of config.toml gives telegram:group:-1001 to Main.
    /agent rose switches to 🌹 Rose; /agents lists everyone.
    ");
    talk.end().await;
}

#[tokio::test]
async fn once_is_for_one_message_and_stands_over_a_lasting_switch() {
    let mut talk = Talk::in_topic(5).await;
    talk.alice("/agent night-desk").await;
    assert_snapshot!(talk.alice("/agent main once").await, @"☕ Main takes the next message here, and only that one.");
    talk.alice("for main").await;
    assert_eq!(talk.asked(), "You are Main ☕ (agent id: main).");
    talk.alice("for night desk").await;
    assert_eq!(talk.asked(), "You are Night Desk (agent id: night-desk).");
    talk.end().await;
}

#[tokio::test]
async fn a_locked_place_is_switched_by_owners_only() {
    let mut talk = Talk::in_topic(9).await;
    assert_snapshot!(talk.bob("/agent main").await, @"This place is locked to 🌹 Rose; only an owner or admin can switch it.");
    assert_snapshot!(talk.bob("/agent reset").await, @"This place is locked to 🌹 Rose; only an owner or admin can switch it.");
    assert_snapshot!(talk.alice("/agent main").await, @"☕ Main answers here from now on. /agent reset undoes that.");
    talk.end().await;
}

#[tokio::test]
async fn whoami_has_the_key_to_paste_into_the_config() {
    let mut talk = Talk::in_topic(5).await;
    assert_snapshot!(talk.bob("/whoami").await, @"
    You are Bob (guest), telegram:222.
    This is the topic “A topic”, telegram:topic:-1001:5.
    ☕ Main answers here. An owner gave this topic to Main.
    ☕ Main uses fake/any here.
    ");
    talk.alice("/agent rose").await;
    let today = chrono::Local::now().format("%-d %b %Y").to_string();
    assert_snapshot!(talk.alice("/whoami").await.replace(&today, "(today)"), @r#"
    You are Alice (owner), telegram:111.
    This is the topic “A topic”, telegram:topic:-1001:5.
    🌹 Rose answers here. You chose Rose just now.
    🌹 Rose uses the demo model (echoes only) here (the agent's own).

    To keep 🌹 Rose here for good, write /bind rose, or add this to config.toml:
    [[bindings]]
    match = "telegram:topic:-1001:5"
    agent = "rose"
    "#);
    talk.end().await;
}

/// S1.23
#[tokio::test]
async fn new_forgets_the_conversation_and_keeps_the_agent() {
    let mut talk = Talk::in_topic(5).await;
    talk.alice("/agent night-desk").await;
    talk.alice("my secret is 42").await;
    assert_snapshot!(talk.alice("/new").await, @"A fresh conversation begins here. What was said before is kept, but I no longer look at it.");
    talk.alice("what is it").await;
    assert_eq!(talk.asked(), "You are Night Desk (agent id: night-desk).");
    let heard = talk.house.model.last_request().messages;
    assert_eq!(
        heard,
        [("user".to_owned(), "[Alice] what is it".to_owned())]
    );
    assert_eq!(
        talk.house
            .ask("SELECT count(*) FROM messages WHERE text = 'my secret is 42'"),
        "1",
        "the store keeps it"
    );
    talk.end().await;
}

#[tokio::test]
async fn status_and_help_say_more_to_owners() {
    let mut talk = Talk::in_topic(5).await;
    talk.bob("hello").await;
    talk.house.settled(&talk.gateway).await;
    assert_snapshot!(talk.bob("/status").await, @"
    ☕ Main answers here. An owner gave this topic to Main.
    ☕ Main uses fake/any here.
    This conversation has 2 messages.
    You have used 112 tokens today.

    Nothing is being written here, and nothing waits.
    ");
    assert_snapshot!(talk.alice("/status").await, @"
    ☕ Main answers here. Line 25 of config.toml gives telegram:group:-1001 to Main.
    ☕ Main uses fake/any here (the default model).
    This conversation has 2 messages.
    You have used no tokens today.
    The last answer here is based on a guest's words.

    Nothing is being written here, and nothing waits.

    For owners and admins:
    • The gateway has been up for 0 minutes.
    • In the last 24 hours: 1 question, all answered.
    • Nothing waits to be delivered.
    • The last answer here came from fake/any: 105 tokens read (90 from the provider's cache), 7 written.
    • ☕ Main: ready; 0 of 1 turn failed in 24 hours.
    • 🌹 Rose: ready.
    • Night Desk: ready.
    ");
    assert_snapshot!(talk.bob("/help").await, @"
    Just write, and the agent of this place answers. In a group, mention the bot or reply to it.

    /agents: everyone, and who answers here
    /agent NAME: switch to another agent; /agent reset undoes that
    /new: start a fresh conversation
    /stop: cancel the answer
    /status: what is going on here
    /memory, /remember TEXT: what the agent knows
    /whoami: who you are here, and why this agent answers

    /help all lists every command.
    ");
    assert_snapshot!(talk.bob("/help all").await, @"
    Just write, and the agent of this place answers. In a group, mention the bot or reply to it.

    Who answers
    /agent [name] [once | for 2h] | why | reset: who answers here, or switch
    /agents: all agents you can talk to
    /model [provider/model] | reset: the model used here, or switch
    /models: all models you can choose here

    This conversation
    /new: start a fresh conversation
    /stop [all]: cancel the current answer, or the waiting messages too
    /queue [clear]: the current answer and the waiting messages
    /status: what is going on here

    What the agent knows
    /skills: the skills of the agent here
    /memory: what the agent here remembers
    /remember [--person | --place] text: save a memory

    You and the bot
    /whoami: who you are, where you are, and why this agent answers
    /usage [today | 7d | 30d]: your tokens and cost
    /help [all]: the most useful commands, or all
    ");
    let for_owners = talk.alice("/help all").await;
    assert!(
        for_owners.contains(
            "/pair [CODE] [yes | no]: who waits and who was let in, or let in the person with this code"
        ),
        "{for_owners}"
    );
    talk.end().await;
}

/// S1.26: the new agent reads what was said, and the transcript has a mark.
#[tokio::test]
async fn a_switch_is_a_handoff() {
    let mut talk = Talk::in_topic(5).await;
    talk.alice("remember the milk").await;
    talk.alice("/agent night-desk").await;
    talk.alice("what was it").await;
    let heard = talk.house.model.last_request().messages;
    assert_snapshot!(heard.iter().map(|(role, text)| format!("{role}: {text}")).collect::<Vec<_>>().join("\n---\n"), @"
    user: [Alice] remember the milk

    [@main] re: [Alice] remember the milk

    [Alice handed this place from main to night-desk]

    [Alice] what was it
    ");
    assert_eq!(
        talk.house
            .ask("SELECT text FROM messages WHERE kind = 'handoff'"),
        "from main to night-desk"
    );
    talk.end().await;
}

/// S1.57, S1.58
#[tokio::test]
async fn a_pin_to_an_agent_that_is_gone_is_dropped_and_told_once() {
    let mut talk = Talk::in_topic(5).await;
    talk.alice("/agent night-desk").await;
    let Talk {
        house,
        gateway,
        place,
        ..
    } = talk;
    house.close(gateway).await;
    house.configure(
        "",
        &TEAM.replace(
            "[agents.night-desk]\nwho = \"guest\"\nname = \"Night Desk\"\n",
            "",
        ),
    );

    let gateway = house.open().await;
    place.says(ALICE, "anybody").await;
    place.says(ALICE, "there").await;
    house.settled(&gateway).await;
    let told =
        "night-desk is no longer here, so the switch is undone. /agent tells who answers now.";
    assert_eq!(
        place.texts()[1..],
        [told, "re: [Alice] anybody", "re: [Alice] there"]
    );
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
    gateway.shutdown().await;
}

/// What was asked before /new belongs to the old conversation, also when its answer comes later.
#[tokio::test]
async fn new_during_a_turn_leaves_that_turn_in_the_old_conversation() {
    let mut talk = Talk::in_topic(5).await;
    talk.house.model.hold();
    talk.place.says(ALICE, "an old question").await;
    talk.house.model.wait_for_open(1).await;
    talk.alice("/new").await;
    talk.house.model.release();
    talk.next().await;
    talk.alice("a new question").await;
    let heard = talk.house.model.last_request().messages;
    assert_eq!(
        heard,
        [("user".to_owned(), "[Alice] a new question".to_owned())]
    );
    talk.end().await;
}

/// In a plain group every member has a conversation of their own, but what people bind is the
/// group.
#[tokio::test]
async fn a_plain_group_is_opened_as_a_group() {
    let house = House::new("[access]\nowners = [\"telegram:111\"]\n").await;
    let gateway = house.open().await;
    let group = house.telegram.group(-77);
    group.says(ALICE, "@parlor_bot hello").await;
    assert_snapshot!(group.wait_for_sent(1).await.text, @"Nobody answers in this group yet. /bind with an agent's name opens it for everybody (telegram:group:-77 in config.toml), /agent with one for you alone.");
    group.says(ALICE, "/whoami").await;
    assert_snapshot!(group.wait_for_sent(2).await.text, @r#"
    You are Alice (owner), telegram:111.
    This is the group “Chat -77”, telegram:group:-77:111.
    Nobody answers you in this group: no binding or /agent opens this group (groups = "bound"). /agent with an agent's name opens it for you alone; /bind with one opens it for everybody.

    To open this group for good, write /bind main, or add this to config.toml:
    [[bindings]]
    match = "telegram:group:-77"
    agent = "main"
    For you alone, write telegram:group:-77:111.
    "#);
    house.close(gateway).await;
}

/// The turn that uses one up must not take the next one with it.
#[tokio::test]
async fn once_said_during_a_once_turn_is_for_the_message_after_it() {
    let mut talk = Talk::in_topic(5).await;
    talk.alice("/agent night-desk once").await;
    talk.house.model.hold();
    talk.place.says(ALICE, "for the night desk").await;
    talk.house.model.wait_for_open(1).await;
    assert_snapshot!(talk.alice("/agent rose once").await, @"🌹 Rose takes the next message here, and only that one.");
    talk.house.model.release();
    talk.next().await;
    talk.alice("for rose").await;
    talk.alice("for main").await;
    talk.house.settled(&talk.gateway).await;
    let answered = "SELECT group_concat(slug) FROM (SELECT slug FROM turns JOIN agents ON uid = agent_uid ORDER BY id)";
    assert_eq!(talk.house.ask(answered), "night-desk,rose,main");
    talk.end().await;
}

/// Its turn uses it up, so the same word said during that turn is a new wish.
#[tokio::test]
async fn once_more_for_the_same_agent_during_its_turn_counts() {
    let mut talk = Talk::in_topic(5).await;
    talk.alice("/agent night-desk once").await;
    talk.house.model.hold();
    talk.place.says(ALICE, "first").await;
    talk.house.model.wait_for_open(1).await;
    assert_snapshot!(talk.alice("/agent night-desk once").await, @"Night Desk takes the next message here, and only that one.");
    talk.house.model.release();
    talk.next().await;
    talk.alice("second").await;
    assert_eq!(talk.asked(), "You are Night Desk (agent id: night-desk).");
    talk.end().await;
}

#[tokio::test]
async fn a_once_to_an_agent_that_is_gone_leaves_the_lasting_switch() {
    let mut talk = Talk::in_topic(5).await;
    talk.alice("/agent night-desk").await;
    talk.alice("/agent rose once").await;
    let Talk {
        house,
        gateway,
        place,
        ..
    } = talk;
    house.close(gateway).await;
    let without_rose = TEAM.replace(
        "[agents.rose]\nwho = \"guest\"\nname = \"Rose\"\nemoji = \"🌹\"\nmodel = \"demo\"\n",
        "",
    );
    house.configure(
        "",
        &without_rose.replace("agent = \"rose\"\n", "agent = \"main\"\n"),
    );

    let gateway = house.open().await;
    place.says(ALICE, "hello").await;
    house.settled(&gateway).await;
    assert_eq!(
        place.texts()[2..],
        [
            "rose is no longer here, so the switch is undone. /agent tells who answers now.",
            "re: [Alice] hello"
        ]
    );
    assert_eq!(
        house.model.last_request().system.lines().next(),
        Some("You are Night Desk (agent id: night-desk).")
    );
    gateway.shutdown().await;
}
