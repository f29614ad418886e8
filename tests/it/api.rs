//! The HTTP API over real HTTP, against the real gateway.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::admin_door::Site;
use crate::support::House;
use crate::support::fake_discord as discord;
use crate::support::fake_telegram::{ALICE, BOB, Fault};
use crate::support::http::{Answer, Call};
use crate::webhook::free_address;

const TOPIC: &str = "telegram:topic:-1001:101";

/// A site with a token for everything.
struct Api {
    site: Site,
    token: String,
}

impl Api {
    async fn open() -> Self {
        let site = Site::open("").await;
        let token = site.token("admin").await;
        Api { site, token }
    }

    /// The same, after Alice has talked to Rose in a topic.
    async fn lived_in() -> Self {
        let api = Api::open().await;
        let topic = api.site.house.telegram.forum(-1001).topic(101, "Garden");
        topic.says(ALICE, "hello").await;
        topic.wait_for_sent(1).await;
        api.sent().await;
        api
    }

    async fn sent(&self) {
        let open = "SELECT count(*) FROM outbox WHERE state <> 'sent'";
        self.site.house.wait_until_stored(open, "0").await;
    }

    async fn call(&self, method: &str, path: &str) -> Answer {
        let call = Call::new(method, &format!("/api/v1{path}")).token(&self.token);
        self.site.send(call).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.call("GET", path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        let call = Call::new(method, &format!("/api/v1{path}")).token(&self.token);
        self.site.send(call.json(&body)).await
    }

    async fn done(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = self.send(method, path, body).await;
        assert!(
            (200..300).contains(&answer.status),
            "{method} {path}: {answer:?}"
        );
        match answer.body.is_empty() {
            true => Value::Null,
            false => answer.json(),
        }
    }

    async fn refused(&self, method: &str, path: &str, body: Value) -> (u16, String) {
        let answer = self.send(method, path, body).await;
        let problem = answer.json();
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{answer:?}"
        );
        assert_eq!(problem["status"], answer.status);
        (
            answer.status,
            problem["detail"].as_str().expect("a sentence").to_owned(),
        )
    }
}

/// S0.23, S0.66, S1.30: configured and discovered agents, with origin and default flag.
#[tokio::test]
async fn agents_are_listed() {
    let api = Api::open().await;
    api.site
        .house
        .write("agents/dot/SOUL.md", "I was made by hand.");
    let list = api.get("/agents").await;
    assert_eq!(list["default_id"], "main");
    let lines: Vec<String> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| {
            format!(
                "{} {} {} {}",
                line["id"], line["label"], line["origin"], line["default"]
            )
        })
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    "main" "Main" "configured" true
    "rose" "🌹 Rose" "configured" false
    "dot" "dot" "discovered" false
    "#);
    api.site.stop().await;
}

/// S0.24, S1.31: resolved files with origin, effective skills, tools, model, memory counts, identity and soul.
#[tokio::test]
async fn an_agent_is_shown_with_its_belongings() {
    let api = Api::open().await;
    api.site.house.write("SOUL.md", "Be kind.");
    api.site
        .house
        .write("agents/rose/IDENTITY.md", "I am Rose.");
    let rose = api.get("/agents/rose").await;
    assert_eq!(rose["identity"], "I am Rose.");
    assert_eq!(rose["soul"], "Be kind.");
    let soul = rose["files"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|file| file["file"] == "SOUL.md")
        .expect("there");
    assert_ne!(
        soul["origin"], rose["files"][0]["origin"],
        "inherited and own: {}",
        rose["files"]
    );
    assert_eq!(rose["bound"][0]["id"], TOPIC);
    assert!(
        rose["tools"]
            .as_array()
            .is_some_and(|tools| tools.iter().any(|tool| tool["tool"] == "now"))
    );
    assert_eq!(rose["memory"]["private"], 0);
    assert!(rose["model"].is_string());
    let (status, detail) = api.refused("GET", "/agents/rsoe", Value::Null).await;
    assert_eq!((status, detail.as_str()), (404, "no agent is called rsoe"));
    api.site.stop().await;
}

/// S0.25, S1.1, S1.32: made once; the second time is 409 and changes nothing.
#[tokio::test]
async fn an_agent_is_created_once() {
    let api = Api::open().await;
    let body = json!({ "id": "dot", "label": "Dot", "emoji": "⚫", "soul": "I like order." });
    let created = api.send("POST", "/agents", body.clone()).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.header("location"), Some("/api/v1/agents/dot"));
    assert_eq!(created.json()["soul"], "I like order.\n");
    let config = api.site.house.config();
    let (status, detail) = api.refused("POST", "/agents", body).await;
    assert_eq!(status, 409);
    assert_snapshot!(detail, @"there is an agent called dot already. Choose another id");
    assert_eq!(api.site.house.config(), config);
    let (status, _) = api
        .refused("POST", "/agents", json!({ "id": "Not An Id" }))
        .await;
    assert_eq!(status, 400);
    let (status, _) = api
        .refused("POST", "/agents", json!({ "id": "x", "colour": "red" }))
        .await;
    assert_eq!(status, 400, "an unknown field");
    // The running gateway has it at once.
    assert_eq!(api.get("/agents/dot").await["label"], "⚫ Dot");
    api.site.stop().await;
}

