//! `parlor run` as its operator sees it: on a terminal with names, in a file with ids only.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::process::{Child, Command};

use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Fault};
use crate::support::house::{Process, parlor};

/// Long enough for a loaded machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

const TEAM: &str = "[access]\nowners = [\"telegram:111\"]\n[agents.main]\nemoji = \"☕\"\nwho = \"member\"\n[agents.rose]\nemoji = \"🌹\"\nwho = \"guest\"\n\
    [[bindings]]\nmatch = \"telegram:topic:-1001:101\"\nagent = \"rose\"\n";

/// The binary with a terminal as its stderr.
struct Console {
    child: Child,
    seen: Arc<Mutex<String>>,
}

impl Console {
    fn start(house: &House) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it opens");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let terminal =
            open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("the other end");
        let mut command = parlor(house.home.path());
        command.arg("run").stderr(Stdio::from(terminal));
        let child = command.kill_on_drop(true).spawn().expect("it starts");
        drop(command);
        let seen = Arc::<Mutex<String>>::default();
        let shown = seen.clone();
        // Ends when the last holder of the other end is gone.
        std::thread::spawn(move || {
            let (mut screen, mut piece) = (File::from(master), [0; 4096]);
            while let Ok(count @ 1..) = screen.read(&mut piece) {
                let text = String::from_utf8_lossy(&piece[..count]).replace('\r', "");
                shown.lock().expect("nobody panicked").push_str(&text);
            }
        });
        Console { child, seen }
    }

    /// Without times and colours.
    fn lines(&self) -> Vec<String> {
        let seen = self.seen.lock().expect("nobody panicked").clone();
        seen.lines().map(plain).collect()
    }

    async fn wait_for(&self, words: &str) -> String {
        let looking = async {
            loop {
                if let Some(line) = self.lines().into_iter().find(|line| line.contains(words)) {
                    return line;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, looking).await;
        found.unwrap_or_else(|_| panic!("no {words:?} in {:#?}", self.lines()))
    }

    async fn wait_for_count(&self, words: &str, count: usize) {
        let with_words = |line: &String| line.contains(words);
        let looking = async {
            while self.lines().iter().filter(|line| with_words(line)).count() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, looking).await;
        assert!(
            found.is_ok(),
            "not {count} × {words:?} in {:#?}",
            self.lines()
        );
    }

    /// Returns when the words stand on the screen, in a line without a time too.
    async fn shows(&self, words: &str) {
        let looking = async {
            while !self.seen.lock().expect("nobody panicked").contains(words) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, looking).await;
        assert!(found.is_ok(), "no {words:?} in {:#?}", self.seen);
    }

    async fn signal(&self, name: &str) {
        let pid = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill").args([name, &pid]).status().await;
        assert!(sent.expect("kill is there").success());
    }

    async fn exit_code(&mut self) -> Option<i32> {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.expect("it ends").expect("it ends").code()
    }
}

/// The line without colours, without its time, and without numbers that other work changes.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text += before;
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    text += rest;
    // `17 Nov 09:12:03  `
    let behind = text.split_at_checked(15).map_or("", |(_, behind)| behind);
    let words = behind.trim_start().split(" · ").map(|word| match word {
        word if word.ends_with(" s") => "N s",
        word if word.ends_with(" tokens") => "N tokens",
        word if word.starts_with("cost ") => "cost N",
        word => word,
    });
    words.collect::<Vec<_>>().join(" · ")
}

