//! The lanes by themselves, where a race must be hit exactly.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use parlor::agents::Memories;
use parlor::channels::{
    Abilities, Channel, FetchError, Intake, ListenError, Part, Progress, SendError, Text, Ticket,
};
use parlor::config::Secrets;
use parlor::delivery::Delivery;
use parlor::domain::{
    Addressed, Destination, Extras, FileRef, Inbound, MessageId, Origin, Platform,
};
use parlor::home::{CheckedConfig, Home};
use parlor::home::{Snapshot, Snapshots};
use parlor::lanes::{Arrived, Services, Sessions};
use parlor::models::ToolSpec;
use parlor::records::inbox::Accepted;
use parlor::routing::pins;
use parlor::storage::Db;
use parlor::tools::{Outcome, Risk, Scope, Tool, ToolBox};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// What a message does that comes in at the very moment at which a place's lane ends.
struct Barges {
    sessions: Sessions,
    message: Mutex<Option<(Accepted, TaskTrackerToken)>>,
}

impl Wake for Barges {
    fn wake(self: Arc<Self>) {
        if let Some((accepted, guard)) = self.message.lock().expect("nobody panicked").take() {
            self.sessions
                .submit(accepted, Arrived::Now, guard)
                .expect("the lane has room");
        }
    }
}

/// The first message's guard wakes whoever waits for it, and that one submits the second.
#[tokio::test]
async fn a_message_that_comes_while_its_lane_ends_is_answered() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("config.toml"), "[agents.main]\n").expect("writes");
    let (sessions, work) = bare_sessions(&Home::new(home.path()), ToolBox::standard()).await;
    let message = |id| Accepted::new(id, from_alice(id));
    let second = Mutex::new(Some((message(2), work.token())));
    let first = TaskTracker::new();
    first.close();
    sessions
        .submit(message(1), Arrived::Now, first.token())
        .expect("the lane has room");
    let waker = Waker::from(Arc::new(Barges {
        sessions: sessions.clone(),
        message: second,
    }));
    let mut ended = pin!(first.wait());
    assert!(
        ended
            .as_mut()
            .poll(&mut std::task::Context::from_waker(&waker))
            .is_pending()
    );
    work.wait().await;
    assert_eq!(
        crate::support::house::ask(home.path(), "SELECT group_concat(inbox_id) FROM turns"),
        "1,2"
    );
}

/// Breaks whenever it is called.
struct Boom;

#[async_trait::async_trait]
impl Tool for Boom {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "boom".into(),
            description: "Breaks.".into(),
            parameters: serde_json::json!({ "type": "object" }).into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    async fn call(&self, _scope: &Scope, _arguments: serde_json::Value) -> Outcome {
        panic!("the tool is broken on purpose")
    }
}

/// The model hears of it and goes on.
#[tokio::test]
async fn a_tool_that_panics_ends_no_turn() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("config.toml"), "[agents.main]\n").expect("writes");
    let (sessions, work) =
        bare_sessions(&Home::new(home.path()), ToolBox::of(vec![Box::new(Boom)])).await;
    let asked = Accepted::new(
        1,
        Inbound {
            text: "use boom {}".into(),
            ..from_alice(1)
        },
    );
    sessions
        .submit(asked, Arrived::Now, work.token())
        .expect("the lane has room");
    sessions
        .submit(Accepted::new(2, from_alice(2)), Arrived::Now, work.token())
        .expect("the lane has room");
    work.wait().await;
    let ask = |sql| crate::support::house::ask(home.path(), sql);
    assert_eq!(
        ask("SELECT group_concat(outcome) FROM turns"),
        "answered,answered"
    );
    let answer = ask("SELECT text FROM messages WHERE kind = 'agent' ORDER BY id DESC LIMIT 1");
    assert!(
        answer.contains("`boom` says: “The tool broke inside and did not finish."),
        "{answer}"
    );
}