/// S1.33: absent fields stay, null clears. A change from an old state is refused.
#[tokio::test]
async fn an_agent_is_changed_from_the_state_that_was_read() {
    let api = Api::open().await;
    let read = api.call("GET", "/agents/rose").await;
    let tag = read.header("etag").expect("a tag").to_owned();
    let changed = api
        .done(
            "PATCH",
            "/agents/rose",
            json!({ "emoji": null, "vibe": "dry \"wit\"" }),
        )
        .await;
    assert_eq!(
        (&changed["name"], &changed["emoji"], &changed["vibe"]),
        (&json!("Rose"), &Value::Null, &json!("dry \"wit\""))
    );
    let config = api.site.house.config();
    assert!(
        config.contains("vibe = ") && !config.contains("🌹"),
        "{config}"
    );
    let stale = Call::new("PATCH", "/api/v1/agents/rose")
        .token(&api.token)
        .header("If-Match", &tag)
        .json(&json!({ "name": "Lily" }));
    let stale = api.site.send(stale).await;
    assert_eq!(stale.status, 412, "{stale:?}");
    let (status, detail) = api
        .refused("PATCH", "/agents/rose", json!({ "model": "nowhere/x" }))
        .await;
    assert_eq!(status, 409);
    assert!(detail.contains("Nothing was changed"), "{detail}");
    assert_eq!(api.site.house.config(), config);
    assert_eq!(
        api.refused("PATCH", "/agents/nobody", json!({})).await.0,
        404
    );
    api.site.stop().await;
}

/// S0.26, S1.34, S1.35: put away with what was affected, brought back; never the default.
#[tokio::test]
async fn an_agent_is_put_away_and_brought_back() {
    let api = Api::open().await;
    api.done(
        "POST",
        "/memories",
        json!({ "agent": "rose", "text": "Tea at four" }),
    )
    .await;
    let removed = api.done("DELETE", "/agents/rose", Value::Null).await;
    assert_eq!(removed["bindings"], json!([TOPIC]));
    assert_eq!(removed["rows"]["memories"], 1);
    assert_eq!(api.refused("GET", "/agents/rose", Value::Null).await.0, 404);
    let archived = api.get("/agents").await;
    let archived = archived["items"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|line| line["id"] == "rose")
        .expect("there")
        .clone();
    assert_eq!(archived["origin"], "archived");
    let back = api.done("POST", "/agents/rose/restore", json!({})).await;
    assert_eq!(back["bound"][0]["id"], TOPIC);
    let changed = api
        .done("PUT", "/agents/default", json!({ "agent": "rose" }))
        .await;
    assert_eq!(changed, json!({ "before": "main", "after": "rose" }));
    let (status, detail) = api.refused("DELETE", "/agents/rose", Value::Null).await;
    assert_eq!(status, 409);
    assert_snapshot!(detail, @"rose is the default agent. Make another one the default first: `parlor agent default main`");
    assert_eq!(
        api.refused("PUT", "/agents/default", json!({ "agent": "nobody" }))
            .await
            .0,
        404
    );
    api.site.stop().await;
}

/// S1.36, S1.37, S1.38: files with origin; nothing outside the folder; a stale base is 409 with both texts.
#[tokio::test]
async fn files_are_read_and_written() {
    let api = Api::open().await;
    api.site.house.write("SOUL.md", "Be kind.");
    let files = api.get("/agents/rose/files").await;
    let soul = files["items"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|file| file["name"] == "SOUL.md")
        .expect("there")
        .clone();
    assert_eq!(
        (&soul["origin"], &soul["bytes"]),
        (&json!("inherited"), &json!(8))
    );
    let read = api.get("/agents/rose/files/SOUL.md").await;
    let body = json!({ "text": "Be brave.", "base": read["hash"] });
    let written = api
        .done("PUT", "/agents/rose/files/SOUL.md", body.clone())
        .await;
    assert_eq!(
        (&written["origin"], &written["inherited"]),
        (&json!("own"), &json!("Be kind."))
    );
    let path = api.site.home().join("agents/rose/SOUL.md");
    assert_eq!(
        std::fs::read_to_string(&path).expect("written"),
        "Be brave."
    );
    let stale = api.send("PUT", "/agents/rose/files/SOUL.md", body).await;
    assert_eq!(stale.status, 409);
    assert_eq!(stale.json()["facts"]["current"]["text"], "Be brave.");
    assert_eq!(stale.json()["facts"]["yours"], "Be brave.");
    api.done("DELETE", "/agents/rose/files/SOUL.md", Value::Null)
        .await;
    assert!(!path.exists());
    for odd in [
        "/agents/rose/files/config.toml",
        "/agents/rose/files/..%2F..%2Fconfig.toml",
        "/agents/rose/files/%2Fetc%2Fpasswd",
    ] {
        assert_eq!(api.refused("GET", odd, Value::Null).await.0, 404, "{odd}");
    }
    std::os::unix::fs::symlink("/etc/passwd", &path).expect("linked");
    let (status, detail) = api
        .refused("GET", "/agents/rose/files/SOUL.md", Value::Null)
        .await;
    assert_eq!(status, 409);
    assert!(!detail.contains("root:"), "{detail}");
    std::fs::remove_file(&path).expect("there");
    let audit = api.get("/audit?agent=rose&limit=1").await;
    assert_eq!(audit["items"][0]["action"], "agent file");
    assert_eq!(
        audit["items"][0]["by"],
        json!({ "id": "token", "name": "admin" })
    );
    api.site.stop().await;
}

