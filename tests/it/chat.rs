//! `parlor chat` at a terminal: keys go in, and the screen is looked at.

use insta::assert_snapshot;

use crate::cli::fresh_home;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::pty::Pty;

pub(crate) const TWO: &str = "[agents.main]\n[agents.rose]\nemoji = \"🌹\"\n[[bindings]]\nmatch = \"local:home:writing\"\nagent = \"rose\"\n";
pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";

fn at(house: &House, columns: u16) -> Pty {
    Pty::start(house.home.path(), &["chat"], columns, &[])
}

/// Returns once the prompt is there.
pub(crate) async fn chat(house: &House) -> Pty {
    let mut chat = at(house, 80);
    chat.sees("the prompt", |screen| screen.ends_with('›'))
        .await;
    chat
}

/// An answer whose first words are on the screen, while the model holds the rest.
pub(crate) async fn begun(house: &House, chat: &mut Pty) {
    house.model.enqueue(Script::Pause {
        text: "The answer has begun and goes on to its end.".into(),
        after: 4,
    });
    chat.types("first\r");
    chat.shows("The answer has begun").await;
}

pub(crate) fn is_ready(screen: &str) -> bool {
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

/// A line typed ahead is the next to be answered. The stop is told at once, and not with the first
/// words of that answer.
#[tokio::test]
async fn ctrl_c_stops_one_answer_at_once_while_another_line_waits() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    house
        .model
        .enqueue_when("second", Script::text("The second answer.").held());
    chat.types("second\r");
    chat.shows("  › second").await;
    chat.types(CTRL_C);
    let screen = chat.shows("Stopped.").await;
    assert!(
        screen.contains("Main: The answer has begun\nStopped.\n"),
        "{screen}"
    );
    // The same wish once more, before the next answer has a word.
    chat.types(CTRL_C);
    chat.shows("Your next line is being answered now; Ctrl-C stops that too.")
        .await;
    house.model.release();
    let screen = chat
        .sees("the second answer", |screen| {
            screen.contains("The second answer.") && is_ready(screen)
        })
        .await;
    assert_eq!(screen.matches("Stopped.").count(), 1, "{screen}");
    assert_eq!(house.model.disconnects(), 1);
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

/// Two presses in a row are one wish: the second one does not go on to the next answer.
#[tokio::test]
async fn two_quick_presses_of_ctrl_c_stop_one_answer() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    house.model.reply_when("second", "The second answer.");
    chat.types("second\r");
    chat.shows("  › second").await;
    chat.types("\u{3}\u{3}");
    let screen = chat
        .sees("the second answer", |screen| {
            screen.contains("The second answer.") && is_ready(screen)
        })
        .await;
    assert_eq!(screen.matches("Stopped.").count(), 1, "{screen}");
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

/// A person who walked on to another topic still stops the answer on the screen.
#[tokio::test]
async fn ctrl_c_stops_the_answer_of_the_topic_before() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    begun(&house, &mut chat).await;
    chat.types("/topic writing\r");
    chat.shows("You're in writing now. 🌹 Rose answers here.")
        .await;
    chat.types(CTRL_C);
    chat.sees("the end", |screen| {
        screen.contains("Stopped.") && !screen.contains("is writing")
    })
    .await;
    house.model.wait_for_disconnect().await;
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

#[tokio::test]
async fn questions_to_the_gateway_are_answered_while_an_agent_writes() {
    let house = House::new(TWO).await;
    let mut chat = chat(&house).await;
    house.model.enqueue(Script::Pause {
        text: "One block.\n\nAnother block goes on to its end.".into(),
        after: 4,
    });
    chat.types("first\r");
    chat.shows("Another block").await;
    chat.types("/agents\r");
    chat.shows("answers here").await;
    chat.types("/queue\r");
    chat.shows("Working for").await;
    chat.types("/topics\r");
    let screen = chat
        .sees("the topics, and the prompt below", |screen| {
            let below = screen.split_once("/topic writing: 🌹 Rose\n");
            below.is_some_and(|(_, below)| {
                below.contains("Another block goes") && below.lines().any(|line| line.trim() == "›")
            })
        })
        .await;
    let talk = screen.split_once("› first\n").expect("the first line").1;
    let talk = without_seconds(talk);
    assert_snapshot!(talk, @"
    Main: One block.
    › /agents
    • Main · fake/any ← answers here
    • 🌹 Rose · fake/any

    /agent rose switches to 🌹 Rose.
    › /queue
    Working for … on “first” (ann).
    Nothing waits.

    /stop cancels the current answer.
    › /topics
    /topic (the main chat): Main ← you're here
    /topic writing: 🌹 Rose
    Main: Another block goes
    ›
    ");
    // The conversation that goes on after the answer is told about behind it.
    chat.types("/agent rose\r");
    chat.shows("  › /agent rose").await;
    house.model.release();
    let screen = chat
        .sees("the end", |screen| {
            screen.contains("from now on") && is_ready(screen)
        })
        .await;
    let (_, end) = screen
        .split_once("/topic writing: 🌹 Rose\n")
        .expect("the topics");
    assert_snapshot!(end, @"
    Main: Another block goes on to its end.
    › /agent rose
    🌹 Rose answers here from now on. /agent reset undoes that.
    ›
    ");
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

/// The sign of life and times change while one looks.
fn without_seconds(screen: &str) -> String {
    let is_steady = |line: &&str| !line.contains("is writing…");
    let lines: Vec<&str> = screen.lines().filter(is_steady).collect();
    let words = lines.join("\n");
    let (before, after) = words.split_once("Working for ").expect("the queue");
    let (_, after) = after.split_once(" on ").expect("a time");
    format!("{before}Working for … on {after}")
}

#[tokio::test]
async fn words_behind_quit_do_not_keep_a_person() {
    let house = House::new(TWO).await;
    for line in ["/quit now\r", "/exit x\r"] {
        let mut chat = chat(&house).await;
        chat.types(line);
        assert_eq!(chat.ends().await, 0);
    }
    let input = "/quit please\nnever read\n";
    let ran = crate::cli::run_with_input(house.home.path(), &["chat"], input).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert_eq!(house.ask("SELECT count(*) FROM turns"), "0");
}

#[tokio::test]
async fn help_is_short_and_help_all_lists_what_only_the_terminal_knows() {
    let house = House::new(TWO).await;
    let mut chat = at(&house, 60);
    chat.types("/help\r");
    let screen = chat
        .sees("the help", |screen| {
            screen.contains("/help all lists") && is_ready(screen)
        })
        .await;
    let (_, help) = screen.split_once("› /help\n").expect("the line");
    assert_snapshot!(help, @"
    Just write. Lines you type while an answer is being written
    wait for their turn.

    Who answers
    /agents: everyone, and who answers here
    /agent NAME: switch to another agent; /agent reset undoes
    that
    /topic NAME: go to a topic; /topic alone goes back, /topics
    lists them

    This conversation
    /new: start a fresh conversation
    /stop: cancel the answer, as Ctrl-C does
    /status: what is going on here

    What the agent knows
    /memory, /remember TEXT, /forget WORDS
    /skills: what the agent can do

    Leaving
    /quit or Ctrl-D; Ctrl-C twice does it too

    /help all lists every command and key.
    ›
    ");
    chat.types("/help all\r");
    let screen = chat
        .sees("the keys", |screen| {
            screen.contains("Paste:") && is_ready(screen)
        })
        .await;
    let (_, own) = screen.split_once("Only in this").expect("the part");
    assert_snapshot!(own, @"
     terminal
    /topic [name]: go to another topic; without a name, back to
    the main chat
    /topics: all topics, and who answers there
    /quit: leave; /exit does the same

    Keys
    Ctrl-C: clear the line; on an empty line, stop the answer;
    when nothing is being written, press twice to leave
    Ctrl-D: leave, after the answer that is being written
    Tab: complete a command, an agent or a topic
    ↑ and ↓: your earlier lines, from earlier chats too; Ctrl-R
    searches them
    Enter: send, also while an answer is being written; lines
    wait for their turn
    Paste: several lines at once are one message
    ›
    ");
    // Bare words of other prompts do the same.
    chat.types("?\r");
    chat.sees("the help again", |screen| {
        screen.contains("› ?\n") && screen.ends_with("lists every command and key.\n›")
    })
    .await;
    chat.types("exit\r");
    assert_eq!(chat.ends().await, 0);
    assert_eq!(house.ask("SELECT count(*) FROM turns"), "0");
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
    chat.sees("the answer in the place of the sign", |screen| {
        screen.contains("🌹 Rose: re: ") && is_ready(screen)
    })
    .await;
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
    chat.types("/topic garden\r");
    chat.shows("You're in garden now.").await;
    chat.types("/topics\r");
    chat.shows("/topic garden: Main ← you're here").await;
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
    assert!(dumb.contains("Some bold words and code in a"), "{dumb:?}");
    let plain = talk(&["chat"], &[("NO_COLOR", "1")]).await;
    assert!(plain.contains("Some bold words and code in a"), "{plain:?}");
    for marks in ["**", "```", "|---|"] {
        assert!(!dumb.contains(marks) && !plain.contains(marks), "{marks}");
    }
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

/// Where nothing can be drawn twice, the sign of life is a line of its own.
#[tokio::test]
async fn a_dumb_terminal_has_a_sign_of_life() {
    let house = House::new(TWO).await;
    house.model.hold();
    let mut chat = Pty::start(house.home.path(), &["chat"], 80, &[("TERM", "dumb")]);
    chat.sees("the prompt", |screen| screen.ends_with('›'))
        .await;
    chat.types("hello\r");
    chat.shows("\nMain is writing…").await;
    house.model.release();
    let screen = chat
        .sees("an answer", |screen| {
            screen.contains("re: hello") && screen.ends_with('›')
        })
        .await;
    assert_eq!(screen.matches("is writing").count(), 1, "{screen}");
    chat.types("/quit\r");
    assert_eq!(chat.ends().await, 0);
}

#[tokio::test]
async fn words_behind_chat_are_led_to_ask() {
    let home = fresh_home().await;
    let ran = crate::cli::run_with_input(home.path(), &["chat", "hello", "there"], "").await;
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.stderr, @"
    error: the lines of a chat are typed at its prompt, or piped in
    hint: `parlor ask` takes a question and prints its answer
    ");
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
