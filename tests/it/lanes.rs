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
use parlor::routing::pins;
use parlor::sessions::inbox::Accepted;
use parlor::sessions::{Arrived, Parts, Sessions};
use parlor::storage::Db;
use parlor::tools::ToolBox;
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
    let (sessions, work) = bare_sessions(&Home::new(home.path())).await;
    let message = |id| Accepted::new(id, from_alice(id));
    let second = Mutex::new(Some((message(2), work.begin())));
    sessions.submit(message(1), Arrived::Now, work.begin()).expect("the lane has room");
    let waker = Waker::from(Arc::new(Barges { sessions: sessions.clone(), message: second }));
    let mut ended = pin!(work.settled());
    assert!(ended.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    work.settled().await;
    assert_eq!(crate::support::house::ask(home.path(), "SELECT group_concat(inbox_id) FROM turns"), "1,2");
}

/// Lanes with the built-in model and nowhere to send to.
async fn bare_sessions(home: &Home) -> (Sessions, Work) {
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
        delivery: Delivery::new(db.clone(), &[], Vec::new(), work.clone()).0,
        tools: ToolBox::standard(&memories),
        memories,
        access: plan.config.access.clone(),
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
