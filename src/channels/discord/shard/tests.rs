//! A shard against a gateway in memory, with time that passes only when everybody waits.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::DuplexStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};

use super::*;
use crate::channels::discord::identify_limit::StartLimit;
use crate::config::Secret;

/// What the gateway does after a greeting, in place of letting the bot in.
#[derive(Clone)]
enum Then {
    LetsIn,
    Says(Value),
    Closes(u16, &'static str),
}

/// What the bot said, and how long after the beginning.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    op: u64,
    /// What it resumes from.
    seq: Option<u64>,
    after: Duration,
}

#[derive(Default)]
struct Script {
    /// For connections, before the gateway greets.
    closes_first: Option<u16>,
    /// For the greetings of the bot, one after the other; then it is let in.
    then: VecDeque<Then>,
    /// Payloads that follow once the bot is let in, and end the connection if there are any.
    events: VecDeque<Vec<Value>>,
    /// Comes after every greeting that there are no events for.
    always: Option<Value>,
    said: Vec<Said>,
}

/// Nobody answers while there is an outage.
struct FakeGateway {
    script: std::sync::Arc<Mutex<Script>>,
    begun: Instant,
    outage: Mutex<Option<(Instant, Instant)>>,
}

impl FakeGateway {
    fn new(then: impl IntoIterator<Item = Then>) -> Self {
        let script = Script {
            then: then.into_iter().collect(),
            ..Script::default()
        };
        FakeGateway {
            script: std::sync::Arc::new(Mutex::new(script)),
            begun: Instant::now(),
            outage: Mutex::new(None),
        }
    }

    fn sends(self, events: impl IntoIterator<Item = Vec<Value>>) -> Self {
        self.script.lock().unwrap().events = events.into_iter().collect();
        self
    }

    fn said(&self) -> Vec<Said> {
        self.script.lock().unwrap().said.clone()
    }

    /// Runs a shard for this long, and returns the events that came.
    async fn run(
        &self,
        time: Duration,
        limit: StartLimit,
    ) -> (Vec<Event>, Option<Result<(), ListenError>>) {
        let (api, identify_limit) = (
            Api::new("http://127.0.0.1:1", Secret::new("t")),
            IdentifyLimit::new(limit),
        );
        let (events, mut received) = mpsc::channel(10_000);
        let shard = Shard {
            url: "ws://gateway",
            dial: self,
            api: &api,
            number: 0,
            total: 1,
            events,
            identify_limit: &identify_limit,
        };
        let ended = timeout(time, shard.run()).await.ok();
        drop(shard);
        let mut all = Vec::new();
        while let Ok(event) = received.try_recv() {
            all.push(event);
        }
        (all, ended)
    }
}

impl Dial for FakeGateway {
    type Line = DuplexStream;

    async fn dial(&self, url: &str) -> Result<WebSocketStream<DuplexStream>, String> {
        let now = Instant::now();
        if self
            .outage
            .lock()
            .unwrap()
            .is_some_and(|(from, to)| (from..to).contains(&now))
        {
            return Err("connection refused".into());
        }
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(theirs, self.script.clone(), self.begun));
        client_async(url, ours)
            .await
            .map(|(stream, _)| stream)
            .map_err(|error| error.to_string())
    }
}

async fn serve(line: DuplexStream, script: std::sync::Arc<Mutex<Script>>, begun: Instant) {
    let mut stream = accept_async(line).await.unwrap();
    let closes_first = script.lock().unwrap().closes_first;
    if let Some(code) = closes_first {
        return stream.close(Some(close(code, "go away"))).await.unwrap();
    }
    let hello = json!({ "op": 10, "d": { "heartbeat_interval": 41_250 } });
    if stream.send(Message::text(hello.to_string())).await.is_err() {
        return;
    }
    while let Some(Ok(message)) = stream.next().await {
        let Ok(text) = message.to_text() else {
            continue;
        };
        let Ok(payload) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        let op = payload["op"].as_u64().unwrap();
        let answers = if op == 1 {
            vec![json!({ "op": 11 })]
        } else {
            greeted(&script, op, &payload["d"], begun)
        };
        for answer in answers {
            let message = match (answer["close"].as_u64(), answer["raw"].as_str()) {
                (Some(code), _) => Message::Close(Some(close(
                    u16::try_from(code).unwrap(),
                    answer["reason"].as_str().unwrap(),
                ))),
                (None, Some(raw)) => Message::text(raw),
                (None, None) if answer["is_no_text"] == true => Message::Frame(Frame::message(
                    vec![b'"', 0xff, b'"'],
                    OpCode::Data(Data::Text),
                    true,
                )),
                (None, None) => Message::text(answer.to_string()),
            };
            if stream.send(message).await.is_err() {
                return;
            }
        }
    }
}

