//! What if: a message walked through the rules, real messages replayed under edited rules, and route
//! tests. What is told has to be what happens.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::admin_door::Site;
use crate::cli::{fresh_home, run};
use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Place, User};
use crate::support::house::Process;
use crate::support::http::{Answer, Call};
use crate::webhook::free_address;

/// Two topics, a group around them, a topic for releases; another group that nothing opens.
pub(crate) const FORUM: &str = r#"
[access]
owners = ["telegram:111"]
[agents.main]
[agents.rose]
name = "Rose"
[agents.ada]
name = "Ada"
[agents.staff]
who = "owner"
# the garden
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1001:102"
agent = "ada"
[[bindings]]
match = "telegram:group:-1001"
agent = "main"
require_mention = false
"#;

/// A running gateway with a forum.
pub(crate) struct Forum {
    pub(crate) house: House,
    pub(crate) address: String,
    process: Process,
    token: String,
}

impl Forum {
    pub(crate) async fn open() -> Self {
        let address = free_address();
        let house = House::new(&format!("{FORUM}[admin]\nlisten = \"{address}\"\n")).await;
        let process = house.spawn().await;
        process.wait_for_log("the admin listener is on").await;
        let token = run(
            house.home.path(),
            &["token", "create", "t", "--scope", "admin"],
        )
        .await;
        Forum {
            house,
            address,
            process,
            token: token.stdout.trim_end().to_owned(),
        }
    }

    pub(crate) async fn stop(self) {
        assert_eq!(self.process.stop().await, 0);
    }

    async fn call(&self, call: Call) -> Answer {
        call.token(&self.token).send(&self.address).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.call(Call::get(&format!("/api/v1{path}"))).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        let call = Call::new("POST", &format!("/api/v1{path}"));
        self.call(call.json(&body)).await
    }

    async fn what_if(&self, body: Value) -> Value {
        let answer = self.post("/routes/what-if", body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Every place with somebody who writes there, with or without a mention.
    pub(crate) fn voices(&self) -> Vec<Voice> {
        let telegram = &self.house.telegram;
        let (forum, closed) = (telegram.forum(-1001), telegram.forum(-1002));
        let voice = |name, place, user, text| Voice {
            name,
            place,
            user,
            text,
        };
        vec![
            voice(
                "garden",
                forum.topic(101, "Garden"),
                BOB,
                "@parlor_bot roses",
            ),
            voice(
                "garden, unasked",
                forum.topic(101, "Garden"),
                CAROL,
                "lovely weather",
            ),
            voice("code", forum.topic(102, "Code"), ALICE, "@parlor_bot a bug"),
            voice("release", forum.topic(103, "release 7"), BOB, "is it out"),
            voice(
                "elsewhere",
                closed.topic(5, "Quiet"),
                BOB,
                "@parlor_bot hello",
            ),
            voice(
                "elsewhere, unasked",
                closed.topic(5, "Quiet"),
                CAROL,
                "psst",
            ),
        ]
    }

    /// Everybody writes once; who answered whom.
    pub(crate) async fn all_write(&self) -> BTreeMap<&'static str, String> {
        let mut answered = BTreeMap::new();
        for voice in self.voices() {
            let before = self.house.ask("SELECT coalesce(max(id), 0) FROM inbox");
            voice.place.says(voice.user, voice.text).await;
            let closed =
                format!("SELECT count(*) FROM inbox WHERE id > {before} AND state <> 'waiting'");
            self.house.wait_until_stored(&closed, "1").await;
            let by = format!(
                "SELECT coalesce((SELECT slug FROM turns JOIN agents ON uid = agent_uid WHERE inbox_id > {before}), 'nobody')"
            );
            answered.insert(voice.name, self.house.ask(&by));
        }
        answered
    }
}

/// Somebody who writes somewhere.
pub(crate) struct Voice {
    pub(crate) name: &'static str,
    place: Place,
    user: User,
    text: &'static str,
}

/// The agent before and after, by the name of the voice. The last voices are the newest messages.
pub(crate) fn moves(
    changed: &[Value],
    newest: i64,
    voices: &[Voice],
) -> BTreeMap<&'static str, (String, String)> {
    let agent = |outcome: &Value| {
        outcome["agent"]["id"]
            .as_str()
            .unwrap_or("nobody")
            .to_owned()
    };
    let first = newest - i64::try_from(voices.len()).expect("few") + 1;
    let named = changed.iter().filter_map(|change| {
        let at = usize::try_from(change["id"].as_i64()? - first).ok()?;
        let voice = voices.get(at)?;
        Some((voice.name, (agent(&change["now"]), agent(&change["after"]))))
    });
    named.collect()
}

