//! `parlor chat` at a terminal: lines take effect in the order they are typed, people who leave know
//! what is waited for, and a second chat joins the first.

use insta::assert_snapshot;

use crate::chat::{CTRL_C, CTRL_D, TWO, begun, chat, is_ready};
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::pty::Pty;

const WAITING: &str = "Waiting for the answer before leaving. Ctrl-C or Ctrl-D leaves at once.";

/// The screen behind the person's first line, without the sign of life.
fn talk(screen: &str) -> String {
    let (_, talk) = screen.split_once("› first\n").expect("the first line");
    let is_steady = |line: &&str| !line.contains("is writing…");
    talk.lines()
        .filter(is_steady)
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn quit_says_that_the_answer_is_waited_for() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    chat.types("/quit\r");
    chat.shows(WAITING).await;
    // Other keys are no way out.
    chat.types("x\r");
    house.model.release();
    let screen = chat.shows("goes on to its end.").await;
    assert_eq!(
        screen.matches("The answer has begun").count(),
        1,
        "{screen}"
    );
    assert_eq!(chat.ends().await, 0);
    assert_eq!(house.ask("SELECT outcome FROM turns"), "answered");
}

#[tokio::test]
async fn ctrl_c_leaves_at_once_after_quit_and_the_answer_comes_later() {
    let house = House::new(TWO).await;
    for way in ["/quit\r", CTRL_D] {
        let mut leaving = chat(&house).await;
        begun(&house, &mut leaving).await;
        leaving.types(way);
        leaving.shows(WAITING).await;
        leaving.types(CTRL_C);
        leaving
            .shows("it is written anew when you next start `parlor chat`")
            .await;
        assert_eq!(leaving.ends().await, 0);
        let mut again = chat(&house).await;
        again
            .sees("the answer of before", |screen| {
                screen.contains("Answering what you asked before: “first”")
                    && screen.contains("Main: re: first")
            })
            .await;
        again.types("/new\r");
        again.shows("fresh").await;
        again.types("/quit\r");
        assert_eq!(again.ends().await, 0);
    }
}

#[tokio::test]
async fn ctrl_d_repeats_nothing_of_the_answer() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    chat.types(CTRL_D);
    chat.shows(WAITING).await;
    house.model.release();
    let screen = chat.shows("goes on to its end.").await;
    assert_eq!(chat.ends().await, 0);
    assert_snapshot!(talk(&screen), @"
    Waiting for the answer before leaving. Ctrl-C or Ctrl-D leaves at once.
    Main: The answer has begun and goes on to its end.
    ");
}

/// The switch is typed behind two lines, so it comes behind their answers.
#[tokio::test]
async fn a_switch_typed_ahead_waits_for_the_lines_before() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    for line in [
        "second\r",
        "/agent rose\r",
        "third\r",
        "/new\r",
        "/agent reset\r",
    ] {
        chat.types(line);
    }
    chat.shows("  and 2 more").await;
    house.model.release();
    let screen = chat
        .sees("the end", |screen| {
            screen.contains("undone") && is_ready(screen)
        })
        .await;
    assert_snapshot!(talk(&screen), @"
    Main: The answer has begun and goes on to its end.
    › second
    Main: re: second
    › /agent rose
    🌹 Rose answers here from now on. /agent reset undoes that.
    › third
    🌹 Rose: re: first

    [@main] The answer has begun and goes on to its end.

    second

    [@main] re: second

    [ann handed this place from main to rose]

    third
    › /new
    A fresh conversation begins here. What was said before is kept, but I no longer
    look at it.
    › /agent reset
    The switch is undone. Main answers here. Main is the default agent.
    ›
    ");
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
    assert_snapshot!(
        house.ask("SELECT group_concat(text, char(10)) FROM (SELECT text FROM messages WHERE kind = 'handoff' ORDER BY id)"),
        @"
    from main to rose
    from rose to main
    "
    );
    assert_snapshot!(
        house.ask("SELECT group_concat(actor || ' ' || action, char(10)) FROM audit"),
        @"
    local:you switch
    local:you switch
    "
    );
}

