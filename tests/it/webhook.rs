//! Telegram calls us: who is let in, what is answered when, and that nothing is lost or answered
//! twice.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

use parlor::gateway::Gateway;

use crate::support::House;
use crate::support::fake_telegram::webhook::{begin, begin_post, everything, post, status};
use crate::support::fake_telegram::{ALICE, BOB, Fault};
use crate::support::house::{Process, parlor};

const OPEN: &str = "[access]\ndms = \"open\"\ngroups = \"open\"\n[agents.rose]\nwho = \"guest\"\n";

/// A house that Telegram calls at the returned address.
async fn hooked_house() -> (House, String) {
    let house = House::new(OPEN).await;
    let listen = free_address();
    hook(&house, &listen);
    (house, listen)
}

pub(crate) fn hook(house: &House, listen: &str) {
    let webhook =
        format!("webhook = {{ url = \"https://bot.example.org/hook\", listen = \"{listen}\" }}");
    house.configure_telegram(&format!("mode = \"webhook\"\n{webhook}"));
}

/// An address that no other test gets, also while nothing listens there: its port is below those
/// that the system gives to connections and to listeners that name none.
pub(crate) fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

/// Processes of tests that run side by side begin with different ports.
pub(crate) fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let begin = 20_000 + u16::try_from(std::process::id() % 40).expect("small") * 250;
    loop {
        let port = begin + TAKEN.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A gateway that Telegram knows about.
pub(crate) async fn open(house: &House) -> Gateway {
    let gateway = house.open().await;
    announced(house, 1).await;
    gateway
}

async fn announced(house: &House, times: usize) {
    house.telegram.wait_for_calls("setWebhook", times).await;
    house
        .telegram
        .wait_until(|journal| {
            journal
                .calls("setWebhook")
                .all(|call| call.answered.is_some())
        })
        .await;
}

/// The real binary; `starts` counts this one.
async fn spawn(house: &House, starts: usize) -> Process {
    let process = Process::start(house.home.path(), &["run"]);
    announced(house, starts).await;
    process
}

#[tokio::test]
async fn a_conversation_by_webhook_needs_no_poll() {
    let (house, listen) = hooked_house().await;
    let gateway = open(&house).await;
    let topic = house.telegram.forum(-1001).topic(7, "Seven");
    let asked = topic.says(BOB, "@parlor_bot hello").await;
    assert_eq!(
        house.telegram.call_webhook(&listen, asked.update_id).await,
        200
    );
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), ["re: [Bob] hello"]);

    let announced = house.telegram.calls("setWebhook")[0].params.clone();
    assert_eq!(announced["url"], "https://bot.example.org/hook");
    assert_eq!(announced["allowed_updates"][0], "message");
    assert_eq!(announced["secret_token"].as_str().map(str::len), Some(64));
    assert!(house.telegram.calls("getUpdates").is_empty());
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_press_by_webhook_is_answered() {
    let (house, listen) = hooked_house().await;
    let gateway = open(&house).await;
    let dm = house.telegram.dm(ALICE);
    let asked = dm.says("/agents").await;
    assert_eq!(
        house.telegram.call_webhook(&listen, asked.update_id).await,
        200
    );
    let list = dm.wait_for_sent(1).await;
    let data = list.reply_markup["inline_keyboard"][0][0]["callback_data"]
        .as_str()
        .expect("a button")
        .to_owned();
    let pressed = dm.presses(list.message_id, &data).await;
    assert_eq!(
        house
            .telegram
            .call_webhook(&listen, pressed.update_id)
            .await,
        200
    );
    house
        .telegram
        .wait_for_calls("answerCallbackQuery", 1)
        .await;
    house.settled(&gateway).await;
    let texts = dm.texts();
    assert_eq!(texts.len(), 1, "in the place of the list: {texts:?}");
    assert!(texts[0].contains("answers here from now on"), "{texts:?}");
    gateway.shutdown().await;
}

#[tokio::test]
async fn whoever_does_not_know_the_secret_learns_nothing() {
    let (house, listen) = hooked_house().await;
    let process = spawn(&house, 1).await;
    let secret = house.telegram.webhook_secret();
    let asked = house.telegram.dm(ALICE).says("hello").await;
    let update = house.telegram.update(asked.update_id);
    let nearly = format!("{}0", &secret[1..]);
    for wrong in [
        None,
        Some(""),
        Some("x"),
        Some(&secret[1..]),
        Some(nearly.as_str()),
    ] {
        assert_eq!(
            post(&listen, wrong, update.as_bytes())
                .await
                .expect("an answer"),
            404,
            "{wrong:?}"
        );
    }
    let too_long = vec![b' '; 1024 * 1024 + 1];
    assert_eq!(
        post(&listen, Some("x"), &too_long)
            .await
            .expect("an answer"),
        404
    );
    assert_eq!(
        post(&listen, Some(&secret), &too_long)
            .await
            .expect("an answer"),
        413
    );
    assert_eq!(
        post(&listen, Some(&secret), b"").await.expect("an answer"),
        400
    );
    assert_eq!(house.ask("SELECT count(*) FROM inbox"), "0");
    let log = process.log();
    assert!(!log.contains(&secret), "{log}");
    assert_eq!(process.stop().await, 0);
}

