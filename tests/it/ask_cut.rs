//! `parlor ask` that is cut off: the question ends with the person's patience, and no later question
//! waits or pays for it.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::chat::{CTRL_C, CTRL_D, begun, chat};
use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::house::parlor;

const TWO: &str = "[agents.main]\n[agents.rose]\n";
const OPEN: &str = "SELECT count(*) FROM inbox WHERE state = 'waiting'";
/// Long enough for a loaded machine; a question that waits this long waits for another's answer.
const PATIENCE: Duration = Duration::from_secs(15);

fn start(house: &House, arguments: &[&str]) -> Child {
    parlor(house.home.path())
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts")
}

async fn signal(child: &Child, name: &str) {
    let pid = child.id().expect("it runs").to_string();
    let sent = Command::new("kill").args([name, &pid]).status().await;
    assert!(sent.expect("kill is there").success());
}

/// Asks while the model is held, and cuts the question off with a signal. Returns the exit code.
async fn cut(house: &House, arguments: &[&str], name: &str) -> Option<i32> {
    let open = house.model.open_now();
    let mut child = start(house, arguments);
    house.model.wait_for_open(open + 1).await;
    signal(&child, name).await;
    child.wait().await.expect("it ends").code()
}

/// Asks while every answer to a slow question is held.
async fn quick(house: &House, arguments: &[&str]) -> String {
    let ran = tokio::time::timeout(PATIENCE, run(house.home.path(), arguments));
    let ran = ran.await.expect("the question waits for nobody else");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}

fn slow(house: &House) {
    house
        .model
        .answer_with(|request| match request.last_text().contains("slow") {
            true => Script::text("A long story.").held(),
            false => Script::text("Quick."),
        });
}

#[tokio::test]
async fn a_question_that_is_cut_off_is_cancelled_for_good() {
    let house = House::new(TWO).await;
    slow(&house);
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        assert_eq!(cut(&house, &["ask", "slow story"], name).await, Some(code));
        assert_eq!(house.ask(OPEN), "0", "{name}");
    }
    let topic = ["ask", "--topic", "shed", "slow story"];
    assert_eq!(cut(&house, &topic, "-INT").await, Some(130));
    assert_eq!(house.ask(OPEN), "0");
    assert_eq!(quick(&house, &["ask", "hello"]).await, "Quick.\n");
    let ran = crate::cli::run_with_input(house.home.path(), &["chat"], "hello\n").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("Quick.\n", ""));
    // Each was asked once, and never again.
    assert_eq!(house.model.asked_about("slow story").len(), 4);
}

/// The same beside a running gateway, also without a goodbye.
#[tokio::test]
async fn a_running_gateway_cancels_the_question_of_a_script_that_is_gone() {
    let house = House::new(TWO).await;
    slow(&house);
    let process = house.spawn().await;
    assert_eq!(cut(&house, &["ask", "slow story"], "-INT").await, Some(130));
    house.model.wait_for_open(0).await;
    assert_eq!(cut(&house, &["ask", "slow story"], "-KILL").await, None);
    // The gateway notices a little later that nobody waits any more.
    house.wait_until_stored(OPEN, "0").await;
    house.model.wait_for_open(0).await;
    let topic = ["ask", "--topic", "shed", "slow story"];
    assert_eq!(cut(&house, &topic, "-TERM").await, Some(143));
    house.wait_until_stored(OPEN, "0").await;
    assert_eq!(quick(&house, &["ask", "hello"]).await, "Quick.\n");
    assert_eq!(house.model.asked_about("slow story").len(), 3);
    process.kill().await;
}

/// Killed without a goodbye, and nobody waits for the answer any more.
#[tokio::test]
async fn a_question_that_was_killed_is_not_asked_again() {
    let house = House::new(TWO).await;
    slow(&house);
    assert_eq!(cut(&house, &["ask", "slow story"], "-KILL").await, None);
    assert_eq!(quick(&house, &["ask", "hello"]).await, "Quick.\n");
    let ran = crate::cli::run_with_input(house.home.path(), &["chat"], "hello\n").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("Quick.\n", ""));
    assert_eq!(house.model.asked_about("slow story").len(), 1);
    assert_eq!(house.ask(OPEN), "0");
}

