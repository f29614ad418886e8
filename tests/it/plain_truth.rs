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

/// The provider's key is missing, so nobody can be answered.
#[tokio::test]
async fn agents_whose_key_is_missing_are_not_ready() {
    let house = House::new(TWO).await;
    house.configure_provider("api_key = { env = \"FAKE_API_KEY\" }");
    let process = house.spawn().await;
    let home = house.home.path();
    let path = home.display().to_string();
    let status = run(home, &["--home", &path, "status"]).await.stdout;
    assert!(!status.contains(" ready   "), "{status}");
    assert!(
        status.contains("Failing, so no answer is to be expected:\n")
            && status.contains("the API key for `fake` is missing")
            && status.contains("`parlor --home HOME doctor` tells what to do."),
        "{status}"
    );
    let agents = listed(&house, "agents").await;
    assert!(agents.contains("failing ("), "{agents}");
    let doctor = run(home, &["doctor"]).await;
    assert!(
        doctor.stdout.contains("a reload brings no new variables"),
        "{}",
        doctor.stdout
    );
    process.stop().await;
}

/// A model that says nothing is not the person's fault.
#[tokio::test]
async fn an_empty_answer_is_the_models() {
    let house = House::new(TWO).await;
    house.model.answer_with(|_| Script::text(""));
    let asked = run(house.home.path(), &["ask", "hello"]).await;
    assert!(
        asked
            .stderr
            .contains("The model `fake/any` gave an empty answer. Retry asks it once more."),
        "{}",
        asked.stderr
    );
    // A single such answer is no state: status agrees with doctor and explain.
    let status = run(house.home.path(), &["status"]).await.stdout;
    assert!(!status.to_lowercase().contains("failing"), "{status}");
}

/// Memories of places are left out of a search, which says so and how to ask for them.
#[tokio::test]
async fn a_search_tells_the_memories_it_leaves_out() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    let lines = "/topic attic\nhello\n/remember --place The tea chest is empty\n";
    run_with_input(home, &["chat"], lines).await;
    for verb in [&["recall", "tea"][..], &["memory", "list"]] {
        let told = run(home, verb).await;
        assert!(
            told.stderr.contains(
                "1 memory of a place is left out; `--place PLACE` includes those of one place."
            ),
            "{verb:?}: {}",
            told.stderr
        );
    }
    for verb in [
        &["recall", "--place", "attic", "tea"][..],
        &["memory", "list", "--place", "attic"],
    ] {
        let told = run(home, verb).await;
        assert!(
            told.stdout.contains("tea chest"),
            "{verb:?}: {}{}",
            told.stdout,
            told.stderr
        );
        assert!(!told.stderr.contains("left out"), "{}", told.stderr);
    }
    let told = run(home, &["recall", "--place", "atic", "tea"]).await;
    assert_eq!(told.code, 2);
    assert!(
        told.stderr.contains("Did you mean attic"),
        "{}",
        told.stderr
    );
}

/// A config with a mistake names no secret, and nobody is told to delete one.
#[tokio::test]
async fn secrets_of_a_broken_config_are_not_called_unused() {
    let house = House::new(TWO).await;
    let path = house.home.path().join("config.toml");
    let text = std::fs::read_to_string(&path).expect("reads");
    house.write("config.toml", &format!("{text}\n[agents.lily\n"));
    let doctor = run(house.home.path(), &["doctor"]).await;
    assert!(!doctor.stdout.contains("Delete it"), "{}", doctor.stdout);
}

/// Commands in an explanation reach the home that was named.
#[tokio::test]
async fn hints_of_an_explanation_name_the_home() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    let path = home.display().to_string();
    let told = run(
        home,
        &[
            "--home",
            &path,
            "route",
            "explain",
            "telegram:topic:-1001:5",
        ],
    )
    .await;
    assert!(
        told.stdout.contains("`parlor --home HOME "),
        "{}",
        told.stdout
    );
    assert!(!told.stdout.contains("`parlor pin"), "{}", told.stdout);
    assert!(!told.stdout.contains("`parlor run"), "{}", told.stdout);
}

/// The session of a job belongs to the job's agent, also after the job is removed.
#[tokio::test]
async fn the_session_of_a_removed_job_is_told_as_such() {
    let house = House::new(TWO).await;
    house.model.answer_with(|_| Script::text("Done."));
    let process = house.spawn().await;
    let home = house.home.path();
    let add = [
        "job", "add", "--agent", "rose", "--every", "1h", "tidy", "Tidy up",
    ];
    assert_eq!(run(home, &add).await.code, 0);
    assert_eq!(run(home, &["job", "run", "tidy"]).await.code, 0);
    house.model.wait_for_requests(1).await;
    let told = listed(&house, "sessions").await;
    assert!(told.contains("Rose (rose): the job tidy  "), "{told}");
    assert_eq!(run(home, &["job", "remove", "tidy"]).await.code, 0);
    let told = listed(&house, "sessions").await;
    assert!(
        told.contains("Rose (rose): the job tidy, which was removed"),
        "{told}"
    );
    let told = run(home, &["sessions", "show", "cron:rose:tidy"])
        .await
        .stdout;
    assert!(
        !told.contains("obody") && !told.contains("parlor pin"),
        "{told}"
    );
    process.stop().await;
}
