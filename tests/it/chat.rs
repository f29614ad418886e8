//! `parlor chat` at a terminal: keys go in, and the screen is looked at.

use insta::assert_snapshot;

use crate::cli::fresh_home;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::house::parlor;
use crate::support::pty::Pty;

const TWO: &str = "[agents.main]\n[agents.rose]\nemoji = \"🌹\"\n[[bindings]]\nmatch = \"local:home:writing\"\nagent = \"rose\"\n";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

fn at(house: &House, columns: u16) -> Pty {
    Pty::start(house.home.path(), &["chat"], columns, &[])
}

/// Returns once the prompt is there.
async fn chat(house: &House) -> Pty {
    let mut chat = at(house, 80);
    chat.sees("the prompt", |screen| screen.ends_with('›'))
        .await;
    chat
}

/// An answer whose first words are on the screen, while the model holds the rest.
async fn begun(house: &House, chat: &mut Pty) {
    house.model.enqueue(Script::Pause {
        text: "The answer has begun and goes on to its end.".into(),
        after: 4,
    });
    chat.types("first\r");
    chat.shows("The answer has begun").await;
}

fn is_ready(screen: &str) -> bool {
    screen.ends_with('›') && !screen.contains("is writing")
}

#[tokio::test]
async fn lines_typed_while_an_answer_is_written_are_kept_and_answered_in_order() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    chat.types("line G\r");
    chat.types("line H\r");
    chat.types("half a li");
    // The lines wait below the answer, and the prompt goes on.
    chat.sees("both lines waiting", |screen| {
        screen.contains("  › line G\n  › line H\n› half a li")
    })
    .await;
    house.model.release();
    let screen = chat
        .sees("the answers", |screen| {
            screen.contains("re: ")
                && screen.ends_with("› half a li")
                && !screen.contains("is writing")
        })
        .await;
    let talk = screen.split_once("› first\n").expect("the first line").1;
    assert_snapshot!(talk, @"
    Main: The answer has begun and goes on to its end.
    › line G
    › line H
    Main: re: [Backlog]
    line G

    line H
    › half a li
    ");
    chat.types(CTRL_C);
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
    assert_eq!(
        house
            .ask("SELECT count(*) FROM messages WHERE text LIKE '%line G%' OR text LIKE '%line H%'")
            .parse::<i32>()
            .expect("a number")
            .min(2),
        2
    );
}

#[tokio::test]
async fn ctrl_c_clears_the_line_then_stops_the_answer_then_leaves() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    chat.types("half a sentence");
    chat.shows("› half a sentence").await;
    chat.types(CTRL_C);
    chat.sees("a new prompt", |screen| {
        screen.ends_with("› half a sentence\n›")
    })
    .await;
    begun(&house, &mut chat).await;
    chat.types(CTRL_C);
    let screen = chat
        .sees("the end", |screen| {
            screen.contains("Stopped.") && is_ready(screen)
        })
        .await;
    assert!(screen.contains("The answer has begun"), "{screen}");
    house.model.wait_for_disconnect().await;
    chat.types(CTRL_C);
    chat.shows("Press Ctrl-C again or Ctrl-D to leave.").await;
    chat.types(CTRL_C);
    assert_eq!(chat.ends().await, 0);
    assert_eq!(house.ask("SELECT count(*) FROM turns"), "1");
}

/// A second Ctrl-C much later is not meant as the second press.
#[tokio::test]
async fn ctrl_d_leaves_and_words_in_between_take_ctrl_c_back() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    chat.types(CTRL_C);
    chat.shows("Press Ctrl-C again").await;
    chat.types("hello\r");
    chat.sees("an answer", |screen| {
        screen.contains("re: ") && is_ready(screen)
    })
    .await;
    chat.types(CTRL_C);
    chat.sees("the hint again", |screen| {
        screen.matches("Press Ctrl-C again").count() == 2
    })
    .await;
    chat.types(CTRL_D);
    assert_eq!(chat.ends().await, 0);
}