/// Breaks when it is to put eggs into words or to send glass, and keeps what it sends.
#[derive(Default)]
struct Brittle {
    sent: Mutex<Vec<String>>,
    places: Mutex<Vec<String>>,
    /// How often it was asked to tell what broke.
    told: tokio::sync::watch::Sender<usize>,
}

#[async_trait::async_trait]
impl Channel for Brittle {
    fn abilities(&self) -> Abilities {
        Abilities::plain(Platform::Telegram)
    }

    async fn listen(&self, _intake: Intake, _stop: CancellationToken) -> Result<(), ListenError> {
        Ok(())
    }

    fn render(&self, _to: &Destination, text: &Text<'_>) -> Vec<Part> {
        assert!(!text.markdown.contains("egg"), "broken on purpose");
        if text.markdown.starts_with("Something broke") {
            self.told.send_modify(|told| *told += 1);
        }
        vec![Part(text.markdown.to_owned())]
    }

    async fn send(
        &self,
        to: &Destination,
        part: &Part,
        _ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        assert!(!part.0.contains("glass"), "broken on purpose");
        self.places
            .lock()
            .expect("nobody panics here")
            .push(to.place().to_string());
        self.sent
            .lock()
            .expect("nobody panics here")
            .push(part.0.clone());
        Ok(MessageId("1".into()))
    }

    async fn progress(&self, _to: &Destination, _progress: Progress<'_>) -> Result<(), SendError> {
        Ok(())
    }

    async fn fetch(&self, _file: &FileRef, _to: &Path) -> Result<(), FetchError> {
        unreachable!("nothing is attached")
    }
}

/// The place is told, and what waits there is answered. A store that fails at that moment is waited
/// for.
#[tokio::test]
async fn an_answer_that_cannot_be_rendered_ends_no_lane() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("config.toml"), "[agents.main]\n").expect("writes");
    let channel = Arc::new(Brittle::default());
    let channels: [Arc<dyn Channel>; 1] = [channel.clone()];
    let (sessions, work) =
        sessions_with(&Home::new(home.path()), ToolBox::standard(), &channels).await;
    let store = rusqlite::Connection::open(home.path().join("parlor.db")).expect("the store opens");
    crate::support::house::full(home.path(), "INSERT ON turns WHEN NEW.outcome = 'panicked'");
    let asked = Accepted::new(
        1,
        Inbound {
            text: "an egg".into(),
            ..from_alice(1)
        },
    );
    sessions
        .submit(asked, Arrived::Now, work.token())
        .expect("the lane has room");
    sessions
        .submit(Accepted::new(2, from_alice(2)), Arrived::Now, work.token())
        .expect("the lane has room");
    let rest = async {
        drop(channel.told.subscribe().wait_for(|told| *told == 2).await);
        store
            .execute_batch("DROP TRIGGER broken")
            .expect("the statement works");
        work.wait().await;
    };
    tokio::time::timeout(Duration::from_secs(20), rest)
        .await
        .expect("the lane goes on");
    let sent = channel.sent.lock().expect("nobody panics here").clone();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(
        sent[0].starts_with("Something broke while I was working on this, so there is no answer."),
        "{sent:?}"
    );
    assert_eq!(
        crate::support::house::ask(home.path(), "SELECT group_concat(outcome) FROM turns"),
        "panicked,answered"
    );
}

