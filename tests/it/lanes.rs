//! The lanes by themselves, where a race must be hit exactly.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use parlor::agents::Memories;
use parlor::config::Secrets;
use parlor::delivery::Delivery;
use parlor::domain::{Addressed, Besides, Inbound, MessageId, Origin};
use parlor::gateway::{Home, Plan};
use parlor::models::Models;
use parlor::models::ToolSpec;
use parlor::routing::pins;
use parlor::sessions::inbox::Accepted;
use parlor::sessions::{Arrived, Parts, Sessions};
use parlor::storage::Db;
use parlor::tools::{Outcome, Risk, Scope, Tool, ToolBox};
use parlor::work::{Work, WorkGuard};

/// What a message does that comes in at the very moment at which a place's lane ends.
struct Barges {
    sessions: Sessions,
    message: Mutex<Option<(Accepted, WorkGuard)>>,
}

impl Wake for Barges {
    fn wake(self: Arc<Self>) {
        if let Some((accepted, guard)) = self.message.lock().expect("nobody panicked").take() {
            self.sessions.submit(accepted, Arrived::Now, guard).expect("the lane has room");
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
    let second = Mutex::new(Some((message(2), work.begin())));
    sessions.submit(message(1), Arrived::Now, work.begin()).expect("the lane has room");
    let waker = Waker::from(Arc::new(Barges { sessions: sessions.clone(), message: second }));
    let mut ended = pin!(work.settled());
    assert!(ended.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    work.settled().await;
    assert_eq!(crate::support::house::ask(home.path(), "SELECT group_concat(inbox_id) FROM turns"), "1,2");
}

/// Breaks whenever it is called.
struct Boom;

#[async_trait::async_trait]
impl Tool for Boom {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "boom".into(), description: "Breaks.".into(), parameters: serde_json::json!({ "type": "object" }) }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    async fn call(&self, _scope: &Scope, _arguments: serde_json::Value) -> Outcome {
        panic!("the tool is broken on purpose")
    }
}

/// S4.41: the model hears of it and goes on, and so does everybody else.
#[tokio::test]
async fn a_tool_that_panics_ends_no_turn() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("config.toml"), "[agents.main]\n").expect("writes");
    let (sessions, work) = bare_sessions(&Home::new(home.path()), ToolBox::of(vec![Box::new(Boom)])).await;
    let asked = Accepted::new(1, Inbound { text: "use boom {}".into(), ..from_alice(1) });
    sessions.submit(asked, Arrived::Now, work.begin()).expect("the lane has room");
    sessions.submit(Accepted::new(2, from_alice(2)), Arrived::Now, work.begin()).expect("the lane has room");
    work.settled().await;
    let ask = |sql| crate::support::house::ask(home.path(), sql);
    assert_eq!(ask("SELECT group_concat(outcome) FROM turns"), "answered,answered");
    let answer = ask("SELECT text FROM messages WHERE kind = 'agent' ORDER BY id DESC LIMIT 1");
    assert!(answer.contains("`boom` says: “The tool broke inside and did not finish."), "{answer}");
}

/// Tells whose turn has come to it, and keeps everybody.
struct Gate(tokio::sync::mpsc::UnboundedSender<String>);

#[async_trait::async_trait]
impl Tool for Gate {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "gate".into(), description: "Waits.".into(), parameters: serde_json::json!({ "type": "object" }) }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    async fn call(&self, scope: &Scope, _arguments: serde_json::Value) -> Outcome {
        self.0.send(scope.agent.id.to_string()).expect("the test listens");
        std::future::pending().await
    }
}

const TWO_AGENTS: &str = "max_running = 2\n[agents.quick]\n[[bindings]]\nmatch = \"telegram:dm:5000\"\nagent = \"quick\"\n";

/// S4.42: an agent with a thousand turns to do keeps no other waiting.
#[tokio::test]
async fn an_agent_with_much_to_do_leaves_room_for_another() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("config.toml"), TWO_AGENTS).expect("writes");
    let (tells, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (sessions, work) = bare_sessions(&Home::new(home.path()), ToolBox::of(vec![Box::new(Gate(tells))])).await;
    let ask = |id: i64| {
        let origin = Origin::new(format!("telegram:dm:{id}").parse().expect("a key"), "telegram:111".parse().expect("a person"));
        let asked = Accepted::new(id, Inbound { origin, text: "use gate {}".into(), ..from_alice(id) });
        sessions.submit(asked, Arrived::Now, work.begin()).expect("the lane has room");
    };
    (1..=1000).for_each(ask);
    assert_eq!(told.recv().await.as_deref(), Some("main"));
    ask(5000);
    assert_eq!(told.recv().await.as_deref(), Some("quick"));
    assert_eq!(sessions.busy(), 1001);

    // One that waits for its turn can be stopped without having had it.
    let waiting = "telegram:dm:700".parse().expect("a key");
    sessions.halt(&waiting, &[700]);
    while sessions.depth(&waiting) > 0 {
        tokio::task::yield_now().await;
    }
    let ask_store = |sql| crate::support::house::ask(home.path(), sql);
    assert_eq!(ask_store("SELECT outcome || steps FROM turns WHERE inbox_id = 700"), "stopped0");
    sessions.stop();
    sessions.abandon().await;
    assert_eq!(sessions.busy(), 0);
    assert!(told.try_recv().is_err(), "nobody else has had a turn");
}

/// Lanes with the built-in model and nowhere to send to.
async fn bare_sessions(home: &Home, tools: ToolBox) -> (Sessions, Work) {
    let plan = Plan::load(home, Secrets::Required).expect("the config is fine");
    let db = Db::open(&home.database()).await.expect("the store opens");
    let (registry, _) = plan.registry(home, &db).await.expect("the store works");
    let work = Work::new();
    let memories = Memories::new(db.clone());
    let sessions = Sessions::new(Parts {
        registry: Arc::new(registry),
        table: plan.table.clone(),
        pins: Arc::new(pins::remembered(db.clone())),
        aliases: Arc::default(),
        models: Models::new(&plan.config.providers),
        delivery: Delivery::new(db.clone(), &[], Vec::new(), home.path().join("outgoing"), work.clone()).0,
        tools,
        memories,
        work: work.clone(),
        access: plan.config.access.clone(),
        max_running: plan.config.max_running,
        absorbed: dashmap::DashSet::new(),
        bootstrapped: dashmap::DashSet::new(),
        db,
    });
    (sessions, work)
}

fn from_alice(id: i64) -> Inbound {
    let (key, person) = ("telegram:dm:111".parse().expect("a key"), "telegram:111".parse().expect("a person"));
    Inbound {
        update_id: id.to_string(),
        origin: Origin::new(key, person),
        person_name: "Alice".into(),
        text: "hello".into(),
        addressed: Addressed::Privately,
        message: MessageId(id.to_string()),
        sent_at: 0,
        besides: Besides::default(),
    }
}
