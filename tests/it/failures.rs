//! Failed answers: what people, owners and the log learn, and the button that tries again.

use insta::assert_snapshot;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, buttons};
use crate::support::house::{Process, parlor};
use crate::webhook::free_address;

/// Bob is the owner; Alice and Carol are guests.
const HOUSE: &str = r#"
[access]
dms = "open"
groups = "open"
require_mention = false
owners = ["telegram:222"]
"#;

const REFUSAL: &str =
    r#"{"error":{"message":"Incorrect API key provided: sk-12345. You sent 'my secret plan'."}}"#;

fn refusing() -> Script {
    Script::status(401, REFUSAL)
}

/// The payload of the only button under a message.
fn retry(markup: &serde_json::Value) -> String {
    let offered = buttons(markup);
    assert_eq!(offered.len(), 1, "{offered:?}");
    assert_eq!(offered[0].0, "🔄 Retry");
    offered[0].1.clone()
}

#[tokio::test]
async fn the_retry_button_answers_the_same_message_once() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (alice, _bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    house.model.enqueue(refusing());
    alice.says("first").await;
    let apology = alice.wait_for_sent(1).await;
    let data = retry(&apology.reply_markup);
    house.settled(&gateway).await;
    alice.presses(apology.message_id, &data).await;
    alice.presses(apology.message_id, &data).await;
    house.settled(&gateway).await;
    let mut texts = alice.texts();
    assert_eq!(texts[0], "Trying again.", "in the place of the apology");
    texts.sort();
    assert_snapshot!(texts.join("\n"), @"
    Trying again.
    re: first
    ");
    assert_eq!(house.model.journal().len(), 2, "one try each");
    assert_eq!(
        house.ask("SELECT group_concat(text, ' | ') FROM messages"),
        "first | re: first",
        "the question is there once"
    );
    alice.says("second").await;
    house.settled(&gateway).await;
    assert_eq!(alice.texts().last().unwrap(), "re: second");
    gateway.shutdown().await;
}

/// A question counts once, with the answer after its Retry.
#[tokio::test]
async fn a_question_answered_after_its_retry_counts_as_answered() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    house.model.enqueue(refusing());
    alice.says("first").await;
    let apology = alice.wait_for_sent(1).await;
    house.settled(&gateway).await;
    alice
        .presses(apology.message_id, &retry(&apology.reply_markup))
        .await;
    house.settled(&gateway).await;
    bob.says("/status").await;
    house.settled(&gateway).await;
    let status = bob.texts().pop().expect("a reply");
    assert!(
        status.contains("In the last 24 hours: 1 question, all answered."),
        "{status}"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_retry_that_fails_again_has_a_button_again() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (alice, _bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    house.model.enqueue(refusing());
    house.model.enqueue(refusing());
    alice.says("first").await;
    let apology = alice.wait_for_sent(1).await;
    alice
        .presses(apology.message_id, &retry(&apology.reply_markup))
        .await;
    let again = alice.wait_for_sent(2).await;
    alice
        .presses(again.message_id, &retry(&again.reply_markup))
        .await;
    alice.wait_for_sent(3).await;
    house.settled(&gateway).await;
    assert_eq!(alice.texts().last().unwrap(), "re: first");
    gateway.shutdown().await;
}

#[tokio::test]
async fn the_asker_and_higher_roles_may_retry_and_the_asker_is_answered() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (topic, _bob) = (
        house.telegram.forum(-1001).topic(5, "Five"),
        house.telegram.dm(BOB),
    );
    house.model.enqueue(refusing());
    topic.says(ALICE, "first").await;
    let apology = topic.wait_for_sent(1).await;
    let data = retry(&apology.reply_markup);
    topic.presses(CAROL, apology.message_id, &data).await;
    let answered = house
        .telegram
        .wait_for_calls("answerCallbackQuery", 1)
        .await;
    assert_eq!(
        answered.params["text"],
        "Only the person who asked, or somebody with a higher role, can try this again."
    );
    topic.presses(BOB, apology.message_id, &data).await;
    topic.wait_for_sent(2).await;
    house.settled(&gateway).await;
    let texts = topic.texts();
    assert_eq!(texts[0], "Trying again.\nPressed by Bob.", "{texts:?}");
    assert_eq!(texts[1], "re: [Alice] first", "{texts:?}");
    assert_eq!(
        house.ask("SELECT group_concat(person) FROM messages WHERE kind = 'person'"),
        "telegram:111"
    );
    gateway.shutdown().await;
}

/// A kill -9 between the press and the answer: the next process answers, once.
#[tokio::test]
async fn a_retry_survives_a_kill() {
    let house = House::new(HOUSE).await;
    let (alice, _bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    house.model.enqueue(refusing());
    let process = Process::start(house.home.path(), &["run"]);
    alice.says("first").await;
    let apology = alice.wait_for_sent(1).await;
    process.wait_for_log("the turn failed (ref 1)").await;
    house.model.hold();
    alice
        .presses(apology.message_id, &retry(&apology.reply_markup))
        .await;
    house.model.wait_for_open(1).await;
    process.kill().await;
    house.model.release();
    let gateway = house.open().await;
    house.settled(&gateway).await;
    let answers = alice
        .texts()
        .into_iter()
        .filter(|text| text == "re: first")
        .count();
    assert_eq!(answers, 1);
    gateway.shutdown().await;
}

/// A deleted message cannot be tried again, and its words are gone.
#[tokio::test]
async fn words_of_failed_messages_are_kept_only_for_the_button() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (alice, _bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    house.model.enqueue(refusing());
    alice.says("first").await;
    house.settled(&gateway).await;
    let kept = "SELECT count(*) FROM inbox WHERE payload LIKE '%\"text\"%'";
    assert_eq!(house.ask(kept), "1");
    alice.says("second").await;
    house.settled(&gateway).await;
    assert_eq!(house.ask(kept), "1", "answered messages keep no words");
    gateway.shutdown().await;
}

/// The log names the provider's host, its sentence and the reference, and neither keys nor words of
/// people. The owner is told once, also over a restart, and once when it works again.
#[tokio::test]
async fn owners_are_told_once_and_the_log_has_the_address() {
    let house = House::new(HOUSE).await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    house.model.enqueue(refusing());
    let process = Process::start(house.home.path(), &["run"]);
    alice.says("my secret plan").await;
    alice.wait_for_sent(1).await;
    let told = bob.wait_for_sent(1).await.text;
    let address = house
        .model
        .base_url(crate::support::fake_model::Dialect::OpenAi);
    let host = address
        .trim_start_matches("http://")
        .split('/')
        .next()
        .expect("a host")
        .to_owned();
    let (told, cause) = told.split_once('\n').expect("two lines");
    assert_snapshot!(told, @r#"⚠️ My agents can't use fake: fake wants an API key, and none is set (401). Add a line such as api_key = { env = "FAKE_API_KEY" } to [providers.fake], line 7 of config.toml."#);
    assert!(
        cause.starts_with(&format!("{host} says: Incorrect API key provided: ***."))
            && !cause.contains("secret"),
        "{cause}"
    );
    process.wait_for_log("the turn failed (ref 1)").await;
    let log = process.log();
    let line = log
        .lines()
        .find(|line| line.contains("the turn failed"))
        .expect("a line");
    for part in [
        "model=fake/any",
        host.as_str(),
        "Incorrect API key provided: ***.",
        "ref=1",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(
        !log.contains("sk-12345") && !log.contains("secret plan"),
        "{log}"
    );
    process.stop().await;

    let gateway = house.open().await;
    house.model.enqueue(refusing());
    alice.says("again").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts().len(), 1, "{:?}", bob.texts());
    alice.says("and now").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts()[1..], ["✅ fake answers again."]);
    alice.says("more").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts().len(), 2);
    gateway.shutdown().await;
}

/// An owner who asks in private learns all of it there, and gets no second message.
#[tokio::test]
async fn an_owner_learns_the_cause_in_the_answer() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let bob = house.telegram.dm(BOB);
    house
        .model
        .enqueue(Script::status(404, r#"{"error":"model 'any' not found"}"#));
    bob.says("hello").await;
    house.settled(&gateway).await;
    let texts = bob.texts();
    assert_eq!(texts.len(), 1, "{texts:?}");
    let (first, cause) = texts[0].split_once('\n').expect("two lines");
    assert_snapshot!(first, @"I can't answer: fake has no model any (404). Check the model's name in config.toml. [ref 1]");
    assert!(cause.ends_with(" says: model 'any' not found"), "{cause}");
    gateway.shutdown().await;
}

/// The gateway starts without the key of a provider, and says what is missing everywhere.
#[tokio::test]
async fn a_missing_key_variable_is_named() {
    let house = House::new(HOUSE).await;
    house.configure_provider("api_key = { env = \"FAKE_API_KEY\" }");
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    let process = Process::start(house.home.path(), &["run"]);
    process
        .wait_for_log("the environment variable FAKE_API_KEY is not set; [providers.fake] needs it")
        .await;
    assert_snapshot!(bob.wait_for_sent(1).await.text, @"⚠️ My agents can't use fake: the API key for fake is missing. The environment variable FAKE_API_KEY is not set (api_key in [providers.fake], line 8 of config.toml). Set it where Parlor is started, then start Parlor again: a reload brings no new variables.");
    alice.says("hello").await;
    assert_eq!(
        alice.wait_for_sent(1).await.text,
        "I can't answer: the API key for fake is missing. [ref 1]"
    );
    assert_eq!(house.model.journal().len(), 0, "nobody was asked");
    process.stop().await;
    let process = Process::start(house.home.path(), &["run"]);
    alice.says("hello?").await;
    alice.wait_for_sent(2).await;
    assert_eq!(bob.texts().len(), 1, "not again");
    process.stop().await;
    let mut check = parlor(house.home.path());
    let checked = check
        .args(["config", "check"])
        .output()
        .await
        .expect("it runs");
    let told = String::from_utf8_lossy(&checked.stderr);
    assert!(
        told.starts_with(
            "warning: the environment variable FAKE_API_KEY is not set; [providers.fake] needs it"
        ),
        "{told}"
    );
}

/// There is no log on the screen, so the terminal shows the cause.
#[tokio::test]
async fn the_terminal_shows_the_cause() {
    let home = tempfile::tempdir().expect("a folder");
    let free = free_address();
    std::fs::write(
        home.path().join("config.toml"),
        format!("default_model = \"ollama/llava\"\n[providers.ollama]\nkind = \"ollama\"\nbase_url = \"http://{free}/\"\n"),
    )
    .expect("writes");
    let mut chat = parlor(home.path());
    chat.arg("chat")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = chat.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    tokio::io::AsyncWriteExt::write_all(&mut stdin, b"hello\n")
        .await
        .expect("writes");
    drop(stdin);
    let output = child.wait_with_output().await.expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).replace(&free, "HOST");
    assert!(
        said.contains("I can't answer: `ollama` can't be reached (the connection was refused). Is Ollama running? `ollama serve` starts it."),
        "{said}"
    );
    assert!(
        said.contains("line 4 of config.toml. [ref 1]\nCould not connect to HOST: `")
            && said.contains("Connection refused"),
        "{said}"
    );
}

/// The same button on Discord, pressed after a restart, under a message that had shown a preview.
#[tokio::test]
async fn the_retry_button_works_on_discord_after_a_restart() {
    use crate::support::fake_discord::BOB;
    let house = House::new(&HOUSE.replace("telegram:222", "discord:111")).await;
    let discord = house.add_discord("").await;
    let guild = discord.guild(8001, "Garden");
    let thread = guild.text_channel(8101, "general").thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    house.model.enqueue(refusing());
    thread.says(BOB, "first").await;
    let apology = thread.wait_for_sent(1).await;
    gateway.settled().await;
    gateway.shutdown().await;
    assert_eq!(
        apology.text,
        "I can't answer: `fake` wants an API key, and none is set (401). [ref 1]"
    );
    let button = &apology.json["components"][0]["components"][0];
    assert_eq!(button["label"], "🔄 Retry");
    let payload = button["custom_id"].as_str().expect("a payload").to_owned();

    let gateway = house.open().await;
    discord.wait_for_identifies(2).await;
    let pressed = thread.presses(BOB, apology.message_id, &payload).await;
    assert_eq!(pressed.first().await, serde_json::json!({ "type": 6 }));
    thread.wait_for_sent(2).await;
    gateway.settled().await;
    let texts = thread.texts();
    assert_eq!(
        texts,
        ["Trying again.\nPressed by Bob.", "re: [Bob] first"],
        "in the place of the apology"
    );
    let (changed, id) = (thread.messages(), apology.message_id.to_string());
    let changed = changed
        .iter()
        .find(|message| message["id"].as_str() == Some(&id))
        .expect("it is there");
    assert_eq!(
        changed["components"],
        serde_json::json!([]),
        "nothing is left to try"
    );
    gateway.shutdown().await;
}