/// S0.22, S0.27: all four take an agent and a visibility; unknown ones are 404 and 400.
#[tokio::test]
async fn memories_are_kept_found_and_forgotten() {
    let api = Api::open().await;
    let kept = api
        .done(
            "POST",
            "/memories",
            json!({ "agent": "rose", "text": "Tea at four", "visibility": "private" }),
        )
        .await;
    api.done(
        "POST",
        "/memories",
        json!({ "text": "The door is blue", "visibility": "global" }),
    )
    .await;
    let mine = api.get("/memories?agent=rose").await;
    assert_eq!(mine["items"].as_array().map(Vec::len), Some(2), "{mine}");
    let global = api.get("/memories").await;
    assert_eq!(
        global["items"].as_array().map(Vec::len),
        Some(1),
        "{global}"
    );
    assert_eq!(
        api.get("/memories/search?agent=rose&q=tea").await["items"][0]["text"],
        "Tea at four"
    );
    assert_eq!(
        api.get("/memories/recall?agent=rose&q=tea").await["found"][0]["id"],
        kept["id"]
    );
    assert_eq!(
        api.get("/memories/search?agent=rose&q=tea&visibility=global")
            .await["items"],
        json!([])
    );
    let first = api.get("/memories?agent=rose&limit=1").await;
    let next = first["next"].as_str().expect("there is more");
    let second = api
        .get(&format!("/memories?agent=rose&limit=1&cursor={next}"))
        .await;
    assert_ne!(first["items"][0]["id"], second["items"][0]["id"]);
    for (method, path) in [
        ("GET", "/memories?agent=nobody"),
        ("GET", "/memories/search?q=x&agent=nobody"),
        ("GET", "/memories/recall?q=x&agent=nobody"),
    ] {
        assert_eq!(
            api.refused(method, path, Value::Null).await.0,
            404,
            "{path}"
        );
    }
    assert_eq!(
        api.refused(
            "POST",
            "/memories",
            json!({ "agent": "nobody", "text": "x" })
        )
        .await
        .0,
        404
    );
    assert_eq!(
        api.refused(
            "POST",
            "/memories",
            json!({ "text": "x", "visibility": "secret" })
        )
        .await
        .0,
        400
    );
    assert_eq!(
        api.refused("GET", "/memories/recall?q=x&visibility=secret", Value::Null)
            .await
            .0,
        400
    );
    let id = kept["id"].clone();
    let gone = api
        .send("DELETE", &format!("/memories/{id}?agent=rose"), Value::Null)
        .await;
    assert_eq!(gone.status, 204);
    assert_eq!(
        api.refused("DELETE", &format!("/memories/{id}?agent=rose"), Value::Null)
            .await
            .0,
        404
    );
    api.site.stop().await;
}

