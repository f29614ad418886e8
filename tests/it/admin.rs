//! The admin listener: health, readiness, metrics, and whom it lets in.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use rusqlite::Connection;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, Fault};
use crate::support::house::Process;
use crate::support::tell_skipped;
use crate::webhook::free_address;

/// The Python that has prometheus-client; `scripts/check` makes one and sets this.
const PYTHON: &str = "PARLOR_PROMETHEUS_PYTHON";

const TEAM: &str = "[access]\nowners = [\"telegram:111\"]\nrequire_mention = false\ngroups = \"open\"\n\
    [agents.main]\n[agents.rose]\nwho = \"guest\"\n\
    [[bindings]]\nmatch = \"telegram:topic:-1001:101\"\nagent = \"rose\"\n";

struct Watched {
    house: House,
    address: String,
}

/// A status and a body.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Watched {
    async fn new(keys: &str) -> Self {
        let address = free_address();
        let house = House::new(&format!("{TEAM}{}", section(&address, keys))).await;
        house.write("secrets/admin", "a-token-of-the-operator");
        Watched { house, address }
    }

    async fn start(&self) -> Process {
        let process = self.house.spawn().await;
        process
            .wait_for_log(&format!("the admin listener is on {}", self.address))
            .await;
        process
    }

    async fn get(&self, path: &str) -> Answer {
        get(&self.address, path, "").await
    }

    async fn get_with_token(&self, path: &str) -> Answer {
        get(
            &self.address,
            path,
            "Authorization: Bearer a-token-of-the-operator\r\n",
        )
        .await
    }

    /// Returns when the page has this status.
    async fn becomes(&self, path: &str, status: u16) -> Answer {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let answer = self.get(path).await;
            if answer.status == status {
                return answer;
            }
            assert!(Instant::now() < until, "{path} stays {answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn section(address: &str, keys: &str) -> String {
    format!("[admin]\nlisten = \"{address}\"\n{keys}\n")
}

async fn get(address: &str, path: &str, headers: &str) -> Answer {
    ask(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n"),
    )
    .await
}

async fn ask(address: &str, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    Answer {
        status: head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .expect("a status"),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// Something of everything that is counted.
async fn a_busy_minute(house: &House) {
    let topic = house.telegram.forum(-1001).topic(101, "zinnober");
    house.model.enqueue(Script::tool_call("now", json!({})));
    topic.says(BOB, "what time is it").await;
    topic.wait_for_sent(1).await;
    house.model.enqueue(Script::status(400, "no"));
    topic.says(BOB, "and now").await;
    topic.wait_for_sent(2).await;
    house
        .telegram
        .fail("sendMessage", Fault::RetryAfter(1))
        .once();
    let alice = house.telegram.dm(ALICE);
    alice.says("hello").await;
    alice.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
}

/// S3.28
#[tokio::test]
async fn the_numbers_of_a_busy_minute() {
    let watched = Watched::new("metrics = \"open\"").await;
    let house = &watched.house;
    house.configure_provider("prices = { any = { input = 1.0, output = 2.0 } }");
    let process = watched.start().await;
    a_busy_minute(house).await;
    process.hang_up().await;
    process.wait_for_log("reload").await;
    house.write("config.toml", "default_agent = \"nobody\"\n");
    process.wait_for_log("the running config stays").await;
    process.wait_for_log("main answered").await;
    let answer = watched.get("/metrics").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        answer
            .head
            .contains("application/openmetrics-text; version=1.0.0"),
        "{}",
        answer.head
    );
    let text = answer.body;
    let families: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    assert_snapshot!(families.into_iter().collect::<Vec<_>>().join("\n"), @"
    parlor_approvals_open gauge
    parlor_build gauge
    parlor_cost counter
    parlor_log_lines_dropped counter
    parlor_outbox_rows gauge
    parlor_panics counter
    parlor_platform_up gauge
    parlor_queue_age_seconds gauge
    parlor_queue_messages gauge
    parlor_rate_limited counter
    parlor_received counter
    parlor_reloads counter
    parlor_routed counter
    parlor_stage_seconds histogram
    parlor_store_seconds histogram
    parlor_store_up gauge
    parlor_subagents counter
    parlor_tokens counter
    parlor_tool_calls counter
    parlor_turns counter
    parlor_turns_running gauge
    parlor_uptime_seconds gauge
    ");
    for line in [
        r#"parlor_received_total{platform="telegram"} 3"#,
        r#"parlor_routed_total{agent="rose",rule="exact_topic"} 2"#,
        r#"parlor_routed_total{agent="main",rule="default_agent"} 1"#,
        r#"parlor_turns_total{agent="rose",outcome="answered"} 1"#,
        r#"parlor_turns_total{agent="rose",outcome="failed"} 1"#,
        r#"parlor_turns_total{agent="main",outcome="answered"} 1"#,
        r#"parlor_tool_calls_total{agent="rose"} 1"#,
        r#"parlor_rate_limited_total{platform="telegram"} 1"#,
        r#"parlor_reloads_total{outcome="done"} 1"#,
        r#"parlor_panics_total 0"#,
        r#"parlor_stage_seconds_count{agent="main",stage="sent"} 1"#,
        r#"parlor_stage_seconds_count{agent="rose",stage="model"} 2"#,
        r#"parlor_platform_up{platform="telegram"} 1.0"#,
        r#"parlor_store_up 1.0"#,
        r#"parlor_queue_messages 0.0"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
    }
    assert!(
        text.contains("parlor_outbox_rows{state=\"sent\"} "),
        "{text}"
    );
    assert!(
        !text.contains("parlor_reloads_total{outcome=\"refused\"} 0"),
        "{text}"
    );
    let no_cost = "parlor_cost_total{agent=\"rose\"} 0.0";
    assert!(text.lines().all(|line| line != no_cost), "{text}");
    for id in ["-1001", "telegram:", "zinnober", "Alice"] {
        assert!(!text.contains(id), "{id} in {text}");
    }
    parsed_from_outside(&text).await;
    assert_eq!(process.stop().await, 0);
}

/// The reader that Prometheus itself ships for Python reads every line.
async fn parsed_from_outside(text: &str) {
    let Some(python) = std::env::var_os(PYTHON) else {
        tell_skipped(&format!(
            "prometheus-client does not read the metrics, because {PYTHON} is not set; scripts/check sets it"
        ));
        return;
    };
    let script = "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as read\n\
        families = list(read(sys.stdin.read()))\nprint(sum(len(f.samples) for f in families))";
    let mut child = tokio::process::Command::new(python)
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(text.as_bytes()).await.expect("it reads");
    drop(input);
    let read = child.wait_with_output().await.expect("it ends");
    let (said, complained) = (
        String::from_utf8_lossy(&read.stdout),
        String::from_utf8_lossy(&read.stderr),
    );
    assert!(read.status.success(), "{complained}");
    let samples = text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(said.trim(), samples.to_string());
}

/// A removed agent's numbers go on as `other`, and an agent that is added has numbers at once.
#[tokio::test]
async fn labels_are_the_agents_of_the_config() {
    let watched = Watched::new("metrics = \"open\"").await;
    let house = &watched.house;
    let process = watched.start().await;
    let topic = house.telegram.forum(-1001).topic(101, "One");
    topic.says(BOB, "hello").await;
    topic.wait_for_sent(1).await;
    process.wait_for_log("rose answered").await;
    let without_rose = TEAM.replace("rose", "dot");
    house.configure(
        "",
        &format!(
            "{without_rose}{}",
            section(&watched.address, "metrics = \"open\"")
        ),
    );
    process.hang_up().await;
    process.wait_for_log("reload").await;
    let text = watched.get("/metrics").await.body;
    for line in [
        r#"parlor_turns_total{agent="other",outcome="answered"} 1"#,
        r#"parlor_turns_total{agent="dot",outcome="answered"} 0"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
    }
    assert!(!text.contains("rose"), "{text}");
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
}

/// Another program has the database, and nothing can be stored.
#[tokio::test]
async fn a_busy_store_keeps_no_page_waiting() {
    let watched = Watched::new("metrics = \"open\"").await;
    let process = watched.start().await;
    assert_eq!(watched.becomes("/readyz", 200).await.body, "ready\n");
    let other = Connection::open(watched.house.home.path().join("parlor.db")).expect("it opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("it is free");
    let began = Instant::now();
    for _ in 0..3 {
        assert_eq!(watched.get("/healthz").await.body, "ok\n");
    }
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    let answer = watched.get("/readyz").await;
    assert_eq!(answer.status, 503);
    assert_snapshot!(answer.body, @"
    not ready
    the database has not stored anything for 1 s
    ");
    let text = watched.get("/metrics").await.body;
    assert!(text.contains("parlor_store_up 0.0"), "{text}");
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    other.execute_batch("ROLLBACK").expect("it ends");
    watched.becomes("/readyz", 200).await;
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn a_platform_that_does_not_answer_is_the_reason_not_to_be_ready() {
    let mut watched = Watched::new("").await;
    watched.house.leave_leftovers();
    let process = watched.start().await;
    watched.becomes("/readyz", 200).await;
    for method in ["getUpdates", "sendMessage", "sendChatAction"] {
        let telegram = &watched.house.telegram;
        telegram.fail(method, Fault::Html(502)).times(1000);
    }
    watched.house.telegram.dm(ALICE).says("hello").await;
    assert_snapshot!(watched.becomes("/readyz", 503).await.body, @"
    not ready
    telegram does not answer
    ");
    assert_eq!(watched.get("/healthz").await.status, 200);
    process.kill().await;
}

/// A commit without a change still works on a full disk, so that is no sign that messages are stored.
#[tokio::test]
async fn a_full_disk_is_the_reason_not_to_be_ready() {
    let watched = Watched::new("").await;
    let process = watched.start().await;
    watched.becomes("/readyz", 200).await;
    watched.house.fills_up("INSERT ON inbox");
    watched.house.telegram.dm(ALICE).says("hello").await;
    assert_snapshot!(watched.becomes("/readyz", 503).await.body, @"
    not ready
    the disk is full, so nothing more can be stored. Free some space; waiting messages are kept by their platform
    ");
    // Only the inbox is full here, so another write may work before the next try.
    let telling = async {
        loop {
            let told = crate::cli::run(watched.house.home.path(), &["status"]).await;
            if told.code == 1 {
                return told.stdout;
            }
        }
    };
    let told = tokio::time::timeout(Duration::from_secs(20), telling).await;
    let told = told.expect("the status tells");
    assert!(
        told.contains("nothing can be stored: the disk is full"),
        "{told}"
    );
    watched.house.works_again();
    watched.house.telegram.dm(ALICE).wait_for_sent(1).await;
    watched.becomes("/readyz", 200).await;
    process.wait_for_log("the store works again").await;
    watched
        .house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
}

/// Discord takes our calls, but its messages come over another connection.
#[tokio::test]
async fn a_discord_that_is_not_heard_is_the_reason_not_to_be_ready() {
    let mut watched = Watched::new("").await;
    watched.house.leave_leftovers();
    let discord = watched.house.add_discord("").await;
    discord.guild(8001, "Garden");
    let process = watched.start().await;
    watched.becomes("/readyz", 200).await;
    discord.close_every_identify(Some(4000));
    discord.forget_sessions();
    discord.drop_connections();
    assert_snapshot!(watched.becomes("/readyz", 503).await.body, @"
    not ready
    discord does not answer
    ");
    discord.close_every_identify(None);
    watched.becomes("/readyz", 200).await;
    process.kill().await;
    drop(discord.take_violations());
}

#[tokio::test]
async fn metrics_need_the_token_unless_the_config_opens_them() {
    let watched = Watched::new("token = { file = \"secrets/admin\" }").await;
    let process = watched.start().await;
    assert_eq!(watched.get("/healthz").await.status, 200);
    let refused = watched.get("/metrics").await;
    assert_eq!(refused.status, 401);
    assert!(
        refused
            .head
            .to_lowercase()
            .contains("www-authenticate: bearer")
    );
    assert_snapshot!(refused.body, @"This page needs the token of [admin]: send it as `Authorization: Bearer TOKEN`.");
    for wrong in ["a-token-of-the-operato", "a-token-of-the-operatorx", ""] {
        let header = format!("Authorization: Bearer {wrong}\r\n");
        assert_eq!(
            get(&watched.address, "/metrics", &header).await.status,
            401,
            "{wrong}"
        );
    }
    assert_eq!(watched.get_with_token("/metrics").await.status, 200);
    assert_eq!(watched.get_with_token("/nothing").await.status, 404);
    let dashboard = watched.get_with_token("/").await;
    assert_eq!(dashboard.status, 401, "a token for watchers is no key");
    let posted = format!(
        "POST /healthz HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        watched.address
    );
    assert_eq!(ask(&watched.address, &posted).await.status, 405);
    // A page of the internet whose name leads to this machine.
    let rebound = "GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(ask(&watched.address, rebound).await.status, 403);
    assert!(!process.log().contains("a-token-of"), "{}", process.log());
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn without_a_token_and_an_opening_metrics_say_what_is_missing() {
    let watched = Watched::new("").await;
    let process = watched.start().await;
    let refused = watched.get("/metrics").await;
    assert_eq!(refused.status, 401);
    assert_snapshot!(refused.body, @r#"This page needs a token, and config.toml has none. Add a line such as `token = { file = "secrets/admin" }` to [admin], or `metrics = "open"` for every program on this machine."#);
    assert_eq!(process.stop().await, 0);
}

/// Where other machines reach the listener, nothing is told without the token.
#[tokio::test]
async fn a_public_listener_tells_nothing_without_the_token() {
    let watched = Watched::new("public = true\ntoken = { file = \"secrets/admin\" }").await;
    let port = watched
        .address
        .rsplit(':')
        .next()
        .expect("a port")
        .to_owned();
    let address = format!("0.0.0.0:{port}");
    let text =
        std::fs::read_to_string(watched.house.home.path().join("config.toml")).expect("a config");
    watched
        .house
        .write("config.toml", &text.replace(&watched.address, &address));
    let process = watched.house.spawn().await;
    process
        .wait_for_log("the admin listener is on 0.0.0.0")
        .await;
    for path in ["/healthz", "/readyz", "/metrics", "/nothing"] {
        assert_eq!(watched.get(path).await.status, 401, "{path}");
    }
    assert_eq!(watched.get_with_token("/healthz").await.status, 200);
    assert_eq!(process.stop().await, 0);
}

/// The gateway goes on without the listener, and tells it to everybody who asks.
#[tokio::test]
async fn an_address_that_is_taken_is_told() {
    let watched = Watched::new("metrics = \"open\"").await;
    let taken = std::net::TcpListener::bind(&watched.address).expect("it is free");
    let process = watched.house.spawn().await;
    process.wait_for_log("the admin listener is off").await;
    let home = watched.house.home.path();
    let (_, port) = watched.address.split_once(':').expect("a port");
    let reason = format!("port {port} is taken by another program");
    let status = crate::cli::run(home, &["status"]).await;
    assert_eq!(status.code, 1, "{}", status.stdout);
    let told = format!("The dashboard is off: {reason}\n");
    assert!(status.stdout.contains(&told), "{}", status.stdout);
    let doctor = crate::cli::run(home, &["doctor"]).await;
    assert_eq!(doctor.code, 1, "{}", doctor.stdout);
    assert!(doctor.stdout.contains(&reason), "{}", doctor.stdout);
    let dashboard = crate::cli::run(home, &["dashboard"]).await;
    assert!(dashboard.stderr.contains(&reason), "{}", dashboard.stderr);
    drop(taken);
    process
        .wait_for_log(&format!("the admin listener is on {}", watched.address))
        .await;
    let status = crate::cli::run(home, &["status"]).await;
    assert_eq!(status.code, 0, "{}", status.stdout);
    assert_eq!(process.stop().await, 0);
}

/// `[admin]` counts when it is saved, and nothing else notices.
#[tokio::test]
async fn the_listener_follows_the_config() {
    let watched = Watched::new("metrics = \"open\"").await;
    let house = &watched.house;
    let process = watched.start().await;
    process.wait_for_log("connected as").await;
    let connected = house.telegram.calls("getMe").len();
    let alice = house.telegram.dm(ALICE);
    house.model.hold();
    alice.says("hello").await;
    house.model.wait_for_requests(1).await;
    let other = free_address();
    house.configure(
        "",
        &format!("{TEAM}{}", section(&other, "metrics = \"open\"")),
    );
    process.hang_up().await;
    process
        .wait_for_log(&format!("the admin listener is on {other}"))
        .await;
    assert_eq!(get(&other, "/healthz", "").await.status, 200);
    assert!(
        TcpStream::connect(&watched.address).await.is_err(),
        "the old one is closed"
    );
    let text = get(&other, "/metrics", "").await.body;
    assert!(text.contains("parlor_turns_running 1.0"), "{text}");
    house.configure("", TEAM);
    process.hang_up().await;
    process.wait_for_log_lines("reload", 2).await;
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(&other).await.is_ok() {
        assert!(Instant::now() < until, "it is still open");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    house.model.release();
    assert_eq!(alice.wait_for_sent(1).await.text, "re: hello");
    assert_eq!(
        house.telegram.calls("getMe").len(),
        connected,
        "nothing was connected again"
    );
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
}