#[tokio::test]
async fn stopped_is_told_before_the_switch_that_was_typed_ahead() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    chat.types("/agent rose\r");
    chat.shows("  › /agent rose").await;
    chat.types(CTRL_C);
    let screen = chat
        .sees("the end", |screen| {
            screen.contains("from now on") && is_ready(screen)
        })
        .await;
    assert_snapshot!(talk(&screen), @"
    Main: The answer has begun
    Stopped.
    › /agent rose
    🌹 Rose answers here from now on. /agent reset undoes that.
    ›
    ");
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

#[tokio::test]
async fn what_waits_can_be_dropped() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    for line in ["/agent rose\r", "second\r", "/stop all\r"] {
        chat.types(line);
    }
    let screen = chat
        .sees("the end", |screen| {
            screen.contains("Stopped.") && is_ready(screen)
        })
        .await;
    assert_snapshot!(talk(&screen), @"
    2 lines that you typed ahead are dropped.
    Main: The answer has begun
    › /stop all
    Stopped.
    ›
    ");
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
}

/// Both chats have their own answers, and the second goes on by itself when the first ends.
#[tokio::test]
async fn a_second_chat_joins_the_first_and_outlives_it() {
    let house = House::new(TWO).await;
    let mut first = chat(&house).await;
    let mut second = chat(&house).await;
    second
        .shows("Another `parlor chat` is open on this home")
        .await;
    second.types("hello from the second\r");
    second.shows("re: hello from the second").await;
    first.types("hello from the first\r");
    let screen = first
        .sees("an answer", |screen| {
            screen.contains("hello from the first") && screen.contains("re: ") && is_ready(screen)
        })
        .await;
    assert!(!screen.contains("from the second\n"), "{screen}");
    house.model.enqueue(Script::text("The late answer.").held());
    second.types("a slow question\r");
    second.shows("is writing…").await;
    first.types("/quit\r");
    assert_eq!(first.ends().await, 0);
    second
        .shows("The other chat has ended; this one goes on by itself.")
        .await;
    second
        .sees("the answer", |screen| {
            screen.contains("re: a slow question") && is_ready(screen)
        })
        .await;
    second.types("one more\r");
    second.shows("re: one more").await;
    second.types("/quit\r");
    assert_eq!(second.ends().await, 0);
}

#[tokio::test]
async fn a_paused_agent_is_told_as_paused() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    chat.types("/agent pause rose\r");
    chat.shows("paused").await;
    chat.types("/agents\r");
    chat.shows("🌹 Rose · fake/any (paused)").await;
    chat.types("/agent rose\r");
    chat.shows("🌹 Rose has this place from now on, but is paused")
        .await;
    chat.types("/agent reset\r");
    chat.shows("The switch is undone.").await;
    chat.types("/topic writing\r");
    chat.shows("You're in writing now. 🌹 Rose is paused: lines wait until /agent resume rose.")
        .await;
    chat.types("/topics\r");
    chat.shows("/topic writing: 🌹 Rose (paused) ← you're here")
        .await;
    chat.types("/topic Bee Keeping\r");
    chat.shows("/topic bee-keeping would do.").await;
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

/// A line that waited for a paused agent is answered before the end of the pipe.
#[tokio::test]
async fn a_pipe_that_pauses_and_resumes_has_answered_every_line() {
    let house = House::new(TWO).await;
    let lines = "/agent pause main\nhello\n/agent resume main\nagain\n";
    let ran = crate::cli::run_with_input(house.home.path(), &["chat"], lines).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("hello"), "{}", ran.stdout);
    let left =
        crate::cli::run_with_input(house.home.path(), &["chat"], "/agent pause main\nhello\n")
            .await;
    assert_eq!(left.code, 1, "{}", left.stderr);
    let resumed =
        crate::cli::run_with_input(house.home.path(), &["chat"], "/agent resume main\n").await;
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
}

/// Ctrl-C is a signal where the terminal knows no escapes.
#[tokio::test]
async fn ctrl_c_in_a_dumb_terminal_stops_the_answer_then_leaves() {
    let house = House::new(TWO).await;
    let dumb = [("TERM", "dumb")];
    let mut chat = Pty::in_control(house.home.path(), &["chat"], 80, &dumb);
    chat.sees("the prompt", |screen| screen.ends_with('›'))
        .await;
    house.model.enqueue(Script::text("Never said.").held());
    chat.types("first\r");
    chat.shows("Main is writing…").await;
    chat.types(CTRL_C);
    chat.sees("the end", |screen| {
        screen.contains("Stopped.") && screen.ends_with('›')
    })
    .await;
    house.model.enqueue(Script::text("Never said.").held());
    chat.types("second\r");
    chat.sees("the second", |screen| {
        screen.matches("Main is writing…").count() == 2
    })
    .await;
    chat.types("/quit\r");
    chat.shows(WAITING).await;
    chat.types(CTRL_C);
    assert_eq!(chat.ends().await, 0);
    // The question is answered by the next chat.
    let ran = crate::cli::run_with_input(house.home.path(), &["chat"], "").await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