#[tokio::test]
async fn the_console_tells_who_wrote_where_and_who_answered() {
    let house = House::new(TEAM).await;
    house.configure_provider("prices = { any = { input = 1.0, output = 2.0 } }");
    let mut console = Console::start(&house);
    assert_snapshot!(console.wait_for("is up").await.replace(env!("CARGO_PKG_VERSION"), "VERSION"), @"[system] Parlor VERSION is up. Times are local (UTC); Ctrl-C stops.");
    assert_snapshot!(console.wait_for("connected").await, @"[system] connected as @parlor_bot · polling · 2 agents · https://t.me/parlor_bot");
    let topic = house.telegram.forum(-1001).topic(101, "Writing");
    topic.says(ALICE, "@parlor_bot hello").await;
    assert_snapshot!(console.wait_for("Alice in").await, @"[rose] Alice in “Writing” → 🌹 Rose (exact topic, line 20 of config.toml) · N s · N tokens · cost N");
    topic.says(BOB, "talk among people").await;
    assert_snapshot!(console.wait_for("Bob (telegram:222) in").await, @"[system] Bob (telegram:222) in “Writing”: ignored, the message neither mentions the bot nor replies to it");
    house
        .telegram
        .supergroup(-1009)
        .says(BOB, "@parlor_bot hello")
        .await;
    assert_snapshot!(console.wait_for("Chat -1009").await, @"[system] Bob (telegram:222) in “Chat -1009”: ignored, no binding or /agent opens this group");
    let carol = house.telegram.dm(CAROL);
    carol.says("let me in").await;
    carol.wait_for_sent(1).await;
    let line = console.wait_for("wants in").await;
    let code = line.rsplit(' ').next().expect("a code").to_owned();
    let home = house.home.path().display().to_string();
    assert_snapshot!(line.replace(&code, "CODE").replace(&home, "HOME"), @"[system] Carol (telegram:333) wants in: parlor --home HOME pair CODE");
    assert!(carol.texts()[0].contains(&code));
    for _ in 0..5 {
        topic.says(BOB, "more talk").await;
        house
            .telegram
            .supergroup(-1009)
            .says(BOB, "@parlor_bot hello?")
            .await;
    }
    let alice = house.telegram.dm(ALICE);
    alice.says("hello").await;
    assert_snapshot!(console.wait_for("Alice in private").await, @"[main] Alice in private → ☕ Main (default agent) · N s · N tokens · cost N");
    let ignored = console
        .lines()
        .iter()
        .filter(|line| line.contains("ignored"))
        .count();
    assert_eq!(ignored, 2, "once per place and hour");
    // Bob's talk is part of what Alice's next question is answered with.
    topic.says(ALICE, "@parlor_bot and now?").await;
    topic.wait_for_sent(2).await;
    // The line is printed once the turn is written down; a stop before that would announce one answer to finish.
    console.wait_for_count("Alice in “Writing”", 2).await;
    console.signal("-INT").await;
    console.wait_for("Stopping.").await;
    assert_eq!(console.exit_code().await, Some(0));
    let lines = console.lines().join("\n");
    for detail in ["less trusted words", "the admin listener"] {
        assert!(!lines.contains(detail), "{lines}");
    }
}