#[tokio::test]
async fn stop_typed_during_an_answer_takes_effect_at_once() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    chat.types("/stop\r");
    let screen = chat
        .sees("the end", |screen| {
            screen.contains("Stopped.") && is_ready(screen)
        })
        .await;
    let talk = screen.split_once("› first\n").expect("the first line").1;
    assert_snapshot!(talk, @"
    Main: The answer has begun
    › /stop
    Stopped.
    ›
    ");
    house.model.wait_for_disconnect().await;
    // The next answer has the screen to itself.
    house.model.enqueue(Script::Pause {
        text: "A second answer comes in pieces too.".into(),
        after: 3,
    });
    chat.types("second\r");
    chat.shows("Main: A second answer").await;
    house.model.release();
    chat.sees("the rest", |screen| {
        screen.contains("in pieces too.") && is_ready(screen)
    })
    .await;
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

#[tokio::test]
async fn a_person_sees_who_is_writing_before_the_first_word() {
    let house = House::new(TWO).await;
    house.model.hold();
    let mut chat = chat(&house).await;
    chat.types("/topic writing\r");
    chat.shows("You're in writing now. 🌹 Rose answers here.")
        .await;
    chat.types("a title\r");
    chat.shows("🌹 Rose is writing…").await;
    house.model.release();
    let screen = chat
        .sees("the answer", |screen| {
            screen.contains("🌹 Rose: re: ") && screen.ends_with("writing ›")
        })
        .await;
    assert!(!screen.contains("is writing"), "{screen}");
    chat.types(CTRL_D);
    assert_eq!(chat.ends().await, 0);
}

#[tokio::test]
async fn tab_completes_commands_agents_and_topics() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    chat.types("/who\t");
    chat.shows("› /whoami").await;
    chat.types(CTRL_C);
    chat.types("/agent ros\t");
    chat.shows("› /agent rose").await;
    chat.types(CTRL_C);
    chat.types("/topic wr\t\r");
    chat.shows("You're in writing now.").await;
    chat.types("/topics\r");
    chat.shows("/topic writing: 🌹 Rose ← you're here").await;
    chat.types("/topc\r");
    chat.shows("There is no command /topc. Did you mean /topic?")
        .await;
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

#[tokio::test]
async fn lines_of_an_earlier_chat_come_back_with_the_arrow() {
    use std::os::unix::fs::PermissionsExt;
    let house = House::new(TWO).await;
    let mut first = chat(&house).await;
    first.types("a line to remember\r");
    first
        .sees("an answer", |screen| {
            screen.contains("re: ") && is_ready(screen)
        })
        .await;
    first.types("/quit\r");
    assert_eq!(first.ends().await, 0);
    let history = house.home.path().join("chat_history");
    let mode = std::fs::metadata(&history)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // A pipe leaves no history.
    let piped = crate::cli::run_with_input(house.home.path(), &["chat"], "a piped line\n").await;
    assert_eq!(piped.code, 0);
    let mut second = chat(&house).await;
    second.types("\u{1b}[A\u{1b}[A");
    second.shows("› a line to remember").await;
    second.types(CTRL_C);
    second.types(CTRL_D);
    assert_eq!(second.ends().await, 0);
    assert!(
        !std::fs::read_to_string(history)
            .expect("text")
            .contains("piped")
    );
}

const MARKDOWN: &str = "Some **bold** words and `code` in a paragraph that is longer than sixty columns, so it is wrapped.\n\n- one\n- two\n\n```sh\nls\n```\n\n| a | b |\n|---|---|\n| 1 | 日本 |";

#[tokio::test]
async fn answers_are_drawn_and_wrapped_at_sixty_columns() {
    let house = House::new(TWO).await;
    house.model.enqueue(Script::text(MARKDOWN));
    let mut chat = at(&house, 60);
    chat.sees("the prompt", |screen| screen.ends_with('›'))
        .await;
    chat.types("draw\r");
    let screen = chat
        .sees("a table", |screen| {
            screen.contains("日本") && is_ready(screen)
        })
        .await;
    assert_snapshot!(screen, @"
    Main listens: just write. /topic writing has 🌹 Rose. /help
    lists the commands, /quit leaves.
    › draw
    Main: Some bold words and code in a paragraph that is
    longer than sixty columns, so it is wrapped.

    • one
    • two

    sh
      ls

     a │ b
    ───┼──────
     1 │ 日本
    ›
    ");
    assert!(chat.bytes().contains("\u{1b}[1mbold\u{1b}[0m"));
    chat.types(CTRL_D);
    assert_eq!(chat.ends().await, 0);
}

/// Neither colours nor bold words with NO_COLOR; in a dumb terminal no escape at all.
#[tokio::test]
async fn escapes_are_written_only_where_they_are_wanted() {
    let house = House::new(TWO).await;
    let has_colour = |bytes: &str| {
        let mut escapes = bytes.split("\u{1b}[").skip(1);
        escapes.any(|escape| {
            escape
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == ';')
                .starts_with('m')
        })
    };
    let talk = async |arguments: &[&str], environment: &[(&str, &str)]| {
        house.model.enqueue(Script::text(MARKDOWN));
        let mut chat = Pty::start(house.home.path(), arguments, 60, environment);
        chat.sees("the prompt", |screen| screen.ends_with('›'))
            .await;
        chat.types("draw\r");
        chat.sees("a table", |screen| {
            screen.contains("日本") && screen.ends_with('›')
        })
        .await;
        let bytes = chat.bytes();
        chat.types(CTRL_D);
        assert_eq!(chat.ends().await, 0);
        bytes
    };
    assert!(has_colour(&talk(&["chat"], &[]).await));
    assert!(!has_colour(&talk(&["chat"], &[("NO_COLOR", "1")]).await));
    assert!(!has_colour(&talk(&["--color", "never", "chat"], &[]).await));
    assert!(has_colour(
        &talk(&["chat", "--color=always"], &[("NO_COLOR", "1")]).await
    ));
    let dumb = talk(&["chat"], &[("TERM", "dumb")]).await;
    assert!(!dumb.contains('\u{1b}'), "{dumb:?}");
    assert!(dumb.contains("**bold** words and `code`"), "{dumb:?}");
}

#[tokio::test]
async fn the_greeting_names_what_is_there() {
    let home = fresh_home().await;
    let mut chat = Pty::start(home.path(), &["chat"], 100, &[]);
    let screen = chat
        .sees("the prompt", |screen| screen.ends_with('›'))
        .await;
    assert_snapshot!(screen, @"
    ☕ Main listens: just write. /topic writing has 🌹 Rose and /topic code has 🛠️ Ada. /help lists the
    commands, /quit leaves.
    ›
    ");
    chat.types(CTRL_D);
    assert_eq!(chat.ends().await, 0);
    let alone = House::new("[agents.main]\n").await;
    let mut chat = at(&alone, 100);
    let screen = chat
        .sees("the prompt", |screen| screen.ends_with('›'))
        .await;
    assert_snapshot!(screen, @"
    Main listens: just write. /help lists the commands, /quit leaves.
    ›
    ");
    chat.types(CTRL_D);
    assert_eq!(chat.ends().await, 0);
}

/// A failed turn in a pipe: the apology is no answer.
#[tokio::test]
async fn a_failed_line_in_a_pipe_is_told_apart() {
    let house = House::new(TWO).await;
    house
        .model
        .enqueue_when("second", Script::status(401, "no"));
    let ran =
        crate::cli::run_with_input(house.home.path(), &["chat"], "first\nsecond\nthird\n").await;
    assert_eq!(ran.code, 1);
    let answers: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("re: "))
        .collect();
    assert_eq!(answers.len(), 2, "{}", ran.stdout);
    assert!(!ran.stdout.contains("provider"), "{}", ran.stdout);
    assert!(ran.stderr.contains("provider"), "{}", ran.stderr);
    assert!(
        ran.stderr.ends_with("error: a line was not answered\n"),
        "{}",
        ran.stderr
    );
}

/// One process has the home at a time.
#[tokio::test]
async fn a_question_waits_for_no_gateway_that_runs() {
    let house = House::new(TWO).await;
    let process = house.spawn().await;
    let ran = parlor(house.home.path())
        .args(["ask", "hello"])
        .output()
        .await
        .expect("it runs");
    assert_eq!(ran.status.code(), Some(1));
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(told.contains("is already running"), "{told}");
    process.kill().await;
}
