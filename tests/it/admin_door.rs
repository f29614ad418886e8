//! The door of the HTTP API and the dashboard: tokens, links, cookies, names, pages, and what is
//! kept out.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::cli::run;
use crate::support::House;
use crate::support::house::Process;
use crate::support::http::{Answer, Call};
use crate::webhook::free_address;

/// Alice owns the house, and Rose has a topic.
pub(crate) const TEAM: &str = "[access]\nowners = [\"telegram:111\"]\nrequire_mention = false\n\
    [agents.main]\n[agents.rose]\nname = \"Rose\"\nemoji = \"🌹\"\n\
    [[bindings]]\nmatch = \"telegram:topic:-1001:101\"\nagent = \"rose\"\n";

/// A running gateway with an admin listener.
pub(crate) struct Site {
    pub(crate) house: House,
    pub(crate) address: String,
    pub(crate) process: Process,
}

impl Site {
    pub(crate) async fn open(keys: &str) -> Self {
        let address = free_address();
        let admin = format!("[admin]\nlisten = \"{address}\"\n{keys}\n");
        let house = House::new(&format!("{TEAM}{admin}")).await;
        let process = house.spawn().await;
        let up = format!("the admin listener is on {address}");
        process.wait_for_log(&up).await;
        Site {
            house,
            address,
            process,
        }
    }

    pub(crate) fn home(&self) -> &Path {
        self.house.home.path()
    }

    /// A token of this scope, named after it.
    pub(crate) async fn token(&self, scope: &str) -> String {
        fine(self.home(), &["token", "create", scope, "--scope", scope]).await
    }

    pub(crate) async fn send(&self, call: Call) -> Answer {
        call.send(&self.address).await
    }

    /// The cookie of a browser that followed a link.
    pub(crate) async fn sign_in(&self) -> String {
        let link = fine(self.home(), &["dashboard", "--no-open"]).await;
        let path = link.split(&self.address).nth(1).expect("our address");
        let entered = self.send(Call::get(path)).await;
        assert_eq!(entered.status, 200, "{entered:?}");
        entered.cookie()
    }

    pub(crate) async fn stop(self) {
        assert_eq!(self.process.stop().await, 0);
    }
}

/// What a verb printed, without the line's end.
pub(crate) async fn fine(home: &Path, arguments: &[&str]) -> String {
    let ran = run(home, arguments).await;
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran.stdout.trim_end().to_owned()
}

#[tokio::test]
async fn a_link_signs_a_browser_in_once() {
    let site = Site::open("").await;
    let stranger = site.send(Call::get("/")).await;
    assert_eq!(stranger.status, 401);
    assert!(
        stranger.body.contains("<code>parlor dashboard</code>"),
        "{}",
        stranger.body
    );
    let link = fine(site.home(), &["dashboard", "--no-open"]).await;
    let start = format!("http://{}/enter?code=", site.address);
    assert!(link.starts_with(&start), "{link}");
    let path = &link[format!("http://{}", site.address).len()..];
    // A chat that shows a preview of the link does not use it up.
    assert_eq!(site.send(Call::new("HEAD", path)).await.status, 204);
    let entered = site.send(Call::get(path)).await;
    assert_eq!(entered.status, 200);
    let line = entered.header("set-cookie").expect("a cookie").to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604"] {
        assert!(line.contains(word), "{word} in {line}");
    }
    assert!(
        !line.contains("Secure"),
        "plain HTTP on this machine: {line}"
    );
    let page = Call::get("/house").header("Cookie", &entered.cookie());
    assert_eq!(site.send(page.clone()).await.status, 200);
    let again = site.send(Call::get(path)).await;
    assert_eq!(again.status, 403, "used up");
    assert!(
        again.body.contains("This link was used before"),
        "{}",
        again.body
    );
    let secret = entered
        .cookie()
        .split_once('=')
        .expect("a pair")
        .1
        .to_owned();
    let stored = site
        .house
        .ask("SELECT group_concat(hex(digest)) FROM http_keys");
    assert!(!stored.is_empty() && !stored.contains(&secret));
    assert!(!site.process.log().contains(&secret), "not in the log");
    // Listed and revoked like tokens.
    let listed: Value =
        serde_json::from_str(&fine(site.home(), &["token", "--json"]).await).expect("JSON");
    assert_eq!(listed[0]["kind"], "sign-in");
    let id = listed[0]["id"].to_string();
    fine(site.home(), &["token", "revoke", &id]).await;
    assert_eq!(site.send(page).await.status, 401, "revoked");
    site.stop().await;
}

