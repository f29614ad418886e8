//! `parlor ask`, as scripts use it.

use insta::assert_snapshot;
use serde_json::Value;

use crate::cli::{Ran, run, run_with_input};
use crate::support::House;
use crate::support::fake_model::{Script, Tokens};
use crate::support::pty::Pty;

const TWO: &str =
    "[agents.main]\n[agents.rose]\n[providers.fake.prices]\nany = { input = 2, output = 10 }\n";

fn answered(ran: &Ran) -> &str {
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    ran.stdout.trim_end()
}

fn who(house: &House) -> String {
    house.ask("SELECT group_concat(slug, ', ') FROM (SELECT slug FROM turns JOIN agents ON uid = agent_uid ORDER BY turns.id)")
}

#[tokio::test]
async fn the_answer_alone_is_printed_as_it_was_written() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    house
        .model
        .answer_with(|request| Script::text(format!("**{}**", request.last_text().trim())));
    for (arguments, input) in [
        (&["ask", "what", "now"][..], ""),
        (&["ask", "what now"], ""),
        (&["ask", "-"], "what now\n"),
        (&["ask"], "what now\n"),
    ] {
        let ran = run_with_input(home, arguments, input).await;
        assert!(answered(&ran).contains("what now**"), "{}", ran.stdout);
        assert!(ran.stdout.starts_with("**"), "{}", ran.stdout);
    }
}

/// A pipe beside words is what the words are about.
#[tokio::test]
async fn piped_text_is_added_to_the_question() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    for arguments in [&["ask", "sum", "up"][..], &["ask", "sum up", "-"]] {
        let ran = run_with_input(home, arguments, "one\ntwo\n").await;
        answered(&ran);
        assert!(house.model.last_request().has("sum up\n\none\ntwo"));
    }
    let long = "x".repeat(1024 * 1024 + 1);
    let ran = run_with_input(home, &["ask", "-"], &long).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert_snapshot!(ran.stderr, @"error: the piped text has more than 1 MB, which is too much for a question");
}

#[tokio::test]
async fn an_agent_answers_once_and_nothing_is_pinned() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    answered(&run(home, &["ask", "--agent", "rose", "a title"]).await);
    answered(&run(home, &["ask", "a title"]).await);
    answered(&run(home, &["ask", "-a", "rose", "--topic", "shed", "a title"]).await);
    answered(&run(home, &["ask", "--topic", "shed", "a title"]).await);
    assert_eq!(who(&house), "rose, main, rose, main");
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
    let unknown = run(home, &["ask", "-a", "rosa", "a title"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (2, ""));
    assert_snapshot!(unknown.stderr, @"error: no agent is called rosa. Did you mean rose?");
}

#[tokio::test]
async fn each_question_stands_for_itself_unless_a_topic_is_named() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    answered(&run(home, &["ask", "my number is 7"]).await);
    answered(&run(home, &["ask", "which number"]).await);
    assert!(!house.model.last_request().has("my number is 7"));
    answered(&run(home, &["ask", "--topic", "shed", "my number is 8"]).await);
    answered(&run(home, &["ask", "--topic", "shed", "which number"]).await);
    assert!(house.model.last_request().has("my number is 8"));
    answered(&run(home, &["ask", "--topic", "shed", "--new", "which number"]).await);
    assert!(!house.model.last_request().has("my number is 8"));
}

#[tokio::test]
async fn json_has_every_key_also_after_a_failure() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    house.model.report_tokens(Tokens {
        input: 1_000,
        cached: 0,
        output: 100,
    });
    house.model.enqueue(Script::text("Seven."));
    let ran = run(home, &["ask", "--json", "-a", "rose", "which"]).await;
    let mut told: Value = serde_json::from_str(answered(&ran)).expect("JSON");
    assert!(told["seconds"].is_f64(), "{told}");
    told["seconds"] = Value::Null;
    assert_snapshot!(serde_json::to_string_pretty(&told).expect("JSON"), @r#"
    {
      "answer": "Seven.",
      "agent": {
        "id": "rose",
        "name": "Rose"
      },
      "model": "fake/any",
      "tokens": {
        "input": 1000,
        "cached": 0,
        "output": 100
      },
      "cost": {
        "amount": "0.003",
        "currency": "USD"
      },
      "seconds": null,
      "error": null
    }
    "#);
    house.model.enqueue(Script::status(401, "no"));
    let ran = run(home, &["ask", "--json", "which"]).await;
    assert_eq!(ran.code, 1);
    let told: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        (&told["answer"], &told["agent"]["id"]),
        (&Value::Null, &Value::from("main"))
    );
    let error = told["error"]["message"].as_str().expect("a reason");
    assert!(
        error.starts_with("I can't answer: `fake` wants an API key"),
        "{error}"
    );
    assert_eq!(told["error"]["exit_code"], 1);
}

#[tokio::test]
async fn a_failed_question_is_an_error() {
    let house = House::new(TWO).await;
    let home = house.home.path();
    house.model.enqueue(Script::status(401, "no"));
    let ran = run(home, &["ask", "which"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(
        ran.stderr
            .starts_with("error: I can't answer: `fake` wants an API key"),
        "{}",
        ran.stderr
    );
    let nothing = run_with_input(home, &["ask"], " \n").await;
    assert_eq!((nothing.code, nothing.stdout.as_str()), (2, ""));
    assert_snapshot!(nothing.stderr, @"error: nothing was asked. Write the question behind `parlor ask`, or pipe it in");
    let command = run(home, &["ask", "/agents"]).await;
    assert_eq!((command.code, command.stdout.as_str()), (2, ""));
    assert_snapshot!(command.stderr, @"error: `/agents` is a command of the chat, and `parlor ask` asks agents. Use `parlor chat`");
}

/// Questions that an earlier process left are answered, but not here.
#[tokio::test]
async fn an_answer_to_an_earlier_question_is_not_taken_for_this_one() {
    let mut house = House::new(TWO).await;
    // The question of the killed one is closed by the next start of a gateway or a chat.
    house.leave_leftovers();
    house.model.hold();
    let mut killed = crate::support::house::parlor(house.home.path())
        .args(["ask", "the first question"])
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    house.model.wait_for_requests(1).await;
    killed.kill().await.expect("it can be killed");
    house.model.release();
    house.model.answer_with(
        |request| match request.last_text().contains("the first question") {
            true => Script::text("First."),
            false => Script::text("Second."),
        },
    );
    let ran = run(house.home.path(), &["ask", "the second question"]).await;
    assert_eq!(answered(&ran), "Second.");
}

#[tokio::test]
async fn at_a_terminal_the_answer_is_drawn() {
    let house = House::new(TWO).await;
    house.model.enqueue(Script::text("**Bold** and\n\n- one"));
    let mut ask = Pty::start(house.home.path(), &["ask", "draw"], 60, &[]);
    ask.shows("Bold and\n\n• one").await;
    assert!(ask.bytes().contains("\u{1b}[1mBold\u{1b}[0m"));
    assert_eq!(ask.ends().await, 0);
}