/// The edits that are tried: a description, and the text that replaces another.
const EDITS: [(&str, &[(&str, &str)]); 5] = [
    ("nothing but a comment", &[("# the garden", "# my garden")]),
    (
        "the garden goes to Ada",
        &[("101\"\nagent = \"rose\"", "101\"\nagent = \"ada\"")],
    ),
    (
        "the group closes, another opens",
        &[("telegram:group:-1001", "telegram:group:-1002")],
    ),
    (
        "a rule about names, for owners' agent",
        &[(
            "# the garden",
            "[[bindings]]\nmatch = \"telegram:topic:-1001:*\"\nname = \"release *\"\nagent = \"staff\"\n",
        )],
    ),
    (
        "a mention is needed, and every group is open",
        &[
            ("require_mention = false", "require_mention = true"),
            ("[access]\n", "[access]\ngroups = \"open\"\n"),
        ],
    ),
];

/// Replayed under unchanged rules, nothing changes; under edited ones, what is listed is what
/// happens when everybody writes once more after the rules were saved.
#[tokio::test]
async fn what_is_listed_is_what_happens() {
    let forum = Forum::open().await;
    let original = forum.house.config();
    let mut before = forum.all_write().await;
    for (about, replaced) in EDITS {
        let text = replaced.iter().fold(original.clone(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replace(old, new)
        });
        let tried = forum.what_if(json!({ "text": text })).await;
        assert_eq!(tried["ok"], true, "{about}: {tried}");
        let newest: i64 = forum
            .house
            .ask("SELECT max(id) FROM inbox")
            .parse()
            .expect("a number");
        let changed = tried["replay"]["changed"]
            .as_array()
            .expect("a list")
            .clone();
        let listed = moves(&changed, newest, &forum.voices());
        // Saved as by hand, and taken in.
        std::fs::write(forum.house.home.path().join("config.toml"), &text).expect("writes");
        assert_eq!(
            run(forum.house.home.path(), &["reload"]).await.code,
            0,
            "{about}"
        );
        let after = forum.all_write().await;
        let happened: BTreeMap<&str, (String, String)> = after
            .iter()
            .filter(|(name, agent)| before[*name] != **agent)
            .map(|(name, agent)| (*name, (before[name].clone(), agent.clone())))
            .collect();
        assert_eq!(listed, happened, "{about}: {tried}");
        assert_eq!(happened.is_empty(), about.starts_with("nothing"), "{about}");
        before = after;
        // The next edit begins from the text that counts now.
        std::fs::write(forum.house.home.path().join("config.toml"), &original).expect("writes");
        assert_eq!(run(forum.house.home.path(), &["reload"]).await.code, 0);
        before = match replaced.is_empty() {
            true => before,
            false => forum.all_write().await,
        };
    }
    forum.stop().await;
}

/// The row of a closed message has neither words nor names.
#[tokio::test]
async fn no_words_are_kept_for_it() {
    let forum = Forum::open().await;
    forum.all_write().await;
    forum
        .house
        .telegram
        .forum(-1001)
        .topic(101, "Garden")
        .says(ALICE, "/whoami")
        .await;
    forum
        .house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "0")
        .await;
    let kept = forum
        .house
        .ask("SELECT payload FROM inbox ORDER BY id LIMIT 1");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    assert_eq!(kept["addressed"], "by_mention");
    assert_eq!(
        kept["origin"],
        json!({ "key": "telegram:topic:-1001:101", "person": "telegram:222" })
    );
    for word in [
        "roses", "weather", "Garden", "Quiet", "psst", "whoami", "Bob",
    ] {
        let found = format!("SELECT count(*) FROM inbox WHERE payload LIKE '%{word}%'");
        assert_eq!(forum.house.ask(&found), "0", "{word}");
    }
    forum.stop().await;
}

