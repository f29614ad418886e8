//! `parlor setup` as a person at a terminal sees it, and by flags: against a fake Telegram, Discord
//! and model, with their faults.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use insta::assert_snapshot;
use tempfile::TempDir;

use crate::cli::Ran;
use crate::support::fake_discord::FakeDiscord;
use crate::support::fake_model::{Dialect, FakeModel, Script};
use crate::support::fake_telegram::{ALICE, BOB, FakeTelegram, Fault};
use crate::support::house::{Process, parlor};
use crate::support::pty::Pty;

const DOWN: &str = "\x1b[B";
const ENTER: &str = "\r";
const CTRL_C: &str = "\x03";
const COLUMNS: u16 = 100;

/// A folder without anything, and the servers that a setup talks to.
struct Empty {
    folder: TempDir,
    telegram: FakeTelegram,
}

impl Empty {
    async fn new() -> Self {
        Empty {
            folder: tempfile::tempdir().expect("a folder"),
            telegram: FakeTelegram::start().await,
        }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// At a terminal.
    fn setup(&self, more: &[&str]) -> Pty {
        self.setup_in(more, &[])
    }

    fn setup_in(&self, more: &[&str], environment: &[(&str, &str)]) -> Pty {
        let mut words = vec!["setup", "--telegram-api-url", self.telegram.api_url()];
        words.extend(more);
        let folder = self.folder.path().display().to_string();
        let mut all = vec![("HOME", folder.as_str()), ("PATH", "/nowhere")];
        all.extend(environment);
        Pty::start(&self.home(), &words, COLUMNS, &all)
    }

    /// Without a terminal.
    async fn flags(&self, more: &[&str]) -> Ran {
        self.flags_in(more, &[]).await
    }

    async fn flags_in(&self, more: &[&str], environment: &[(&str, &str)]) -> Ran {
        let home = self.home();
        let mut command = parlor(&home);
        command
            .env("HOME", self.folder.path())
            .env("TOKEN", self.telegram.token())
            .envs(environment.iter().copied())
            .args(["setup", "--telegram-api-url", self.telegram.api_url()])
            .args(more);
        let output = command.output().await.expect("it runs");
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).expect("text");
            text.replace(&home.display().to_string(), "HOME")
                .replace(self.telegram.api_url(), "API")
        };
        Ran {
            code: output.status.code().expect("by itself"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.home().join("config.toml")).expect("a config")
    }

    /// Every file of the home but the database, with its text and time.
    fn files(&self) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
        let (mut found, mut open) = (BTreeMap::new(), vec![self.home()]);
        while let Some(folder) = open.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else {
                continue;
            };
            for path in entries.flatten().map(|entry| entry.path()) {
                let name = path.to_string_lossy().into_owned();
                match path.is_dir() {
                    true => open.push(path),
                    false if name.contains("parlor.db") || name.ends_with(".lock") => {}
                    false => {
                        let at = std::fs::metadata(&path).and_then(|file| file.modified());
                        let text = std::fs::read(&path).expect("readable");
                        found.insert(path, (text, at.expect("a time")));
                    }
                }
            }
        }
        found
    }

    /// The model and the bot, by a person.
    async fn first_two_steps(&self, pty: &mut Pty) {
        answer(pty, "Which model?", ENTER).await;
        answer(pty, "Use demo?", ENTER).await;
        self.bot(pty).await;
    }

    async fn bot(&self, pty: &mut Pty) {
        answer(
            pty,
            "Its token, pasted",
            &format!("{}\r", self.telegram.token()),
        )
        .await;
        answer(pty, "Connect @parlor_bot?", ENTER).await;
    }

    async fn owner(&self, pty: &mut Pty) {
        pty.shows("Now write something to @parlor_bot").await;
        self.telegram.dm(ALICE).says("hello").await;
        answer(pty, "Is this you?", ENTER).await;
    }
}

/// Waits for a question, and answers it.
async fn answer(pty: &mut Pty, question: &str, keys: &str) {
    let asked = format!("? {question}");
    pty.sees(question, |screen| {
        screen.contains(&asked) || screen.contains(question)
    })
    .await;
    pty.types(keys);
}

/// Presses Ctrl-C until the setup stops. A terminal that belongs to no session loses the key
/// between two questions.
async fn stop(mut pty: Pty) {
    loop {
        pty.types(CTRL_C);
        let stopped = tokio::time::timeout(Duration::from_millis(500), pty.shows("Stopped."));
        if stopped.await.is_ok() {
            break;
        }
    }
    assert_eq!(pty.ends().await, 130);
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/guide/setup.md");
    std::fs::read_to_string(path).expect("the page")
}

/// The first block of the page in this language.
fn block(page: &str, language: &str) -> String {
    let (_, rest) = page
        .split_once(&format!("```{language}\n"))
        .expect("a block");
    rest.split("```").next().unwrap_or_default().to_owned()
}