/// S1.6 among others: a place is shown, given to another agent, begun anew, copied.
#[tokio::test]
async fn sessions_are_shown_and_changed() {
    let api = Api::lived_in().await;
    let list = api.get("/sessions?agent=rose").await;
    assert_eq!(
        list["items"][0]["place"],
        json!({ "id": TOPIC, "name": "Garden" })
    );
    let show = api.get(&format!("/sessions/{TOPIC}")).await;
    assert_eq!(
        (&show["agent"]["id"], &show["messages"]),
        (&json!("rose"), &json!(2))
    );
    let said = api.get(&format!("/sessions/{TOPIC}/messages")).await;
    let words: Vec<&Value> = said["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| &line["text"])
        .collect();
    assert_eq!(words, ["hello", "re: [Alice] hello"]);
    assert_eq!(
        api.get("/sessions/search?q=hello&agent=rose").await["items"][0]["place"]["id"],
        TOPIC
    );
    let identity = api.get(&format!("/sessions/{TOPIC}/identity")).await;
    assert_eq!(identity["name"], "Rose");
    let renamed = api
        .done(
            "PUT",
            &format!("/sessions/{TOPIC}/identity"),
            json!({ "name": "Lily" }),
        )
        .await;
    assert_eq!(renamed["name"], "Lily");
    let switched = api
        .done(
            "PUT",
            &format!("/sessions/{TOPIC}/agent"),
            json!({ "agent": "main" }),
        )
        .await;
    assert_eq!(
        (&switched["before"], &switched["agent"]),
        (&json!("rose"), &json!("main"))
    );
    let topic = api.site.house.telegram.forum(-1001).topic(101, "Garden");
    topic.says(BOB, "who is there").await;
    topic.wait_for_sent(2).await;
    api.sent().await;
    let turns = api.site.house.ask(
        "SELECT slug FROM turns JOIN agents ON uid = agent_uid ORDER BY turns.id DESC LIMIT 1",
    );
    assert_eq!(turns, "main");
    api.done("DELETE", &format!("/sessions/{TOPIC}/agent"), Value::Null)
        .await;
    let forked = api
        .done(
            "POST",
            &format!("/sessions/{TOPIC}/fork"),
            json!({ "to": "local:home:draft" }),
        )
        .await;
    assert_eq!(forked["to"]["id"], "local:home:draft");
    let renewed = api
        .done("POST", &format!("/sessions/{TOPIC}/new"), Value::Null)
        .await;
    assert_eq!(renewed["conversation"], 2);
    assert_eq!(
        api.done("POST", &format!("/sessions/{TOPIC}/stop"), Value::Null)
            .await["count"],
        0
    );
    assert_eq!(api.get("/queue").await["items"], json!([]));
    assert_eq!(
        api.refused("GET", "/sessions/telegram:topic:-1:1", Value::Null)
            .await
            .0,
        404
    );
    assert_eq!(
        api.refused("GET", "/sessions/nowhere", Value::Null).await.0,
        400
    );
    api.site.stop().await;
}

#[tokio::test]
async fn routes_are_explained_tried_and_bound() {
    let api = Api::lived_in().await;
    let tree = api.get("/routes/tree").await;
    let group = &tree["items"][0]["places"][0];
    assert_eq!(
        (&group["place"]["id"], &group["kind"], &group["by"]),
        (
            &json!("telegram:group:-1001"),
            &json!("group"),
            &json!("default")
        )
    );
    let leaf = &group["children"][0];
    assert_eq!(
        (&leaf["place"]["name"], &leaf["agent"]["id"], &leaf["by"]),
        (&json!("Garden"), &json!("rose"), &json!("own"))
    );
    assert!(leaf["last_active_at"].is_string(), "{leaf}");
    let explained = api
        .get(&format!("/routes/explain?place={TOPIC}&role=member"))
        .await;
    assert_eq!(
        (&explained["agent"]["id"], &explained["answers"]),
        (&json!("rose"), &json!(true))
    );
    assert!(
        explained["explanation"]["steps"]
            .as_array()
            .is_some_and(|steps| steps.len() > 3)
    );
    let guest = api
        .get("/routes/explain?place=telegram:dm:999&role=guest")
        .await;
    assert_eq!(
        (&guest["answers"], &guest["silence"]),
        (&json!(false), &json!("not_let_in"))
    );
    let text = api.get("/config").await["text"]
        .as_str()
        .expect("a text")
        .to_owned();
    let edited = text.replace("agent = \"rose\"", "agent = \"main\"");
    let tried = api
        .done("POST", "/routes/what-if", json!({ "text": edited }))
        .await;
    let changed = &tried["replay"]["changed"];
    assert_eq!(changed[0]["place"]["id"], TOPIC, "{tried}");
    assert_eq!(
        (
            &changed[0]["now"]["agent"]["id"],
            &changed[0]["after"]["agent"]["id"]
        ),
        (&json!("rose"), &json!("main"))
    );
    let broken = api
        .done(
            "POST",
            "/routes/what-if",
            json!({ "text": "default_agent = 1" }),
        )
        .await;
    assert_eq!(broken["ok"], false);
    let bound = api
        .done(
            "PUT",
            "/routes/bindings",
            json!({ "place": TOPIC, "agent": "main" }),
        )
        .await;
    assert_eq!(
        (&bound["before"], &bound["agent"], &bound["changed"]),
        (&json!("rose"), &json!("main"), &json!(true))
    );
    assert_eq!(
        api.get(&format!("/sessions/{TOPIC}")).await["agent"]["id"],
        "main",
        "as was told before"
    );
    api.done(
        "DELETE",
        &format!("/routes/bindings?place={TOPIC}"),
        Value::Null,
    )
    .await;
    assert_eq!(
        api.refused(
            "DELETE",
            &format!("/routes/bindings?place={TOPIC}"),
            Value::Null
        )
        .await
        .0,
        404
    );
    api.site.stop().await;
}

#[tokio::test]
async fn the_config_is_checked_replaced_and_put_back() {
    let api = Api::open().await;
    let read = api.call("GET", "/config").await;
    let (tag, text) = (
        read.header("etag").expect("a tag").to_owned(),
        read.json()["text"].as_str().expect("a text").to_owned(),
    );
    let edited = format!("switch = \"separate\"\n{text}");
    let put = |tag: Option<&str>, text: &str| {
        let call = Call::new("PUT", "/api/v1/config")
            .token(&api.token)
            .json(&json!({ "text": text }));
        match tag {
            Some(tag) => call.header("If-Match", tag),
            None => call,
        }
    };
    assert_eq!(api.site.send(put(None, &edited)).await.status, 428);
    let broken = api
        .site
        .send(put(Some(&tag), "default_agent = \"nobody\""))
        .await;
    assert_eq!(broken.status, 409);
    assert_eq!(broken.json()["facts"]["problems"][0]["line"], 1);
    assert_eq!(api.site.house.config(), text);
    let diff = api
        .done("POST", "/config/diff", json!({ "text": edited }))
        .await;
    assert_eq!(diff["lines"][0], "+switch = \"separate\"");
    assert_eq!(
        api.done("POST", "/config/check", json!({ "text": edited }))
            .await["ok"],
        true
    );
    let applied = api.site.send(put(Some(&tag), &edited)).await;
    assert_eq!(applied.status, 200, "{applied:?}");
    let now = applied.header("etag").expect("a tag").to_owned();
    assert_eq!(
        api.site.send(put(Some(&tag), &edited)).await.status,
        412,
        "made from the text before"
    );
    let history = api.get("/config/history").await;
    let id = history["items"][0]["id"].clone();
    let back = Call::new("POST", &format!("/api/v1/config/history/{id}/restore"))
        .token(&api.token)
        .header("If-Match", &now);
    assert_eq!(api.site.send(back).await.status, 200);
    assert_eq!(api.site.house.config(), text);
    api.site.stop().await;
}

/// A house may have thousands of people.
#[tokio::test]
async fn people_come_in_parts_and_are_searched() {
    let api = Api::open().await;
    api.site.house.tell(
        "INSERT INTO people (id, name, paired_at, created_at)
         WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 130)
         SELECT 'telegram:' || (9000 + n), 'Guest ' || n, n, n FROM up",
    );
    let (mut ids, mut path) = (Vec::new(), "/people".to_owned());
    loop {
        let part = api.get(&path).await;
        let items = part["items"].as_array().expect("a list");
        ids.extend(items.iter().map(|item| item["id"].to_string()));
        let Some(next) = part["next"].as_str() else {
            break;
        };
        assert_eq!(items.len(), 50);
        path = format!("/people?cursor={next}");
    }
    assert_eq!(
        ids.iter()
            .filter(|id| id.contains(":90") || id.contains(":91"))
            .count(),
        130
    );
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all);
    let found = api.get("/people?q=guest%20130").await;
    assert_eq!(found["items"][0]["called"], "Guest 130");
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));

    let page = |path: &str| api.site.send(Call::get(path).token(&api.token));
    let first = page("/people").await.body;
    assert!(first.contains("More people") && !first.contains("Guest 130"));
    let second = page("/people?behind=telegram:9090").await.body;
    assert!(!second.contains("More people") && second.contains("Guest 130"));
    let found = page("/people?q=Guest+130").await.body;
    assert!(found.contains("Guest 130") && !found.contains("Guest 13 "));
    api.site.stop().await;
}