#[tokio::test]
async fn a_browser_signs_out() {
    let site = Site::open("").await;
    let cookie = site.sign_in().await;
    let origin = format!("http://{}", site.address);
    let leave = Call::new("POST", "/leave").header("Cookie", &cookie);
    assert_eq!(site.send(leave.clone()).await.status, 403, "from nowhere");
    let left = site.send(leave.header("Origin", &origin)).await;
    assert_eq!((left.status, left.header("location")), (303, Some("/")));
    assert!(
        left.header("set-cookie")
            .expect("a cookie")
            .contains("Max-Age=0")
    );
    let page = Call::get("/").header("Cookie", &cookie);
    assert_eq!(site.send(page).await.status, 401);
    let audit = fine(site.home(), &["audit", "--by", "dashboard"]).await;
    assert!(audit.contains("signed in (admin)"), "{audit}");
    site.stop().await;
}

#[tokio::test]
async fn tokens_are_made_listed_and_revoked() {
    let site = Site::open("").await;
    let token = site.token("read").await;
    assert!(token.starts_with("parlor_") && token.len() == 50, "{token}");
    let status = Call::get("/api/v1/status").token(&token);
    assert_eq!(site.send(status.clone()).await.status, 200);
    let twice = run(site.home(), &["token", "create", "read"]).await;
    assert_eq!(twice.code, 1);
    assert_snapshot!(twice.stderr.trim_end(), @"
    error: there is a token read already
    hint: `parlor token revoke read` ends it
    ");
    let odd = run(site.home(), &["token", "create", "two words"]).await;
    assert_eq!(odd.code, 2, "{}", odd.stderr);
    let listed = fine(site.home(), &["token", "list"]).await;
    assert!(
        listed.contains("read") && !listed.contains(&token),
        "{listed}"
    );
    assert!(
        !site
            .house
            .ask("SELECT group_concat(after) || group_concat(subject) FROM audit")
            .contains(&token)
    );
    fine(site.home(), &["token", "revoke", "read"]).await;
    let refused = site.send(status).await;
    assert_eq!(refused.status, 401);
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    assert_eq!(refused.json()["type"], "urn:parlor:unauthorized");
    let unknown = run(site.home(), &["token", "revoke", "read"]).await;
    assert_eq!(unknown.code, 2);
    let audit = site
        .house
        .ask("SELECT group_concat(action || ' ' || subject || ' ' || after) FROM audit");
    assert_eq!(audit, "token create read read,token revoke read read");
    site.stop().await;
}

/// A token ends by itself; one that was made without a gateway counts at the next start.
#[tokio::test]
async fn a_token_ends_at_its_time() {
    let address = free_address();
    let house = House::new(&format!("{TEAM}[admin]\nlisten = \"{address}\"\n")).await;
    let home = house.home.path();
    let token = fine(home, &["token", "create", "early", "--expires", "1d"]).await;
    let process = house.spawn().await;
    process.wait_for_log("the admin listener is on").await;
    let call = Call::get("/api/v1/status").token(&token);
    assert_eq!(call.send(&address).await.status, 200);
    assert_eq!(process.stop().await, 0);
    house.tell("UPDATE http_keys SET expires_at = 1");
    let process = house.spawn().await;
    process.wait_for_log("the admin listener is on").await;
    assert_eq!(call.send(&address).await.status, 401);
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn other_names_other_pages_and_wrong_cookies_are_kept_out() {
    let site = Site::open("").await;
    let (cookie, token) = (site.sign_in().await, site.token("admin").await);
    let origin = format!("http://{}", site.address);
    let with_cookie = |path: &str| Call::get(path).header("Cookie", &cookie);
    let call = "/api/v1/status";
    let refused = [
        // A page of the internet whose name leads to this machine.
        (
            with_cookie(call).header("Host", "evil.example"),
            403,
            "host",
        ),
        (
            Call::get(call).token(&token).header("Host", "evil.example"),
            403,
            "host",
        ),
        (
            with_cookie(call).header("Origin", "https://evil.example"),
            403,
            "origin",
        ),
        (with_cookie(call).header("Origin", "null"), 403, "origin"),
        (
            with_cookie(call).header("Sec-Fetch-Site", "cross-site"),
            403,
            "origin",
        ),
        (
            with_cookie(call).header("Sec-Fetch-Site", "same-site"),
            403,
            "origin",
        ),
        (
            Call::get(call)
                .token(&token)
                .header("Origin", "https://evil.example"),
            403,
            "origin",
        ),
        (
            Call::new("POST", "/api/v1/reload").header("Cookie", &cookie),
            403,
            "origin",
        ),
        (
            Call::get(call).header("Cookie", "parlor-1=abc"),
            401,
            "unauthorized",
        ),
        (
            Call::get(call).header("Cookie", &format!("{cookie}x")),
            401,
            "unauthorized",
        ),
        // A cookie's secret is no token, and the other way round.
        (
            Call::get(call).token(cookie.split_once('=').expect("a pair").1),
            401,
            "unauthorized",
        ),
        (Call::get(call), 401, "unauthorized"),
    ];
    for (call, status, kind) in refused {
        let answer = site.send(call.clone()).await;
        assert_eq!(answer.status, status, "{call:?}: {answer:?}");
        assert_eq!(
            answer.json()["type"],
            format!("urn:parlor:{kind}"),
            "{call:?}"
        );
        assert!(answer.header("access-control-allow-origin").is_none());
    }
    let allowed = [
        with_cookie(call),
        with_cookie(call)
            .header("Origin", &origin)
            .header("Sec-Fetch-Site", "same-origin"),
        with_cookie(call).header("Sec-Fetch-Site", "none"),
        Call::get(call).token(&token),
        Call::new("POST", "/api/v1/reload").token(&token),
        Call::new("POST", "/api/v1/reload")
            .header("Cookie", &cookie)
            .header("Origin", &origin),
    ];
    for call in allowed {
        assert_eq!(site.send(call.clone()).await.status, 200, "{call:?}");
    }
    let preflight = Call::new("OPTIONS", call)
        .header("Origin", "https://evil.example")
        .header("Access-Control-Request-Method", "GET");
    let preflight = site.send(preflight).await;
    assert!(preflight.status >= 400 && !preflight.head.to_lowercase().contains("access-control"));
    site.stop().await;
}

#[tokio::test]
async fn after_many_wrong_tokens_wrong_ones_wait_and_right_ones_work() {
    let site = Site::open("").await;
    let token = site.token("read").await;
    let call = |token: &str| Call::get("/api/v1/status").token(token);
    for round in 0..20 {
        assert_eq!(site.send(call("wrong")).await.status, 401, "{round}");
    }
    let refused = site.send(call("wrong")).await;
    assert_eq!(refused.status, 429);
    let wait: u64 = refused
        .header("retry-after")
        .and_then(|wait| wait.parse().ok())
        .expect("a number");
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(site.send(Call::get("/enter?code=guess")).await.status, 429);
    assert_eq!(
        site.send(call(&token)).await.status,
        200,
        "nobody is locked out"
    );
    site.process
        .wait_for_log("wrong tokens, cookies or links")
        .await;
    site.stop().await;
}

#[tokio::test]
async fn every_answer_has_the_headers_of_a_careful_site() {
    let site = Site::open("metrics = \"open\"").await;
    let token = site.token("read").await;
    for call in [
        Call::get("/"),
        Call::get("/enter?code=x"),
        Call::get("/api/v1/status").token(&token),
        Call::get("/api/v1/nothing").token(&token),
        Call::get("/healthz"),
    ] {
        let answer = site.send(call.clone()).await;
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';")
                && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{call:?}");
    }
    site.stop().await;
}

/// In plain HTTP to other machines there is nothing but the pages for watchers.
#[tokio::test]
async fn a_listener_for_other_machines_has_no_api_without_tls_in_front() {
    let port = free_address()
        .rsplit(':')
        .next()
        .expect("a port")
        .to_owned();
    let keys = format!(
        "[admin]\nlisten = \"0.0.0.0:{port}\"\npublic = true\ntoken = {{ file = \"secrets/admin\" }}\n"
    );
    let house = House::new(&format!("{TEAM}{keys}")).await;
    house.write("secrets/admin", "a-token-of-the-operator");
    let process = house.spawn().await;
    process
        .wait_for_log("the admin listener is on 0.0.0.0")
        .await;
    let address = format!("127.0.0.1:{port}");
    let token = fine(
        house.home.path(),
        &["token", "create", "admin", "--scope", "admin"],
    )
    .await;
    let refused = Call::get("/api/v1/status")
        .token(&token)
        .send(&address)
        .await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["type"], "urn:parlor:plain-http");
    let link = run(house.home.path(), &["dashboard"]).await;
    assert_eq!(link.code, 1);
    assert!(
        link.stderr
            .contains("in plain HTTP, so there is no dashboard there"),
        "{}",
        link.stderr
    );
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn behind_a_proxy_with_tls_the_outer_name_counts() {
    let site = Site::open("behind_proxy = true\nurl = \"https://parlor.example\"").await;
    let link = fine(site.home(), &["dashboard", "--no-open"]).await;
    let path = link
        .strip_prefix("https://parlor.example")
        .expect("the outer address");
    let entered = site
        .send(Call::get(path).header("Host", "parlor.example"))
        .await;
    let line = entered.header("set-cookie").expect("a cookie").to_owned();
    assert!(
        line.starts_with("__Host-parlor=") && line.contains("; Secure"),
        "{line}"
    );
    let call = Call::new("POST", "/api/v1/reload")
        .header("Host", "parlor.example")
        .header("Cookie", &entered.cookie());
    let ours = call.clone().header("Origin", "https://parlor.example");
    assert_eq!(site.send(ours).await.status, 200);
    let plain = call.header("Origin", "http://parlor.example");
    assert_eq!(site.send(plain).await.status, 403, "another page");
    let other = Call::get("/").header("Host", "other.example");
    assert_eq!(site.send(other).await.status, 403);
    site.stop().await;
}

/// Without `[admin]` nothing listens until somebody asks for the dashboard, and then on a free port
/// of this machine.
#[tokio::test]
async fn without_a_section_the_dashboard_opens_a_listener_of_its_own() {
    let house = House::new(TEAM).await;
    let home = house.home.path();
    let none = run(home, &["dashboard"]).await;
    assert_eq!(none.code, 1);
    assert!(
        none.stderr.contains("no gateway runs on"),
        "{}",
        none.stderr
    );
    let process = house.spawn().await;
    process.wait_for_log("connected as").await;
    assert!(
        !process.log().contains("the admin listener"),
        "{}",
        process.log()
    );
    let link = fine(home, &["dashboard", "--json"]).await;
    let link: Value = serde_json::from_str(&link).expect("JSON");
    assert_eq!(link["expires_in_seconds"], 60);
    let url = link["url"].as_str().expect("an address");
    let (address, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .expect("an address and a path");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let entered = Call::get(&format!("/{path}")).send(address).await;
    let page = Call::get("/house").header("Cookie", &entered.cookie());
    assert_eq!(page.send(address).await.status, 200);
    // The section, once saved, moves the listener.
    let listen = free_address();
    house.configure("", &format!("{TEAM}[admin]\nlisten = \"{listen}\"\n"));
    process.hang_up().await;
    process
        .wait_for_log(&format!("the admin listener is on {listen}"))
        .await;
    assert!(TcpStream::connect(address).await.is_err(), "closed");
    let moved = page.header("Host", &listen);
    assert_eq!(
        moved.send(&listen).await.status,
        401,
        "a cookie belongs to its port"
    );
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn config_check_tells_what_a_proxy_needs() {
    let house = House::new(&format!("{TEAM}[admin]\nbehind_proxy = true\n")).await;
    let ran = run(house.home.path(), &["config", "check"]).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr
            .contains("a listener behind a proxy needs its outer address"),
        "{}",
        ran.stderr
    );
    for (keys, problem) in [
        (
            "url = \"https://parlor.example\"",
            "`url` counts behind a proxy only",
        ),
        (
            "behind_proxy = true\nurl = \"http://127.0.0.1\"",
            "`url` is not the address of a site with TLS",
        ),
        (
            "behind_proxy = true\nurl = \"https://parlor.example/a\"",
            "`url` is not the address of a site with TLS",
        ),
        (
            "listen = \"0.0.0.0:7717\"",
            "`listen` is open to other machines",
        ),
    ] {
        house.configure("", &format!("{TEAM}[admin]\n{keys}\n"));
        let ran = run(house.home.path(), &["config", "check"]).await;
        assert!(ran.stderr.contains(problem), "{keys}: {}", ran.stderr);
    }
}
