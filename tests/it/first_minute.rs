//! The first minute of a person: `/start`, a stranger's first words, and how they are let in.

use insta::assert_snapshot;

use crate::cli::run;
use crate::support::House;
use crate::support::fake_discord;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Dm, SentMessage, User, buttons};

const OWNED: &str = "[access]\nowners = [\"telegram:111\"]\n[agents.main]\nemoji = \"☕\"\n";
const TWO_OWNERS: &str = "[access]\nowners = [\"telegram:111\"]\n[people.carol]\nids = [\"telegram:333\"]\nrole = \"admin\"\n[agents.main]\nemoji = \"☕\"\n";

/// The code in a text such as `Your code is ABCD2345, for one hour.`
pub(crate) fn code_in(text: &str) -> String {
    let is_sign = |sign: char| sign.is_ascii_uppercase() || sign.is_ascii_digit();
    let mut words = text.split(|sign: char| !sign.is_alphanumeric());
    let code = words.find(|word| word.len() == 8 && word.chars().all(is_sign));
    code.unwrap_or_else(|| panic!("no code in {text}"))
        .to_owned()
}

fn without_code(text: &str) -> String {
    text.replace(&code_in(text), "CODE")
}

/// The chat of an owner or admin who has written to the bot before.
async fn acquainted(house: &House, user: User) -> Dm {
    let chat = house.telegram.dm(user);
    chat.says("/start").await;
    chat.wait_for_sent(1).await;
    chat
}

fn button(notice: &SentMessage, label: &str) -> String {
    let offered = buttons(&notice.reply_markup);
    let found = offered.into_iter().find(|(known, _)| known == label);
    found.expect("the button is there").1
}

/// How the message looks now.
fn now(house: &House, notice: &SentMessage) -> SentMessage {
    let sent = house.telegram.sent();
    let found = sent
        .into_iter()
        .find(|sent| (sent.chat_id, sent.message_id) == (notice.chat_id, notice.message_id));
    found.expect("it was sent")
}

async fn wait_for_text(dm: &Dm, text: &str) {
    let place = dm.place();
    place
        .wait_for(text, |texts| texts.iter().any(|sent| sent == text))
        .await;
}

/// Returns when the text stands in the chat of the notice, in place of the notice.
async fn wait_for_change(house: &House, notice: &SentMessage, text: &str) {
    let (chat, message) = (notice.chat_id, notice.message_id);
    house
        .telegram
        .wait_until(|journal| {
            let is_it = |sent: &SentMessage| (sent.chat_id, sent.message_id) == (chat, message);
            journal
                .sent()
                .iter()
                .any(|sent| is_it(sent) && sent.text == text)
        })
        .await;
    assert_eq!(
        buttons(&now(house, notice).reply_markup),
        [],
        "no button is left"
    );
}