#[tokio::test]
async fn people_are_listed_let_in_and_given_roles() {
    let api = Api::open().await;
    let dave = api.site.house.telegram.dm(BOB);
    dave.says("let me in").await;
    dave.wait_for_sent(1).await;
    api.sent().await;
    let guests = api.get("/pairing").await;
    let code = guests["waiting"][0]["code"]
        .as_str()
        .expect("a code")
        .to_owned();
    let person = guests["waiting"][0]["person"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(
        api.done(
            "POST",
            &format!("/pairing/{code}"),
            json!({ "let_in": true })
        )
        .await["id"],
        person
    );
    assert_eq!(
        api.refused("POST", "/pairing/ABCD2345", json!({ "let_in": true }))
            .await
            .0,
        404
    );
    dave.wait_for_sent(2).await;
    let role = api
        .done(
            "PUT",
            &format!("/people/{person}/role"),
            json!({ "role": "admin" }),
        )
        .await;
    assert_eq!(role["role"], "admin");
    assert_eq!(
        api.get(&format!("/people/{person}")).await["role_from"],
        "granted"
    );
    assert_eq!(
        api.refused(
            "PUT",
            &format!("/people/{person}/role"),
            json!({ "role": "king" })
        )
        .await
        .0,
        400
    );
    assert_eq!(
        api.refused("GET", "/people/Nobody", Value::Null).await.0,
        404
    );
    api.site
        .house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "0")
        .await;
    api.sent().await;
    api.site.stop().await;
}

#[tokio::test]
async fn the_house_as_a_whole_is_told() {
    let api = Api::lived_in().await;
    assert_eq!(api.get("/status").await["agents"][0]["id"], "main");
    assert!(api.get("/doctor").await["findings"].is_array());
    assert_eq!(api.get("/usage?by=agent").await["items"][0]["id"], "rose");
    assert_eq!(api.get("/undelivered").await["items"], json!([]));
    assert_eq!(
        api.refused("POST", "/undelivered/retry", json!({ "all": true }))
            .await
            .0,
        409
    );
    assert_eq!(
        api.refused("POST", "/undelivered/retry", json!({})).await.0,
        400
    );
    assert_eq!(
        api.refused("GET", "/logs", Value::Null).await.0,
        409,
        "no log file"
    );
    let backup = api.send("POST", "/backup", json!({})).await;
    assert_eq!(backup.status, 201, "{backup:?}");
    let made = api
        .done(
            "POST",
            "/tokens",
            json!({ "name": "other", "scope": "read" }),
        )
        .await;
    assert!(
        made["token"]
            .as_str()
            .is_some_and(|token| token.starts_with("parlor_"))
    );
    assert!(api.get("/tokens").await["items"][0].get("token").is_none());
    assert_eq!(
        api.send("DELETE", "/tokens/other", Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(
        api.refused("DELETE", "/tokens/other", Value::Null).await.0,
        404
    );
    assert_eq!(api.get("/whoami").await["scope"], "admin");
    let paused = api.done("POST", "/agents/rose/pause", Value::Null).await;
    assert!(paused["result"]["paused"].is_object(), "{paused}");
    assert_eq!(
        api.done("POST", "/agents/rose/resume", Value::Null).await["result"],
        "resumed"
    );
    api.site.stop().await;
}

/// Refusals of the framework itself are problem details too.
#[tokio::test]
async fn every_error_is_a_problem() {
    let api = Api::open().await;
    let odd = [
        (Call::get("/api/v1/nothing"), 404),
        (Call::new("POST", "/api/v1/status"), 405),
        (Call::get("/api/v1/sessions?limit=x"), 400),
        (Call::get("/api/v1/sessions?limit=0"), 400),
        (Call::get("/api/v1/sessions?limit=201"), 400),
        (Call::get("/api/v1/sessions?colour=red"), 400),
        (Call::get("/api/v1/audit?cursor=-1"), 400),
        (Call::get("/api/v1/agents/%ff"), 400),
        (Call::new("POST", "/api/v1/agents"), 415),
        (
            Call::new("POST", "/api/v1/agents").header("Content-Type", "application/json"),
            400,
        ),
        (Call::new("POST", "/api/v1/agents").json(&json!([])), 400),
    ];
    for (call, status) in odd {
        let answer = api.site.send(call.clone().token(&api.token)).await;
        assert_eq!(answer.status, status, "{call:?}: {answer:?}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{call:?}"
        );
        let problem = answer.json();
        assert!(
            problem["type"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("urn:parlor:")),
            "{problem}"
        );
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|detail| !detail.is_empty()),
            "{problem}"
        );
    }
    let wrong = api
        .site
        .send(Call::new("POST", "/api/v1/status").token(&api.token))
        .await;
    assert!(
        wrong
            .header("allow")
            .is_some_and(|allow| allow.contains("GET")),
        "{wrong:?}"
    );
    api.site.stop().await;
}