/// S2.7, S6.10: a real message and a made-up one are walked through everything that decides.
#[tokio::test]
async fn a_message_is_walked_through_the_rules() {
    let forum = Forum::open().await;
    forum.all_write().await;
    let listed = forum.get("/routes/messages?limit=3").await;
    let lines: Vec<String> = listed["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| {
            let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            format!(
                "{} {} {} {}: {} ({})",
                word(&message["place"]["id"]),
                word(&message["person"]["id"]),
                word(&message["addressed"]),
                word(&message["text"]),
                word(&message["now"]["agent"]["id"]),
                word(&message["now"]["why"]),
            )
        })
        .collect();
    assert_snapshot!(lines.join("\n"), @"
    telegram:topic:-1002:5 telegram:333 not_at_all -: - (no binding or /agent opens this place)
    telegram:topic:-1002:5 telegram:222 by_mention -: - (no binding or /agent opens this place)
    telegram:topic:-1001:103 telegram:222 not_at_all is it out: main (because of config.toml line 28: group telegram:group:-1001)
    ");
    let cursor = listed["next"].as_str().expect("more").to_owned();
    let older = forum
        .get(&format!("/routes/messages?cursor={cursor}"))
        .await;
    assert_eq!(older["items"].as_array().map(Vec::len), Some(3), "{older}");
    assert_eq!(older["next"], Value::Null);

    let first = older["items"][2]["id"].clone();
    let real = forum.what_if(json!({ "message": first })).await;
    assert_eq!(real["replay"], Value::Null, "no rules are tried");
    assert_snapshot!(shown(&real["walk"]), @"
    Rose answers in Garden (telegram:topic:-1001:101) when mentioned or replied to. Line 22 of config.toml gives this topic to Rose.
    passes access: a guest may write in groups; the place decides about the rest [-]
    passes place: a rule about the place opens it [-]
    passes mention: a mention is needed, and the message has one [access.require_mention]
    passes who: rose is open to a guest there [agents.rose.who]
    passes pause: rose is not paused [-]
    passes budget: rose and the person are within their limits [-]
    pin: no_rule
    exact_topic: decides
    member: no_rule
    name_or_tag: no_rule
    every_topic: no_rule
    place: matches
    person: no_rule
    platform: no_rule
    default_agent: no_rule
    model fake/any
    7 left after access.tools.guest
    ");
    let owner =
        json!({ "place": "telegram:topic:-1002:5", "person": "telegram:111", "mention": false });
    let closed = forum.what_if(json!({ "case": owner })).await;
    assert_snapshot!(shown(&closed["walk"]), @r#"
    Nobody answers in Quiet (telegram:topic:-1002:5): no binding or `/agent` opens this topic (groups = "bound"). `parlor pin telegram:topic:-1002:5 main` opens it, and so does `/bind main`, written there by an owner.
    passes access: an owner may write in groups; the place decides about the rest [-]
    stops place: no binding or /agent opens this place [access.groups]
    not_asked mention: a mention is needed, and the message has none [access.require_mention]
    not_asked who: main is open to an owner there [agents.main.who]
    not_asked pause: main is not paused [-]
    not_asked budget: main and the person are within their limits [-]
    pin: no_rule
    exact_topic: no_rule
    member: no_rule
    name_or_tag: no_rule
    every_topic: no_rule
    place: no_rule
    person: no_rule
    platform: no_rule
    default_agent: decides
    model fake/any
    "#);
    let guest = forum
        .what_if(json!({ "case": { "place": "telegram:dm:444" } }))
        .await;
    assert_snapshot!(shown(&guest["walk"]), @"
    Nobody answers telegram:444 in telegram:dm:444: the bot is private, and telegram:444 has not been let in yet. A first message gets a code for `parlor pair CODE`.
    stops access: a guest in a private chat gets a pairing code, not an answer [access.dms]
    not_asked place: a private chat is never closed as a place [-]
    not_asked mention: everything in a private chat is for the bot [-]
    not_asked who: main is open to a guest there [agents.main.who]
    not_asked pause: main is not paused [-]
    not_asked budget: main and the person are within their limits [-]
    pin: no_rule
    place: no_rule
    person: no_rule
    private_chats: no_rule
    platform: no_rule
    default_agent: decides
    model fake/any
    7 left after access.tools.guest
    ");
    let command =
        json!({ "place": "telegram:topic:-1001:101", "text": "/agents", "mention": false });
    let command = forum.what_if(json!({ "case": command })).await;
    assert_eq!(command["walk"]["is_command"], true);
    assert_snapshot!(command["walk"]["told"].as_str().expect("a sentence"), @"This is a command. Parlor itself answers it, whoever has the place.");
    // The walk is under the edited rules.
    let text = forum
        .house
        .config()
        .replace("agent = \"ada\"", "agent = \"staff\"");
    let case = json!({ "place": "telegram:topic:-1001:102", "role": "guest" });
    let edited = forum.what_if(json!({ "text": text, "case": case })).await;
    assert_eq!(edited["walk"]["agent"]["id"], "staff", "{edited}");
    forum.stop().await;
}

/// The stages and the deciding ranks of a walk.
fn shown(walk: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut lines = vec![word(&walk["told"])];
    for stage in walk["stages"].as_array().expect("stages") {
        let because = word(&stage["because"]["setting"]);
        lines.push(format!(
            "{} {}: {} [{because}]",
            word(&stage["state"]),
            word(&stage["stage"]),
            word(&stage["text"])
        ));
    }
    let ranks = walk["ranks"].as_array().expect("ranks");
    assert_eq!(ranks.len(), 14);
    for rank in ranks.iter().filter(|rank| rank["says"] != "not_here") {
        lines.push(format!("{}: {}", word(&rank["rank"]), word(&rank["says"])));
    }
    lines.push(format!("model {}", word(&walk["model"]["model"])));
    for step in walk["tools_left"].as_array().expect("rules") {
        lines.push(format!(
            "{} left after {}",
            step["left"],
            word(&step["rule"])
        ));
    }
    lines.join("\n")
}

/// Problems come with their line, and bounds are told.
#[tokio::test]
async fn a_text_with_a_problem_is_not_tried() {
    let forum = Forum::open().await;
    let text = forum
        .house
        .config()
        .replace("agent = \"ada\"", "agent = \"adda\"");
    let line = text
        .lines()
        .position(|line| line.contains("adda"))
        .expect("there")
        + 1;
    let tried = forum.what_if(json!({ "text": text })).await;
    assert_eq!(tried["ok"], false);
    assert_eq!(tried["problems"][0]["line"], line);
    assert_eq!(tried["problems"][0]["message"], "unknown agent `adda`");
    assert_eq!(
        (&tried["walk"], &tried["replay"]),
        (&Value::Null, &Value::Null)
    );
    let place = json!({ "place": "local:home" });
    let status = |answer: Answer| answer.status;
    let both = json!({ "case": place, "message": 1 });
    assert_eq!(status(forum.post("/routes/what-if", both).await), 400);
    let gone = json!({ "message": 999 });
    assert_eq!(status(forum.post("/routes/what-if", gone).await), 404);
    let large = json!({ "text": "#".repeat(600 * 1024) });
    assert_eq!(status(forum.post("/routes/what-if", large).await), 413);
    let nobody = json!({ "case": { "place": "local:home", "person": "Zorro" } });
    assert_eq!(status(forum.post("/routes/what-if", nobody).await), 400);
    forum.stop().await;
}

/// A case is kept in the file, where comments survive, or in an edited text, which is not saved.
#[tokio::test]
async fn a_case_is_kept_as_a_route_test() {
    let forum = Forum::open().await;
    let case = json!({ "place": "telegram:topic:-1001:101", "person": "telegram:222", "text": "roses", "topic": "Garden" });
    let body = json!({ "case": case });
    assert_eq!(forum.post("/routes/tests", body.clone()).await.status, 428);
    let tagged = |tag: &str, body: &Value| {
        let call = Call::new("POST", "/api/v1/routes/tests").header("If-Match", tag);
        call.json(body)
    };
    let stale = forum.call(tagged("\"old\"", &body)).await;
    assert_eq!(stale.status, 412);
    let tag = forum.call(Call::get("/api/v1/config")).await;
    let tag = tag.header("etag").expect("a tag").to_owned();
    // A test that fails is no test to begin with.
    let wrong = json!({ "case": case, "agent": "ada" });
    let wrong = forum.call(tagged(&tag, &wrong)).await;
    assert_eq!(wrong.status, 409, "{wrong:?}");
    assert_eq!(wrong.json()["facts"]["problems"][0]["code"], "route-test");
    let before = forum.house.config();
    let kept = forum.call(tagged(&tag, &body)).await;
    assert_eq!(kept.status, 200, "{kept:?}");
    let kept = kept.json();
    assert_eq!(
        (&kept["saved"], &kept["agent"]),
        (&json!(true), &json!("rose"))
    );
    let after = forum.house.config();
    let line = usize::try_from(kept["line"].as_u64().expect("a line")).expect("small");
    assert_eq!(after.lines().nth(line - 1), Some("[[route_tests]]"));
    let added = after
        .strip_prefix(before.trim_end())
        .expect("the rest stays as it was");
    assert_snapshot!(added.trim(), @r#"
    [[route_tests]]
    name = "rose answers in Garden"
    place = "telegram:topic:-1001:101"
    agent = "rose"
    person = "telegram:222"
    text = "roses"
    topic = "Garden"
    "#);
    assert_eq!(
        run(forum.house.home.path(), &["config", "check"])
            .await
            .code,
        0
    );
    // Beside unsaved edits, it is added to them.
    let text = after.replace("agent = \"ada\"", "agent = \"main\"");
    let silent = json!({ "place": "telegram:topic:-1002:5", "mention": false });
    let draft = json!({ "case": silent, "text": text, "name": "quiet" });
    let drafted = forum.post("/routes/tests", draft).await.json();
    assert_eq!(
        (&drafted["saved"], &drafted["agent"]),
        (&json!(false), &Value::Null)
    );
    let drafted = drafted["text"].as_str().expect("a text").to_owned();
    assert!(drafted.contains("name = \"quiet\"") && drafted.contains("agent = \"nobody\""));
    assert_eq!(forum.house.config(), after, "nothing was saved");
    let command = json!({ "case": { "place": "local:home", "text": "/agents" }, "text": after });
    assert_eq!(forum.post("/routes/tests", command).await.status, 400);
    forum.stop().await;
}

/// A role that is not in the file is written into the test.
#[tokio::test]
async fn a_real_message_is_kept_with_the_role_of_its_writer() {
    let forum = Forum::open().await;
    let (home, dm) = (forum.house.home.path(), forum.house.telegram.dm(BOB));
    dm.says("hello").await;
    dm.wait_for_sent(1).await;
    assert_eq!(
        run(home, &["people", "role", "telegram:222", "member"])
            .await
            .code,
        0
    );
    dm.says("am I in").await;
    let turns = "SELECT count(*) FROM turns";
    forum.house.wait_until_stored(turns, "1").await;
    let newest = forum.get("/routes/messages?limit=1").await["items"][0].clone();
    assert_eq!(newest["now"]["agent"]["id"], "main", "{newest}");
    let body = json!({ "message": newest["id"], "text": forum.house.config() });
    let kept = forum.post("/routes/tests", body).await.json();
    let text = kept["text"].as_str().expect("a text");
    assert!(text.contains("role = \"member\""), "{text}");
    assert!(!text.contains("am I in"), "no words of people: {text}");
    forum.stop().await;
}

/// `config check` fails at the line of the test.
#[tokio::test]
async fn config_check_runs_route_tests() {
    let home = fresh_home().await;
    let config = home.path().join("config.toml");
    let text = "[agents.rose]\n[[bindings]]\nmatch = \"telegram:topic:-100:7\"\nagent = \"rose\"\n\n\
        [[route_tests]]\nname = \"Rose has the garden\"\nplace = \"telegram:topic:-100:7\"\nagent = \"rose\"\n\
        [[route_tests]]\nplace = \"telegram:topic:-100:8\"\nagent = \"nobody\"\n";
    std::fs::write(&config, text).expect("writes");
    let fine = run(home.path(), &["config", "check"]).await;
    assert_eq!(
        (fine.code, fine.stdout.trim_end()),
        (
            0,
            "config.toml is fine: 2 agents, 1 binding, 2 route tests."
        )
    );
    let broken = text.replace(
        "-100:7\"\nagent = \"rose\"\n\n",
        "-100:9\"\nagent = \"rose\"\n\n",
    );
    std::fs::write(&config, &broken).expect("writes");
    let failed = run(home.path(), &["config", "check"]).await;
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""));
    assert_snapshot!(failed.stderr, @r#"
    error: the route test "Rose has the garden" fails: nobody answers, not rose
     --> HOME/config.toml:9:9
      |
    9 | agent = "rose"
      |         ^^^^^^ no binding or /agent opens this place
      |
      = help: change the rules so that rose answers there, or the test

    1 problem in config.toml.
    "#);
    let json = run(home.path(), &["config", "check", "--json"]).await;
    assert_eq!(json.code, 1);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let problem = &json["problems"][0];
    assert_eq!(
        (&problem["code"], &problem["line"]),
        (&json!("route-test"), &json!(9))
    );
    // With a secret that is not on this machine, the tests run all the same.
    let elsewhere = format!("[telegram]\ntoken = {{ env = \"NOT_HERE\" }}\n{broken}");
    std::fs::write(&config, elsewhere).expect("writes");
    let failed = run(home.path(), &["config", "check"]).await;
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert!(
        failed
            .stderr
            .contains("the route test \"Rose has the garden\" fails"),
        "{}",
        failed.stderr
    );
}

/// A saved file with a failing test is not taken in: the running config stays, and owners are told.
/// Commands that would make one fail are refused.
#[tokio::test]
async fn a_config_with_a_failing_test_changes_nothing() {
    let site = Site::open("").await;
    let owner = site.house.telegram.dm(ALICE);
    let topic = site.house.telegram.forum(-1001).topic(101, "Garden");
    let test = "[[route_tests]]\nplace = \"telegram:topic:-1001:101\"\nagent = \"rose\"\n";
    let tested = format!("{}{test}", site.house.config());
    std::fs::write(site.home().join("config.toml"), &tested).expect("writes");
    assert_eq!(run(site.home(), &["reload"]).await.code, 0);
    // By hand.
    let broken = tested.replacen("agent = \"rose\"", "agent = \"main\"", 1);
    std::fs::write(site.home().join("config.toml"), &broken).expect("writes");
    let reload = run(site.home(), &["reload"]).await;
    assert_eq!(reload.code, 1);
    assert!(
        reload
            .stderr
            .contains("the route test of telegram:topic:-1001:101 fails: main answers, not rose"),
        "{}",
        reload.stderr
    );
    topic.says(ALICE, "who is it").await;
    topic.wait_for_sent(1).await;
    let by = "SELECT slug FROM turns JOIN agents ON uid = agent_uid";
    site.house.wait_until_stored(by, "rose").await;
    owner.wait_for_sent(1).await;
    std::fs::write(site.home().join("config.toml"), &tested).expect("writes");
    assert_eq!(run(site.home(), &["reload"]).await.code, 0);
    // From chat.
    topic.says(ALICE, "/bind main").await;
    topic
        .wait_for("a refusal", |texts| {
            texts.iter().any(|text| text.contains("route test"))
        })
        .await;
    assert_eq!(site.house.config(), tested);
    // A removed agent takes its tests along, and brings them back.
    assert_eq!(
        run(site.home(), &["agent", "rename", "rose", "lily"])
            .await
            .code,
        0
    );
    assert!(
        site.house.config().contains("101\"\nagent = \"lily\"\n"),
        "{}",
        site.house.config()
    );
    assert_eq!(run(site.home(), &["agent", "remove", "lily"]).await.code, 0);
    assert!(
        !site.house.config().contains("route_tests"),
        "{}",
        site.house.config()
    );
    assert_eq!(
        run(site.home(), &["agent", "restore", "lily"]).await.code,
        0
    );
    assert!(
        site.house.config().contains("[[route_tests]]"),
        "{}",
        site.house.config()
    );
    site.stop().await;
}