fn close(code: u16, reason: &str) -> CloseFrame {
    CloseFrame {
        code: code.into(),
        reason: reason.to_owned().into(),
    }
}

fn greeted(script: &Mutex<Script>, op: u64, data: &Value, begun: Instant) -> Vec<Value> {
    let mut script = script.lock().unwrap();
    script.said.push(Said {
        op,
        seq: data["seq"].as_u64(),
        after: begun.elapsed(),
    });
    match script.then.pop_front().unwrap_or(Then::LetsIn) {
        Then::Says(payload) => vec![payload],
        Then::Closes(code, reason) => vec![json!({ "close": code, "reason": reason })],
        Then::LetsIn => {
            let first = match op {
                2 => vec![event(
                    1,
                    "READY",
                    json!({ "session_id": "s", "user": { "id": "1" } }),
                )],
                _ => Vec::new(),
            };
            let next = script
                .events
                .pop_front()
                .or_else(|| script.always.clone().map(|payload| vec![payload]));
            let resumed = if op == 6 && next.is_none() {
                vec![json!({ "op": 0, "t": "RESUMED", "d": {} })]
            } else {
                Vec::new()
            };
            first
                .into_iter()
                .chain(next.unwrap_or_default())
                .chain(resumed)
                .collect()
        }
    }
}

fn event(number: u64, kind: &str, data: Value) -> Value {
    json!({ "op": 0, "s": number, "t": kind, "d": data })
}

/// A frame of text that is no UTF-8.
fn no_text() -> Value {
    json!({ "is_no_text": true })
}

/// A payload as it is written here.
fn raw(payload: &str) -> Value {
    json!({ "raw": payload })
}

fn number_of(event: &Event) -> Option<u64> {
    event.data.as_ref().ok()?["number"].as_u64()
}