/// S21 of the security review: names of people and topics are words of people.
#[tokio::test]
async fn a_log_that_is_no_terminal_has_ids_and_no_names() {
    let house = House::new(TEAM).await;
    let process = house.spawn().await;
    let topic = house.telegram.forum(-1001).topic(101, "zinnober-plan");
    topic.says(ALICE, "@parlor_bot hello").await;
    topic.says(BOB, "talk").await;
    house.telegram.dm(CAROL).says("let me in").await;
    process
        .wait_for_log("telegram:333 wants in: parlor --home ")
        .await;
    process.wait_for_log("rose answered").await;
    process
        .wait_for_log("ignored: the message neither mentions the bot nor replies to it")
        .await;
    let log = process.log();
    for name in ["Alice", "Bob", "Carol", "zinnober"] {
        assert!(!log.contains(name), "{log}");
    }
    let line = log
        .lines()
        .find(|line| line.contains("rose answered"))
        .expect("a line");
    let (time, rest) = line.split_once(' ').expect("a time before");
    assert!(
        time.ends_with("+00:00") && time.len() == "2026-11-16T09:12:03+00:00".len(),
        "{line}"
    );
    let rest = rest.split("seconds=").next().expect("the beginning");
    let lines = house
        .config()
        .lines()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    let at = lines.iter().position(|line| line.starts_with("match"));
    let line = format!("line {}:", at.expect("the binding") + 1);
    let rest = rest.replace(&line, "line LINE:");
    assert_snapshot!(rest.trim(), @r#"INFO [rose] rose answered session=telegram:topic:-1001:101 person=telegram:111 rule="config.toml line LINE: exact topic telegram:topic:-1001:101""#);
    house.telegram.all_confirmed().await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn connected_is_said_when_it_is_true() {
    let house = House::new(TEAM).await;
    house.telegram.fail("getUpdates", Fault::Html(502)).times(2);
    let process = Process::start(house.home.path(), &["run"]);
    process.wait_for_log("polling Telegram: ").await;
    assert!(!process.log().contains("connected as"), "{}", process.log());
    process
        .wait_for_log("connected as @parlor_bot · polling · 2 agents · https://t.me/parlor_bot")
        .await;
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn a_discord_bot_says_where_it_is() {
    let (house, discord, _) = House::with_garden("", TEAM).await;
    let process = house.spawn().await;
    discord.connected().await;
    process
        .wait_for_log("connected as parlor · gateway · 1 server · 2 agents")
        .await;
    assert_eq!(process.stop().await, 0);
}

/// The first Ctrl-C waits for the answer, and the second does not.
#[tokio::test]
async fn a_second_ctrl_c_stops_at_once_and_loses_nothing() {
    let house = House::new(TEAM).await;
    house.model.hold();
    let mut console = Console::start(&house);
    let alice = house.telegram.dm(ALICE);
    alice.says("hello").await;
    house.model.wait_for_requests(1).await;
    console.signal("-INT").await;
    assert_snapshot!(console.wait_for("Stopping").await, @"[system] Stopping: finishing 1 answer, up to 10 s. Ctrl-C again stops now.");
    console.signal("-INT").await;
    assert_eq!(console.exit_code().await, Some(130));
    console
        .shows("Stopped at once. The next start goes on with the rest.")
        .await;
    house.model.release();
    let gateway = house.open().await;
    house.settled(&gateway).await;
    assert_eq!(alice.texts(), ["re: hello"]);
    gateway.shutdown().await;
}

/// A closed window of a terminal sends SIGHUP.
#[tokio::test]
async fn a_closed_terminal_is_a_clean_stop() {
    let house = House::new(TEAM).await;
    let mut console = Console::start(&house);
    console.wait_for("connected").await;
    console.signal("-HUP").await;
    console
        .wait_for("Stopping because the terminal was closed.")
        .await;
    assert_eq!(console.exit_code().await, Some(0));
}

/// Who may do what changes in front of the operator's eyes.
#[tokio::test]
async fn the_console_tells_who_was_refused_let_in_and_put_out() {
    let house = House::new(TEAM).await;
    let mut console = Console::start(&house);
    console.wait_for("connected").await;
    let lounge = house.telegram.forum(-1001).topic(106, "Lounge");
    lounge.says(ALICE, "/agent rose").await;
    lounge.wait_for_sent(1).await;
    lounge.says(ALICE, "/agent reset").await;
    lounge.wait_for_sent(2).await;
    lounge.says(BOB, "@parlor_bot hello").await;
    assert_snapshot!(console.wait_for("Bob (guest)").await, @"[main] Bob (guest) in “Lounge” → main: not answered, main is for members");
    let carol = house.telegram.dm(CAROL);
    carol.says("let me in").await;
    let line = console.wait_for("wants in").await;
    let command = line.split(": parlor ").nth(1).expect("a command");
    // As typed into a terminal that knows no home.
    let output = Command::new(env!("CARGO_BIN_EXE_parlor"))
        .args(command.split(' '))
        .env_remove("PARLOR_HOME")
        .output()
        .await
        .expect("parlor runs");
    assert!(output.status.success(), "{output:?}");
    assert_snapshot!(console.wait_for("is a member").await, @"[system] Carol (telegram:333) is a member now, let in by the command line");
    house.telegram.dm(ALICE).says("/unpair telegram:333").await;
    assert_snapshot!(console.wait_for("is a guest").await, @"[system] Carol (telegram:333) is a guest again, put out by Alice");
    console.signal("-INT").await;
    assert_eq!(console.exit_code().await, Some(0));
}

/// A run of a job is told like other turns: with time, cost and place.
#[tokio::test]
async fn a_run_of_a_job_has_a_line() {
    let house = House::new(TEAM).await;
    house.model.answer_with(|_| Script::text("Tea is made."));
    let _topic = house.telegram.forum(-1001).topic(101, "Writing");
    let console = Console::start(&house);
    console.wait_for("is up").await;
    let home = house.home.path();
    let add = [
        "job",
        "add",
        "--agent",
        "rose",
        "--every",
        "1h",
        "--place",
        "telegram:topic:-1001:101",
        "tea",
        "Make tea.",
    ];
    assert_eq!(run(home, &add).await.code, 0);
    assert_eq!(run(home, &["job", "run", "rose/tea"]).await.code, 0);
    let line = console.wait_for("(its job)").await;
    assert!(
        line.contains("job tea in telegram:topic:-1001:101 → 🌹 Rose (its job) · N s · N tokens"),
        "{line}"
    );
}