/// Telegram would send it again for ever.
#[tokio::test]
async fn what_cannot_be_read_is_kept_and_taken_as_heard() {
    let (house, listen) = hooked_house().await;
    let process = spawn(&house, 1).await;
    let secret = house.telegram.webhook_secret();
    let garbage: [&[u8]; 8] = [
        b"hunter2",
        b"[]",
        br#"{"message": {"text": "hunter2"}}"#,
        br#"{"update_id": "hunter2"}"#,
        br#"{"update_id":7,"message":{"text":"hunter2 \ud800"}}"#,
        b"{\"update_id\":8,\"message\":{\"text\":\"hunter2 \xff\"}}",
        br#"{"update_id":9,"message":{"text":"hunter2\"}}"#,
        br#"{"update_id":10,"message":{"date":1e400}}"#,
    ];
    for body in garbage.iter().chain(&garbage) {
        assert_eq!(
            post(&listen, Some(&secret), body).await.expect("an answer"),
            200,
            "{}",
            String::from_utf8_lossy(body)
        );
    }
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE state = 'broken'"),
        garbage.len().to_string()
    );
    let alice = house.telegram.dm(ALICE);
    let asked = alice.says("hello").await;
    assert_eq!(
        house.telegram.call_webhook(&listen, asked.update_id).await,
        200
    );
    assert_eq!(alice.wait_for_sent(1).await.text, "re: hello");
    let log = process.log();
    assert!(
        log.contains("of Telegram cannot be read; it is kept in the inbox table as broken"),
        "{log}"
    );
    assert!(!log.contains("hunter2") && !log.contains(&secret), "{log}");
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn the_same_call_twice_is_one_turn() {
    let (house, listen) = hooked_house().await;
    let gateway = open(&house).await;
    let asked = house.telegram.dm(ALICE).says("hello").await;
    let (first, second) = tokio::join!(
        house.telegram.call_webhook(&listen, asked.update_id),
        house.telegram.call_webhook(&listen, asked.update_id)
    );
    assert_eq!((first, second), (200, 200));
    assert_eq!(
        house.telegram.call_webhook(&listen, asked.update_id).await,
        200
    );
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
    gateway.shutdown().await;
}

/// Killed in the middle of the call, and once more after an answer that Telegram never saw.
#[tokio::test]
async fn a_call_that_a_kill_cut_off_is_answered_once() {
    let (house, listen) = hooked_house().await;
    house.model.hold();
    let process = spawn(&house, 1).await;
    let secret = house.telegram.webhook_secret();
    let asked = house.telegram.dm(ALICE).says("hello").await;
    let update = house.telegram.update(asked.update_id);
    let cut_off = tokio::spawn({
        let (listen, secret, update) = (listen.clone(), secret.clone(), update.clone());
        async move { post(&listen, Some(&secret), update.as_bytes()).await }
    });
    house
        .wait_until_stored("SELECT count(*) FROM inbox", "1")
        .await;
    process.kill().await;
    let _ = cut_off.await.expect("joined");

    let process = spawn(&house, 2).await;
    let new_secret = house.telegram.webhook_secret();
    assert_ne!(new_secret, secret, "each start has a secret of its own");
    for counting in [&secret, &new_secret] {
        assert_eq!(
            post(&listen, Some(counting), update.as_bytes())
                .await
                .expect("an answer"),
            200,
            "calls made meanwhile still count"
        );
    }
    process.kill().await;
    house.model.release();

    let process = spawn(&house, 3).await;
    assert_eq!(
        house.telegram.call_webhook(&listen, asked.update_id).await,
        200
    );
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
}

#[tokio::test]
async fn what_could_not_be_stored_is_called_again() {
    let (house, listen) = hooked_house().await;
    let gateway = open(&house).await;
    house.fills_up("INSERT ON inbox");
    let asked = house.telegram.dm(ALICE).says("hello").await;
    assert_eq!(
        house.telegram.call_webhook(&listen, asked.update_id).await,
        503
    );
    house.works_again();
    assert_eq!(
        house.telegram.call_webhook(&listen, asked.update_id).await,
        200
    );
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
    gateway.shutdown().await;
}

