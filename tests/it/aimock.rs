//! The gateway with a model server that nobody here wrote: aimock, on two dialects. What it must
//! answer is in `aimock_fixtures.json`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use parlor::gateway::Gateway;
use tokio::process::{Child, Command};

use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB, Dm};
use crate::support::tell_skipped;
use crate::webhook::free_port;

/// Where aimock's program is; `scripts/check` installs one and sets this.
const PROGRAM: &str = "PARLOR_AIMOCK";
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/aimock_fixtures.json");
const PATIENCE: Duration = Duration::from_secs(30);

/// A house whose models are all on one aimock. Alice talks to OpenAI's dialect, Bob to Anthropic's.
struct Setup {
    house: House,
    gateway: Gateway,
    _server: Child,
}

impl Setup {
    /// Nothing, and a word about it, where aimock is not there.
    async fn start() -> Option<Self> {
        let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
            tell_skipped(&format!(
                "no aimock, because {PROGRAM} is not set; scripts/check sets it"
            ));
            return None;
        };
        let port = free_port();
        let server = Command::new(program)
            .args([
                "-p",
                &port.to_string(),
                "-f",
                FIXTURES,
                "--strict",
                "--validate-on-load",
                "--log-level",
                "silent",
            ])
            .kill_on_drop(true)
            .spawn()
            .expect("aimock starts");
        listens(port).await;
        let house = House::new(&config(port)).await;
        let gateway = house.open().await;
        Some(Setup {
            house,
            gateway,
            _server: server,
        })
    }

    fn talks(&self) -> [(&'static str, Dm); 2] {
        [
            ("openai", self.house.telegram.dm(ALICE)),
            ("anthropic", self.house.telegram.dm(BOB)),
        ]
    }

    async fn end(self) {
        self.house.settled(&self.gateway).await;
        self.gateway.shutdown().await;
    }
}

fn config(port: u16) -> String {
    format!(
        r#"
[providers.openai]
kind = "openai"
base_url = "http://127.0.0.1:{port}/v1/"
[providers.anthropic]
kind = "anthropic"
base_url = "http://127.0.0.1:{port}/v1/"
[access]
dms = "open"
[agents.main]
model = "openai/gpt-mock"
fallback = ["anthropic/claude-mock"]
[agents.claude]
model = "anthropic/claude-mock"
fallback = ["openai/gpt-mock"]
[[bindings]]
match = "telegram:dm:222"
agent = "claude"
"#
    )
}

/// Another process cannot wake us, so it is knocked at again and again.
async fn listens(port: u16) {
    let knocking = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, knocking)
        .await
        .expect("aimock listens");
}

#[tokio::test]
async fn an_answer_is_streamed_and_what_was_thought_is_not_shown() {
    let Some(setup) = Setup::start().await else {
        return;
    };
    for (dialect, chat) in setup.talks() {
        chat.says("hello there").await;
        assert_eq!(
            chat.wait_for_sent(1).await.text,
            "Good morning, and welcome to the parlor.",
            "{dialect}"
        );
        chat.says("think about it").await;
        assert_eq!(chat.wait_for_sent(2).await.text, "Forty-two.", "{dialect}");
    }
    setup.end().await;
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_read() {
    let Some(setup) = Setup::start().await else {
        return;
    };
    for (dialect, chat) in setup.talks() {
        chat.says("what time is it?").await;
        assert_eq!(
            chat.wait_for_sent(1).await.text,
            "It is late enough for tea.",
            "{dialect}"
        );
    }
    setup.house.settled(&setup.gateway).await;
    assert_eq!(
        setup.house.ask("SELECT group_concat(steps) FROM turns"),
        "2,2"
    );
    setup.end().await;
}

#[tokio::test]
async fn a_limit_is_waited_for_and_an_overload_asked_again() {
    let Some(setup) = Setup::start().await else {
        return;
    };
    for (dialect, chat) in setup.talks() {
        let began = Instant::now();
        chat.says(&format!("slow down, {dialect}")).await;
        assert_eq!(
            chat.wait_for_sent(1).await.text,
            "Now I have time.",
            "{dialect}"
        );
        assert!(
            began.elapsed() >= Duration::from_secs(2),
            "{dialect}: the server asked for two seconds"
        );
        chat.says(&format!("are you busy, {dialect}?")).await;
        assert_eq!(
            chat.wait_for_sent(2).await.text,
            "Not any more.",
            "{dialect}"
        );
    }
    setup.house.settled(&setup.gateway).await;
    let models = "SELECT group_concat(model, ' ') FROM (SELECT model FROM turns ORDER BY id)";
    assert_eq!(
        setup.house.ask(models),
        "openai/gpt-mock openai/gpt-mock anthropic/claude-mock anthropic/claude-mock",
        "nobody else was needed"
    );
    setup.end().await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_told_and_not_finished_by_another() {
    let Some(setup) = Setup::start().await else {
        return;
    };
    for (reference, (dialect, chat)) in (1..).zip(setup.talks()) {
        chat.says("tell me a long story").await;
        setup.house.settled(&setup.gateway).await;
        let last = chat.texts().pop();
        assert_eq!(
            last,
            Some(format!(
                "My answer was cut off on the way. Please try again. [ref {reference}]"
            )),
            "{dialect}"
        );
    }
    assert_eq!(
        setup
            .house
            .ask("SELECT group_concat(model, ' ') FROM turns"),
        "openai/gpt-mock anthropic/claude-mock"
    );
    setup.end().await;
}

#[tokio::test]
async fn one_dialect_answers_for_the_other() {
    let Some(setup) = Setup::start().await else {
        return;
    };
    for (dialect, chat) in setup.talks() {
        chat.says(&format!("somebody must stand in for {dialect}"))
            .await;
        let other = if dialect == "openai" { "Claude" } else { "GPT" };
        assert_eq!(
            chat.wait_for_sent(1).await.text,
            format!("{other} here, gladly."),
            "{dialect}"
        );
    }
    setup.house.settled(&setup.gateway).await;
    assert_eq!(
        setup
            .house
            .ask("SELECT group_concat(model, ' ') FROM turns"),
        "anthropic/claude-mock openai/gpt-mock"
    );
    setup.end().await;
}
