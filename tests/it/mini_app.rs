//! The way in from Telegram: `/dashboard` opens a Mini App, and what Telegram signs for it is checked.

use std::time::{SystemTime, UNIX_EPOCH};

use insta::assert_snapshot;
use ring::hmac;
use serde_json::{Value, json};

use crate::admin_door::Site;
use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB, User};
use crate::support::http::{Answer, Call};
use crate::webhook::free_address;

const OUTER: &str = "parlor.example";

/// What Telegram hands to a page that this person has opened, made after Telegram's own rules.
pub(crate) fn init_data(token: &str, user: User, seconds_ago: i64) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a time");
    let date = i64::try_from(now.as_secs()).expect("a number") - seconds_ago;
    let user = json!({ "id": user.id, "first_name": user.first_name }).to_string();
    let mut fields = [
        ("auth_date", date.to_string()),
        ("query_id", "AAHdF6IQAAAA".to_owned()),
        ("user", user),
    ];
    fields.sort();
    let lines = fields.iter().map(|(name, value)| format!("{name}={value}"));
    let lines = lines.collect::<Vec<_>>().join("\n");
    let sign = |key: &[u8], text: &str| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
    };
    let hash = sign(&sign(b"WebAppData", token), &lines);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let pairs = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", escaped(value)));
    let pairs = pairs.collect::<Vec<_>>().join("&");
    format!("{pairs}&hash={hash}")
}

fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Sends it as the page does.
async fn enters(site: &Site, init_data: &str, framed: bool) -> Answer {
    let origin = format!("http://{}", site.address);
    let call = Call::new("POST", "/mini-app")
        .header("Origin", &origin)
        .json(&json!({ "init_data": init_data, "framed": framed }));
    site.send(call).await
}

#[tokio::test]
async fn an_owner_enters_from_telegram_and_nobody_else() {
    let site = Site::open("").await;
    let token = site.house.telegram.token();
    let good = init_data(token, ALICE, 2);
    let entered = enters(&site, &good, false).await;
    assert_eq!(entered.status, 200, "{entered:?}");
    let line = entered.header("set-cookie").expect("a cookie").to_owned();
    assert!(
        line.contains("HttpOnly") && line.contains("SameSite=Strict"),
        "{line}"
    );
    let page = Call::get("/overview").header("Cookie", &entered.cookie());
    assert_eq!(site.send(page.clone()).await.status, 200);
    let who = Call::get("/api/v1/whoami").header("Cookie", &entered.cookie());
    assert_eq!(site.send(who).await.json()["scope"], "admin");
    let noted = "SELECT actor || ' ' || action FROM audit ORDER BY id DESC LIMIT 1";
    let noted = site.house.ask(noted);
    assert!(
        noted.contains("telegram:111") && noted.contains("sign"),
        "{noted}"
    );

    let tampered = good.replace("auth_date=1", "auth_date=2");
    let fresh = |user, seconds_ago| init_data(token, user, seconds_ago);
    for (what, text, kind) in [
        ("replayed", good.clone(), "urn:parlor:mini-app"),
        (
            "replayed in capitals",
            good.replace(
                &good[good.len() - 64..],
                &good[good.len() - 64..].to_uppercase(),
            ),
            "urn:parlor:mini-app",
        ),
        ("tampered", tampered, "urn:parlor:mini-app"),
        ("old", fresh(ALICE, 301), "urn:parlor:mini-app"),
        ("from the future", fresh(ALICE, -120), "urn:parlor:mini-app"),
        (
            "a stranger's",
            fresh(User::person(404, "Eve"), 2),
            "urn:parlor:mini-app",
        ),
        ("a member's", fresh(BOB, 2), "urn:parlor:mini-app"),
        (
            "another bot's",
            init_data("1:other", ALICE, 2),
            "urn:parlor:mini-app",
        ),
        ("empty", String::new(), "urn:parlor:mini-app"),
    ] {
        let refused = enters(&site, &text, false).await;
        assert_eq!(refused.status, 403, "{what}: {refused:?}");
        assert_eq!(refused.json()["type"], kind, "{what}");
        assert!(refused.header("set-cookie").is_none(), "{what}");
    }
    // A page of another site cannot hand anything over.
    let elsewhere = Call::new("POST", "/mini-app")
        .header("Origin", "https://evil.example")
        .json(&json!({ "init_data": fresh(ALICE, 1), "framed": false }));
    assert_eq!(
        site.send(elsewhere).await.json()["type"],
        "urn:parlor:origin"
    );

    // The sign-in ends with the ownership.
    let config = site
        .house
        .config()
        .replace("owners = [\"telegram:111\"]", "owners = [\"telegram:222\"]");
    site.house.write("config.toml", &config);
    crate::admin_door::fine(site.home(), &["reload"]).await;
    assert_eq!(site.send(page).await.status, 401, "no owner any more");
    let late = enters(&site, &init_data(token, ALICE, 1), false).await;
    assert_eq!(late.status, 403);
    assert_snapshot!(late.json()["detail"].as_str().expect("a sentence"), @"Only owners can open the dashboard.");
    site.stop().await;
}

