//! `parlor chat` at a terminal, in several topics and after a cut: which answer is told as whose.

use crate::chat::{CTRL_C, CTRL_D, TWO, begun, chat, is_ready};
use crate::support::House;
use crate::support::fake_model::Script;

/// A chat that was left in the middle of its answer.
async fn leave_in_the_middle(house: &House, line: &str) {
    let mut leaving = chat(house).await;
    house.model.enqueue(Script::text("Never said.").held());
    leaving.types(&format!("{line}\r"));
    leaving.shows("is writing…").await;
    leaving.types(CTRL_D);
    leaving.shows("Waiting for the answer").await;
    leaving.types(CTRL_C);
    assert_eq!(leaving.ends().await, 0);
}

/// M4: the person is told at once what is being answered, and sees it being written.
#[tokio::test]
async fn an_answer_from_before_is_told_at_once_and_streamed() {
    let house = House::new(TWO).await;
    leave_in_the_middle(&house, "a slow story").await;
    house.model.enqueue(Script::Pause {
        text: "The answer has begun and goes on to its end.".into(),
        after: 4,
    });
    let mut again = chat(&house).await;
    again
        .sees("the question and the first words", |screen| {
            screen.contains("Answering what you asked before: “a slow story”")
                && screen.contains("Main: The answer has begun")
                && screen.contains("is writing…")
        })
        .await;
    house.model.release();
    let screen = again
        .sees("the end", |screen| {
            screen.contains("goes on to its end.") && is_ready(screen)
        })
        .await;
    assert_eq!(
        screen.matches("The answer has begun").count(),
        1,
        "{screen}"
    );
    assert!(!screen.contains("is answered now"), "{screen}");
    again.types("/quit\r");
    assert_eq!(again.ends().await, 0);
}

/// M3
#[tokio::test]
async fn stop_in_another_topic_says_where_something_is_written() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    chat.types("/topic writing\r");
    chat.shows("You're in writing now.").await;
    chat.types("/stop\r");
    let screen = chat
        .shows("Main is writing in the main chat; Ctrl-C stops that.")
        .await;
    assert!(
        !screen.contains("Nothing is being written here"),
        "{screen}"
    );
    chat.types(CTRL_C);
    chat.shows("Stopped.").await;
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

/// M5
#[tokio::test]
async fn an_answer_from_elsewhere_has_a_heading_also_when_it_is_streamed() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    house.model.enqueue(Script::text("The late answer.").held());
    chat.types("first\r");
    house.model.wait_for_open(1).await;
    chat.types("/topic writing\r");
    chat.shows("You're in writing now.").await;
    house.model.release();
    let screen = chat
        .sees("the answer", |screen| {
            screen.contains("Main: The late answer.") && is_ready(screen)
        })
        .await;
    assert!(
        screen.contains("In the main chat:\nMain: The late answer."),
        "{screen}"
    );
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

/// R4: an answer in an idle topic does not wait for the answer of another agent elsewhere.
#[tokio::test]
async fn an_answer_in_another_topic_comes_at_once() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    chat.types("/topic writing\r");
    chat.shows("You're in writing now.").await;
    chat.types("a title\r");
    chat.sees("Rose's answer", |screen| {
        screen.contains("🌹 Rose: re: a title") && screen.contains("is writing…")
    })
    .await;
    house.model.release();
    let screen = chat
        .sees("the end", |screen| {
            screen.contains("goes on to its end.") && is_ready(screen)
        })
        .await;
    assert!(screen.contains("writing › a title\n"), "{screen}");
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

/// R4: both keys that leave at once are named, and so are the lines that are lost.
#[tokio::test]
async fn people_who_leave_at_once_are_told_which_lines_were_not_sent() {
    let mut house = House::new(TWO).await;
    // The lines that were sent are answered by the next chat.
    house.leave_leftovers();
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    chat.types("second\r");
    chat.types("/agent rose\r");
    chat.types("third\r");
    chat.shows("  › third").await;
    chat.types(CTRL_D);
    chat.shows("Waiting for the answer before leaving. Ctrl-C or Ctrl-D leaves at once.")
        .await;
    chat.types(CTRL_D);
    chat.shows("2 lines were not sent: “/agent rose” and “third”.")
        .await;
    assert_eq!(chat.ends().await, 0);
}
