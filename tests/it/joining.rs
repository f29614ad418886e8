//! `parlor chat` and `parlor ask` beside a running gateway: they join it over `parlor.sock`.

use crate::cli::run_with_input;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::house::{Process, parlor};
use crate::support::pty::Pty;

const TWO: &str = "[agents.main]\n[agents.rose]\nemoji = \"🌹\"\n[[bindings]]\nmatch = \"local:home:writing\"\nagent = \"rose\"\n";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const JOINED: &str = "You've joined the gateway that is running; it goes on when you leave.";

/// A house whose gateway runs as a process of its own.
async fn open_house() -> (House, Process) {
    let house = House::new(TWO).await;
    let process = house.spawn().await;
    (house, process)
}

/// Returns once the prompt is there.
async fn chat(house: &House) -> Pty {
    let mut chat = Pty::start(house.home.path(), &["chat"], 80, &[]);
    chat.sees("the prompt", |screen| screen.ends_with('›'))
        .await;
    chat
}

async fn asked(house: &House, arguments: &[&str]) -> (Option<i32>, String, String) {
    let ran = parlor(house.home.path())
        .arg("ask")
        .args(arguments)
        .output()
        .await
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
}

#[tokio::test]
async fn a_question_is_answered_by_the_gateway_that_runs() {
    let (house, process) = open_house().await;
    let (code, answer, told) = asked(&house, &["hello"]).await;
    assert_eq!((code, answer.as_str()), (Some(0), "re: hello\n"), "{told}");
    // Each question stands for itself.
    asked(&house, &["again"]).await;
    assert!(!house.model.last_request().has("hello"));
    let (code, told, _) = asked(&house, &["--agent", "rose", "--json", "who?"]).await;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("\"id\": \"rose\""), "{told}");
    assert!(told.contains("\"output\": "), "{told}");
    let (_, told, _) = asked(&house, &["--json", "and now?"]).await;
    assert!(told.contains("\"id\": \"main\""), "{told}");
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
    let (code, _, told) = asked(&house, &["--agent", "ros", "who?"]).await;
    assert_eq!(code, Some(2));
    assert!(
        told.contains("no agent is called ros. Did you mean rose?"),
        "{told}"
    );
    house.model.enqueue_when("fails", Script::status(401, "no"));
    let (code, answer, told) = asked(&house, &["this fails"]).await;
    assert_eq!((code, answer.as_str()), (Some(1), ""));
    assert!(told.contains("provider"), "{told}");
    assert_eq!(process.stop().await, 0);
}

/// Questions at the same time have places of their own: none waits for another, and none reads
/// another's words.
#[tokio::test]
async fn questions_at_the_same_time_do_not_meet() {
    let (house, process) = open_house().await;
    house.model.hold();
    let release = async {
        house.model.wait_for_open(3).await;
        house.model.release();
    };
    let (one, two, three, ()) = tokio::join!(
        asked(&house, &["one"]),
        asked(&house, &["--agent", "rose", "two"]),
        asked(&house, &["three"]),
        release,
    );
    assert_eq!(one.1, "re: one\n", "{}", one.2);
    assert_eq!(two.1, "re: two\n", "{}", two.2);
    assert_eq!(three.1, "re: three\n", "{}", three.2);
    process.kill().await;
}

#[tokio::test]
async fn a_chat_joins_the_gateway_that_runs() {
    let (house, process) = open_house().await;
    let mut chat = chat(&house).await;
    chat.shows(JOINED).await;
    house.model.enqueue(Script::Pause {
        text: "The answer has begun and goes on to its end.".into(),
        after: 4,
    });
    chat.types("first\r");
    chat.shows("Main: The answer has begun").await;
    chat.types("/agents\r");
    chat.shows("• Main · fake/any ← answers here").await;
    chat.types("second\r");
    chat.shows("  › second").await;
    house.model.reply_when("second", "The second answer.");
    chat.types(CTRL_C);
    chat.sees("the next answer", |screen| {
        screen.contains("Stopped.")
            && screen.contains("Main: The second answer.")
            && screen.ends_with('›')
            && !screen.contains("is writing")
    })
    .await;
    chat.types("/topic writing\r");
    chat.shows("You're in writing now. 🌹 Rose answers here.")
        .await;
    chat.types("a title\r");
    chat.sees("Rose's answer", |screen| {
        screen.contains("🌹 Rose: re: a title") && screen.ends_with("writing ›")
    })
    .await;
    // The press may come before the chat has heard of the answer's end.
    let leaving = "Press Ctrl-C again or Ctrl-D to leave.";
    chat.types(CTRL_C);
    let screen = chat.sees("what the press does", |screen| {
        screen.contains(leaving) || screen.contains("Nothing is being written here.")
    });
    if !screen.await.contains(leaving) {
        chat.types(CTRL_C);
        chat.shows(leaving).await;
    }
    chat.types(CTRL_D);
    assert_eq!(chat.ends().await, 0);
    // The gateway goes on.
    assert_eq!(asked(&house, &["hello"]).await.1, "re: hello\n");
    process.kill().await;
}