/// Nothing can be read before we know who we are, so the call waits for that; the stop waits for
/// the call.
#[tokio::test]
async fn a_stop_finishes_the_call_that_is_being_made() {
    let (house, listen) = hooked_house().await;
    let held = house.telegram.hold("getMe");
    let gateway = open(&house).await;
    let asked = house.telegram.dm(ALICE).says("hello").await;
    let secret = house.telegram.webhook_secret();
    let update = house.telegram.update(asked.update_id);
    let calling = begin_post(&listen, Some(&secret), update.as_bytes())
        .await
        .expect("the bot listens");
    // The server takes calls in the order they come, so the first one is inside when a second is
    // answered.
    assert_eq!(
        post(&listen, Some(&secret), b"").await.expect("an answer"),
        400
    );
    let stopping = tokio::spawn(gateway.shutdown());
    while tokio::net::TcpStream::connect(&listen).await.is_ok() {
        tokio::task::yield_now().await;
    }
    held.release();
    assert_eq!(status(calling).await.expect("an answer"), 200);
    stopping.await.expect("joined");
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
}

#[tokio::test]
async fn an_address_that_is_taken_is_told() {
    let (house, listen) = hooked_house().await;
    let _taken = TcpListener::bind(&listen).expect("it is free");
    let gateway = house.open().await;
    let reason = gateway.deserted().await;
    assert!(
        reason.starts_with(&format!("cannot listen on {listen}: ")),
        "{reason}"
    );
    assert!(
        reason.ends_with("Set another `listen` under [telegram.webhook]"),
        "{reason}"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn telegram_is_told_the_address_until_it_takes_it() {
    let (house, listen) = hooked_house().await;
    house
        .telegram
        .fail(
            "setWebhook",
            Fault::Refused(400, "Bad Request: bad webhook: Failed to resolve host"),
        )
        .once();
    let gateway = house.open().await;
    announced(&house, 2).await;
    let asked = house.telegram.dm(ALICE).says("hello").await;
    assert_eq!(
        house.telegram.call_webhook(&listen, asked.update_id).await,
        200
    );
    house.close(gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
}

#[tokio::test]
async fn a_refused_token_ends_the_webhook_too() {
    let (house, _) = hooked_house().await;
    house.write("secrets/telegram", "999:WRONG-TOKEN");
    let gateway = house.open().await;
    assert!(
        gateway
            .deserted()
            .await
            .starts_with("Telegram does not accept the bot token")
    );
    gateway.shutdown().await;
}

/// Half a head and no secret, again and again, with few open files.
#[tokio::test]
async fn strangers_at_the_port_keep_no_call_of_telegram_out() {
    let (house, listen) = hooked_house().await;
    let binary = parlor(house.home.path()).as_std().get_program().to_owned();
    let mut command = tokio::process::Command::new("sh");
    command
        .env_clear()
        .env("PARLOR_HOME", house.home.path())
        .args(["-c", "ulimit -n 256; exec \"$0\" run"])
        .arg(binary);
    let process = Process::start_as(command, house.home.path());
    announced(&house, 1).await;
    let mut strangers = Vec::new();
    for count in 0..600 {
        strangers.push(
            begin(&listen, b"POST /hook HTTP/1.1\r\nHost: bot\r\n")
                .await
                .expect("the port is open"),
        );
        if count % 100 == 50 {
            let dm = house.telegram.dm(ALICE);
            let asked = dm.says("hello").await;
            let status = house.telegram.call_webhook(&listen, asked.update_id).await;
            assert_eq!(status, 200, "behind {count} strangers");
            dm.wait_for_sent(count / 100 + 1).await;
        }
    }
    let sockets = std::fs::read_dir(format!("/proc/{}/fd", process.pid()));
    if let Ok(open) = sockets {
        let open = open.count();
        assert!(open < 120, "{open} files are open");
    }
    assert!(!process.log().contains("open files"), "{}", process.log());
    assert_eq!(process.stop().await, 0);
}

/// A stranger's second call finds the connection closed.
#[tokio::test]
async fn a_connection_stays_open_for_telegram_alone() {
    let (house, listen) = hooked_house().await;
    let gateway = open(&house).await;
    let secret = house.telegram.webhook_secret();
    let call = |secret: &str| {
        format!("POST / HTTP/1.1\r\nHost: bot\r\nX-Telegram-Bot-Api-Secret-Token: {secret}\r\nContent-Length: 0\r\n\r\n").repeat(2)
    };
    let stranger = begin(&listen, call("wrong").as_bytes())
        .await
        .expect("the port is open");
    let told = everything(stranger).await;
    assert_eq!(told.matches("HTTP/1.1 404").count(), 1, "{told}");
    let last = call(&secret).replacen("Host", "Connection: keep-alive\r\nHost", 1);
    let last = last.replace(
        "\r\n\r\nPOST / HTTP/1.1\r\n",
        "\r\n\r\nPOST / HTTP/1.1\r\nConnection: close\r\n",
    );
    let known = begin(&listen, last.as_bytes())
        .await
        .expect("the port is open");
    let told = everything(known).await;
    assert_eq!(told.matches("HTTP/1.1 400").count(), 2, "{told}");
    gateway.shutdown().await;
}