#[tokio::test]
async fn start_greets_by_name_and_says_who_listens() {
    let house = House::new(&format!(
        "{OWNED}[agents.rose]\nemoji = \"🌹\"\n[[bindings]]\nmatch = \"telegram:topic:-1001:101\"\nagent = \"rose\"\n"
    ))
    .await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let forum = house.telegram.forum(-1001);
    let (rose, lobby) = (forum.topic(101, "Rose"), forum.topic(55, "Lobby"));
    alice.says("/start").await;
    assert_snapshot!(alice.wait_for_sent(1).await.text, @r"
    Hi Alice. ☕ Main listens here: just write.
    /help lists the commands.
    ");
    alice.says("/start somebody-s-link").await;
    assert_eq!(alice.wait_for_sent(2).await.text, alice.texts()[0]);
    rose.says(BOB, "/start@parlor_bot x").await;
    assert_snapshot!(rose.wait_for_sent(1).await.text, @r"
    Hi Bob. 🌹 Rose listens here: mention me, or reply to one of my messages.
    /help lists the commands.
    ");
    lobby.says(ALICE, "/start").await;
    assert_snapshot!(lobby.wait_for_sent(1).await.text, @r"
    Hi Alice. No agent listens here yet. /agent main gives this place to one.
    /help lists the commands.
    ");
    lobby.says(BOB, "/start").await;
    house.settled(&gateway).await;
    assert_eq!(
        lobby.texts().len(),
        1,
        "a guest hears nothing in a closed place"
    );
    assert!(house.model.journal().is_empty());
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_stranger_is_let_in_with_a_button_and_the_first_words_are_answered() {
    let house = House::new(OWNED).await;
    let gateway = house.open().await;
    let (alice, bob) = (acquainted(&house, ALICE).await, house.telegram.dm(BOB));
    bob.says("/start").await;
    bob.says("what is a parlor?").await;
    bob.says("hello?").await;
    assert_snapshot!(without_code(&bob.wait_for_sent(1).await.text), @"Hi Bob. This bot is private. Its owner has been asked to let you in; I'll write to you once that's decided. Your code is CODE, for one hour.");
    let notice = alice.wait_for_sent(2).await;
    assert_snapshot!(notice.text, @"Bob (telegram:222) wants in.");
    assert_eq!(
        buttons(&notice.reply_markup)
            .iter()
            .map(|(label, _)| label.as_str())
            .collect::<Vec<_>>(),
        ["Let in", "No"]
    );
    house.settled(&gateway).await;
    assert_eq!(
        bob.texts()[1..],
        ["Still waiting for an owner to let you in. I'll write to you once that's decided."]
    );
    assert!(
        house.model.journal().is_empty(),
        "nothing reaches a model before"
    );

    alice
        .presses(notice.message_id, &button(&notice, "Let in"))
        .await;
    house.settled(&gateway).await;
    assert_snapshot!(now(&house, &notice).text, @"Bob (telegram:222) is in, let in by Alice. /unpair telegram:222 takes it back.");
    assert_eq!(buttons(&now(&house, &notice).reply_markup), []);
    assert_eq!(
        alice.texts().len(),
        2,
        "the result stands in place of the question"
    );
    assert_eq!(
        bob.texts()[2..],
        [
            "You're in, Bob. ☕ Main reads your first message now.",
            "re: what is a parlor?"
        ]
    );
    bob.says("thank you").await;
    house.settled(&gateway).await;
    assert_eq!(
        bob.texts().last().map(String::as_str),
        Some("re: thank you")
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM people WHERE first_message IS NOT NULL"),
        "0"
    );

    alice.says("/unpair telegram:222").await;
    alice
        .presses(notice.message_id, &button(&notice, "Let in"))
        .await;
    house.settled(&gateway).await;
    let answered = house
        .telegram
        .wait_for_calls("answerCallbackQuery", 2)
        .await;
    assert_snapshot!(answered.params["text"].as_str().unwrap_or_default(), @"No such code is open. A code is valid for one hour; the person gets a new one by writing to the bot again.");
    bob.says("still here?").await;
    house.settled(&gateway).await;
    assert!(
        bob.texts()
            .last()
            .is_some_and(|text| text.starts_with("Hi Bob. This bot is private.")),
        "a guest again, with a new code"
    );
    house.close(gateway).await;
}

#[tokio::test]
async fn a_stranger_who_is_turned_away_is_told_once() {
    let house = House::new(OWNED).await;
    let gateway = house.open().await;
    let (alice, bob) = (acquainted(&house, ALICE).await, house.telegram.dm(BOB));
    bob.says("zinnober").await;
    let notice = alice.wait_for_sent(2).await;
    assert_snapshot!(notice.text, @"Bob (telegram:222) wants in. Their first words are kept until you decide.");
    alice
        .presses(notice.message_id, &button(&notice, "No"))
        .await;
    house.settled(&gateway).await;
    assert_snapshot!(now(&house, &notice).text, @"Bob (telegram:222) was turned away by Alice. They can ask again tomorrow; an owner's /people role telegram:222 member lets them in now.");
    assert_snapshot!(bob.texts()[1], @"Sorry, Bob. This bot stays private, and your message here was not kept.");
    assert_eq!(
        house.ask("SELECT count(*) FROM people WHERE first_message IS NOT NULL"),
        "0"
    );
    for _ in 0..5 {
        bob.says("please").await;
    }
    house.settled(&gateway).await;
    assert_eq!(
        (bob.texts().len(), alice.texts().len()),
        (2, 2),
        "and nobody hears of it again"
    );
    // A second thought.
    alice
        .presses(notice.message_id, &button(&notice, "Let in"))
        .await;
    house.settled(&gateway).await;
    assert_snapshot!(now(&house, &notice).text, @"Bob (telegram:222) was turned away by Alice. They can ask again tomorrow; an owner's /people role telegram:222 member lets them in now.");
    assert!(house.model.journal().is_empty());
    house.tell("UPDATE people SET decided_at = decided_at - 24 * 60 * 60 * 1000");
    bob.says("and today?").await;
    assert!(bob.wait_for_sent(3).await.text.starts_with("Hi Bob."));
    house.close(gateway).await;
}

/// An admin counts like an owner here, and the second press changes nothing.
#[tokio::test]
async fn of_two_presses_the_first_counts() {
    let house = House::new(TWO_OWNERS).await;
    let gateway = house.open().await;
    let (alice, carol) = (
        acquainted(&house, ALICE).await,
        acquainted(&house, CAROL).await,
    );
    let bob = house.telegram.dm(BOB);
    bob.says("hello").await;
    let (first, second) = (alice.wait_for_sent(2).await, carol.wait_for_sent(2).await);
    carol
        .presses(second.message_id, &button(&second, "Let in"))
        .await;
    alice.presses(first.message_id, &button(&first, "No")).await;
    house.settled(&gateway).await;
    for notice in [&first, &second] {
        assert_eq!(
            now(&house, notice).text,
            "Bob (telegram:222) is in, let in by Carol. /unpair telegram:222 takes it back."
        );
        assert_eq!(buttons(&now(&house, notice).reply_markup), []);
    }
    assert_eq!((alice.texts().len(), carol.texts().len()), (2, 2));
    assert_eq!(
        bob.texts()[1..],
        [
            "You're in, Bob. ☕ Main reads your first message now.",
            "re: hello"
        ]
    );
    // The button of one chat is no button of another, and a member decides nothing.
    bob.presses(first.message_id, &button(&first, "Let in"))
        .await;
    bob.says("/pair ABCD2345 yes").await;
    house.settled(&gateway).await;
    assert_eq!(
        bob.texts().last().map(String::as_str),
        Some("Only an owner or admin can let people in.")
    );
    assert_eq!(bob.texts().len(), 4);
    house.close(gateway).await;
}

/// The button is pressed, and the process is killed while the first words are being answered.
#[tokio::test]
async fn a_kill_between_the_press_and_the_answer_loses_and_repeats_nothing() {
    let house = House::new(OWNED).await;
    let process = house.spawn().await;
    let (alice, bob) = (acquainted(&house, ALICE).await, house.telegram.dm(BOB));
    bob.says("what is a parlor?").await;
    let notice = alice.wait_for_sent(2).await;
    house.telegram.all_confirmed().await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    process.kill().await;

    // The button survives a restart.
    let process = house.spawn().await;
    house.model.hold();
    alice
        .presses(notice.message_id, &button(&notice, "Let in"))
        .await;
    house.model.wait_for_requests(1).await;
    wait_for_text(
        &bob,
        "You're in, Bob. ☕ Main reads your first message now.",
    )
    .await;
    wait_for_change(
        &house,
        &notice,
        "Bob (telegram:222) is in, let in by Alice. /unpair telegram:222 takes it back.",
    )
    .await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    process.kill().await;

    house.model.release();
    let process = house.spawn().await;
    wait_for_text(&bob, "re: what is a parlor?").await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "0")
        .await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(bob.texts().len(), 3, "{:?}", bob.texts());
}

/// The decision is stored, and the gateway is not there to tell anybody.
#[tokio::test]
async fn a_decision_made_while_the_gateway_is_off_is_told_at_the_next_start() {
    let house = House::new(OWNED).await;
    let gateway = house.open().await;
    let (alice, bob) = (acquainted(&house, ALICE).await, house.telegram.dm(BOB));
    bob.says("hello").await;
    let code = code_in(&bob.wait_for_sent(1).await.text);
    let notice = alice.wait_for_sent(2).await;
    house.close(gateway).await;
    let ran = run(house.home.path(), &["pair", &code]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_snapshot!(ran.stdout, @"Bob (telegram:222) may now write to the bot. The gateway tells them when it runs, and answers what they wrote first.");
    let listed = run(house.home.path(), &["pair", "list", "--json"]).await;
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(listed[0]["id"], "telegram:222");
    assert_eq!(
        listed[0].get("code"),
        Some(&serde_json::Value::Null),
        "a field is always there"
    );
    let again = run(house.home.path(), &["pair", &code, "--no"]).await;
    assert_eq!(again.code, 1);
    assert_snapshot!(again.stderr, @"error: Bob (telegram:222) was let in already, by the command line");
    let owner = run(house.home.path(), &["pair", &code, "--owner"]).await;
    assert_snapshot!(owner.stderr, @"error: Bob (telegram:222) was let in already, by the command line. `parlor people role telegram:222 owner` makes them an owner");
    for _ in 0..2 {
        let gateway = house.open().await;
        house.settled(&gateway).await;
        assert_eq!(
            bob.texts()[1..],
            [
                "You're in, Bob. ☕ Main reads your first message now.",
                "re: hello"
            ]
        );
        house.close(gateway).await;
    }
    assert_eq!(
        now(&house, &notice).text,
        "Bob (telegram:222) is in, let in by the command line. /unpair telegram:222 takes it back."
    );
}

#[tokio::test]
async fn a_running_gateway_hears_of_decisions_on_the_command_line() {
    let house = House::new(OWNED).await;
    let gateway = house.open().await;
    let (bob, carol) = (house.telegram.dm(BOB), house.telegram.dm(CAROL));
    bob.says("hello").await;
    carol.says("hello").await;
    let (of_bob, of_carol) = (
        bob.wait_for_sent(1).await.text,
        carol.wait_for_sent(1).await.text,
    );
    assert_snapshot!(without_code(&of_bob), @"Hi Bob. This bot is private. Ask its owner to let you in with the code CODE, which is valid for one hour. Your message is kept until then.");
    let home = house.home.path();
    assert_eq!(run(home, &["pair", &code_in(&of_bob)]).await.code, 0);
    let ran = run(home, &["pair", &code_in(&of_carol), "--no"]).await;
    assert_snapshot!(ran.stdout, @"Carol (telegram:333) is turned away, and can ask again tomorrow.");
    wait_for_text(&bob, "re: hello").await;
    wait_for_text(
        &carol,
        "Sorry, Carol. This bot stays private, and your message here was not kept.",
    )
    .await;
    house.close(gateway).await;
}

#[tokio::test]
async fn a_code_that_runs_out_takes_the_kept_words_along() {
    let house = House::new(OWNED).await;
    let gateway = house.open().await;
    let (alice, bob) = (acquainted(&house, ALICE).await, house.telegram.dm(BOB));
    bob.says("zinnober").await;
    let notice = alice.wait_for_sent(2).await;
    let code = code_in(&bob.wait_for_sent(1).await.text);
    house.settled(&gateway).await;
    house.tell("UPDATE people SET code_until = code_until - 60 * 60 * 1000");
    wait_for_change(&house, &notice, "Bob (telegram:222) wanted in, and nobody decided within the hour. They get a new code by writing again.").await;
    assert_eq!(
        house.ask("SELECT count(*) FROM people WHERE first_message IS NOT NULL"),
        "0"
    );
    alice
        .presses(notice.message_id, &button(&notice, "Let in"))
        .await;
    house.settled(&gateway).await;
    assert_eq!((alice.texts().len(), bob.texts().len()), (2, 1));
    let late = run(house.home.path(), &["pair", &code]).await;
    assert_snapshot!(late.stderr, @"error: the code of Bob (telegram:222) has run out. They get a new one by writing to the bot again");
    assert!(house.model.journal().is_empty());
    house.close(gateway).await;
}

/// The first owner is asked about people who wrote when there was none.
#[tokio::test]
async fn the_first_owner_is_asked_about_those_who_wait() {
    let house = House::new("[access]\ndms = \"pairing\"\n[agents.main]\n").await;
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    bob.says("hello").await;
    bob.wait_for_sent(1).await;
    alice.says("mine").await;
    let code = code_in(&alice.wait_for_sent(1).await.text);
    let ran = run(house.home.path(), &["pair", &code, "--owner"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    wait_for_text(&alice, "re: mine").await;
    bob.says("anybody?").await;
    wait_for_text(
        &alice,
        "Bob (telegram:222) wants in. Their first words are kept until you decide.",
    )
    .await;
    bob.says("please").await;
    house.settled(&gateway).await;
    let asked = alice
        .texts()
        .iter()
        .filter(|text| text.contains("wants in"))
        .count();
    assert_eq!(asked, 1, "{:?}", alice.texts());
    house.close(gateway).await;
}

/// On Telegram a bot may not write first. An owner who writes after the stranger is asked then, once.
#[tokio::test]
async fn an_owner_who_comes_later_is_asked_about_those_who_wait() {
    let house =
        House::new("[access]\nowners = [\"telegram:111\"]\ndms = \"pairing\"\n[agents.main]\n")
            .await;
    house.model.answer_with(|_| Script::text("Welcome."));
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    bob.says("hello").await;
    bob.wait_for_sent(1).await;
    assert_eq!(alice.texts(), [""; 0]);
    for words in ["hi", "hi again"] {
        alice.says(words).await;
        house.settled(&gateway).await;
    }
    let notices: Vec<_> = house
        .telegram
        .sent()
        .into_iter()
        .filter(|sent| sent.text.contains("wants in"))
        .collect();
    assert_eq!(notices.len(), 1, "{:?}", alice.texts());
    assert_eq!(
        notices[0].text,
        "Bob (telegram:222) wants in. Their first words are kept until you decide."
    );
    alice
        .presses(notices[0].message_id, &button(&notices[0], "Let in"))
        .await;
    wait_for_text(&bob, "Welcome.").await;
    house.close(gateway).await;
}

/// Nobody owns a fresh bot, and being first to write makes nobody the owner.
#[tokio::test]
async fn the_operator_makes_the_first_owner() {
    let house =
        House::new("# mine\n[access]  # who\ndms = \"pairing\"\n[agents.main]\nemoji = \"☕\"\n")
            .await;
    let gateway = house.open().await;
    let bob = house.telegram.dm(BOB);
    bob.says("hello").await;
    let hint = bob.wait_for_sent(1).await.text;
    assert_snapshot!(without_code(&hint), @"Hi Bob. This bot has no owner yet. If it's yours, run parlor --home DIR pair CODE --owner where it runs, with its home folder for DIR. The code is valid for one hour. Your message is kept until then.");
    bob.says("hello?").await;
    assert_snapshot!(bob.wait_for_sent(2).await.text, @"Still waiting for somebody to run the command above. I'll write to you then.");
    let ran = run(house.home.path(), &["pair", &code_in(&hint), "--owner"]).await;
    assert_snapshot!(format!("{}{}", ran.stdout, ran.stderr), @"Bob (telegram:222) is an owner now; config.toml says so. The gateway tells them now, and answers what they wrote first.");
    let written = std::fs::read_to_string(house.home.path().join("config.toml")).expect("a file");
    assert!(
        written
            .contains("# mine\n[access]  # who\nowners = [\"telegram:222\"]\ndms = \"pairing\"\n"),
        "{written}"
    );
    assert_eq!(
        house
            .ask("SELECT actor || ' ' || subject || ' ' || after FROM audit WHERE action = 'pair'"),
        "cli telegram:222 owner"
    );
    wait_for_text(&bob, "re: hello").await;
    assert_eq!(
        bob.texts()[2],
        "You're in, Bob, and this bot is yours. ☕ Main reads your first message now."
    );
    bob.says("/whoami").await;
    let told = bob.wait_for_sent(5).await.text;
    assert!(
        told.contains("(owner)"),
        "at once, without a restart: {told}"
    );
    // The next stranger is asked about with a button.
    house.telegram.dm(CAROL).says("hello").await;
    assert_eq!(
        bob.wait_for_sent(6).await.text,
        "Carol (telegram:333) wants in. Their first words are kept until you decide."
    );
    house.close(gateway).await;
    let gateway = house.open().await;
    bob.says("/whoami").await;
    assert!(
        bob.wait_for_sent(7).await.text.contains("(owner)"),
        "and after a restart"
    );
    house.close(gateway).await;
}

#[tokio::test]
async fn a_stranger_who_writes_fifty_messages_hears_little() {
    let house = House::new(OWNED).await;
    let gateway = house.open().await;
    let (alice, bob) = (acquainted(&house, ALICE).await, house.telegram.dm(BOB));
    for number in 1..=50 {
        bob.says(&format!("message {number}")).await;
    }
    house.settled(&gateway).await;
    assert_eq!((bob.texts().len(), alice.texts().len()), (2, 2));
    assert!(
        house
            .ask("SELECT first_message FROM people WHERE id = 'telegram:222'")
            .contains("message 1\""),
        "the first is kept"
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE outcome LIKE 'a guest%'"),
        "50"
    );
    house.close(gateway).await;
}

#[tokio::test]
async fn a_hundred_and_fifty_strangers_do_not_flood_the_owner() {
    let house = House::new(OWNED).await;
    let gateway = house.open().await;
    let alice = acquainted(&house, ALICE).await;
    for number in 0..150 {
        house
            .telegram
            .dm(User::person(10_000 + number, "Stranger"))
            .says("hello")
            .await;
    }
    house.settled(&gateway).await;
    let told = &alice.texts()[1..];
    assert_eq!(
        told.iter()
            .filter(|text| text.ends_with("kept until you decide."))
            .count(),
        5
    );
    assert_snapshot!(told[5..].join("\n"), @"
    6 people wait to be let in now, so I'll stop telling you about each of them for a while. /pair or parlor pair list shows them all.
    12 people wait to be let in now, so I'll stop telling you about each of them for a while. /pair or parlor pair list shows them all.
    24 people wait to be let in now, so I'll stop telling you about each of them for a while. /pair or parlor pair list shows them all.
    48 people wait to be let in now, so I'll stop telling you about each of them for a while. /pair or parlor pair list shows them all.
    96 people wait to be let in now, so I'll stop telling you about each of them for a while. /pair or parlor pair list shows them all.
    ");
    assert_eq!(
        house.ask("SELECT count(*) FROM people WHERE first_message IS NOT NULL"),
        "100",
        "as many as there are open codes"
    );
    house.close(gateway).await;
}

mod on_discord {
    use super::*;
    use crate::support::fake_discord::{ALICE, BOB, FakeDiscord};

    const OWNED: &str = "[access]\nowners = [\"discord:111\"]\n[agents.main]\nemoji = \"☕\"\n";

    fn offered(message: &fake_discord::SentMessage) -> Vec<(String, String)> {
        let rows = message.json["components"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let parts = rows
            .iter()
            .flat_map(|row| row["components"].as_array().cloned().unwrap_or_default());
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        parts
            .map(|part| (text(&part["label"]), text(&part["custom_id"])))
            .collect()
    }

    async fn settled(
        discord: &FakeDiscord,
        dm: &fake_discord::Dm,
        count: usize,
    ) -> fake_discord::SentMessage {
        discord.wait_for_sent_in(dm.id(), count).await
    }

    #[tokio::test]
    async fn a_stranger_is_let_in_with_a_button() {
        let (house, discord, _) = House::with_garden("", OWNED).await;
        let gateway = house.open_with(&discord).await;
        let (alice, bob) = (discord.dm(ALICE), discord.dm(BOB));
        bob.says("what is a parlor?").await;
        let hint = settled(&discord, &bob, 1).await.text;
        assert_snapshot!(without_code(&hint.replace('`', "")), @"Hi Bob. This bot is private. Its owner has been asked to let you in; I'll write to you once that's decided. Your code is CODE, for one hour. Your message is kept until then.");
        let notice = settled(&discord, &alice, 1).await;
        assert_snapshot!(notice.text, @"Bob (`discord:222`) wants in. Their first words are kept until you decide.");
        let buttons = offered(&notice);
        assert_eq!(
            buttons
                .iter()
                .map(|(label, _)| label.as_str())
                .collect::<Vec<_>>(),
            ["Let in", "No"]
        );
        alice
            .room()
            .presses(ALICE, notice.message_id, &buttons[0].1)
            .await;
        settled(&discord, &bob, 3).await;
        gateway.settled().await;
        assert_eq!(
            bob.texts()[1..],
            [
                "You're in, Bob. ☕ Main reads your first message now.",
                "re: what is a parlor?"
            ]
        );
        assert_eq!(
            alice.texts(),
            ["Bob (`discord:222`) is in, let in by Alice. `/unpair discord:222` takes it back."]
        );
        let shown = discord
            .sent()
            .into_iter()
            .find(|sent| sent.message_id == notice.message_id)
            .expect("it is there");
        assert_eq!(offered(&shown), []);
        gateway.shutdown().await;
    }

    /// Deleted words are not kept for anybody to let in.
    #[tokio::test]
    async fn a_first_message_that_is_deleted_is_not_kept() {
        let (house, discord, _) = House::with_garden("", OWNED).await;
        let gateway = house.open_with(&discord).await;
        let (alice, bob) = (discord.dm(ALICE), discord.dm(BOB));
        bob.says("zinnober").await;
        let notice = settled(&discord, &alice, 1).await;
        assert_eq!(
            house.ask("SELECT count(*) FROM people WHERE first_message LIKE '%zinnober%'"),
            "1"
        );
        let said: u64 = bob.room().messages()[0]["id"]
            .as_str()
            .and_then(|id| id.parse().ok())
            .expect("an id");
        bob.room().deletes(said).await;
        house
            .wait_until_stored(
                "SELECT count(*) FROM people WHERE first_message IS NOT NULL",
                "0",
            )
            .await;
        alice
            .room()
            .presses(ALICE, notice.message_id, &offered(&notice)[0].1)
            .await;
        assert_eq!(
            settled(&discord, &bob, 2).await.text,
            "You're in, Bob. ☕ Main listens here: just write."
        );
        gateway.settled().await;
        assert!(house.model.journal().is_empty());
        gateway.shutdown().await;
    }
}
