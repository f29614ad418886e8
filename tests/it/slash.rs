//! Slash commands, buttons and menus on Discord: the same as commands that are written, and
//! answered in time.

use parlor::gateway::Gateway;
use serde_json::{Value, json};

use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_discord::{
    ALICE, BOB, CAROL, FakeDiscord, Fault, GuildHandle, Room, Route,
};

const TEAM: &str = r#"
[access]
owners = ["discord:111"]
[agents.main]
[agents.rose]
who = "guest"
name = "Rose"
emoji = "🌹"
[[bindings]]
match = "discord:channel:8101"
agent = "main"
"#;

/// Seven agents: too many for buttons.
const CROWD: &str = r#"
[agents.ada]
who = "guest"
[agents.ben]
who = "guest"
[agents.cleo]
who = "guest"
[agents.dora]
who = "guest"
[agents.emil]
who = "guest"
[agents.night-desk]
who = "guest"
name = "Night desk"
"#;

async fn team(rest: &str) -> (House, FakeDiscord, GuildHandle, Room) {
    let house = House::new(&format!("{TEAM}{rest}")).await;
    let discord = house.add_discord("").await;
    let guild = discord.guild(8001, "Garden");
    let thread = guild.text_channel(8101, "general").thread(8111, "talk");
    (house, discord, guild, thread)
}

/// Returns once the commands are there to be used.
async fn open(house: &House, discord: &FakeDiscord) -> Gateway {
    let gateway = house.open_with(discord).await;
    discord.wait_for_commands(1).await;
    gateway
}

/// Labels and payloads of what stands under a message.
fn offered(message: &Value) -> Vec<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let parts = list(&message["components"])
        .into_iter()
        .flat_map(|row| list(&row["components"]));
    parts
        .flat_map(|part| match part["type"].as_u64() {
            Some(3) => list(&part["options"])
                .iter()
                .map(|option| (text(&option["label"]), text(&option["value"])))
                .collect(),
            _ => vec![(text(&part["label"]), text(&part["custom_id"]))],
        })
        .collect()
}

/// What is too long for messages comes as a file, also where only the asker sees it.
#[tokio::test]
async fn a_long_answer_for_the_asker_alone_has_its_file() {
    let house = House::new(TEAM).await;
    let discord = house.add_discord("max_parts = 1").await;
    let thread = discord
        .guild(8001, "Garden")
        .text_channel(8101, "general")
        .thread(8111, "talk");
    for number in 0..40 {
        let about = format!(
            "---\nname: skill-{number}\ndescription: {}\n---\nDo it.\n",
            "word ".repeat(30)
        );
        house.write(&format!("skills/skill-{number}/SKILL.md"), &about);
    }
    let gateway = open(&house, &discord).await;
    let answers = thread.command(BOB, "skills").await;
    let file = answers.followup(1).await;
    assert_eq!(
        (&file.json["attachments"][0]["filename"], file.ephemeral),
        (&json!("answer.md"), true)
    );
    gateway.settled().await;
    gateway.shutdown().await;
}