fn invalid(can_resume: bool) -> Value {
    json!({ "op": 9, "d": can_resume })
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// From one to five seconds, and the moments that calls take.
fn is_soon(wait: Duration) -> bool {
    (seconds(1)..seconds(7)).contains(&wait)
}

/// S11.2: an outage of 38 seconds, after which Discord has forgotten the session.
#[tokio::test(start_paused = true)]
async fn a_server_that_greets_again_is_not_kept_waiting() {
    let gateway = FakeGateway::new([Then::LetsIn, Then::Says(invalid(false))])
        .sends([vec![json!({ "op": 7 })]]);
    let (from, to) = (gateway.begun, gateway.begun + seconds(38));
    *gateway.outage.lock().unwrap() = Some((from + Duration::from_millis(1), to));
    gateway.run(seconds(300), StartLimit::default()).await;
    let said = gateway.said();
    let ops: Vec<u64> = said.iter().map(|said| said.op).collect();
    assert_eq!(
        ops,
        [2, 6, 2],
        "it greets, resumes in vain, and greets anew: {said:?}"
    );
    assert!(
        said[1].after >= seconds(38) && said[1].after < seconds(38 + 31),
        "{said:?}"
    );
    assert!(is_soon(said[2].after - said[1].after), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_resumed_at_once_when_discord_asks_for_it() {
    let gateway = FakeGateway::new([]).sends([vec![json!({ "op": 7 })]]);
    gateway.run(seconds(60), StartLimit::default()).await;
    let said = gateway.said();
    assert_eq!(
        said.iter()
            .map(|said| (said.op, said.seq))
            .collect::<Vec<_>>(),
        [(2, None), (6, Some(1))]
    );
    assert!(said[1].after < seconds(3), "{said:?}");
}

/// An invalid session may still be resumed; a little later, as Discord asks.
#[tokio::test(start_paused = true)]
async fn an_invalid_session_is_left_alone_for_a_moment() {
    let gateway = FakeGateway::new([]).sends([
        vec![invalid(true)],
        vec![json!({ "op": 0, "t": "RESUMED" }), invalid(false)],
    ]);
    gateway.run(seconds(60), StartLimit::default()).await;
    let said = gateway.said();
    assert_eq!(
        said.iter().map(|said| said.op).collect::<Vec<_>>(),
        [2, 6, 2]
    );
    assert!(
        is_soon(said[1].after) && is_soon(said[2].after - said[1].after),
        "{said:?}"
    );
}

/// Never more greetings than the day allows, and not all of them within an hour.
#[tokio::test(start_paused = true)]
async fn a_bot_that_is_turned_away_keeps_greetings_for_later() {
    let gateway = FakeGateway::new(vec![Then::Says(invalid(false)); 5000]);
    gateway
        .run(seconds(24 * 60 * 60), StartLimit::default())
        .await;
    let count = gateway.said().len();
    assert!((600..900).contains(&count), "{count}");
    let gateway = FakeGateway::new(vec![Then::Closes(4000, "Unknown error"); 5000]);
    let few = StartLimit {
        total: 4,
        remaining: 3,
        reset_after: 10 * 60 * 1000,
    };
    gateway.run(seconds(60 * 60), few).await;
    let times: Vec<u64> = gateway
        .said()
        .iter()
        .map(|said| said.after.as_secs() / 600)
        .collect();
    assert_eq!(
        times,
        [0, 0, 0, 1, 1, 1, 1],
        "three for now, and four after ten minutes"
    );
}

/// A close before the greeting means what it means at any other time.
#[tokio::test(start_paused = true)]
async fn a_close_before_the_greeting_goes_by_its_code() {
    for (code, words) in [
        (4004, "does not accept the bot token"),
        (4014, "Enable Message Content Intent"),
    ] {
        let gateway = FakeGateway::new([]);
        gateway.script.lock().unwrap().closes_first = Some(code);
        let (_, ended) = gateway.run(seconds(60), StartLimit::default()).await;
        let reason = ended
            .expect("it is given up")
            .expect_err("for good")
            .to_string();
        assert!(reason.contains(words), "{code}: {reason}");
    }
    let gateway = FakeGateway::new([]);
    gateway.script.lock().unwrap().closes_first = Some(4000);
    assert!(
        gateway
            .run(seconds(60), StartLimit::default())
            .await
            .1
            .is_none(),
        "tried again and again"
    );
    assert_eq!(gateway.said(), []);
}

/// The events behind a gap are not taken until those in it have come.
#[tokio::test(start_paused = true)]
async fn a_jump_in_the_numbers_leads_to_a_resume() {
    let number = |number: u64| event(number, "TYPING_START", json!({ "number": number }));
    let resumed = event(6, "RESUMED", json!({}));
    let gateway = FakeGateway::new([]).sends([
        vec![number(2), number(5)],
        vec![number(3), number(4), number(5), resumed, number(7)],
    ]);
    let (events, _) = gateway.run(seconds(30), StartLimit::default()).await;
    let told: Vec<Option<u64>> = events.iter().map(number_of).collect();
    assert_eq!(
        told,
        [None, Some(2), Some(3), Some(4), Some(5), None, Some(7)]
    );
    assert_eq!(
        gateway
            .said()
            .iter()
            .map(|said| said.seq)
            .collect::<Vec<_>>(),
        [None, Some(2)]
    );
    assert!(events.iter().all(|event| !event.is_after_gap));
}

/// A gap that resuming does not close is asked about in another way, and does not go on for ever.
#[tokio::test(start_paused = true)]
async fn a_gap_that_stays_is_told_once() {
    let number = |number: u64| event(number, "TYPING_START", json!({ "number": number }));
    let jumps = vec![
        number(5),
        event(9, "RESUMED", json!({})),
        number(20),
        number(30),
    ];
    let gateway = FakeGateway::new([]).sends([vec![number(2), number(5)], jumps]);
    let (events, _) = gateway.run(seconds(30), StartLimit::default()).await;
    let told: Vec<(Option<u64>, bool)> = events
        .iter()
        .map(|event| (number_of(event), event.is_after_gap))
        .collect();
    let expected = [
        (None, false),
        (Some(2), false),
        (Some(5), true),
        (None, false),
        (Some(20), false),
        (Some(30), false),
    ];
    assert_eq!(told, expected);
    assert_eq!(gateway.said().len(), 2, "resumed once");
}

fn ops(gateway: &FakeGateway) -> Vec<(u64, Option<u64>)> {
    gateway
        .said()
        .iter()
        .map(|said| (said.op, said.seq))
        .collect()
}

/// An event that ends every connection comes again with every resume.
#[tokio::test(start_paused = true)]
async fn resumes_in_vain_lead_to_a_new_session() {
    let number = |number: u64| event(number, "TYPING_START", json!({ "number": number }));
    let again = vec![vec![no_text()]; 3];
    let events = [vec![number(2), no_text()], vec![number(3), no_text()]]
        .into_iter()
        .chain(again)
        .chain([vec![number(2)]]);
    let gateway = FakeGateway::new([]).sends(events);
    let (events, _) = gateway.run(seconds(60), StartLimit::default()).await;
    assert_eq!(
        ops(&gateway),
        [
            (2, None),
            (6, Some(2)),
            (6, Some(3)),
            (6, Some(3)),
            (6, Some(3)),
            (2, None)
        ]
    );
    assert_eq!(
        events.iter().map(number_of).collect::<Vec<_>>(),
        [None, Some(2), Some(3), None, Some(2)]
    );
    assert!(
        gateway.said().last().unwrap().after < seconds(30),
        "{:?}",
        gateway.said()
    );
}

/// Such an event may come at the beginning of every session.
#[tokio::test(start_paused = true)]
async fn sessions_that_are_always_in_vain_keep_within_the_limit_of_a_day() {
    let gateway = FakeGateway::new([]);
    gateway.script.lock().unwrap().always = Some(no_text());
    gateway
        .run(seconds(24 * 60 * 60), StartLimit::default())
        .await;
    let identifies = gateway.said().iter().filter(|said| said.op == 2).count();
    assert!((400..800).contains(&identifies), "{identifies}");
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_is_not_quite_json_keeps_its_number() {
    let number = |number: u64| event(number, "TYPING_START", json!({ "number": number }));
    let broken = raw(r#"{"t":"MESSAGE_CREATE","s":3,"op":0,"d":{"content":"\ud800"}}"#);
    let answer = raw(r#"{"op":11,"d":1e400}"#);
    let gateway = FakeGateway::new([]).sends([vec![
        number(2),
        broken,
        answer,
        number(4),
        raw(r#"{"op":7,"d":}"#),
    ]]);
    let (events, _) = gateway.run(seconds(30), StartLimit::default()).await;
    let told: Vec<(&str, bool)> = events
        .iter()
        .map(|event| (event.kind.as_str(), event.data.is_ok()))
        .collect();
    let expected = [
        ("READY", true),
        ("TYPING_START", true),
        ("MESSAGE_CREATE", false),
        ("TYPING_START", true),
        ("RESUMED", true),
    ];
    assert_eq!(told, expected);
    assert_eq!(
        ops(&gateway),
        [(2, None), (6, Some(4))],
        "op 7 is understood"
    );
}

/// Without a number that can be told, the jump behind it shows that an event is missing.
#[tokio::test(start_paused = true)]
async fn a_payload_without_a_number_is_passed_over() {
    let number = |number: u64| event(number, "TYPING_START", json!({ "number": number }));
    let broken = || raw("{\"op\":0,\"d\":");
    let resumed = event(5, "RESUMED", json!({}));
    let gateway = FakeGateway::new([]).sends([
        vec![number(2), broken(), number(4)],
        vec![broken(), number(4), resumed],
    ]);
    let (events, _) = gateway.run(seconds(30), StartLimit::default()).await;
    let told: Vec<(Option<u64>, bool)> = events
        .iter()
        .map(|event| (number_of(event), event.is_after_gap))
        .collect();
    assert_eq!(
        told,
        [
            (None, false),
            (Some(2), false),
            (None, false),
            (None, false),
            (Some(4), true),
            (None, false)
        ]
    );
    assert_eq!(ops(&gateway), [(2, None), (6, Some(2))]);
}

/// Without READY it is not known who the bot is, so nothing that follows could be understood.
#[tokio::test(start_paused = true)]
async fn a_session_whose_beginning_cannot_be_read_is_begun_again() {
    let ready = raw(r#"{"t":"READY","s":1,"op":0,"d":{"session_id":"s","name":"\ud800"}}"#);
    let gateway = FakeGateway::new([Then::Says(ready)]);
    let (events, _) = gateway.run(seconds(30), StartLimit::default()).await;
    assert_eq!(ops(&gateway), [(2, None), (2, None)]);
    assert_eq!(events.len(), 1);
}