/// S4.41: told in the chat whose turn it was, while a turn of another agent is in the middle of its
/// work and finishes.
#[tokio::test]
async fn a_turn_that_panics_is_told_there_and_no_other_turn_ends() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("config.toml"), TWO_AGENTS).expect("writes");
    let channel = Arc::new(Brittle::default());
    let channels: [Arc<dyn Channel>; 1] = [channel.clone()];
    let (tells, mut told) = tokio::sync::mpsc::unbounded_channel();
    let open = CancellationToken::new();
    let tools = ToolBox::of(vec![Box::new(Gate {
        tells,
        open: open.clone(),
    })]);
    let (sessions, work) = sessions_with(&Home::new(home.path()), tools, &channels).await;
    let quick = Accepted::new(1, from_alice_in(5000, 1, "use gate {}"));
    sessions
        .submit(quick, Arrived::Now, work.token())
        .expect("the lane has room");
    assert_eq!(next(&mut told).await, "quick");
    let egg = Accepted::new(
        2,
        Inbound {
            text: "an egg".into(),
            ..from_alice(2)
        },
    );
    sessions
        .submit(egg, Arrived::Now, work.token())
        .expect("the lane has room");
    let told_there = async { drop(channel.told.subscribe().wait_for(|told| *told == 1).await) };
    tokio::time::timeout(PATIENCE, told_there)
        .await
        .expect("it is told");
    open.cancel();
    tokio::time::timeout(PATIENCE, work.wait())
        .await
        .expect("the other turn finishes");
    let ask = |sql| crate::support::house::ask(home.path(), sql);
    assert_eq!(
        ask("SELECT group_concat(inbox_id || ' ' || outcome, ', ') FROM turns"),
        "2 panicked, 1 answered"
    );
    let mut places = channel.places.lock().expect("nobody panics here").clone();
    places.sort_unstable();
    assert_eq!(places, ["telegram:dm:111", "telegram:dm:5000"]);
    let sent = channel.sent.lock().expect("nobody panics here").clone();
    assert!(
        sent[0].starts_with("Something broke") && sent[1].contains("The gate is open."),
        "{sent:?}"
    );
}

/// The place is sent what comes after it.
#[tokio::test]
async fn a_send_that_panics_silences_no_place() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("config.toml"), "[agents.main]\n").expect("writes");
    let channel = Arc::new(Brittle::default());
    let channels: [Arc<dyn Channel>; 1] = [channel.clone()];
    let (sessions, work) =
        sessions_with(&Home::new(home.path()), ToolBox::standard(), &channels).await;
    for (id, text) in [(1, "a glass"), (2, "a cup")] {
        let asked = Accepted::new(
            id,
            Inbound {
                text: text.into(),
                ..from_alice(id)
            },
        );
        sessions
            .submit(asked, Arrived::Now, work.token())
            .expect("the lane has room");
        tokio::time::timeout(Duration::from_secs(20), work.wait())
            .await
            .expect("it is sent or given up");
    }
    let sent = channel.sent.lock().expect("nobody panics here").clone();
    assert!(
        matches!(sent.as_slice(), [cup] if cup.contains("a cup")),
        "{sent:?}"
    );
    let ask = |sql| crate::support::house::ask(home.path(), sql);
    assert_eq!(
        ask("SELECT group_concat(state || ' ' || ifnull(error, '-'), ', ') FROM outbox"),
        "failed sending it broke inside Parlor, sent -"
    );
}

/// A test that waits longer than this waits for something that will not come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tells which agent's turn has come to it, and keeps every turn until it opens.
struct Gate {
    tells: tokio::sync::mpsc::UnboundedSender<String>,
    open: CancellationToken,
}

/// The agent whose turn comes to the gate next.
async fn next(told: &mut tokio::sync::mpsc::UnboundedReceiver<String>) -> String {
    tokio::time::timeout(PATIENCE, told.recv())
        .await
        .expect("a turn begins in time")
        .expect("the gate is there")
}

#[async_trait::async_trait]
impl Tool for Gate {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "gate".into(),
            description: "Waits.".into(),
            parameters: serde_json::json!({ "type": "object" }).into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    async fn call(&self, scope: &Scope, _arguments: serde_json::Value) -> Outcome {
        self.tells
            .send(scope.agent.id.to_string())
            .expect("the test listens");
        self.open.cancelled().await;
        Outcome::say("The gate is open.")
    }
}

const TWO_AGENTS: &str = "max_running = 2\n[agents.quick]\n[[bindings]]\nmatch = \"telegram:dm:5000\"\nagent = \"quick\"\n";