/// S3.36, S1.51: from an empty folder to two topics with two agents, as the book prints it. The
/// words that were written before the gateway ran are answered.
#[tokio::test]
async fn the_walkthrough_of_the_book_ends_with_two_agents_in_two_topics() {
    let page = page();
    assert_eq!(block(&page, "sh"), "parlor setup\n");
    let empty = Empty::new().await;
    let began = Instant::now();
    let mut pty = empty.setup(&[]);
    empty.first_two_steps(&mut pty).await;
    empty.owner(&mut pty).await;
    pty.shows("3. Places").await;
    let forum = empty.telegram.forum(-1001);
    let (writing, code) = (forum.topic(101, "Writing"), forum.topic(102, "Code"));
    writing.says(ALICE, "@parlor_bot hello").await;
    pty.shows("Writing, in Chat -1001").await;
    code.says(ALICE, "@parlor_bot hello").await;
    pty.shows("Code, in Chat -1001").await;
    pty.types(ENTER);
    // Enter takes the agents that these topics have in the terminal.
    answer(&mut pty, "Who answers in Writing", ENTER).await;
    answer(&mut pty, "Who answers in Code", ENTER).await;
    answer(&mut pty, "Write these lines to config.toml?", ENTER).await;
    pty.shows("How shall it run?").await;
    pty.types(ENTER);
    writing.wait_for_sent(1).await;
    let (seconds, presses) = (began.elapsed().as_secs_f32(), pty.presses());
    // With `--nocapture` the figures of the book can be seen.
    println!("{presses} key presses, {seconds:.1} s to the first answer in a topic");
    assert!(
        page.contains(&format!("{presses} key presses")),
        "the book counts other than {presses}"
    );
    code.wait_for_sent(1).await;
    empty.telegram.dm(ALICE).wait_for_sent(1).await;
    assert!(
        writing.texts()[0].contains("hello"),
        "{:?}",
        writing.texts()
    );
    let config = empty.config();
    for (place, agent) in [("101", "rose"), ("102", "ada")] {
        let lines = format!("match = \"telegram:topic:-1001:{place}\"\nagent = \"{agent}\"\n");
        assert!(config.contains(&lines), "{config}");
    }
    pty.interrupts();
    let bytes = pty.bytes();
    assert!(
        !bytes.contains(empty.telegram.token()),
        "the token was shown"
    );
    assert_eq!(pty.ends().await, 0);
    let token = empty.home().join("secrets/telegram");
    let mode = std::fs::metadata(token)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!config.contains(empty.telegram.token()));
    let shown = plain(&bytes);
    let mut answered = block(&page, "text");
    answered.retain(|c| c != '\u{fe0f}');
    for line in answered.lines().filter(|line| !line.is_empty()) {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
}

/// Without the terminal's own sequences.
fn plain(bytes: &str) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text += before;
        let end = after.find(|c: char| c.is_ascii_alphabetic());
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    text += rest;
    text.retain(|c| c != '\u{fe0f}');
    text
}