/// One overwrite for all, and the next start makes none.
#[tokio::test]
async fn the_commands_are_registered_once_and_again_only_when_they_changed() {
    let (house, discord, _, _) = team("").await;
    let gateway = open(&house, &discord).await;
    house
        .wait_until_stored("SELECT count(*) FROM discord_commands", "1")
        .await;
    gateway.shutdown().await;
    let names: Vec<String> = discord
        .commands()
        .iter()
        .map(|command| command["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    let specs: Vec<&str> = parlor::commands::SPECS
        .iter()
        .map(|spec| spec.name)
        .collect();
    assert_eq!(names, specs);
    let option = &discord.commands()[0]["options"];
    assert_eq!(
        (&option[0]["name"], &option[0]["autocomplete"]),
        (&json!("name"), &json!(true))
    );
    assert_eq!(
        option[1]["choices"][0],
        json!({ "name": "once", "value": "once" })
    );

    let gateway = house.open().await;
    discord.wait_for_identifies(2).await;
    discord.dm(ALICE).says("hello").await;
    discord.dm(ALICE).wait_for_sent(1).await;
    gateway.shutdown().await;
    house.tell("UPDATE discord_commands SET commands = 'of an older version'");
    let gateway = house.open().await;
    discord.wait_for_commands(2).await;
    house
        .wait_until_stored(
            "SELECT count(*) FROM discord_commands WHERE commands LIKE 'of%'",
            "0",
        )
        .await;
    gateway.shutdown().await;
    assert_eq!(discord.command_overwrites(), 2);
}

#[tokio::test]
async fn commands_that_cannot_be_registered_are_in_nobodys_way() {
    let (house, discord, _, _) = team("").await;
    discord
        .fail(Route::OverwriteCommands, Fault::INVALID_FORM)
        .once();
    let gateway = house.open_with(&discord).await;
    discord.wait_for_calls(Route::OverwriteCommands, 1).await;
    discord.dm(ALICE).says("hello").await;
    assert_eq!(discord.dm(ALICE).wait_for_sent(1).await.text, "re: hello");
    gateway.shutdown().await;
}

/// S1.4 for Discord: chosen from the menu, a command does what it does when it is written.
#[tokio::test]
async fn a_slash_command_is_the_same_as_a_written_one() {
    let (house, discord, _, thread) = team("").await;
    let gateway = open(&house, &discord).await;
    let used = thread.command(BOB, "agent").option("name", "rose").await;
    assert_eq!(
        used.first().await,
        json!({ "type": 5, "data": { "flags": 0 } })
    );
    let answer = used.message().await;
    assert_eq!(
        (answer.text.as_str(), answer.ephemeral),
        (
            "🌹 Rose answers here from now on. `/agent reset` undoes that.",
            false
        )
    );
    thread.says(BOB, "/agent reset").await;
    assert!(
        thread
            .wait_for_sent(2)
            .await
            .text
            .starts_with("The switch is undone. Main answers here")
    );
    let used = thread
        .command(BOB, "agent")
        .option("once", "once")
        .option("name", "rose")
        .await;
    assert_eq!(
        used.text().await,
        "🌹 Rose takes the next message here, and only that one."
    );
    let used = thread.command(BOB, "agent").option("name", "nobody").await;
    assert_eq!(
        used.text().await,
        "No agent is called nobody. You can choose main, rose."
    );
    let used = thread.command(BOB, "frobnicate").even_if_unknown().await;
    assert_eq!(
        used.text().await,
        "There is no command /frobnicate. /help shows what there is."
    );
    gateway.settled().await;
    assert_eq!(
        house.ask(
            "SELECT count(*) FROM inbox WHERE update_id LIKE 'interaction:%' AND state = 'done'"
        ),
        "4"
    );
    let kept = "SELECT count(*) FROM inbox, outbox WHERE payload LIKE '%interaction-token%' OR part LIKE '%interaction-token%'";
    assert_eq!(house.ask(kept), "0", "the token is gone with its use");
    gateway.shutdown().await;
}

/// Questions are answered to the one who asks; in private there is nobody else.
#[tokio::test]
async fn what_only_the_asker_needs_only_the_asker_sees() {
    let (house, discord, _, thread) = team("").await;
    let gateway = open(&house, &discord).await;
    for name in ["agents", "whoami", "status", "help"] {
        let used = thread.command(BOB, name).await;
        assert_eq!(used.first().await["data"]["flags"], 64, "{name}");
        assert!(used.message().await.ephemeral, "{name}");
    }
    let used = thread.command(BOB, "whoami").await;
    assert!(used.text().await.contains("`discord:thread:8101:8111`"));
    let used = discord.dm(ALICE).room().command(ALICE, "whoami").await;
    assert!(!used.message().await.ephemeral);
    assert!(used.text().await.contains("`discord:dm:111`"));
    assert!(thread.texts().is_empty());
    gateway.shutdown().await;
}

#[tokio::test]
async fn names_are_offered_while_somebody_types() {
    let (house, discord, _, thread) = team(CROWD).await;
    let gateway = open(&house, &discord).await;
    let values = async |typed: &str| {
        let choices = thread
            .types_into(BOB, "agent", "name", typed)
            .await
            .choices()
            .await;
        choices
            .into_iter()
            .map(|(label, value)| format!("{label}={}", value.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    assert_eq!(values("ros").await, ["🌹 Rose (rose)=rose"]);
    assert_eq!(values("DESK").await, ["Night desk (night-desk)=night-desk"]);
    assert_eq!(
        values("").await.len(),
        11,
        "everyone, the ways back, and why"
    );
    let owner = discord
        .dm(ALICE)
        .room()
        .types_into(ALICE, "agent", "name", "ros")
        .await;
    assert_eq!(owner.choices().await.len(), 1);
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox"),
        "0",
        "typing is no message"
    );
    gateway.shutdown().await;
}

/// Who answers is not told to strangers, letter by letter.
#[tokio::test]
async fn names_are_not_offered_to_those_who_may_not_ask() {
    let (house, discord, guild, _) = team(CROWD).await;
    let lounge = guild.text_channel(8400, "lounge");
    let gateway = open(&house, &discord).await;
    for room in [&lounge, discord.dm(CAROL).room()] {
        let typed = room.types_into(CAROL, "agent", "name", "").await;
        assert_eq!(typed.choices().await.len(), 0);
    }
    let pinned = lounge.command(ALICE, "agent").option("name", "rose").await;
    assert!(pinned.text().await.starts_with("🌹 Rose"));
    assert_eq!(
        lounge
            .types_into(ALICE, "agent", "name", "ros")
            .await
            .choices()
            .await
            .len(),
        1
    );
    gateway.shutdown().await;
}

/// S1.25 for Discord: a picker, good also after a restart, and in its own place only.
#[tokio::test]
async fn a_choice_switches_like_the_command_also_after_a_restart() {
    let (house, discord, guild, thread) = team("").await;
    let gateway = open(&house, &discord).await;
    let used = thread.command(ALICE, "agent").await;
    let list = used.message().await;
    let buttons = offered(&list.json);
    assert_eq!(
        buttons
            .iter()
            .map(|(label, _)| label.as_str())
            .collect::<Vec<_>>(),
        ["🌹 Rose"]
    );
    assert!(buttons[0].1.len() <= 100);
    gateway.settled().await;
    gateway.shutdown().await;

    let gateway = house.open().await;
    discord.wait_for_identifies(2).await;
    let pressed = thread.presses(BOB, list.message_id, &buttons[0].1).await;
    assert_eq!(pressed.first().await, json!({ "type": 6 }));
    discord
        .wait_for_text(list.message_id, |text| text.starts_with("🌹 Rose answers"))
        .await;
    gateway.settled().await;
    assert_eq!(
        thread.texts(),
        ["🌹 Rose answers here from now on. `/agent reset` undoes that.\nPressed by Bob."],
        "in the place of the list"
    );
    let (changed, id) = (thread.messages(), list.message_id.to_string());
    let changed = changed
        .iter()
        .find(|message| message["id"].as_str() == Some(&id))
        .expect("it is there");
    assert_eq!(
        offered(changed)
            .iter()
            .map(|(label, _)| label.as_str())
            .collect::<Vec<_>>(),
        ["Main", "↩ undo the switch"],
        "as things are now"
    );
    let elsewhere = guild
        .text_channel(8101, "general")
        .thread(8112, "other talk");
    let other = elsewhere.command(ALICE, "agents").await.message().await;
    assert_ne!(
        offered(&other.json)[0].1,
        buttons[0].1,
        "each place has buttons of its own"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn many_choices_are_a_menu() {
    let (house, discord, _, thread) = team(CROWD).await;
    let gateway = open(&house, &discord).await;
    let list = thread.command(ALICE, "agents").await.message().await;
    assert!(list.ephemeral);
    let options = offered(&list.json);
    assert_eq!(options.len(), 7);
    let (_, ada) = options
        .iter()
        .find(|(label, _)| label == "Ada")
        .expect("Ada is offered");
    let chosen = thread
        .selects(ALICE, list.message_id, "choose", &[ada])
        .await;
    assert_eq!(chosen.first().await, json!({ "type": 6 }));
    gateway.settled().await;
    thread.wait_for_sent(2).await;
    assert_eq!(
        thread.texts(),
        ["Ada answers here from now on. `/agent reset` undoes that."],
        "everyone sees the switch"
    );
    gateway.shutdown().await;
}

/// Nobody but the pressing person sees a refusal.
#[tokio::test]
async fn a_refused_press_is_told_to_the_pressing_person_alone() {
    let rest =
        "[[bindings]]\nmatch = \"discord:thread:8101:8111\"\nagent = \"main\"\nlocked = true\n";
    let (house, discord, _guild, thread) = team(rest).await;
    let gateway = open(&house, &discord).await;
    let list = thread.command(ALICE, "agent").await.message().await;
    gateway.settled().await;
    let before = thread.texts().len();
    let payload = &offered(&list.json)[0].1;
    let pressed = thread.presses(BOB, list.message_id, payload).await;
    let told = pressed.followup(1).await;
    assert_eq!(
        (told.text.as_str(), told.ephemeral),
        (
            "This place is locked to Main; only an owner or admin can switch it.",
            true
        )
    );
    gateway.settled().await;
    assert_eq!(thread.texts().len(), before, "{:?}", thread.texts());
    gateway.shutdown().await;
}

/// A button of another key, as after the store was lost.
#[tokio::test]
async fn a_button_that_we_did_not_make_does_nothing_and_says_so() {
    let (house, discord, _, thread) = team("").await;
    let gateway = open(&house, &discord).await;
    let list = thread.command(ALICE, "agent").await.message().await;
    let payload = offered(&list.json)[0].1.clone();
    gateway.settled().await;
    gateway.shutdown().await;
    house.tell("DELETE FROM keys");
    let gateway = house.open().await;
    discord.wait_for_identifies(2).await;
    let pressed = thread.presses(BOB, list.message_id, &payload).await;
    let first = pressed.first().await;
    assert_eq!(
        (&first["type"], &first["data"]["flags"]),
        (&json!(4), &json!(64))
    );
    assert_eq!(
        first["data"]["content"],
        "This button is from another time. Write the command instead."
    );
    gateway.settled().await;
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
    gateway.shutdown().await;
}

/// Discord shows an error where nothing is said, so strangers get a sentence that nobody else sees.
#[tokio::test]
async fn whoever_may_not_ask_is_told_so_alone() {
    let (house, discord, guild, _) = team("").await;
    let lounge = guild.text_channel(8400, "lounge");
    let gateway = open(&house, &discord).await;
    let not_here =
        "I don't answer here. An owner can open this place with `/bind` and an agent's name.";
    let asked = lounge.command(BOB, "agents").await.message().await;
    assert_eq!((asked.text.as_str(), asked.ephemeral), (not_here, true));
    let wished = lounge.command(BOB, "agent").option("name", "rose").await;
    let told = wished.followup(1).await;
    assert_eq!((told.text.as_str(), told.ephemeral), (not_here, true));
    gateway.settled().await;
    assert!(
        lounge.texts().is_empty(),
        "others see nothing: {:?}",
        lounge.texts()
    );
    let stranger = discord.dm(CAROL);
    let first = stranger.room().command(CAROL, "help").await.text().await;
    assert!(
        first.starts_with("Hi Carol. This bot is private. Its owner has been asked to let you in"),
        "{first}"
    );
    let second = stranger.room().command(CAROL, "help").await.text().await;
    assert!(
        second.starts_with("Still waiting for an owner to let you in."),
        "{second}"
    );
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
    gateway.shutdown().await;
}

/// Discord cannot tell a repetition of what only one person sees, so it is made once and no more.
#[tokio::test]
async fn what_is_for_the_asker_alone_is_repeated_once_when_no_answer_comes() {
    let (mut house, discord, guild, _) = team("").await;
    let lounge = guild.text_channel(8400, "lounge");
    let gateway = open(&house, &discord).await;
    discord
        .fail(Route::CreateFollowup, Fault::DroppedAfter)
        .times(2);
    lounge.command(BOB, "agent").option("name", "rose").await;
    discord.wait_for_calls(Route::CreateFollowup, 2).await;
    gateway.settled().await;
    assert_eq!(discord.calls(Route::CreateFollowup).len(), 2);
    assert_eq!(
        house.ask("SELECT state || ' ' || repeated FROM outbox"),
        "failed 1"
    );
    gateway.shutdown().await;
    house.leave_leftovers();
}

/// The token is in the rows, so whoever finds them answers with it.
#[tokio::test]
async fn an_answer_that_a_restart_interrupts_still_arrives_where_it_is_waited_for() {
    let (house, discord, _, thread) = team("").await;
    let gateway = open(&house, &discord).await;
    let fault = discord
        .fail(Route::EditOriginal, Fault::Html(502))
        .until_dropped();
    let used = thread.command(BOB, "whoami").await;
    discord.wait_for_calls(Route::EditOriginal, 1).await;
    house
        .wait_until_stored(
            "SELECT count(*) FROM outbox WHERE state = 'waiting' AND attempts > 0",
            "1",
        )
        .await;
    gateway.shutdown().await;
    drop(fault);
    let gateway = house.open().await;
    assert!(used.message().await.ephemeral);
    gateway.settled().await;
    gateway.shutdown().await;
}

/// After a quarter of an hour Discord takes no answers: an ordinary message then, and a private one
/// if it was for one alone.
#[tokio::test]
async fn an_answer_that_comes_too_late_is_an_ordinary_message() {
    let (house, discord, _, thread) = team("").await;
    // The answer to a slash command is no row.
    house.give_up(Promise::SentOnce);
    let gateway = open(&house, &discord).await;
    discord
        .fail(Route::EditOriginal, Fault::TOKEN_EXPIRED)
        .times(1);
    thread.command(BOB, "new").await.first().await;
    discord.wait_for_calls(Route::CreateMessage, 1).await;
    gateway.settled().await;
    assert!(
        thread
            .texts()
            .last()
            .is_some_and(|text| text.starts_with("A fresh conversation begins")),
        "{:?}",
        thread.texts()
    );
    discord
        .fail(Route::EditOriginal, Fault::TOKEN_EXPIRED)
        .times(1);
    thread.command(BOB, "whoami").await.first().await;
    let told = discord.dm(BOB).wait_for_sent(1).await;
    assert!(
        told.text.contains("`discord:thread:8101:8111`"),
        "{}",
        told.text
    );
    gateway.settled().await;
    assert_eq!(
        thread
            .texts()
            .iter()
            .filter(|text| text.contains("discord:thread"))
            .count(),
        0
    );
    gateway.shutdown().await;
}

/// A first answer that is refused or lost costs nothing but the "thinking…".
#[tokio::test]
async fn a_first_answer_that_fails_loses_no_answer() {
    let (house, discord, _, thread) = team("").await;
    let gateway = open(&house, &discord).await;
    discord
        .fail(Route::InteractionCallback, Fault::DroppedBefore)
        .once();
    let used = thread.command(BOB, "agent").option("name", "rose").await;
    assert!(
        used.text().await.starts_with("🌹 Rose"),
        "given at the second try"
    );
    discord
        .fail(Route::InteractionCallback, Fault::UNKNOWN_INTERACTION)
        .once();
    thread.command(BOB, "new").await;
    let plain = discord.wait_for_calls(Route::CreateMessage, 1).await;
    assert!(
        plain.body["content"]
            .as_str()
            .is_some_and(|text| text.starts_with("A fresh conversation begins"))
    );
    gateway.settled().await;
    gateway.shutdown().await;
}

/// An answer that is ready at once must not overtake the first answer, which Discord would hold
/// against it.
#[tokio::test]
async fn the_answer_waits_for_the_first_answer() {
    let (house, discord, _, thread) = team("").await;
    let gateway = open(&house, &discord).await;
    let hold = discord.hold(Route::InteractionCallback);
    let used = thread.command(BOB, "agent").option("name", "rose").await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state = 'sending'", "1")
        .await;
    assert_eq!(discord.calls(Route::EditOriginal).len(), 0);
    hold.release();
    assert!(used.text().await.starts_with("🌹 Rose"));
    gateway.settled().await;
    assert_eq!(discord.calls(Route::CreateMessage).len(), 0);
    gateway.shutdown().await;
}

/// Discord waits three seconds, also when nothing can be stored and many messages wait.
#[tokio::test]
async fn the_first_answer_does_not_wait_for_the_store() {
    let (house, discord, _, thread) = team("").await;
    let gateway = open(&house, &discord).await;
    let blocker = rusqlite::Connection::open(house.home.path().join("parlor.db"))
        .expect("the database opens");
    blocker
        .execute_batch("BEGIN IMMEDIATE")
        .expect("nobody else writes now");
    for number in 0..200 {
        thread.says(BOB, &format!("talk {number}")).await;
    }
    let used = thread.command(BOB, "agent").option("name", "rose").await;
    used.first().await;
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox"),
        "0",
        "nothing is stored yet"
    );
    blocker.execute_batch("ROLLBACK").expect("it ends");
    assert!(used.text().await.starts_with("🌹 Rose"));
    gateway.settled().await;
    gateway.shutdown().await;
}

/// Killed without a goodbye between the question and its answer: the next process gives it, and no
/// log has the token.
#[tokio::test]
async fn a_kill_loses_no_answer_that_is_waited_for() {
    let (house, discord, _, thread) = team("").await;
    let process = house.spawn().await;
    discord.connected().await;
    discord.wait_for_commands(1).await;
    let fault = discord
        .fail(Route::EditOriginal, Fault::DroppedBefore)
        .until_dropped();
    let used = thread.command(BOB, "agent").option("name", "rose").await;
    discord.wait_for_calls(Route::EditOriginal, 1).await;
    process.kill().await;
    drop(fault);
    let process = house.spawn().await;
    assert!(used.text().await.starts_with("🌹 Rose"));
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    let log = process.log();
    assert_eq!(process.stop().await, 0);
    assert!(!log.contains("interaction-token"), "{log}");
    assert_eq!(thread.texts().len(), 1, "once: {:?}", thread.texts());
}

/// What does not fit into one message stays with the asker, to the last.
#[tokio::test]
async fn a_long_answer_for_the_asker_is_for_the_asker_in_all_its_parts() {
    let names: Vec<String> = (0..60)
        .map(|number| format!("an-agent-with-a-long-name-{number}"))
        .collect();
    let agents: String = names
        .iter()
        .map(|name| format!("[agents.{name}]\nwho = \"guest\"\n"))
        .collect();
    let (house, discord, _, thread) = team(&agents).await;
    let gateway = open(&house, &discord).await;
    let used = thread.command(BOB, "agents").await;
    let (first, second) = (used.message().await, used.followup(1).await);
    assert!(first.ephemeral && second.ephemeral);
    let whole = (first.text + &second.text).to_lowercase();
    assert!(
        names.iter().all(|name| whole.contains(name.as_str())),
        "{whole}"
    );
    assert_eq!(offered(&second.json).len(), 25, "as many as a menu takes");
    gateway.settled().await;
    assert!(thread.texts().is_empty());
    gateway.shutdown().await;
}

/// A wait that Discord asks for is kept, and then the answer is where it is waited for.
#[tokio::test]
async fn an_answer_that_has_to_wait_is_given_afterwards() {
    let (house, discord, _, thread) = team("").await;
    let gateway = open(&house, &discord).await;
    discord
        .fail(Route::EditOriginal, Fault::RateLimited(0.4))
        .once();
    let used = thread.command(BOB, "whoami").await;
    assert!(used.message().await.ephemeral);
    gateway.settled().await;
    let calls = discord.calls(Route::EditOriginal);
    assert!(
        calls.len() == 2 && calls[1].at - calls[0].at >= std::time::Duration::from_millis(400),
        "{calls:?}"
    );
    gateway.shutdown().await;
}
