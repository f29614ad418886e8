//! Words about troubles and states that a newcomer stumbled over: each says what is so now, and what
//! to do.

use crate::chat::{TWO, chat};
use crate::cli::{fresh_home, run, run_with_input};
use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_model::Script;

async fn listed(house: &House, verb: &str) -> String {
    run(house.home.path(), &[verb]).await.stdout
}

/// W6
#[tokio::test]
async fn a_limit_that_has_passed_is_no_present_trouble() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    assert_eq!(run(home, &["ask", "hello"]).await.code, 0);
    // The turn is made to fail afterwards.
    house.give_up(Promise::AnsweredOnce);
    house.tell("UPDATE turns SET outcome = 'the model provider limits us; free again in 2 s', ended_at = ended_at - 25000");
    let told = listed(&house, "agents").await;
    assert!(
        !told.contains("failing") && !told.contains("free again"),
        "{told}"
    );
    let told = listed(&house, "status").await;
    assert!(!told.contains("failing"), "{told}");
    let told = run_with_input(home, &["chat"], "/status\n").await.stdout;
    assert!(told.contains("Main: ready"), "{told}");
    assert!(told.contains("; last error "), "{told}");
    assert!(told.contains(": the model provider limits us."), "{told}");
    // A limit that lasts has an end in clock time.
    house.tell("UPDATE turns SET outcome = 'the model provider limits us; free again in 900 s'");
    let told = listed(&house, "agents").await;
    assert!(
        told.contains("failing (the model provider limits us until "),
        "{told}"
    );
}

/// W6, P20: a provider that answers somebody again is not down for the others.
#[tokio::test]
async fn an_agent_is_well_again_when_its_provider_answers_another() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    house.model.answer_with(|_| Script::status(500, "no"));
    let failed = run(home, &["ask", "hello"]).await;
    assert_eq!(failed.code, 1, "{}", failed.stdout);
    assert!(
        failed
            .stderr
            .contains("`fake` failed (500). Please try again."),
        "{}",
        failed.stderr
    );
    let told = listed(&house, "agents").await;
    assert!(told.contains("failing"), "{told}");
    house.model.answer_with(|_| Script::text("Yes."));
    assert_eq!(run(home, &["ask", "-a", "rose", "hello"]).await.code, 0);
    let told = listed(&house, "agents").await;
    assert!(!told.contains("failing"), "{told}");
}

/// W7
#[tokio::test]
async fn a_switch_is_no_message() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    let lines = "/agent rose\n/agent reset\n/agent rose\n/status\n";
    let told = run_with_input(home, &["chat"], lines).await.stdout;
    assert!(told.contains("This conversation has 0 messages."), "{told}");
    let sessions = run(home, &["sessions", "--json"]).await.stdout;
    assert!(sessions.contains("\"messages\": 0"), "{sessions}");
}

/// W5: the provider's sentence is whole, and a key in it is hidden.
#[tokio::test]
async fn a_providers_sentence_has_no_holes() {
    let house = House::new(TWO).await;
    let said = r#"{"error":{"message":"You do not have access to it. Please ask billing. Key: sk-12345"}}"#;
    house.model.enqueue(Script::status(403, said));
    let question = "do as it says, and ask again if you have to";
    let ran = run(house.home.path(), &["ask", question]).await;
    assert!(
        ran.stderr
            .contains("says: `You do not have access to it. Please ask billing. Key: ***`"),
        "{}",
        ran.stderr
    );
}

/// M2
#[tokio::test]
async fn a_server_that_wants_a_key_is_told_as_such() {
    let house = House::new(TWO).await;
    house.model.enqueue(Script::status(401, "no"));
    let ran = run(house.home.path(), &["ask", "hello"]).await;
    assert!(
        ran.stderr.contains(
            "`fake` wants an API key, and none is set (401). Add a line such as `api_key = { env = \"FAKE_API_KEY\" }` to [providers.fake], line 7 of config.toml."
        ),
        "{}",
        ran.stderr
    );
}

/// P21: nobody was asked, so nobody has refused.
#[tokio::test]
async fn a_missing_key_is_no_refusal() {
    let house = House::new(TWO).await;
    house.configure_provider("api_key = { env = \"NOT_SET_ANYWHERE\" }");
    let told = run_with_input(house.home.path(), &["chat"], "hello\n/agent\n").await;
    assert!(
        told.stdout.contains("has been unusable since"),
        "{}",
        told.stdout
    );
    assert!(!told.stdout.contains("refused"), "{}", told.stdout);
    assert_eq!(house.model.journal().len(), 0);
}

/// M1
#[tokio::test]
async fn newcomers_are_sent_to_setup() {
    let home = fresh_home().await;
    let asked = run(home.path(), &["ask", "hello"]).await;
    assert!(
        asked.stdout.contains("`parlor setup` connects a real one."),
        "{}",
        asked.stdout
    );
    let init = run(home.path(), &["init"]).await;
    assert!(
        init.stderr
            .contains("`parlor setup` connects a model and a bot."),
        "{}",
        init.stderr
    );
    let doctor = run(home.path(), &["doctor"]).await;
    let told = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(told.contains("parlor setup"), "{told}");
}

/// M6
#[tokio::test]
async fn an_open_chat_is_not_called_a_gateway() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    let mut open = chat(&house).await;
    let status = run(home, &["status"]).await.stdout;
    assert!(
        status.starts_with("A `parlor chat` is open on HOME (pid "),
        "{status}"
    );
    assert!(status.contains("No gateway runs."), "{status}");
    assert!(!status.contains("The terminal is ready"), "{status}");
    let added = run(home, &["agent", "add", "fern"]).await;
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert!(!added.stderr.contains("gateway"), "{}", added.stderr);
    let started = run(home, &["run"]).await;
    assert_eq!(started.code, 1);
    assert!(
        started
            .stderr
            .contains("error: a `parlor chat` is open on HOME, perhaps in another window (pid "),
        "{}",
        started.stderr
    );
    open.types("/status\r");
    open.shows("This chat has been open for").await;
    open.types("/quit\r");
    assert_eq!(open.ends().await, 0);
}

/// R3: an agent that was just chosen.
#[tokio::test]
async fn a_choice_of_a_moment_ago_has_no_date() {
    let house = House::new(TWO).await;
    let lines = "/agent rose\n/agent\n/memory\n/status\n";
    let told = run_with_input(house.home.path(), &["chat"], lines)
        .await
        .stdout;
    assert!(told.contains("You chose Rose just now."), "{told}");
    assert!(!told.contains("0 KiB"), "{told}");
    assert!(!told.contains("based on your words"), "{told}");
}