/// S4.42: a thousand turns of one agent take as long as the test runs, and a turn of another begins
/// in bounded time.
#[tokio::test]
async fn an_agent_with_much_to_do_leaves_room_for_another() {
    let home = tempfile::tempdir().expect("a folder");
    // All turns are one person's.
    let unlimited = "[access.limits.guest]\nturns_at_once = 0\nturns_per_minute = 0\n";
    let config = format!("{TWO_AGENTS}\n{unlimited}");
    std::fs::write(home.path().join("config.toml"), config).expect("writes");
    let (tells, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (sessions, work) = bare_sessions(
        &Home::new(home.path()),
        ToolBox::of(vec![Box::new(Gate {
            tells,
            open: CancellationToken::new(),
        })]),
    )
    .await;
    let ask = |id: i64| {
        let asked = Accepted::new(id, from_alice_in(id, id, "use gate {}"));
        sessions
            .submit(asked, Arrived::Now, work.token())
            .expect("the lane has room");
    };
    (1..=1000).for_each(ask);
    assert_eq!(next(&mut told).await, "main");
    ask(5000);
    assert_eq!(next(&mut told).await, "quick");
    assert_eq!(sessions.busy(), 1001);

    // One that waits for its turn can be stopped without having had it.
    let waiting = Origin::new(
        "telegram:dm:700".parse().expect("a key"),
        "telegram:111".parse().expect("a person"),
    );
    sessions.halt(&waiting, &[700]);
    let stopped = async {
        while sessions.depth(&waiting) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, stopped)
        .await
        .expect("it is stopped in time");
    let ask_store = |sql| crate::support::house::ask(home.path(), sql);
    assert_eq!(
        ask_store("SELECT outcome || steps FROM turns WHERE inbox_id = 700"),
        "stopped0"
    );
    sessions.stop();
    sessions.abandon().await;
    assert_eq!(sessions.busy(), 0);
    assert!(told.try_recv().is_err(), "nobody else has had a turn");
}

/// Lanes with the built-in model and nowhere to send to.
async fn bare_sessions(home: &Home, tools: ToolBox) -> (Sessions, TaskTracker) {
    sessions_with(home, tools, &[]).await
}

async fn sessions_with(
    home: &Home,
    tools: ToolBox,
    channels: &[Arc<dyn Channel>],
) -> (Sessions, TaskTracker) {
    let checked = CheckedConfig::load(home, Secrets::Required).expect("the config is fine");
    let db = Db::open(&home.database()).await.expect("the store opens");
    let (registry, _) = checked.registry(home, &db).await.expect("the store works");
    let work = TaskTracker::new();
    work.close();
    let memories = Memories::new(db.clone());
    let snapshot = Snapshot::new(
        checked.config.clone(),
        checked.table.clone(),
        Arc::new(registry),
    );
    let sessions = Sessions::new(Services {
        alarm: parlor::jobs::Alarm::default(),
        snapshots: Snapshots::new(snapshot),
        pins: Arc::new(pins::remembered(db.clone())),
        aliases: Arc::default(),
        delivery: Delivery::new(
            db.clone(),
            channels,
            Vec::new(),
            home.path().join("outgoing"),
            work.clone(),
        )
        .0,
        tools,
        memories,
        work: work.clone(),
        absorbing: dashmap::DashMap::new(),
        bootstrapped: dashmap::DashSet::new(),
        db,
    });
    (sessions, work)
}

/// In a private chat of which only the number matters.
fn from_alice_in(chat: i64, id: i64, text: &str) -> Inbound {
    let key = format!("telegram:dm:{chat}").parse().expect("a key");
    let origin = Origin::new(key, "telegram:111".parse().expect("a person"));
    Inbound {
        origin,
        text: text.to_owned(),
        ..from_alice(id)
    }
}

fn from_alice(id: i64) -> Inbound {
    let (key, person) = (
        "telegram:dm:111".parse().expect("a key"),
        "telegram:111".parse().expect("a person"),
    );
    Inbound {
        update_id: id.to_string(),
        origin: Origin::new(key, person),
        person_name: "Alice".into(),
        text: "hello".into(),
        addressed: Addressed::Privately,
        message: MessageId(id.to_string()),
        sent_at: 0,
        extras: Extras::default(),
    }
}