#[tokio::test]
async fn flags_answer_everything_and_a_second_run_writes_nothing() {
    let empty = Empty::new().await;
    let flags = [
        "--yes",
        "--model",
        "demo",
        "--telegram-token-env",
        "TOKEN",
        "--owner",
        "telegram:111",
        "--bind",
        "telegram:topic:-1001:101=rose",
    ];
    let planned = empty.flags(&[&flags[..], &["--plan"]].concat()).await;
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(!empty.home().exists(), "a plan writes nothing");
    assert_snapshot!(planned.stdout, @r#"
    {
      "changes": [
        {
          "change": "home",
          "folder": "HOME"
        },
        {
          "change": "model",
          "model": "demo"
        },
        {
          "change": "platform",
          "platform": "telegram",
          "token": {
            "env": "TOKEN"
          },
          "api_url": "API"
        },
        {
          "change": "owner",
          "person": "telegram:111"
        },
        {
          "change": "binding",
          "place": "telegram:topic:-1001:101",
          "agent": "rose"
        }
      ]
    }
    "#);
    let first = empty.flags(&flags).await;
    assert_eq!(first.code, 0, "{}", first.stderr);
    for line in [
        "☕ Main: You said",
        "This is @parlor_bot.",
        "Next: `parlor run`. What was written to the bot meanwhile is answered then.",
    ] {
        assert!(first.stderr.contains(line), "{}", first.stderr);
    }
    assert_eq!(first.stdout, "");
    let files = empty.files();
    let second = empty.flags(&flags).await;
    assert_eq!(second.code, 0, "{}", second.stderr);
    assert!(
        second.stderr.contains("Nothing was changed."),
        "{}",
        second.stderr
    );
    assert_eq!(empty.files(), files);
    let planned = empty.flags(&[&flags[..], &["--plan"]].concat()).await;
    assert_snapshot!(planned.stdout, @r#"
    {
      "changes": []
    }
    "#);
}

#[tokio::test]
async fn a_model_that_refuses_its_key_is_told_and_not_written() {
    let (empty, model) = (Empty::new().await, FakeModel::start().await);
    let url = model.base_url(Dialect::OpenAi);
    let flags = [
        "--yes",
        "--model",
        "mine/any",
        "--model-url",
        &url,
        "--model-key-env",
        "KEY",
    ];
    model.enqueue(Script::status(
        401,
        "{\"error\":{\"message\":\"Incorrect API key\"}}",
    ));
    let refused = empty.flags_in(&flags, &[("KEY", "sk-bad")]).await;
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("the key was not accepted (401)"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("sk-bad"));
    assert!(!empty.home().exists(), "nothing was written");
    model.reply_when("Say hello", "Hello, I am here.");
    let answered = empty.flags_in(&flags, &[("KEY", "sk-good")]).await;
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    assert!(
        answered.stderr.contains("☕ Main: Hello, I am here."),
        "{}",
        answered.stderr
    );
    assert!(model.last_request().has("Main"), "asked as the agent");
    let config = empty.config();
    assert!(config.contains("default_model = \"mine/any\""), "{config}");
    assert!(config.contains("api_key = { env = \"KEY\" }"), "{config}");
}

#[tokio::test]
async fn a_server_on_this_machine_is_found_and_asked() {
    let (empty, model) = (Empty::new().await, FakeModel::start().await);
    model.reply_when("Say hello", "Hello from the attic.");
    let host = model.base_url(Dialect::Ollama);
    let mut pty = empty.setup_in(&[], &[("OLLAMA_HOST", &host)]);
    pty.shows("Ollama on this machine").await;
    answer(&mut pty, "Which model?", ENTER).await;
    pty.shows("Hello from the attic.").await;
    answer(&mut pty, "Use ollama/any?", ENTER).await;
    answer(&mut pty, "Its token, pasted", CTRL_C).await;
    assert_eq!(pty.ends().await, 130);
    let config = empty.config();
    assert!(
        config.contains("default_model = \"ollama/any\""),
        "{config}"
    );
    assert!(
        config.contains(&format!("base_url = \"{host}\"")),
        "{config}"
    );
}

#[tokio::test]
async fn a_wrong_token_a_webhook_and_privacy_mode_are_told_at_once() {
    let empty = Empty::new().await;
    empty
        .telegram
        .set_webhook("https://old.example/hook/secret-path");
    empty.telegram.set_me("can_read_all_group_messages", false);
    let mut pty = empty.setup(&["--model", "demo"]);
    answer(&mut pty, "Use demo?", ENTER).await;
    answer(&mut pty, "Its token, pasted", "1:wrong\r").await;
    pty.shows("Telegram knows no bot with this token.").await;
    assert!(
        !empty.home().join("secrets").exists(),
        "nothing is kept of it"
    );
    // The first question has scrolled by; the second stands below the problem.
    pty.sees("the second question", |screen| {
        screen.matches("Its token, pasted").count() > 1
    })
    .await;
    pty.types(&format!("{}\r", empty.telegram.token()));
    pty.shows("Privacy mode is on").await;
    pty.shows("sent to old.example (a webhook)").await;
    assert!(!pty.screen().contains("secret-path"));
    answer(&mut pty, "Remove the webhook?", ENTER).await;
    answer(&mut pty, "Connect @parlor_bot?", ENTER).await;
    pty.shows("Now write something").await;
    assert_eq!(empty.telegram.calls("deleteWebhook").len(), 1);
    stop(pty).await;
}

#[tokio::test]
async fn another_listener_is_told_and_a_stranger_is_no_owner() {
    let empty = Empty::new().await;
    let conflict = Fault::Refused(
        409,
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    );
    empty.telegram.fail("getUpdates", conflict).once();
    let mut pty = empty.setup(&["--model", "demo"]);
    answer(&mut pty, "Use demo?", ENTER).await;
    empty.bot(&mut pty).await;
    pty.shows("Another program listens to this bot").await;
    empty.telegram.dm(BOB).says("let me in").await;
    pty.shows("Bob (telegram:222) wrote.").await;
    answer(&mut pty, "Is this you?", "n\r").await;
    empty.telegram.dm(ALICE).says("it is me").await;
    pty.shows("Alice (telegram:111) wrote.").await;
    pty.types(ENTER);
    pty.shows("3. Places").await;
    stop(pty).await;
    let config = empty.config();
    assert!(config.contains("owners = [\"telegram:111\"]"), "{config}");
    assert!(!config.contains("222"), "{config}");
}

/// Every step is left once with Ctrl-C. Nothing of the step is written, and the next run goes on
/// there.
#[tokio::test]
async fn an_interrupted_setup_goes_on_where_it_was_left() {
    let empty = Empty::new().await;
    let mut pty = empty.setup(&[]);
    answer(&mut pty, "Which model?", CTRL_C).await;
    assert_eq!(pty.ends().await, 130);
    let mut pty = empty.setup(&[]);
    answer(&mut pty, "Which model?", ENTER).await;
    answer(&mut pty, "Use demo?", CTRL_C).await;
    pty.shows("Stopped.").await;
    assert_eq!(pty.ends().await, 130);
    assert!(!empty.home().exists(), "nothing was confirmed");

    let mut pty = empty.setup(&[]);
    empty.first_two_steps(&mut pty).await;
    pty.shows("Now write something").await;
    let files = empty.files();
    stop(pty).await;
    assert_eq!(empty.files(), files);

    let mut pty = empty.setup(&[]);
    pty.shows("1. The model: demo").await;
    pty.shows("2. Telegram: @parlor_bot").await;
    empty.owner(&mut pty).await;
    pty.shows("3. Places").await;
    let topic = empty.telegram.forum(-1001).topic(101, "Writing");
    topic.says(ALICE, "@parlor_bot hello").await;
    pty.shows("Writing, in Chat -1001").await;
    pty.types(ENTER);
    answer(&mut pty, "Who answers in Writing", CTRL_C).await;
    assert_eq!(pty.ends().await, 130);
    assert!(!empty.config().contains("-1001"));

    let mut pty = empty.setup(&[]);
    pty.shows("Writing, in Chat -1001").await;
    pty.types(ENTER);
    answer(&mut pty, "Who answers in Writing", ENTER).await;
    answer(&mut pty, "Write these lines", ENTER).await;
    answer(&mut pty, "How shall it run?", CTRL_C).await;
    assert_eq!(pty.ends().await, 130);
    assert!(
        empty
            .config()
            .contains("match = \"telegram:topic:-1001:101\"\nagent = \"rose\"")
    );
}

/// S0.47, S0.49: a home where all is done offers add, edit, rebind and remove; leaving it alone
/// writes nothing.
#[tokio::test]
async fn a_whole_home_offers_changes_and_rewrites_nothing() {
    let empty = Empty::new().await;
    let flags = [
        "--yes",
        "--model",
        "demo",
        "--telegram-token-env",
        "TOKEN",
        "--owner",
        "telegram:111",
        "--bind",
        "telegram:topic:-1001:101=rose",
    ];
    assert_eq!(empty.flags(&flags).await.code, 0);
    let files = empty.files();
    let mut pty = empty.setup(&[]);
    let menu = pty.shows("keep it running").await;
    for word in [
        "add agents",
        "edit an agent",
        "give a place to another agent",
        "remove an agent",
    ] {
        assert!(menu.contains(word), "{menu}");
    }
    pty.types(ENTER);
    pty.shows("Nothing was changed.").await;
    assert_eq!(pty.ends().await, 0);
    assert_eq!(empty.files(), files);

    let mut pty = empty.setup(&[]);
    answer(&mut pty, "What would you like to do?", "give\r").await;
    answer(
        &mut pty,
        "Which place?",
        &format!("{DOWN}{DOWN}{DOWN}{DOWN}{ENTER}"),
    )
    .await;
    answer(
        &mut pty,
        "Who answers in telegram:topic:-1001:101?",
        "ada\r",
    )
    .await;
    pty.sees("the menu again", |screen| {
        screen.matches("What would you like to do?").count() > 1
    })
    .await;
    pty.types(ENTER);
    assert_eq!(pty.ends().await, 0);
    assert!(
        empty
            .config()
            .contains("match = \"telegram:topic:-1001:101\"\nagent = \"ada\"")
    );
}

/// S0.47, S0.48: count, then name, personality, skills and a place for each, then more.
#[tokio::test]
async fn agents_are_added_one_after_the_other() {
    let empty = Empty::new().await;
    assert_eq!(empty.flags(&["--yes", "--model", "demo"]).await.code, 0);
    let mut pty = empty.setup(&["--add", "agents"]);
    answer(&mut pty, "How many agents?", ENTER).await;
    answer(&mut pty, "The agent's name:", "Night Desk\r").await;
    answer(&mut pty, "What is Night Desk like", "Calm, and awake.\r").await;
    answer(&mut pty, "Skills, with commas", ENTER).await;
    answer(&mut pty, "Add Night Desk?", ENTER).await;
    answer(&mut pty, "A place of its own", "telegram:topic:-1001:7\r").await;
    answer(&mut pty, "Another agent?", ENTER).await;
    assert_eq!(pty.ends().await, 0);
    let config = empty.config();
    assert!(
        config.contains("[agents.night-desk]\nname = \"Night Desk\""),
        "{config}"
    );
    assert!(
        config.contains("match = \"telegram:topic:-1001:7\"\nagent = \"night-desk\""),
        "{config}"
    );
    let soul = std::fs::read_to_string(empty.home().join("agents/night-desk/SOUL.md"));
    assert_eq!(soul.expect("a file"), "Calm, and awake.\n");
    let noted = crate::support::house::ask(
        &empty.home(),
        "SELECT group_concat(action, ', ') FROM (SELECT action FROM audit ORDER BY id)",
    );
    assert_eq!(noted, "setup, agent add, bind");
}

#[tokio::test]
async fn a_running_gateway_takes_the_changes_in() {
    let empty = Empty::new().await;
    let flags = [
        "--yes",
        "--model",
        "demo",
        "--telegram-token-env",
        "TOKEN",
        "--owner",
        "telegram:111",
    ];
    assert_eq!(empty.flags(&flags).await.code, 0);
    let home = empty.home();
    let mut command = parlor(&home);
    command.env("TOKEN", empty.telegram.token()).arg("run");
    let process = Process::start_as(command, &home);
    empty.telegram.wait_for_calls("getUpdates", 1).await;
    let bound = empty
        .flags(&["--yes", "--bind", "telegram:topic:-1001:101=rose"])
        .await;
    assert_eq!(bound.code, 0, "{}", bound.stderr);
    assert!(
        bound
            .stderr
            .contains("The running gateway has taken it in."),
        "{}",
        bound.stderr
    );
    let topic = empty.telegram.forum(-1001).topic(101, "Writing");
    topic.says(ALICE, "@parlor_bot hello").await;
    topic.wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);
}

/// Beside a running gateway: a group is offered once, whoever has talked there, and every place by
/// its name. The agent of a place is offered first, and a no can be thought over.
#[tokio::test]
async fn a_running_gateway_offers_its_places_by_name() {
    let empty = Empty::new().await;
    let flags = [
        "--yes",
        "--model",
        "demo",
        "--telegram-token-env",
        "TOKEN",
        "--owner",
        "telegram:111",
    ];
    assert_eq!(empty.flags(&flags).await.code, 0);
    let home = empty.home();
    let mut command = parlor(&home);
    command.env("TOKEN", empty.telegram.token()).arg("run");
    let process = Process::start_as(command, &home);
    let (group, forum) = (empty.telegram.group(-1009), empty.telegram.forum(-1001));
    let (random, writing) = (forum.topic(103, "Random"), forum.topic(101, "Writing"));
    group.says(ALICE, "@parlor_bot hi group").await;
    group.says(BOB, "@parlor_bot hi group").await;
    random.says(BOB, "@parlor_bot hi").await;
    writing.says(ALICE, "/agent ada").await;
    writing.wait_for_sent(1).await;
    empty.telegram.all_confirmed().await;
    let environment = [("TOKEN", empty.telegram.token())];
    let ask = async |pty: &mut Pty, from: usize, keys: [&str; 3]| {
        for (at, keys) in keys.into_iter().enumerate() {
            pty.sees("the next question", |screen| {
                screen.matches("Who answers in ").count() > from + at
            })
            .await;
            pty.types(keys);
            if keys.starts_with("a new") {
                answer(pty, "The agent's name:", ENTER).await;
                pty.shows("No agent was made, so ").await;
            }
        }
    };

    let mut pty = empty.setup_in(&["--add", "places"], &environment);
    ask(&mut pty, 0, ["a new agent\r", ENTER, ENTER]).await;
    answer(&mut pty, "Write these lines to config.toml?", "n\r").await;
    answer(&mut pty, "Nothing was written. Choose again?", "n\r").await;
    pty.shows("`parlor setup --add places` asks again.").await;
    pty.shows("Nothing was changed.").await;
    assert_eq!(pty.ends().await, 0);
    assert!(!empty.config().contains("telegram:topic:"));

    let mut pty = empty.setup_in(&["--add", "places"], &environment);
    ask(&mut pty, 0, [ENTER; 3]).await;
    answer(&mut pty, "Write these lines to config.toml?", "n\r").await;
    answer(&mut pty, "Nothing was written. Choose again?", ENTER).await;
    ask(&mut pty, 3, [ENTER; 3]).await;
    pty.sees("the lines again", |screen| {
        screen.matches("Write these lines").count() > 1
    })
    .await;
    pty.types(ENTER);
    pty.shows("The running gateway has taken it in.").await;
    let shown = plain(&pty.bytes());
    assert_eq!(pty.ends().await, 0);
    for words in [
        "Who answers in Chat -1009 (telegram:group:-1009)?",
        "Who answers in Random, in Chat -1001 (telegram:topic:-1001:103)?",
        "Who answers in Writing, in Chat -1001 (telegram:topic:-1001:101)?",
        "Ada (answers there now)",
    ] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    let config = empty.config();
    for (place, agent) in [
        ("group:-1009", "main"),
        ("topic:-1001:103", "main"),
        ("topic:-1001:101", "ada"),
    ] {
        let lines = format!("match = \"telegram:{place}\"\nagent = \"{agent}\"\n");
        assert!(config.contains(&lines), "{config}");
    }
    assert!(!config.contains("group:-1009:"), "{config}");
    group.says(BOB, "@parlor_bot hello").await;
    group
        .wait_for("an answer to Bob", |texts| {
            texts.iter().any(|text| text.contains("You said: “hello”"))
        })
        .await;
    assert_eq!(process.stop().await, 0);
}

/// A pasted token is looked at before Telegram is asked, and Enter alone is shown as such.
#[tokio::test]
async fn something_that_is_no_token_is_told_at_once() {
    let empty = Empty::new().await;
    let mut pty = empty.setup(&["--model", "demo"]);
    answer(&mut pty, "Use demo?", ENTER).await;
    answer(&mut pty, "Its token, pasted", "hello\r").await;
    pty.shows("A token looks like 123456789:AA…; this has no colon.")
        .await;
    assert!(empty.telegram.calls("getMe").is_empty());
    pty.types(ENTER);
    pty.shows("goes on without Telegram): (none)").await;
    stop(pty).await;
}

#[tokio::test]
async fn systemd_is_given_a_unit_and_asked_for_its_state() {
    let empty = Empty::new().await;
    let flags = [
        "--yes",
        "--model",
        "demo",
        "--telegram-token-env",
        "TOKEN",
        "--owner",
        "telegram:111",
    ];
    assert_eq!(empty.flags(&flags).await.code, 0);
    let bin = empty.folder.path().join("bin");
    std::fs::create_dir(&bin).expect("makes");
    for name in ["systemctl", "loginctl"] {
        let path = bin.join(name);
        let log = empty.folder.path().join("calls");
        let script = format!(
            "#!/bin/sh\necho {name} \"$@\" >> {}\ncase \"$*\" in *ActiveState*) echo active;; esac\n",
            log.display()
        );
        std::fs::write(&path, script).expect("writes");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("sets");
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let ran = empty
        .flags_in(&["--yes", "--service", "user"], &[("PATH", &path)])
        .await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("The service is active."),
        "{}",
        ran.stderr
    );
    let variables = empty.home().join("environment");
    let text = std::fs::read_to_string(&variables).expect("a file");
    assert_eq!(text, format!("TOKEN=\"{}\"\n", empty.telegram.token()));
    let mode = |path: &Path| {
        std::fs::metadata(path)
            .expect("a file")
            .permissions()
            .mode()
    };
    assert_eq!(mode(&variables) & 0o777, 0o600);
    assert!(!ran.stderr.contains(empty.telegram.token()));
    let calls = std::fs::read_to_string(empty.folder.path().join("calls")).expect("calls");
    assert_snapshot!(calls, @"
    systemctl --user daemon-reload
    systemctl --user enable --now parlor
    loginctl enable-linger
    systemctl --user show -P ActiveState parlor
    ");
    let unit = empty
        .folder
        .path()
        .join(".config/systemd/user/parlor.service");
    let unit = std::fs::read_to_string(unit).expect("a unit");
    assert!(unit.contains("\" run\n"), "{unit}");
    assert!(unit.contains("/home/environment\n"), "{unit}");

    // Lines of the operator stay, and the doctor knows the file.
    std::fs::write(&variables, "TOKEN=mine\n# a note").expect("writes");
    let again = [
        "--yes",
        "--service",
        "user",
        "--model",
        "mine/any",
        "--model-url",
        "http://127.0.0.1:9/",
    ];
    let again = [&again[..], &["--model-key-env", "KEY", "--plan"]].concat();
    let planned = empty
        .flags_in(&again, &[("KEY", "a$b"), ("PATH", &path)])
        .await;
    assert!(
        planned.stdout.contains("\"names\": [\n        \"KEY\""),
        "{}",
        planned.stdout
    );
    assert!(!planned.stdout.contains("a$b"));
    assert_eq!(
        std::fs::read_to_string(&variables).expect("reads"),
        "TOKEN=mine\n# a note"
    );
    let doctor = parlor(&empty.home())
        .args(["doctor", "--json"])
        .output()
        .await;
    let told = String::from_utf8(doctor.expect("it runs").stdout).expect("text");
    for id in ["files.unknown", "secrets.missing", "secrets.modes"] {
        assert!(!told.contains(id), "{told}");
    }
    std::fs::set_permissions(&variables, std::fs::Permissions::from_mode(0o644)).expect("sets");
    let doctor = parlor(&empty.home())
        .args(["doctor", "--json"])
        .output()
        .await;
    let told = String::from_utf8(doctor.expect("it runs").stdout).expect("text");
    // A closed home keeps others out of all its files.
    assert!(!told.contains("secrets.modes"), "{told}");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(empty.home(), open).expect("sets");
    let doctor = parlor(&empty.home())
        .args(["doctor", "--json"])
        .output()
        .await;
    let told = String::from_utf8(doctor.expect("it runs").stdout).expect("text");
    assert!(told.contains("secrets.modes"), "{told}");
}

#[tokio::test]
async fn discord_is_checked_and_its_channels_are_offered() {
    let (empty, discord) = (Empty::new().await, FakeDiscord::start().await);
    discord.show_message_content(false);
    let guild = discord.guild(8001, "Garden");
    let _channel = guild.text_channel(2001, "roses");
    let mut pty = empty.setup_in(
        &[
            "--model",
            "demo",
            "--discord-token-env",
            "D",
            "--discord-api-url",
            discord.url(),
        ],
        &[("D", discord.token())],
    );
    answer(&mut pty, "Use demo?", ENTER).await;
    answer(&mut pty, "Its token, pasted", ENTER).await;
    let screen = pty.shows("Connect ").await;
    assert!(
        screen.contains("Its Message Content Intent is off"),
        "{screen}"
    );
    assert!(screen.contains("permissions=274878008384"), "{screen}");
    pty.types(ENTER);
    pty.shows("made this bot. Is this you?").await;
    pty.types(ENTER);
    pty.shows("#roses, on Garden").await;
    answer(&mut pty, "Which channel shall have an agent?", ENTER).await;
    answer(&mut pty, "Who answers in #roses", &format!("{DOWN}{ENTER}")).await;
    answer(&mut pty, "Write these lines", ENTER).await;
    answer(&mut pty, "How shall it run?", CTRL_C).await;
    assert_eq!(pty.ends().await, 130);
    let config = empty.config();
    assert!(
        config.contains("match = \"discord:channel:2001\"\nagent = \"rose\""),
        "{config}"
    );
    assert!(config.contains("owners = [\"discord:"), "{config}");
    assert!(
        config.contains("[discord]\ntoken = { env = \"D\" }"),
        "{config}"
    );
}

#[tokio::test]
async fn without_a_terminal_the_flags_are_asked_for() {
    let empty = Empty::new().await;
    let ran = empty.flags(&[]).await;
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.stderr, @"
    error: setup asks questions, and this is no terminal
    hint: give the answers by flags, with --yes; `parlor help setup` lists them
    ");
    let wrong = empty.flags(&["--yes", "--bind", "nowhere=rose"]).await;
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(!empty.home().exists());
}

/// The first screen: each installation is offered once, a yes shows the plan first, and a no is
/// remembered.
#[tokio::test]
async fn agents_of_other_systems_are_offered_first_and_a_no_is_remembered() {
    let empty = Empty::new().await;
    crate::importing::installed_in(empty.folder.path());
    let mut pty = empty.setup(&["--model", "demo"]);
    pty.shows(".openclaw (OpenClaw): 3 agents, ").await;
    assert!(!empty.home().exists(), "nothing is written before a yes");
    answer(&mut pty, "Bring them?", ENTER).await;
    answer(&mut pty, "Bring its tokens and keys too", ENTER).await;
    answer(&mut pty, "Carry this out?", ENTER).await;
    for name in ["Hermes", "ZeroClaw", "Moltis", "Signet"] {
        pty.shows(&format!("({name}): ")).await;
        pty.sees("the question", |screen| {
            screen.trim_end().ends_with("(Y/n)")
        })
        .await;
        pty.types("n\r");
        pty.sees("the answer", |screen| {
            screen.matches("Left where they are.").count() > 0
                && screen.contains("You see the plan first. No")
        })
        .await;
    }
    answer(&mut pty, "Use demo?", ENTER).await;
    answer(&mut pty, "Its token, pasted", CTRL_C).await;
    assert_eq!(pty.ends().await, 130);
    let config = empty.config();
    assert!(config.contains("name = \"Rose Red\""), "{config}");
    assert!(
        config.contains("match = \"telegram:topic:-1001:3\"\nagent = \"rose"),
        "{config}"
    );
    assert!(!config.contains("coder"), "{config}");
    let rows = |sql: &str| crate::support::house::ask(&empty.home(), sql);
    assert_eq!(rows("SELECT count(*) FROM declined"), "4");
    assert_eq!(
        rows("SELECT group_concat(DISTINCT system) FROM imports"),
        "openclaw"
    );

    let mut pty = empty.setup(&[]);
    pty.shows("1. The model: demo").await;
    assert!(!pty.screen().contains("Bring them?"), "{}", pty.screen());
    stop(pty).await;
}

/// A no before there is a home counts from the day there is one.
#[tokio::test]
async fn a_no_is_remembered_as_soon_as_there_is_a_home() {
    let empty = Empty::new().await;
    let claw = empty.folder.path().join(".openclaw");
    std::fs::create_dir(&claw).expect("makes");
    std::fs::write(
        claw.join("openclaw.json"),
        "{ agents: { entries: { dot: {} } } }",
    )
    .expect("writes");
    let mut pty = empty.setup(&["--model", "demo"]);
    pty.shows("(OpenClaw): 1 agent.").await;
    answer(&mut pty, "Bring them?", "n\r").await;
    answer(&mut pty, "Use demo?", CTRL_C).await;
    assert_eq!(pty.ends().await, 130);
    assert!(!empty.home().exists());
    let mut pty = empty.setup(&["--model", "demo"]);
    answer(&mut pty, "Bring them?", "n\r").await;
    answer(&mut pty, "Use demo?", ENTER).await;
    answer(&mut pty, "Its token, pasted", CTRL_C).await;
    assert_eq!(pty.ends().await, 130);
    let mut pty = empty.setup(&[]);
    pty.shows("1. The model: demo").await;
    assert!(!pty.bytes().contains("Bring them?"), "{}", pty.screen());
    stop(pty).await;
    // Asked for by name, it is offered all the same.
    let mut pty = empty.setup(&["--add", "import"]);
    pty.shows("(OpenClaw): 1 agent").await;
    answer(&mut pty, "From where?", ENTER).await;
    answer(&mut pty, "Bring its tokens and keys too", ENTER).await;
    answer(&mut pty, "Carry this out?", ENTER).await;
    assert_eq!(pty.ends().await, 0);
    assert!(
        empty.config().contains("[agents.dot]"),
        "{}",
        empty.config()
    );
}

#[tokio::test]
async fn an_import_by_flags_is_planned_carried_and_done_once() {
    let empty = Empty::new().await;
    let user = tempfile::tempdir().expect("a folder");
    crate::importing::installed_in(user.path());
    let folder = user.path().join(".hermes").display().to_string();
    let flags = [
        "--yes",
        "--model",
        "demo",
        "--import",
        "hermes",
        "--import-from",
        &folder,
    ];
    let planned = empty.flags(&[&flags[..], &["--plan"]].concat()).await;
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(!empty.home().exists(), "a plan writes nothing");
    assert!(
        planned
            .stdout
            .contains("\"change\": \"import\",\n      \"system\": \"hermes\""),
        "{}",
        planned.stdout
    );
    let first = empty.flags(&flags).await;
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(
        empty.config().contains("[agents.coder]"),
        "{}",
        empty.config()
    );
    let files = empty.files();
    let second = empty.flags(&flags).await;
    assert_eq!(second.code, 0, "{}", second.stderr);
    assert!(
        second.stderr.contains("Nothing was changed."),
        "{}",
        second.stderr
    );
    assert_eq!(empty.files(), files);
    let none = empty.flags(&["--yes", "--add", "import"]).await;
    assert_eq!(none.code, 1);
    assert_snapshot!(none.stderr, @"error: an import is asked for in a terminal; --import and --import-from name it by flags");
    let nowhere = Empty::new().await;
    let none = nowhere.flags(&["--yes", "--import", "moltis"]).await;
    assert_eq!(none.code, 1);
    assert!(!nowhere.home().exists(), "{}", none.stderr);
}

/// S0.47 by flags: name, personality, skills and a place of each.
#[tokio::test]
async fn agents_are_added_by_flags_once() {
    let empty = Empty::new().await;
    let flags = [
        "--yes",
        "--model",
        "demo",
        "--agent",
        "Night Desk",
        "--personality",
        "Night Desk=Calm, and awake.",
        "--skills",
        "Night Desk=thread-summary",
        "--agent",
        "dot",
        "--bind",
        "telegram:topic:-1001:7=night-desk",
    ];
    let planned = empty.flags(&[&flags[..], &["--plan"]].concat()).await;
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(!empty.home().exists());
    for word in [
        "\"night-desk\"",
        "\"Calm, and awake.\"",
        "\"thread-summary\"",
        "\"dot\"",
    ] {
        assert!(planned.stdout.contains(word), "{}", planned.stdout);
    }
    let first = empty.flags(&flags).await;
    assert_eq!(first.code, 0, "{}", first.stderr);
    let config = empty.config();
    assert!(
        config
            .contains("[agents.night-desk]\nname = \"Night Desk\"\nskills = [\"thread-summary\"]"),
        "{config}"
    );
    assert!(config.contains("[agents.dot]"), "{config}");
    assert!(
        config.contains("match = \"telegram:topic:-1001:7\"\nagent = \"night-desk\""),
        "{config}"
    );
    let soul = std::fs::read_to_string(empty.home().join("agents/night-desk/SOUL.md"));
    assert_eq!(soul.expect("a file"), "Calm, and awake.\n");
    let files = empty.files();
    let second = empty.flags(&flags).await;
    assert_eq!(second.code, 0, "{}", second.stderr);
    assert!(
        second.stderr.contains("Nothing was changed."),
        "{}",
        second.stderr
    );
    assert_eq!(empty.files(), files);
    let more = [
        "--yes",
        "--add",
        "agents",
        "--agent",
        "Moss",
        "--bind",
        "telegram:topic:-1001:8=moss",
    ];
    assert_eq!(empty.flags(&more).await.code, 0);
    assert!(empty.config().contains("agent = \"moss\""));
    for (wrong, code) in [
        (
            &["--yes", "--agent", "Moss", "--personality", "Fern=Green."][..],
            2,
        ),
        (&["--yes", "--agent", "Moss", "--skills", "all"], 2),
        (&["--yes", "--agent", "née"], 1),
        (&["--yes", "--add", "agents"], 1),
    ] {
        let ran = empty.flags(wrong).await;
        assert_eq!(ran.code, code, "{wrong:?}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn a_wrong_token_of_discord_is_told_and_not_kept() {
    let (empty, discord) = (Empty::new().await, FakeDiscord::start().await);
    let mut pty = empty.setup(&[
        "--model",
        "demo",
        "--add",
        "discord",
        "--discord-api-url",
        discord.url(),
    ]);
    answer(&mut pty, "Its token, pasted", "wrong\r").await;
    pty.shows("Discord knows no bot with this token.").await;
    assert!(!empty.home().exists(), "nothing is kept of it");
    pty.sees("the second question", |screen| {
        screen.matches("Its token, pasted").count() > 1
    })
    .await;
    pty.types(&format!("{}\r", discord.token()));
    answer(&mut pty, "Connect ", ENTER).await;
    pty.shows("made this bot. Is this you?").await;
    pty.types("n\r");
    assert_eq!(pty.ends().await, 0);
    let secret = empty.home().join("secrets/discord");
    assert_eq!(
        std::fs::read_to_string(secret).expect("kept").trim(),
        discord.token()
    );
    assert!(
        !empty.config().contains("owners = [\"discord"),
        "{}",
        empty.config()
    );
}

/// A key is asked for once, shown nowhere, and kept in a file of its own.
#[tokio::test]
async fn a_pasted_key_is_shown_nowhere_and_kept_in_a_file() {
    let (empty, model) = (Empty::new().await, FakeModel::start().await);
    model.reply_when("Say hello", "Hello, I am here.");
    let url = model.base_url(Dialect::OpenAi);
    let mut pty = empty.setup(&[]);
    answer(&mut pty, "Which model?", "another\r").await;
    answer(&mut pty, "Whose model?", "server of mine\r").await;
    pty.shows("Its address:").await;
    pty.types(&format!("{url}\r"));
    answer(&mut pty, "Its key, pasted", "sk-pasted-key\r").await;
    pty.shows("Hello, I am here.").await;
    answer(&mut pty, "Use mine/any?", ENTER).await;
    answer(&mut pty, "Its token, pasted", CTRL_C).await;
    let bytes = pty.bytes();
    assert_eq!(pty.ends().await, 130);
    assert!(!bytes.contains("sk-pasted-key"), "{bytes}");
    let config = empty.config();
    assert!(
        config.contains("api_key = { file = \"secrets/mine\" }"),
        "{config}"
    );
    let secret = empty.home().join("secrets/mine");
    assert_eq!(
        std::fs::read_to_string(&secret).expect("kept"),
        "sk-pasted-key\n"
    );
    let mode = std::fs::metadata(secret)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn an_agent_is_renamed_and_another_put_aside() {
    let empty = Empty::new().await;
    let flags = [
        "--yes",
        "--model",
        "demo",
        "--telegram-token-env",
        "TOKEN",
        "--owner",
        "telegram:111",
        "--bind",
        "telegram:topic:-1001:101=rose",
    ];
    assert_eq!(empty.flags(&flags).await.code, 0);
    let menu = "What would you like to do?";
    let mut pty = empty.setup(&[]);
    answer(&mut pty, menu, "edit\r").await;
    answer(&mut pty, "Which agent?", "rose\r").await;
    answer(&mut pty, "Its name:", "Rosalind\r").await;
    pty.shows("agents/rose/SOUL.md").await;
    pty.sees("the menu again", |screen| screen.matches(menu).count() > 1)
        .await;
    pty.types(ENTER);
    assert_eq!(pty.ends().await, 0);
    let config = empty.config();
    assert!(config.contains("name = \"Rosalind\""), "{config}");
    for (keys, stays) in [("n\r", true), (ENTER, true), ("y\r", false)] {
        let mut pty = empty.setup(&[]);
        answer(&mut pty, menu, "remove\r").await;
        answer(&mut pty, "Which agent?", "ada\r").await;
        answer(&mut pty, "Put ada aside", keys).await;
        pty.sees("the menu again", |screen| screen.matches(menu).count() > 1)
            .await;
        pty.types(ENTER);
        assert_eq!(pty.ends().await, 0);
        assert_eq!(empty.config().contains("[agents.ada]"), stays, "{keys:?}");
    }
    assert!(!empty.config().contains("[agents.ada]"));
    let archived = std::fs::read_dir(empty.home().join("archive")).expect("an archive");
    assert_eq!(archived.count(), 1);
}

/// Words stay whole on a narrow terminal.
#[tokio::test]
async fn long_lines_are_broken_between_words() {
    let empty = Empty::new().await;
    let folder = empty.folder.path().display().to_string();
    let words = [
        "setup",
        "--telegram-api-url",
        empty.telegram.api_url(),
        "--model",
        "demo",
    ];
    let environment = [("HOME", folder.as_str()), ("PATH", "/nowhere")];
    let mut pty = Pty::start(&empty.home(), &words, 50, &environment);
    answer(&mut pty, "Use demo?", ENTER).await;
    pty.sees("the help", |screen| screen.contains("without Telegram):"))
        .await;
    let words: Vec<String> = pty.screen().split_whitespace().map(str::to_owned).collect();
    let text = words.join(" ");
    for sentence in [
        "Enter takes what is offered, and Ctrl-C stops; run `parlor setup` again to go on.",
        "In Telegram, write /newbot to @BotFather (https://t.me/BotFather). It gives you a token.",
    ] {
        assert!(text.contains(sentence), "{}", pty.screen());
    }
    let screen = pty.screen();
    assert!(
        screen.lines().any(|line| line.starts_with("? Its token,")),
        "the mark is before the first line: {screen}"
    );
    assert_eq!(screen.matches("\n? ").count(), 1, "{screen}");
    stop(pty).await;
}
