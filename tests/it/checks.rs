//! What the log says at the start when Telegram will not let the bot do what the config expects.

use crate::support::House;
use crate::support::fake_telegram::{ALICE, CAROL, Fault};
use crate::support::house::Process;

const BOUND: &str = r#"
[access]
dms = "open"

[[bindings]]
match = "telegram:group:-1001"
agent = "main"

[[bindings]]
match = "telegram:topic:-1002:7"
agent = "main"

[[bindings]]
match = "telegram:topic:-1003:*"
agent = "main"

[[bindings]]
match = "telegram:group:-1004"
agent = "main"
"#;

/// The lines of the log that warn, without their beginning.
fn warnings(process: &Process) -> Vec<String> {
    let log = process.log();
    let warnings = log
        .lines()
        .filter_map(|line| line.split_once(" WARN [system] "));
    warnings
        .map(|(_, rest)| {
            rest.split_once(": ")
                .map_or(rest, |(_, text)| text)
                .to_owned()
        })
        .collect()
}

/// The menu is told before the checks, and an answered message comes after neither: so the last
/// question is waited for.
async fn checked(house: &House, questions: usize) -> Process {
    let process = house.spawn().await;
    house
        .telegram
        .wait_for_calls("getChatMember", questions)
        .await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    process
}

#[tokio::test]
async fn groups_that_the_bot_cannot_serve_are_named_with_their_binding() {
    let house = House::new(BOUND).await;
    house.telegram.supergroup(-1001);
    house.telegram.forum(-1002).removes_bot(CAROL).await;
    house.telegram.forum(-1003).silences_members();
    let process = checked(&house, 4).await;
    process.wait_for_log("`telegram:group:-1004`").await;
    insta::assert_snapshot!(warnings(&process).join("\n"), @"
    I was removed from the group. Add me again session=telegram:group:-1002
    the bot is not in the group of the binding `telegram:topic:-1002:7`. Add it there, or remove the binding
    the bot may not write in the group of the binding `telegram:topic:-1003:*`. Let it send messages there, or make it an admin
    Telegram does not know the group of the binding `telegram:group:-1004`. Correct its number (/whoami in the group tells it), or add the bot there
    ");
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn privacy_mode_is_told_once_where_everything_should_be_heard() {
    let house = House::new(&format!("{BOUND}require_mention = false\n")).await;
    for chat in [-1001, -1002, -1003, -1004] {
        house.telegram.supergroup(chat);
    }
    house.telegram.set_me("can_read_all_group_messages", false);
    let process = checked(&house, 4).await;
    process.wait_for_log("privacy mode").await;
    insta::assert_snapshot!(warnings(&process).join("\n"), @"the binding `telegram:group:-1004` says require_mention = false, but the bot's privacy mode is on, so Telegram shows it only commands, mentions and replies. Send /setprivacy to @BotFather, choose Disable, then remove the bot from the group and add it again");
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn privacy_mode_is_told_for_all_groups_too() {
    let house =
        House::new("[access]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n").await;
    house.telegram.set_me("can_read_all_group_messages", false);
    let process = house.spawn().await;
    process
        .wait_for_log("[access] says require_mention = false, but the bot's privacy mode is on")
        .await;
    assert_eq!(process.stop().await, 0);
}

/// An admin hears everything, and a check that fails is nobody's trouble.
#[tokio::test]
async fn what_is_fine_or_cannot_be_asked_is_not_told() {
    let house = House::new(&format!("{BOUND}require_mention = false\n")).await;
    for chat in [-1001, -1002, -1003, -1004] {
        house.telegram.supergroup(chat);
    }
    house.telegram.supergroup(-1004).promotes_bot(CAROL).await;
    house.telegram.set_me("can_read_all_group_messages", false);
    house
        .telegram
        .fail("getChatMember", Fault::Html(502))
        .only_in(-1002)
        .once();
    let process = checked(&house, 4).await;
    assert_eq!(warnings(&process), Vec::<String>::new());
    assert_eq!(process.stop().await, 0);
}

/// Checks that hang are in nobody's way.
#[tokio::test]
async fn messages_are_answered_while_a_check_waits() {
    let house = House::new(BOUND).await;
    let held = house.telegram.hold("getChatMember");
    let process = checked(&house, 1).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
    held.release();
    assert_eq!(process.stop().await, 0);
}
