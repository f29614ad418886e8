//! The network between the gateway and each of its far ends, broken in every way: the gateway says
//! what it waits for, recovers by itself, and answers once.

use std::os::unix::fs::PermissionsExt;

use crate::cli::run;
use crate::support::House;
use crate::support::fake_discord::{self, FakeDiscord};
use crate::support::fake_model::Dialect;
use crate::support::fake_telegram::{ALICE, BOB, Fault};
use crate::support::house::Process;
use crate::support::line::{Line, Way};

const OPEN: &str = "[access]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n";

const WAYS: [Way; 7] = [
    Way::Refused,
    Way::DroppedBefore,
    Way::DroppedAfter,
    Way::Silent,
    Way::Page,
    Way::Noise,
    Way::Trickling,
];

/// A house whose config has another address in the place of one of its own.
fn replace(house: &House, own: &str, other: &str) {
    let config = house.config();
    assert!(config.contains(own), "{own} is in the config");
    house.write("config.toml", &config.replace(own, other));
}

/// The warnings of the log after a point, each once, without its time.
fn troubles(process: &Process, after: usize) -> String {
    let mut told: Vec<String> = Vec::new();
    for line in process.log()[after..].lines() {
        let is_trouble = line.contains(" WARN ") || line.contains(" ERROR ");
        let words = line.split_once("parlor").map_or(line, |(_, words)| words);
        let words = words.split_once(": ").map_or(words, |(_, words)| words);
        if is_trouble && !told.iter().any(|known| known == words) {
            told.push(words.to_owned());
        }
    }
    told.join("\n    ")
}

/// Waits until the log or the line shows that the gateway has met the fault.
async fn is_met(process: &Process, line: &Line, way: Way, after: usize, connections: usize) {
    match way {
        // Nothing is told of a call that waits, and a slow one is no trouble.
        Way::Silent | Way::Trickling => line.wait_for_connections(connections + 1).await,
        _ => {
            let looking = async {
                while troubles(process, after).is_empty() {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
            };
            let met = tokio::time::timeout(std::time::Duration::from_secs(30), looking).await;
            assert!(met.is_ok(), "{way:?} is not told:\n{}", process.log());
        }
    }
}

/// Both the polls and the answer meet the fault: the question is in, and its answer is not out.
#[tokio::test]
async fn telegram_is_waited_for_whatever_the_network_does() {
    for way in WAYS {
        let house = House::new(OPEN).await;
        let line = Line::to(house.telegram.api_url()).await;
        replace(
            &house,
            house.telegram.api_url(),
            &line.instead_of(house.telegram.api_url()),
        );
        let process = house.spawn().await;
        let alice = house.telegram.dm(ALICE);
        house.model.hold();
        let asked = alice.says("hello").await;
        house.telegram.confirmed(asked.update_id).await;
        house.model.wait_for_open(1).await;
        let (after, connections) = (process.log().len(), line.connections());
        line.become_way(way).await;
        house.model.release();
        is_met(&process, &line, way, after, connections).await;
        if !matches!(way, Way::Silent | Way::Trickling) {
            is_told_as_down(&house, "telegram").await;
        }
        line.become_way(Way::Open).await;
        alice.wait_for_sent(1).await;
        house.telegram.dm(BOB).says("and I").await;
        house.telegram.dm(BOB).wait_for_sent(1).await;
        assert_eq!(process.stop().await, 0, "{way:?}");
        let answers = alice.texts();
        // A send whose answer was lost is repeated once, as documented. The line cuts a slow answer when it
        // is mended.
        let is_in_doubt = matches!(way, Way::DroppedAfter | Way::Trickling);
        let most = if is_in_doubt { 2 } else { 1 };
        assert!(
            (1..=most).contains(&answers.len()) && answers.iter().all(|text| text == "re: hello"),
            "{way:?}: {answers:?}"
        );
    }
}

/// Returns when `status` says that a platform is down, and why.
async fn is_told_as_down(house: &House, platform: &str) {
    let is_down = |line: &str| {
        let line = line.trim().to_lowercase();
        line.starts_with(&format!("{platform} is down")) && line.contains(": ")
    };
    let looking = async {
        loop {
            let status = run(house.home.path(), &["status"]).await.stdout;
            if status.lines().any(is_down) {
                return;
            }
        }
    };
    let told = tokio::time::timeout(std::time::Duration::from_secs(30), looking).await;
    assert!(told.is_ok(), "status does not say that {platform} is down");
}

#[tokio::test]
async fn discord_is_waited_for_whatever_the_network_does() {
    for way in WAYS {
        let house = House::new(OPEN).await;
        let discord: FakeDiscord = house.add_discord("").await;
        let line = Line::to(discord.url()).await;
        let url = line.instead_of(discord.url());
        discord.is_reached_at(&url);
        replace(&house, discord.url(), &url);
        let channel = discord.guild(8001, "Garden").text_channel(8101, "general");
        let process = house.spawn().await;
        discord.connected().await;
        house.model.hold();
        channel.says(fake_discord::BOB, "hello").await;
        house.model.wait_for_open(1).await;
        let (after, connections) = (process.log().len(), line.connections());
        line.become_way(way).await;
        house.model.release();
        is_met(&process, &line, way, after, connections).await;
        if !matches!(way, Way::Silent | Way::Trickling) {
            is_told_as_down(&house, "discord").await;
        }
        line.become_way(Way::Open).await;
        channel.wait_for_sent(1).await;
        discord.connected().await;
        channel.says(fake_discord::BOB, "and now").await;
        channel.wait_for_sent(2).await;
        assert_eq!(process.stop().await, 0, "{way:?}");
        assert_eq!(channel.texts(), ["re: hello", "re: and now"], "{way:?}");
    }
}

#[tokio::test]
async fn a_model_is_asked_again_whatever_the_network_does() {
    for way in WAYS {
        let house = House::new(OPEN).await;
        let own = house.model.base_url(Dialect::OpenAi);
        let line = Line::to(&own).await;
        replace(&house, &own, &line.instead_of(&own));
        let process = house.spawn().await;
        let alice = house.telegram.dm(ALICE);
        line.become_way(way).await;
        let (after, connections) = (process.log().len(), line.connections());
        alice.says("hello").await;
        is_met(&process, &line, way, after, connections).await;
        let told = troubles(&process, after);
        let is_waiting = matches!(way, Way::Silent | Way::Trickling);
        assert!(
            is_waiting || told.contains("trying again in"),
            "{way:?}: {told}"
        );
        line.become_way(Way::Open).await;
        alice.wait_for_sent(1).await;
        assert_eq!(process.stop().await, 0, "{way:?}");
        assert_eq!(alice.texts(), ["re: hello"], "{way:?}");
    }
}

/// What stands between us and a platform costs a bounded number of bytes, and is waited out.
#[tokio::test]
async fn a_page_without_end_in_the_place_of_telegram_is_not_read_to_its_end() {
    const MOST: usize = 40 * 1024 * 1024;
    let house = House::new(OPEN).await;
    let line = Line::to(house.telegram.api_url()).await;
    replace(
        &house,
        house.telegram.api_url(),
        &line.instead_of(house.telegram.api_url()),
    );
    let process = house.spawn().await;
    let after = process.log().len();
    line.become_way(Way::Endless).await;
    is_met(&process, &line, Way::Endless, after, 0).await;
    line.become_way(Way::Open).await;
    let alice = house.telegram.dm(ALICE);
    alice.says("hello").await;
    alice.wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);
    let taken = line.endless_bytes();
    assert!(taken < MOST, "{taken} bytes were taken");
}

