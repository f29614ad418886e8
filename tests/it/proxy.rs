//! Reaching Telegram and model servers through a proxy, and not through one that nobody configured.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::House;
use crate::support::fake_model::Dialect;
use crate::support::fake_telegram::ALICE;
use crate::support::house::{Process, parlor};

/// Passes everything on, and keeps the beginning of each connection.
async fn proxy_to(server: &str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let (seen, server) = (
        Arc::new(Mutex::new(Vec::new())),
        server.trim_start_matches("http://").to_owned(),
    );
    let noted = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let (server, noted) = (server.clone(), noted.clone());
            tokio::spawn(async move {
                let mut start = Vec::with_capacity(4096);
                near.read_buf(&mut start).await?;
                noted
                    .lock()
                    .expect("nobody panics here")
                    .push(String::from_utf8_lossy(&start).into_owned());
                let mut far = TcpStream::connect(server).await?;
                far.write_all(&start).await?;
                tokio::io::copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    (address, seen)
}

#[tokio::test]
async fn every_call_takes_the_proxy_and_its_password_stays_out_of_the_log() {
    let house = House::new("[access]\ndms = \"open\"\n").await;
    let (proxy, seen) = proxy_to(house.telegram.api_url()).await;
    house.write("secrets/proxy", &format!("http://ann:hunter2@{proxy}"));
    house.configure_telegram("proxy = { file = \"secrets/proxy\" }");
    let process = Process::start(house.home.path(), &["run"]);
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    let log = process.log();
    assert_eq!(process.stop().await, 0);
    let seen = seen.lock().expect("nobody panics here");
    assert!(!seen.is_empty());
    // A connection that was made and never used has nothing to say.
    for start in seen.iter().filter(|start| !start.is_empty()) {
        assert!(
            start.starts_with(&format!("POST {}/bot", house.telegram.api_url())),
            "{start}"
        );
        assert!(
            start.contains("proxy-authorization: Basic YW5uOmh1bnRlcjI="),
            "{start}"
        );
    }
    assert!(!log.contains("hunter2"), "{log}");
}

#[tokio::test]
async fn a_proxy_that_is_down_is_told_without_its_password() {
    let mut house = House::new("[access]\ndms = \"open\"\n").await;
    house.leave_leftovers();
    house.write("secrets/proxy", "http://ann:hunter2@127.0.0.1:1");
    house.configure_telegram("proxy = { file = \"secrets/proxy\" }");
    let process = Process::start(house.home.path(), &["run"]);
    process
        .wait_for_log("polling Telegram: Telegram cannot be reached")
        .await;
    assert!(!process.log().contains("hunter2"), "{}", process.log());
    assert!(house.telegram.journal().is_empty());
    assert_eq!(process.stop().await, 0);
}

/// A proxy of the environment would read every call in plain http, with the token and the prompt.
#[tokio::test]
async fn a_proxy_of_the_environment_sees_nothing() {
    let house = House::new("[access]\ndms = \"open\"\n").await;
    let (proxy, seen) = proxy_to(house.telegram.api_url()).await;
    let mut command = parlor(house.home.path());
    command.arg("run");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, format!("http://{proxy}"));
        command.env(name.to_lowercase(), format!("http://{proxy}"));
    }
    let process = Process::start_as(command, house.home.path());
    house.telegram.dm(ALICE).says("hello").await;
    assert_eq!(
        house.telegram.dm(ALICE).wait_for_sent(1).await.text,
        "re: hello"
    );
    assert_eq!(process.stop().await, 0);
    let seen = seen.lock().expect("nobody panics here");
    assert!(seen.is_empty(), "{seen:?}");
}

#[tokio::test]
async fn a_model_is_asked_through_the_proxy_of_its_provider() {
    let house = House::new("[access]\ndms = \"open\"\n").await;
    let base_url = house.model.base_url(Dialect::OpenAi);
    let server = base_url.split('/').nth(2).expect("a host");
    let (proxy, seen) = proxy_to(server).await;
    house.write("secrets/proxy", &format!("http://ann:hunter2@{proxy}"));
    house.configure_provider("proxy = { file = \"secrets/proxy\" }");
    let process = Process::start(house.home.path(), &["run"]);
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    let log = process.log();
    assert_eq!(process.stop().await, 0);
    let seen = seen.lock().expect("nobody panics here");
    let asked = seen.iter().filter(|start| start.starts_with("POST "));
    assert!(asked.count() > 0, "{seen:?}");
    for start in seen.iter().filter(|start| !start.is_empty()) {
        assert!(start.starts_with(&format!("POST {base_url}")), "{start}");
        assert!(
            start.contains("proxy-authorization: Basic YW5uOmh1bnRlcjI="),
            "{start}"
        );
    }
    assert!(!log.contains("hunter2"), "{log}");
}