#[tokio::test]
async fn lines_from_a_pipe_are_answered_by_the_gateway_that_runs() {
    let (house, process) = open_house().await;
    house
        .model
        .enqueue_when("second", Script::status(401, "no"));
    let lines = "first\nsecond\n/topic writing\n/agent\n";
    let ran = run_with_input(house.home.path(), &["chat"], lines).await;
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.starts_with("re: first\n"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("🌹 Rose answers here, but its model"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("provider"), "{}", ran.stdout);
    assert!(
        ran.stderr.ends_with("error: a line was not answered\n"),
        "{}",
        ran.stderr
    );
    process.kill().await;
}

/// `--agent` counts for the places of this terminal, as long as it is there.
#[tokio::test]
async fn an_agent_for_a_joined_chat_goes_with_it() {
    let (house, process) = open_house().await;
    let with_rose = run_with_input(
        house.home.path(),
        &["chat", "--agent", "rose"],
        "hello\n/agent\n",
    )
    .await;
    assert_eq!(with_rose.code, 0, "{}", with_rose.stderr);
    assert!(
        with_rose.stdout.contains("🌹 Rose answers here"),
        "{}",
        with_rose.stdout
    );
    let without = run_with_input(house.home.path(), &["chat"], "/agent\n").await;
    assert!(
        without.stdout.contains("Main answers here"),
        "{}",
        without.stdout
    );
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
    process.kill().await;
}

/// A person who leaves in the middle of an answer finds it in the next chat.
#[tokio::test]
async fn an_answer_waits_for_the_next_terminal() {
    let (house, process) = open_house().await;
    let mut first = chat(&house).await;
    house.model.hold();
    first.types("a long question\r");
    house.model.wait_for_open(1).await;
    first.types(CTRL_D);
    assert_eq!(first.ends().await, 0);
    house.model.release();
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "0")
        .await;
    let mut second = chat(&house).await;
    let screen = second.shows("Main: re: a long question").await;
    assert!(
        screen.contains("What was asked here before is answered now:"),
        "{screen}"
    );
    second.types(CTRL_D);
    assert_eq!(second.ends().await, 0);
    process.kill().await;
}

#[tokio::test]
async fn a_chat_ends_when_its_gateway_does() {
    let (house, process) = open_house().await;
    let mut chat = chat(&house).await;
    chat.types("half a line");
    chat.shows("› half a line").await;
    assert_eq!(process.stop().await, 0);
    let screen = chat.shows(GATEWAY_STOPPED).await;
    assert!(!screen.contains("error"), "{screen}");
    assert!(!screen.contains("› The gateway"), "{screen}");
    assert_eq!(chat.ends().await, 0);
}

const GATEWAY_STOPPED: &str = "The gateway has stopped, and this chat ends with it.";

/// W4: the gateway finishes the answer, and the chat shows it to its end.
#[tokio::test]
async fn a_chat_shows_the_answer_that_its_gateway_finishes() {
    let (house, process) = open_house().await;
    let mut chat = chat(&house).await;
    crate::chat::begun(&house, &mut chat).await;
    let stopping = tokio::spawn(process.stop());
    house.wait_until_unreachable().await;
    chat.types("too late\r");
    chat.shows("The gateway is stopping").await;
    house.model.release();
    let screen = chat
        .sees("the end of the answer and of the chat", |screen| {
            let said = ["goes on to its end.", GATEWAY_STOPPED, "“too late”"];
            said.iter().all(|words| screen.contains(words))
        })
        .await;
    assert_eq!(
        screen.matches("The answer has begun").count(),
        1,
        "{screen}"
    );
    assert_eq!(chat.ends().await, 0);
    assert_eq!(stopping.await.expect("it stops"), 0);
    assert_eq!(house.ask("SELECT outcome FROM turns"), "answered");
}

/// The same for a script that asked.
#[tokio::test]
async fn a_question_is_answered_by_a_gateway_that_stops() {
    let (house, process) = open_house().await;
    house.model.hold();
    let asking = async { asked(&house, &["--json", "which"]).await };
    let stopping = async {
        house.model.wait_for_open(1).await;
        let stopping = tokio::spawn(process.stop());
        house.wait_until_unreachable().await;
        house.model.release();
        stopping.await.expect("it stops")
    };
    let ((code, answer, told), stopped) = tokio::join!(asking, stopping);
    assert_eq!((code, told.as_str(), stopped), (Some(0), "", 0), "{answer}");
    assert!(answer.contains("\"answer\": \"re: which\""), "{answer}");
    assert!(answer.contains("\"model\": \"fake/any\""), "{answer}");
}

/// A question beside a chat is answered by the gateway of that chat.
#[tokio::test]
async fn a_question_beside_a_chat_is_answered() {
    let house = House::new(TWO).await;
    let mut first = chat(&house).await;
    let (code, answer, told) = asked(&house, &["hello"]).await;
    assert_eq!((code, told.as_str()), (Some(0), ""));
    assert!(answer.contains("re: hello"), "{answer}");
    first.types(CTRL_D);
    assert_eq!(first.ends().await, 0);
}