#[tokio::test]
async fn a_line_of_a_pipe_that_is_cut_off_is_cancelled() {
    let house = House::new(TWO).await;
    slow(&house);
    let mut child = parlor(house.home.path())
        .arg("chat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let mut lines = child.stdin.take().expect("piped");
    tokio::io::AsyncWriteExt::write_all(&mut lines, b"slow story\n")
        .await
        .expect("it reads");
    house.model.wait_for_open(1).await;
    signal(&child, "-INT").await;
    let ended = child.wait().await.expect("it ends");
    assert_eq!(ended.code(), Some(130));
    assert_eq!(house.ask(OPEN), "0");
}

/// W2: the promised answer comes with the next chat, whatever is asked in between.
#[tokio::test]
async fn the_answer_that_was_promised_to_a_chat_is_shown_by_the_next_one() {
    let house = House::new(TWO).await;
    let mut leaving = chat(&house).await;
    begun(&house, &mut leaving).await;
    leaving.types(CTRL_D);
    leaving.shows("Waiting for the answer").await;
    leaving.types(CTRL_C);
    leaving
        .shows("it is written anew when you next start `parlor chat`")
        .await;
    assert_eq!(leaving.ends().await, 0);
    slow(&house);
    for arguments in [&["ask", "hello"][..], &["ask", "--topic", "shed", "hello"]] {
        assert_eq!(quick(&house, arguments).await, "Quick.\n");
    }
    assert_eq!(house.model.asked_about("first").len(), 1);
    let mut again = chat(&house).await;
    again.shows("Main: Quick.").await;
    again.types("/quit\r");
    assert_eq!(again.ends().await, 0);
}

/// An answer that a running gateway keeps for the next chat is not for a question.
#[tokio::test]
async fn an_answer_kept_for_a_chat_is_not_for_a_question() {
    let house = House::new(TWO).await;
    let process = house.spawn().await;
    let mut first = chat(&house).await;
    house.model.hold();
    first.types("a long question\r");
    house.model.wait_for_open(1).await;
    first.types(CTRL_D);
    assert_eq!(first.ends().await, 0);
    house.model.release();
    house.wait_until_stored(OPEN, "0").await;
    quick(&house, &["ask", "--topic", "shed", "hello"]).await;
    let mut second = chat(&house).await;
    second.shows("Main: re: a long question").await;
    second.types(CTRL_D);
    assert_eq!(second.ends().await, 0);
    process.kill().await;
}

/// Questions at the same time without a gateway: the first has one, and the others are answered too.
#[tokio::test]
async fn questions_beside_a_question_are_all_answered() {
    let house = House::new(TWO).await;
    house.model.answer_with(|request| {
        let text = request.last_text().to_owned();
        match text.contains("first") {
            true => Script::text(text),
            false => Script::text(text).held(),
        }
    });
    house.model.hold();
    let mut first = start(&house, &["ask", "first"]);
    house.model.wait_for_open(1).await;
    let second = start(&house, &["ask", "second"]);
    house.model.wait_for_open(2).await;
    let third = start(&house, &["ask", "third"]);
    house.model.wait_for_open(3).await;
    // The others are held once more, and the first does not wait for them.
    house.model.release();
    let printed = first.stdout.take().expect("piped");
    let mut printed = BufReader::new(printed).lines();
    let line = tokio::time::timeout(PATIENCE, printed.next_line());
    let line = line.await.expect("the answer is printed at once");
    assert_eq!(line.expect("it is read").as_deref(), Some("first"));
    house.model.release();
    assert!(first.wait().await.expect("it ends").success());
    for (child, word) in [(second, "second"), (third, "third")] {
        let ended = child.wait_with_output().await.expect("it ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = text(&ended.stderr);
        assert_eq!(text(&ended.stdout), format!("{word}\n"), "{told}");
    }
    assert_eq!(house.model.asked_about("third").len(), 1);
}