/// A copy has the same settings and no memory; another id keeps everything.
#[tokio::test]
async fn an_agent_is_cloned_and_renamed() {
    let api = Api::open().await;
    let copy = api
        .done("POST", "/agents/rose/clone", json!({ "to": "lily" }))
        .await;
    assert_eq!(
        (&copy["id"], &copy["emoji"]),
        (&json!("lily"), &json!("🌹"))
    );
    assert_eq!(copy["memory"]["private"], 0);
    let taken = api
        .refused("POST", "/agents/rose/clone", json!({ "to": "lily" }))
        .await;
    assert_eq!(taken.0, 409, "{taken:?}");
    let renamed = api
        .done("POST", "/agents/rose/rename", json!({ "to": "rosa" }))
        .await;
    assert_eq!(
        (&renamed["id"], &renamed["bound"][0]["id"]),
        (&json!("rosa"), &json!(TOPIC))
    );
    assert!(api.site.house.config().contains("agent = \"rosa\""));
    for verb in ["clone", "rename"] {
        let path = format!("/agents/nobody/{verb}");
        let unknown = api.refused("POST", &path, json!({ "to": "x" })).await;
        assert_eq!(unknown.0, 404, "{unknown:?}");
    }
    api.site.stop().await;
}

/// The parts of the tree, put together, are the tree.
#[tokio::test]
async fn the_tree_of_places_comes_in_parts() {
    let api = Api::lived_in().await;
    for key in ["telegram:dm:5001", "discord:dm:7", "local:desk"] {
        let body = json!({ "agent": "main", "way": "pin" });
        api.done("PUT", &format!("/house/places/{key}"), body).await;
    }
    let outer = |page: &Value| -> Vec<String> {
        let branches = page["items"].as_array().expect("branches").iter();
        let places = branches.flat_map(|branch| branch["places"].as_array().expect("places"));
        places
            .map(|place| place["place"]["id"].as_str().expect("a key").to_owned())
            .collect()
    };
    let whole = api.get("/routes/tree").await;
    assert_eq!(whole["next"], Value::Null);
    let (mut keys, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("/routes/tree?limit=1{cursor}")).await;
        assert_eq!(outer(&page).len(), 1, "{page}");
        keys.extend(outer(&page));
        let Some(next) = page["next"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(keys, outer(&whole));
    assert!(keys.len() >= 4, "{keys:?}");
    let found = api.get("/routes/tree?q=garden").await;
    assert_eq!(outer(&found), ["telegram:group:-1001"]);
    let found = api.get("/routes/tree?platform=discord").await;
    assert_eq!(outer(&found), ["discord:dm:7"]);
    for wrong in [
        "platform=irc",
        "limit=0",
        "cursor=7",
        "cursor=x.telegram:dm:1",
    ] {
        let path = format!("/routes/tree?{wrong}");
        assert_eq!(
            api.refused("GET", &path, Value::Null).await.0,
            400,
            "{wrong}"
        );
    }
    api.site.stop().await;
}

/// A place is given away in both ways, and each answer says how to undo it.
#[tokio::test]
async fn a_given_place_can_be_given_back() {
    let api = Api::lived_in().await;
    let path = format!("/house/places/{TOPIC}");
    let config = api.site.house.config();
    let agent = async || {
        let tree = api.get("/routes/tree").await;
        let leaf = tree["items"][0]["places"][0]["children"][0].clone();
        (leaf["agent"]["id"].clone(), leaf["by"].clone())
    };
    for (way, by) in [("pin", "pin"), ("binding", "own")] {
        let given = api
            .done("PUT", &path, json!({ "agent": "main", "way": way }))
            .await;
        assert_eq!(agent().await, (json!("main"), json!(by)));
        api.done("PUT", &path, given["undo"].clone()).await;
        assert_eq!(agent().await, (json!("rose"), json!("own")), "{way}");
        assert_eq!(api.site.house.config(), config, "{way}");
    }
    // What was so before is so after an undo.
    let again = api
        .done("PUT", &path, json!({ "agent": "rose", "way": "binding" }))
        .await;
    assert_eq!(again["undo"]["agent"], "rose");
    let unknown = api
        .refused("PUT", &path, json!({ "agent": "nobody", "way": "pin" }))
        .await;
    assert_eq!(unknown.0, 404, "{unknown:?}");
    api.site.stop().await;
}

#[tokio::test]
async fn an_earlier_memory_file_is_read() {
    let api = Api::open().await;
    for text in ["one", "two"] {
        let now = api.get("/agents/rose/files/MEMORY.md").await;
        let body = json!({ "text": text, "base": now["hash"] });
        api.done("PUT", "/agents/rose/files/MEMORY.md", body).await;
    }
    let versions = api.get("/agents/rose/memory/versions").await;
    let name = versions["items"][0]["version"].as_str().expect("a name");
    let version = api
        .get(&format!("/agents/rose/memory/versions/{name}"))
        .await;
    assert_eq!(version["text"], "one");
    let path = "/agents/rose/memory/versions/..%2F..%2FSOUL";
    assert_eq!(api.refused("GET", path, Value::Null).await.0, 404);
    api.site.stop().await;
}

#[tokio::test]
async fn a_setting_is_changed_in_a_text_that_is_not_saved() {
    let api = Api::open().await;
    let config = api.site.house.config();
    let body = json!({ "text": config, "key": "agents.rose.name", "value": "Rosa" });
    let edited = api.done("POST", "/config/edit", body).await;
    let text = edited["text"].as_str().expect("a text");
    assert!(text.contains("name = \"Rosa\""), "{text}");
    assert_eq!(api.site.house.config(), config);
    let wrong = json!({ "text": config, "key": "a b", "value": 1 });
    assert_eq!(api.refused("POST", "/config/edit", wrong).await.0, 400);
    let broken = json!({ "text": "[", "key": "switch", "value": "separate" });
    assert_eq!(api.refused("POST", "/config/edit", broken).await.0, 409);
    api.site.stop().await;
}

/// Tools, limits, model and risk are written beside the agent's other tables, shown before, and taken
/// back through the history of the file.
#[tokio::test]
async fn tools_and_limits_of_an_agent_are_changed_in_the_file() {
    let api = Api::open().await;
    let before = api.site.house.config();
    let edit = json!({
        "tools": { "deny": ["web_fetch"] },
        "limits": { "max_steps": 7, "cost_per_day": 0.0 },
        "max_risk": "change",
        "fallback": [],
    });
    let shown = api.done("POST", "/agents/rose/preview", edit.clone()).await;
    assert_eq!(
        (&shown["ok"], &shown["changes"]),
        (&json!(true), &json!(true))
    );
    let lines: Vec<&str> = shown["lines"]
        .as_array()
        .expect("lines")
        .iter()
        .filter_map(Value::as_str)
        .filter(|line| !line.starts_with(' '))
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    +fallback = []
    +max_risk = "change"
    +
    +[agents.rose.tools]
    +deny = ["web_fetch"]
    +
    +[agents.rose.limits]
    +cost_per_day = 0.0
    +max_steps = 7
    +
    "#);
    assert_eq!(api.site.house.config(), before, "nothing is written yet");

    let changed = api.done("PATCH", "/agents/rose", edit).await;
    assert_eq!(
        changed["listed_tools"],
        json!({ "allow": null, "deny": ["web_fetch"] })
    );
    assert_eq!(changed["max_risk"], "change");
    let limit = |agent: &Value, name: &str| {
        let mut limits = agent["limits"].as_array().expect("limits").iter();
        let found = limits.find(|limit| limit["limit"] == name);
        found.expect("the limit")["most"].clone()
    };
    assert_eq!(limit(&changed, "max_steps"), "7");
    let mut tools = changed["tools"].as_array().expect("tools").iter();
    let fetch = tools.find(|tool| tool["tool"] == "web_fetch");
    let fetch = fetch.expect("the tool");
    assert_eq!(fetch["asked_by"], json!([]));
    assert!(
        fetch["refused"]
            .as_str()
            .is_some_and(|rule| rule.contains("deny")),
        "{fetch}"
    );
    assert_eq!(
        api.site.house.ask(
            "SELECT action || ' ' || agent || ' ' || subject FROM audit ORDER BY id DESC LIMIT 1"
        ),
        "agent edit rose max_risk fallback tools.deny limits.max_steps limits.cost_per_day"
    );

    // Wrong values are refused with the line, and change nothing.
    let wrong = json!({ "tools": { "deny": ["web_fecth"] }, "limits": { "max_steps": 0 } });
    let problems = api
        .done("POST", "/agents/rose/preview", wrong.clone())
        .await;
    assert_eq!(problems["ok"], false);
    assert_eq!(
        problems["problems"].as_array().map(Vec::len),
        Some(2),
        "{problems}"
    );
    let (status, detail) = api.refused("PATCH", "/agents/rose", wrong).await;
    assert_eq!(status, 409);
    assert!(
        detail.contains("web_fecth") && detail.contains("Nothing was changed"),
        "{detail}"
    );
    for body in [
        json!({ "limits": { "max_stepz": 1 } }),
        json!({ "limits": { "max_steps": "many" } }),
    ] {
        assert_eq!(api.refused("PATCH", "/agents/rose", body).await.0, 400);
    }
    assert_eq!(
        api.refused("POST", "/agents/nobody/preview", json!({}))
            .await
            .0,
        404
    );

    // Back through the history.
    let now = api.call("GET", "/config").await;
    let tag = now.header("etag").expect("a tag").to_owned();
    let id = api.get("/config/history").await["items"][0]["id"].clone();
    let back = Call::new("POST", &format!("/api/v1/config/history/{id}/restore"))
        .token(&api.token)
        .header("If-Match", &tag);
    assert_eq!(api.site.send(back).await.status, 200);
    assert_eq!(api.site.house.config(), before);
    let restored = api.get("/agents/rose").await;
    assert_eq!(limit(&restored, "max_steps"), "40");
    api.site.stop().await;
}

/// A 429 is told with the rest of its wait and the messages behind it, and is over when it is over.
#[tokio::test]
async fn send_budgets_are_told_with_their_use() {
    let api = Api::open().await;
    let house = &api.site.house;
    let limited = house
        .config()
        .replace("group_per_minute = 0", "group_per_minute = 20");
    house.write("config.toml", &limited);
    api.done("POST", "/reload", json!({})).await;
    house
        .telegram
        .fail("sendMessage", Fault::RetryAfter(4))
        .only_in(-1001)
        .once();
    let topic = house.telegram.forum(-1001).topic(101, "Garden");
    topic.says(ALICE, "hello").await;
    house.telegram.wait_for_calls("sendMessage", 1).await;
    house
        .wait_until_stored("SELECT count(*) FROM chat_waits", "1")
        .await;
    let budgets = api.get("/delivery/budgets").await;
    let telegram = &budgets["items"][0];
    assert_eq!(telegram["platform"], "telegram");
    assert_eq!(telegram["group_per_minute"], 20);
    assert_eq!(telegram["per_second"], Value::Null, "no limit");
    assert_eq!(telegram["waiting"], 1, "{telegram}");
    let chat = &telegram["chats"][0];
    assert_eq!(chat["place"]["id"], "telegram:group:-1001", "{chat}");
    let left = chat["asked_to_wait_ms"].as_u64().expect("a wait");
    assert!((1..=4000).contains(&left), "{left}");
    assert_eq!(
        (&chat["waiting"], &chat["used_in_minute"]),
        (&json!(1), &json!(1))
    );
    assert!(chat["waiting_since"].is_string());
    topic.wait_for_sent(1).await;
    api.sent().await;
    let budgets = api.get("/delivery/budgets").await;
    let chat = &budgets["items"][0]["chats"][0];
    assert_eq!(
        (&chat["waiting"], &chat["asked_to_wait_ms"]),
        (&json!(0), &Value::Null),
        "{chat}"
    );
    api.site.stop().await;
}

/// S1.22: a fork to the web chat is the same agent's, with the words on the screen.
#[tokio::test]
async fn a_conversation_is_forked_to_the_web_chat() {
    let site = Site::open("[web]").await;
    let token = site.token("admin").await;
    let api = Api { site, token };
    let topic = api.site.house.telegram.forum(-1001).topic(101, "Garden");
    topic.says(ALICE, "hello").await;
    topic.wait_for_sent(1).await;
    api.sent().await;
    let fork = format!("/sessions/{TOPIC}/fork");
    let forked = api.done("POST", &fork, json!({ "on": "web" })).await;
    let place = "web:home:fork-rose";
    assert_eq!(forked["to"]["id"], place);
    assert_eq!(forked["agent"]["id"], "rose");
    assert_eq!(forked["link"], format!("/chat?place={place}"));
    let screen = api.get(&format!("/chat/messages?place={place}")).await;
    let said: Vec<String> = screen["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|line| format!("{} {} {}", line["from"], line["agent"], line["text"]))
        .collect();
    assert_eq!(
        said,
        [
            "\"person\" null \"hello\"",
            "\"agent\" \"rose\" \"re: [Alice] hello\"",
            "\"gateway\" null \"a copy of the conversation in telegram:topic:-1001:101 up to here\""
        ]
    );
    let places = api.get("/chat/places").await;
    let mut here = places["places"].as_array().expect("places").iter();
    let here = here.find(|known| known["key"] == place);
    assert_eq!(here.expect("the topic")["agent"], "rose");
    // The agent goes on with what was said.
    let line = json!({ "place": place, "id": "one", "text": "and now?" });
    api.done("POST", "/chat/messages", line).await;
    api.sent().await;
    let next =
        "SELECT count(*) FROM turns WHERE agent_uid = (SELECT uid FROM agents WHERE slug = 'rose')";
    api.site.house.wait_until_stored(next, "2").await;
    api.sent().await;
    assert!(api.site.house.model.last_request().has("hello"));
    let named = api
        .done("POST", &fork, json!({ "to": "web:home:draft" }))
        .await;
    assert_eq!(named["to"]["id"], "web:home:draft");
    let (status, detail) = api
        .refused("POST", &fork, json!({ "to": "web:home:draft" }))
        .await;
    assert_eq!(status, 409);
    assert!(detail.contains("in use already"), "{detail}");
    assert_eq!(
        api.site.house.ask(
            "SELECT group_concat(action || ' ' || after, ', ') FROM audit WHERE action = 'fork'"
        ),
        format!("fork {place}, fork web:home:draft")
    );
    api.site.stop().await;
}

#[tokio::test]
async fn a_fork_to_a_web_chat_that_is_off_says_so() {
    let api = Api::lived_in().await;
    let fork = format!("/sessions/{TOPIC}/fork");
    let (status, detail) = api.refused("POST", &fork, json!({ "on": "web" })).await;
    assert_eq!(status, 409);
    assert!(detail.contains("add [web] to config.toml"), "{detail}");
    api.site.stop().await;
}

/// Platform, server, category, channel or forum, thread or person.
#[tokio::test]
async fn places_of_discord_stand_below_server_and_category() {
    let address = free_address();
    let config = format!(
        "[access]\nowners = [\"discord:111\"]\nrequire_mention = false\n[admin]\nlisten = \"{address}\"\n\
         [agents.main]\n[agents.rose]\n[[bindings]]\nmatch = \"discord:guild:8001\"\nagent = \"rose\"\n"
    );
    let (house, _discord, guild) = House::with_garden("", &config).await;
    let lab = guild.category(8200, "Lab");
    let news = guild.text_channel(8202, "news").below(&lab);
    let forum = guild.forum(8300, "questions", &[]);
    let process = house.spawn().await;
    house
        .wait_until_stored("SELECT count(*) FROM discord_channels", "3")
        .await;
    news.says(discord::ALICE, "hello").await;
    news.wait_for_sent(1).await;
    let post = forum.posts(discord::ALICE, "It broke", &[], "help").await;
    post.wait_for_sent(1).await;
    let open = "SELECT count(*) FROM outbox WHERE state <> 'sent'";
    house.wait_until_stored(open, "0").await;
    let token = crate::admin_door::fine(
        house.home.path(),
        &["token", "create", "look", "--scope", "read"],
    )
    .await;
    let tree = Call::get("/api/v1/routes/tree").token(&token);
    let tree = tree.send(&address).await.json();
    let mut branches = tree["items"].as_array().expect("branches").iter();
    let discord = branches.find(|branch| branch["platform"] == "discord");
    let mut lines: Vec<String> = Vec::new();
    for place in discord.expect("a branch")["places"]
        .as_array()
        .expect("places")
    {
        let levels: Vec<&str> = place["within"]
            .as_array()
            .expect("levels")
            .iter()
            .filter_map(|level| level["name"].as_str())
            .collect();
        let kind = place["kind"].as_str().expect("a kind");
        let inside = place["children"].as_array().expect("children");
        let inside: Vec<&str> = inside
            .iter()
            .filter_map(|child| child["kind"].as_str())
            .collect();
        lines.push(format!(
            "{} > {kind} {} > {}",
            levels.join(" > "),
            place["place"]["id"].as_str().expect("a key"),
            inside.join(", ")
        ));
    }
    lines.sort();
    assert_snapshot!(lines.join("\n"), @r"
    Garden > Lab > channel discord:channel:8202 > person
    Garden > forum discord:channel:8300 > thread
    ");
    assert_eq!(process.stop().await, 0);
}