/// Names without an address and servers without a certificate we know: told as that, and over as soon
/// as the config is right.
#[tokio::test]
async fn a_name_or_a_certificate_that_is_wrong_is_told_and_the_next_config_counts() {
    let house = House::new(OPEN).await;
    let model = house.model.base_url(Dialect::OpenAi);
    // A server that does not speak TLS.
    let tls = model.replace("http:", "https:");
    replace(&house, &model, &tls);
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    alice.says("hello").await;
    let first = alice.wait_for_sent(1).await.text;
    let key = house.home.path().join("secrets/key");
    std::fs::create_dir_all(key.parent().expect("a folder")).expect("a folder is made");
    std::fs::write(&key, "a-key").expect("a secret is written");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("the owner may");
    let nowhere = "https://models.invalid/v1/\"\napi_key = { file = \"secrets/key\" }  # \"";
    replace(&house, &tls, nowhere);
    reload(&house).await;
    alice.says("hello again").await;
    let second = alice.wait_for_sent(2).await.text;
    replace(&house, nowhere, &model);
    reload(&house).await;
    alice.says("and now").await;
    let third = alice.wait_for_sent(3).await.text;
    for told in [&first, &second] {
        assert!(
            !told.starts_with("re: ") && told.contains("[ref "),
            "{told}"
        );
    }
    assert!(
        third.starts_with("re: ") && third.ends_with("and now"),
        "{third}"
    );
    assert_eq!(process.stop().await, 0);
}

async fn reload(house: &House) {
    let ran = run(house.home.path(), &["reload"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// A wait without an end holds up its own chat only, and is kept over a restart.
#[tokio::test]
async fn a_storm_of_waits_holds_up_its_own_chat_only() {
    for seconds in [3600, u64::MAX] {
        let mut house = House::new(OPEN).await;
        house.leave_leftovers();
        let storm = house
            .telegram
            .fail("sendMessage", Fault::RetryAfter(seconds));
        let storm = storm.only_in(ALICE.id).until_dropped();
        let gateway = house.open().await;
        for number in 0..5 {
            house
                .telegram
                .dm(ALICE)
                .says(&format!("hello {number}"))
                .await;
        }
        house
            .wait_until_stored("SELECT count(*) FROM chat_waits", "1")
            .await;
        drop(storm);
        let bob = house.telegram.dm(BOB);
        bob.says("hi").await;
        bob.wait_for_sent(1).await;
        let status = run(house.home.path(), &["status"]).await.stdout;
        assert!(
            status.contains("asked for a pause until "),
            "{seconds}: {status}"
        );
        gateway.shutdown().await;
        let gateway = house.open().await;
        bob.says("hi again").await;
        bob.wait_for_sent(2).await;
        gateway.shutdown().await;
        assert!(house.telegram.dm(ALICE).texts().is_empty(), "{seconds}");
    }
}