/// Used once, also after a restart.
#[tokio::test]
async fn a_restart_does_not_make_a_used_entry_new() {
    let site = Site::open("").await;
    let text = init_data(site.house.telegram.token(), ALICE, 2);
    assert_eq!(enters(&site, &text, false).await.status, 200);
    let Site {
        house,
        address,
        process,
    } = site;
    process.kill().await;
    let process = house.spawn().await;
    process.wait_for_log("the admin listener is on").await;
    let site = Site {
        house,
        address,
        process,
    };
    assert_eq!(enters(&site, &text, false).await.status, 403);
    site.stop().await;
}

/// Inside a frame no cookie counts, so there is a link that opens beside it.
#[tokio::test]
async fn telegrams_site_may_frame_the_entrance_and_nothing_else() {
    let site = Site::open("").await;
    let text = init_data(site.house.telegram.token(), ALICE, 2);
    let entered = enters(&site, &text, true).await;
    assert!(entered.header("set-cookie").is_none(), "{entered:?}");
    let link = entered.json()["link"].as_str().expect("a link").to_owned();
    let followed = site.send(Call::get(&link)).await;
    assert_eq!(followed.status, 200, "{followed:?}");
    let page = Call::get("/overview").header("Cookie", &followed.cookie());
    let page = site.send(page).await;
    assert_eq!(page.status, 200);
    let policy = |answer: &Answer| {
        let policy = answer.header("content-security-policy").expect("a policy");
        let frames = policy
            .split("; ")
            .find(|part| part.starts_with("frame-ancestors"));
        (
            frames.map(str::to_owned),
            answer.header("x-frame-options").map(str::to_owned),
        )
    };
    let none = (
        Some("frame-ancestors 'none'".to_owned()),
        Some("DENY".to_owned()),
    );
    assert_eq!(policy(&page), none);
    let entrance = site.send(Call::get("/mini-app")).await;
    assert_eq!(entrance.status, 200);
    let telegram = (
        Some("frame-ancestors https://web.telegram.org".to_owned()),
        None,
    );
    assert_eq!(policy(&entrance), telegram);
    for other in ["/enter?code=x", "/", "/healthz", "/api/v1/whoami"] {
        assert_eq!(policy(&site.send(Call::get(other)).await), none, "{other}");
    }
    assert_eq!(policy(&entered), none, "not the answer to the page either");
    let evil = Call::get("/mini-app").header("Host", "evil.example");
    assert_eq!(site.send(evil).await.status, 403);
    site.stop().await;
}

/// In an owner's private chat, and only there.
#[tokio::test]
async fn dashboard_has_a_button_where_the_address_is_public() {
    let keys = format!("behind_proxy = true\nurl = \"https://{OUTER}\"");
    let site = Site::open(&keys).await;
    let owner = site.house.telegram.dm(ALICE);
    owner.says("/dashboard").await;
    let told = owner.wait_for_sent(1).await;
    assert_snapshot!(told.text, @"The dashboard, for you alone: the button signs you in.");
    assert_eq!(
        told.reply_markup["inline_keyboard"],
        json!([[{ "text": "Open the dashboard", "web_app": { "url": format!("https://{OUTER}/mini-app") } }]])
    );
    let topic = site.house.telegram.forum(-1001).topic(101, "Garden");
    for (number, (who, expected)) in [
        (
            ALICE,
            "Others read along here, so ask me in our private chat: /dashboard",
        ),
        (BOB, "Only owners can open the dashboard."),
    ]
    .into_iter()
    .enumerate()
    {
        topic.says(who, "/dashboard").await;
        let told = topic.wait_for_sent(number + 1).await;
        assert_eq!(told.text, expected);
        assert_eq!(told.reply_markup, Value::Null);
    }
    // Under its public name, the cookie is for that name alone.
    let text = init_data(site.house.telegram.token(), ALICE, 2);
    let call = Call::new("POST", "/mini-app")
        .header("Host", OUTER)
        .header("Origin", &format!("https://{OUTER}"))
        .json(&json!({ "init_data": text, "framed": false }));
    let entered = site.send(call).await;
    let line = entered.header("set-cookie").expect("a cookie");
    assert!(
        line.starts_with("__Host-parlor=") && line.contains("Secure"),
        "{line}"
    );
    site.stop().await;
}

#[tokio::test]
async fn dashboard_says_what_to_configure() {
    let house = House::new(&format!(
        "[access]\nowners = [\"telegram:111\"]\n[admin]\nlisten = \"{}\"\n",
        free_address()
    ))
    .await;
    let gateway = house.open().await;
    let owner = house.telegram.dm(ALICE);
    owner.says("/dashboard").await;
    let told = owner.wait_for_sent(1).await;
    assert_eq!(told.reply_markup, Value::Null);
    assert_snapshot!(told.text, @r#"
    The dashboard has no public address, so I can't open it from here. parlor dashboard on the machine prints a link to it.
    To open it from Telegram, put a web server with TLS in front, and under [admin] in config.toml write behind_proxy = true and url = "https://…".
    "#);
    gateway.shutdown().await;
}
