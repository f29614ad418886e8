//! `parlor chat` as a person at a terminal sees it: which work keeps the next line waiting, and
//! which answer belongs to which topic.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::cli::{fresh_home, run};
use crate::support::House;
use crate::support::fake_model::{Request, Script};
use crate::support::house::parlor;

/// Long enough for a loaded machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

const LOCAL: &str = "context_tokens = 3000\n[agents.main]\n";

/// The binary with lines going in and coming out.
struct Chat {
    child: Child,
    typed: ChildStdin,
    printed: Lines<BufReader<ChildStdout>>,
}

/// The rest of what a chat printed, once its input has ended.
struct Rest {
    stdout: String,
    stderr: String,
}

impl Chat {
    fn start(house: &House, topic: Option<&str>) -> Self {
        let mut command = parlor(house.home.path());
        command
            .arg("chat")
            .args(topic.into_iter().flat_map(|topic| ["--topic", topic]));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("it starts");
        let typed = child.stdin.take().expect("piped");
        let printed = BufReader::new(child.stdout.take().expect("piped")).lines();
        Chat {
            child,
            typed,
            printed,
        }
    }

    async fn types(&mut self, line: &str) {
        self.typed
            .write_all(format!("{line}\n").as_bytes())
            .await
            .expect("it reads");
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.printed.next_line())
            .await
            .expect("it says something");
        line.expect("text").expect("it is still there")
    }

    /// Ends the input, and waits for the end of the process.
    async fn ends(self) -> Rest {
        let Chat {
            child,
            typed,
            mut printed,
        } = self;
        drop(typed);
        let ending = async {
            let mut stdout = Vec::new();
            while let Some(line) = printed.next_line().await.expect("text") {
                stdout.push(line);
            }
            (
                stdout.join("\n"),
                child.wait_with_output().await.expect("it ends"),
            )
        };
        let (stdout, output) = tokio::time::timeout(PATIENCE, ending)
            .await
            .expect("it ends by itself");
        assert!(output.status.success(), "{output:?}");
        Rest {
            stdout,
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

fn is_summary(request: &Request) -> bool {
    request.last_text().contains("[Sum all of this up")
}

/// Talks until the model is asked for a summary, which `summary` answers.
async fn talk_until_summed_up(house: &House, chat: &mut Chat, summary: Script) {
    house
        .model
        .answer_with(move |request| match is_summary(request) {
            true => summary.clone(),
            false => Script::text(format!("On that: {}", "much to say. ".repeat(30))),
        });
    for n in 0.. {
        assert!(n < 20, "it was never summed up");
        chat.types(&format!(
            "question {n} about the garden, {}",
            "with many words ".repeat(10)
        ))
        .await;
        assert!(chat.line().await.starts_with("On that: much to say."));
        if house.model.journal().iter().any(is_summary) {
            break;
        }
    }
}

/// The model is silent about the summary for as long as the test runs.
#[tokio::test]
async fn nobody_at_the_terminal_waits_for_a_summary() {
    let house = House::new(LOCAL).await;
    let mut chat = Chat::start(&house, None);
    talk_until_summed_up(&house, &mut chat, Script::text("never").held()).await;
    chat.types("/whoami").await;
    assert!(chat.line().await.starts_with("You are ann"));
    let rest = chat.ends().await;
    assert_eq!(
        rest.stderr.lines().next(),
        Some("The conversation is being summed up; this takes ten seconds at most.")
    );
}

/// Scripts ask one line at a time. Their conversations are summed up too.
#[tokio::test]
async fn a_chat_that_ends_gives_a_summary_some_time() {
    let house = House::new(LOCAL).await;
    let mut chat = Chat::start(&house, None);
    talk_until_summed_up(
        &house,
        &mut chat,
        Script::text("They spoke about the garden.").held(),
    )
    .await;
    let releasing = async {
        house.model.wait_for_open(1).await;
        house.model.release();
    };
    tokio::join!(chat.ends(), releasing);
    assert_eq!(house.ask("SELECT count(*) FROM summaries"), "1");
}

/// Asks in a topic, and is killed before the answer comes. `requests` is how many the model then
/// has had.
async fn ask_and_die(house: &House, topic: &str, text: &str, requests: usize) {
    let mut chat = Chat::start(house, Some(topic));
    chat.types(text).await;
    house.model.wait_for_requests(requests).await;
    chat.child.kill().await.expect("it can be killed");
}

#[tokio::test]
async fn answers_left_from_before_stand_under_their_topic_and_in_no_reply() {
    let house = House::new(LOCAL).await;
    house.model.hold();
    ask_and_die(&house, "writing", "a story, please", 1).await;
    // The second process goes on with the question that the first left.
    ask_and_die(&house, "code", "a fix, please", 3).await;
    house.model.release();
    let story =
        "Once upon a time there was a lamp that nobody lit, until somebody did, and that was that.";
    house.model.enqueue_when(
        "a story, please",
        Script::Pauses {
            text: story.into(),
            after: vec![9],
        },
    );
    house
        .model
        .enqueue_when("a fix, please", Script::text("Fixed.").held());
    let mut chat = Chat::start(&house, Some("writing"));
    house.model.wait_for_requests(5).await;
    chat.types("/whoami").await;
    let mut reply = Vec::new();
    while reply.last().is_none_or(|line| line != "```") {
        reply.push(chat.line().await);
    }
    assert!(reply[0].starts_with("You are ann"), "{reply:#?}");
    assert!(
        !reply
            .iter()
            .any(|line| line.contains("lamp") || line.contains("asked")),
        "nothing else is in it: {reply:#?}"
    );
    house.model.release();
    let Rest {
        stdout,
        stderr: rest,
    } = chat.ends().await;
    assert_eq!(stdout, "", "nothing more answers a line of this chat");
    assert!(
        rest.contains(&format!(
            "What was asked here before is answered now:\n{story}"
        )),
        "{rest}"
    );
    assert!(
        rest.contains("What was asked before in the topic code is answered now:\nFixed."),
        "{rest}"
    );
}

/// Sets the clipboard, clears the screen, turns the text, goes back to the line's beginning.
const HOSTILE: &str = "lunch\u{1b}]52;c;AAAA\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r\u{7f}!";

/// Whoever wrote it: a memory, a folder's name, an argument that is repeated in an error.
#[tokio::test]
async fn nobodys_words_drive_the_terminal_of_the_operator() {
    let home = fresh_home().await;
    let remembered = run(home.path(), &["remember", "--agent", "main", HOSTILE]).await;
    assert_eq!(remembered.code, 0, "{}", remembered.stderr);
    let hostile_file = format!("/nowhere/{HOSTILE}");
    let verbs: &[&[&str]] = &[
        &["memory", "list", "--agent", "main"],
        &["memory", "list", "--agent", "main", "--json"],
        &["memory", "export"],
        &["memory", "export", "--format", "markdown"],
        &["memory", "import", &hostile_file],
        &["recall", "--agent", "main", "lunch"],
        &["recall", "--agent", "main", "--json", "--explain", "lunch"],
        &["agent", "info", HOSTILE],
        &["route", "explain", HOSTILE],
        &["memory", "list", "--limit", HOSTILE],
        &[HOSTILE],
    ];
    for arguments in verbs {
        let ran = run(home.path(), arguments).await;
        let told = format!("{}{}", ran.stdout, ran.stderr);
        let drives = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
        assert!(!told.contains(drives), "{arguments:?}: {told:?}");
        assert!(!told.is_empty(), "{arguments:?}");
    }
    let listed = run(home.path(), verbs[0]).await.stdout;
    assert!(listed.contains("lunch]52;c;AAAA[2J31m"), "{listed}");
    let json = run(home.path(), verbs[1]).await.stdout;
    let rows: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert!(rows[0].to_string().contains("]52;c;AAAA"), "{rows}");
}
