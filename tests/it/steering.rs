//! What an owner does to agents and places from the chat: pausing, restarting and clearing an agent,
//! switches for a while, bindings, and the audit of all of it.

use std::fs;

use parlor::gateway::Gateway;
use serde_json::json;

use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::{ALICE, BOB, Dm, Place, buttons};

/// Alice owns the house. Topic 5 is Rose's, topic 6 Ada's, everything else Main's.
const TEAM: &str = r#"# the house
[access]
owners = ["telegram:111"]
groups = "open"
require_mention = false
[agents.main]
who = "guest"
emoji = "☕"
[agents.rose]
who = "guest"
name = "Rose"
emoji = "🌹"
[agents.ada]
who = "guest"
name = "Ada"
[[bindings]]
# the roses
match = "telegram:topic:-1001:5"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1001:6"
agent = "ada"
"#;

struct Scene {
    house: House,
    gateway: Option<Gateway>,
    roses: Place,
    code: Place,
    alice: Dm,
}

impl Scene {
    async fn new() -> Self {
        let house = House::new(TEAM).await;
        house
            .model
            .answer_with(|request| Script::text(name(request)));
        let gateway = Some(house.open().await);
        let forum = house.telegram.forum(-1001);
        Scene {
            roses: forum.topic(5, "Roses"),
            code: forum.topic(6, "Code"),
            alice: house.telegram.dm(ALICE),
            house,
            gateway,
        }
    }

    fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().expect("it runs")
    }

    async fn settled(&self) {
        self.house.settled(self.gateway()).await;
    }

    /// What Alice is told in her private chat.
    async fn alice(&self, text: &str) -> String {
        let before = self.alice.texts().len();
        self.alice.says(text).await;
        self.settled().await;
        self.alice.texts()[before..].join("\n")
    }

    async fn says(&self, place: &Place, text: &str) -> Vec<String> {
        let before = place.texts().len();
        place.says(BOB, text).await;
        self.settled().await;
        place.texts()[before..].to_vec()
    }

    /// The owner's commands.
    async fn orders(&self, place: &Place, text: &str) -> Vec<String> {
        let before = place.texts().len();
        place.says(ALICE, text).await;
        self.settled().await;
        place.texts()[before..].to_vec()
    }

    async fn closes(&mut self) {
        self.settled().await;
        let gateway = self.gateway.take().expect("it runs");
        gateway.shutdown().await;
    }

    async fn opens(&mut self) {
        self.gateway = Some(self.house.open().await);
        self.settled().await;
    }

    async fn ends(mut self) {
        self.closes().await;
    }

    /// Who did what, oldest first.
    fn audit(&self) -> String {
        self.house.ask(
            "SELECT group_concat(line, char(10)) FROM (
                 SELECT actor || ' ' || action || coalesce(' ' || agent, '') || coalesce(' ' || before, '')
                        || coalesce(' > ' || after, '') || coalesce(' in ' || key, '') AS line
                 FROM audit LEFT JOIN places ON places.id = place_id ORDER BY audit.id)",
        )
    }

    fn handoffs(&self) -> String {
        self.house.ask(
            "SELECT coalesce(group_concat(text, char(10)), '') FROM (
                 SELECT text FROM messages WHERE kind = 'handoff' ORDER BY id)",
        )
    }
}

fn name(request: &Request) -> &'static str {
    ["Rose", "Ada", "Main"]
        .into_iter()
        .find(|name| request.system.starts_with(&format!("You are {name}")))
        .unwrap_or("Nobody")
}

/// The answer under way stands below the line about the switch, and the switch is Alice's all the same.
#[tokio::test]
async fn a_switch_during_an_answer_is_not_put_down_to_the_config() {
    let scene = Scene::new().await;
    scene
        .house
        .model
        .enqueue(Script::text("Ada, slowly").held());
    scene.code.says(ALICE, "a slow one").await;
    scene.house.model.wait_for_requests(1).await;
    scene.code.says(ALICE, "/agent rose").await;
    scene.code.wait_for_sent(1).await;
    scene.house.model.release();
    scene.settled().await;
    assert_eq!(scene.says(&scene.code, "hi").await, ["Rose"]);
    assert_eq!(
        scene.audit(),
        "telegram:111 switch ada > rose in telegram:topic:-1001:6"
    );
    assert_eq!(scene.handoffs(), "from ada to rose");
    // The same for the way back.
    scene
        .house
        .model
        .enqueue(Script::text("Rose, slowly").held());
    scene.code.says(ALICE, "another slow one").await;
    scene.house.model.wait_for_requests(3).await;
    scene.code.says(ALICE, "/agent reset").await;
    scene.code.wait_for_sent(4).await;
    scene.house.model.release();
    scene.settled().await;
    assert_eq!(scene.says(&scene.code, "hi").await, ["Ada"]);
    assert_eq!(scene.handoffs(), "from ada to rose\nfrom rose to ada");
    assert!(!scene.audit().contains("config"), "{}", scene.audit());
    scene.ends().await;
}

/// Messages for a paused agent are kept, each place is told once, also over a restart.
#[tokio::test]
async fn a_paused_agent_answers_after_it_is_resumed() {
    let mut scene = Scene::new().await;
    insta::assert_snapshot!(scene.alice("/agent pause rose").await, @"🌹 Rose is paused everywhere. Messages are kept and answered after /agent resume rose.");
    let told = scene.says(&scene.roses, "one").await;
    insta::assert_snapshot!(told.join("\n"), @"🌹 Rose is paused. Your messages are kept and answered when an owner resumes it.");
    assert_eq!(scene.says(&scene.roses, "two").await, [""; 0]);
    assert_eq!(scene.says(&scene.code, "hi").await, ["Ada"]);
    assert_eq!(scene.gateway().under_way(), 0, "the end need not wait");
    scene.roses.says(ALICE, "/agent").await;
    scene.settled().await;
    insta::assert_snapshot!(
        scene.roses.texts().last().expect("a reply").replace(|c: char| c.is_ascii_digit(), "0"),
        @"
    🌹 Rose answers here, but Alice paused it just now. Messages are kept until an owner resumes it.
    /agent main switches to ☕ Main; /agents lists everyone.
    "
    );
    insta::assert_snapshot!(scene.alice("/agent pause rose").await, @"🌹 Rose is paused already, by Alice.");

    scene.closes().await;
    let before = scene.roses.texts().len();
    scene.opens().await;
    assert_eq!(scene.roses.texts().len(), before, "told before");
    scene.says(&scene.roses, "three").await;
    assert_eq!(scene.roses.texts().len(), before, "told before");
    let asked = scene.house.model.journal().len();
    insta::assert_snapshot!(scene.alice("/agent resume rose").await, @"🌹 Rose is back, and answers what has waited.");
    scene.settled().await;
    let answered: Vec<String> = scene.house.model.journal()[asked..]
        .iter()
        .map(|request| request.last_text().to_owned())
        .collect();
    for word in ["one", "two", "three"] {
        assert_eq!(
            answered.iter().filter(|text| text.contains(word)).count(),
            1,
            "{word}: {answered:?}"
        );
    }
    assert!(
        scene.roses.texts()[before..]
            .iter()
            .all(|text| text == "Rose")
    );
    insta::assert_snapshot!(scene.alice("/agent resume rose").await, @"🌹 Rose is not paused.");
    assert_eq!(
        scene.audit(),
        "telegram:111 agent pause rose\ntelegram:111 agent resume rose"
    );
    scene.ends().await;
}

/// A message that waits for a paused agent is for the agent that its place gets meanwhile.
#[tokio::test]
async fn a_switch_away_from_a_paused_agent_answers_what_waits() {
    let scene = Scene::new().await;
    scene.alice("/agent pause rose").await;
    scene.says(&scene.roses, "one").await;
    scene.roses.says(ALICE, "/agent ada").await;
    scene.settled().await;
    assert_eq!(scene.roses.texts().last().map(String::as_str), Some("Ada"));
    assert_eq!(scene.house.model.asked_about("one").len(), 1);
    // A changed config does the same.
    scene.roses.says(ALICE, "/agent reset").await;
    scene.settled().await;
    scene.says(&scene.roses, "two").await;
    assert_eq!(scene.house.model.asked_about("two").len(), 0);
    let config = scene.house.home.path().join("config.toml");
    let text = fs::read_to_string(&config).expect("a config");
    let text = text.replace("agent = \"rose\"", "agent = \"main\"");
    fs::write(&config, text).expect("writes");
    scene.gateway().reload("a test").await;
    scene.settled().await;
    assert_eq!(scene.roses.texts().last().map(String::as_str), Some("Main"));
    scene.ends().await;
}

/// Waiting messages can be dropped, and only owners steer.
#[tokio::test]
async fn what_waits_for_a_paused_agent_can_be_dropped() {
    let scene = Scene::new().await;
    scene.alice("/agent pause rose").await;
    scene.says(&scene.roses, "one").await;
    scene.roses.says(ALICE, "/stop all").await;
    scene.settled().await;
    scene.alice("/agent resume rose").await;
    scene.settled().await;
    assert_eq!(scene.house.model.asked_about("one").len(), 0);
    for words in ["/agent pause ada", "/agent pause", "/agent clear"] {
        let refused = scene.says(&scene.roses, words).await;
        assert_eq!(
            refused,
            ["Only owners can pause, resume, restart or clear an agent."]
        );
    }
    insta::assert_snapshot!(scene.alice("/agent pause").await, @"Which agent? Write its name, such as /agent pause rose.");
    assert_eq!(scene.says(&scene.code, "hi").await, ["Ada"]);
    scene.ends().await;
}

/// S4.9, S4.36: the turns of one agent begin again after their last recorded result; another agent's
/// turn goes on.
#[tokio::test]
async fn a_restart_begins_the_agents_turns_again_and_no_others() {
    let scene = Scene::new().await;
    scene
        .house
        .model
        .answer_with(|request| match name(request) {
            "Rose" if request.results().is_empty() => Script::tool_call("now", json!({})),
            "Rose" => Script::text("It is late.").held(),
            other => Script::text(other).held(),
        });
    scene.roses.says(BOB, "what time is it").await;
    scene.house.model.wait_for_open(1).await;
    scene.code.says(BOB, "hello").await;
    scene.house.model.wait_for_open(2).await;
    let ran = "SELECT count(*) FROM tool_calls WHERE result IS NOT NULL";
    scene.house.wait_until_stored(ran, "1").await;
    let asked = scene.house.model.journal().len();
    scene.alice.says("/agent restart rose").await;
    insta::assert_snapshot!(scene.alice.wait_for_sent(1).await.text, @"🌹 Rose is restarted. Its running answer begins again after the last finished tool call.");
    scene.house.model.wait_for_requests(asked + 1).await;
    scene.house.model.release();
    scene.settled().await;
    assert_eq!(scene.roses.texts(), ["It is late."]);
    assert_eq!(scene.code.texts(), ["Ada"]);
    let journal = scene.house.model.journal();
    let of = |wanted: &str| {
        journal
            .iter()
            .filter(|request| name(request) == wanted)
            .count()
    };
    assert_eq!(
        (of("Rose"), of("Ada")),
        (3, 1),
        "the tool was asked for once"
    );
    assert_eq!(
        scene
            .house
            .ask("SELECT count(*) FROM turns WHERE outcome = 'answered'"),
        "2"
    );
    scene.ends().await;
}

/// S4.36: a fresh conversation in all places of one agent, after a question.
#[tokio::test]
async fn clearing_an_agent_begins_fresh_conversations_in_its_places() {
    let scene = Scene::new().await;
    insta::assert_snapshot!(scene.alice("/agent clear rose").await, @"🌹 Rose has no conversation to clear.");
    scene.says(&scene.roses, "blue").await;
    scene.says(&scene.code, "green").await;
    insta::assert_snapshot!(scene.alice("/agent clear rose").await, @"🌹 Rose would begin a fresh conversation in 1 place, as /new does. What was said stays stored, but 🌹 Rose doesn't read it any more. /agent clear rose yes does it.");
    insta::assert_snapshot!(scene.alice("/agent clear rose yes").await, @"🌹 Rose begins a fresh conversation in all its places.");
    scene.says(&scene.roses, "and now").await;
    assert!(!scene.house.model.last_request().has("blue"));
    scene.says(&scene.code, "and here").await;
    assert!(scene.house.model.last_request().has("green"));
    assert_eq!(scene.audit(), "telegram:111 agent reset rose > 1 places");
    scene.ends().await;
}

/// S4.37: state, last answer, last error, queue and error rate.
#[tokio::test]
async fn the_health_of_agents_is_told() {
    let mut scene = Scene::new().await;
    scene.says(&scene.code, "hi").await;
    scene
        .house
        .model
        .answer_with(|_| Script::status(400, "{\"error\":{\"message\":\"no\"}}"));
    scene.says(&scene.roses, "hi").await;
    scene.alice("/agent pause main").await;
    let status = scene.alice("/status").await;
    let agents: Vec<&str> = status
        .lines()
        .filter(|line| line.starts_with('•') && line.contains(": "))
        .collect();
    insta::assert_snapshot!(agents.join("\n"), @"
    • In the last 24 hours: 2 questions, 1 without an answer.
    • ☕ Main: paused by Alice.
    • 🌹 Rose: failing (the model provider refused: the request was not accepted (400)); 1 of 1 turn failed in 24 hours.
    • Ada: ready; 0 of 1 turn failed in 24 hours.
    ");
    scene.alice("/agent restart rose").await;
    assert!(!scene.alice("/status").await.contains("failing"));
    scene.closes().await;
    let home = scene.house.home.path();
    let info = run(home, &["agent", "info", "main"]).await.stdout;
    let health: Vec<&str> = info
        .lines()
        .filter(|line| {
            line.starts_with("state") || line.starts_with("waiting") || line.starts_with("last 24")
        })
        .collect();
    insta::assert_snapshot!(health.join("\n"), @"
    state: paused by Alice
    waiting: 0 messages
    last 24 hours: 0 turns, 0 failed
    ");
}

/// Both texts, the handoff lines and the audit; also where the end comes while no gateway runs.
#[tokio::test]
async fn a_switch_for_a_while_ends_by_itself() {
    let mut scene = Scene::new().await;
    scene.says(&scene.code, "hi").await;
    let told = scene.orders(&scene.code, "/agent for 2h rose").await;
    insta::assert_snapshot!(
        told.join("\n").split(", until").next().expect("a part"),
        @"🌹 Rose answers here for 2 hours"
    );
    assert_eq!(scene.says(&scene.code, "hi").await, ["Rose"]);
    let over = "UPDATE timed_pins SET until = 1 + (SELECT min(set_at) FROM timed_pins)";
    scene.closes().await;
    scene.house.tell(over);
    let before = scene.code.texts().len();
    scene.opens().await;
    scene.code.wait_for_sent(before + 1).await;
    scene.settled().await;
    insta::assert_snapshot!(scene.code.texts()[before..].join("\n"), @"🌹 Rose was here for 0 minutes, and that is over. Ada answers here again.");
    assert_eq!(scene.says(&scene.code, "hi").await, ["Ada"]);
    // In a running gateway; the switch in another place has it look.
    scene.orders(&scene.code, "/agent for 1d main").await;
    scene.house.tell(over);
    let before = scene.code.texts().len();
    scene.orders(&scene.roses, "/agent for 30m ada").await;
    scene.code.wait_for_sent(before + 1).await;
    scene.settled().await;
    assert_eq!(scene.says(&scene.code, "hi").await, ["Ada"]);
    assert_eq!(scene.says(&scene.roses, "hi").await, ["Ada"]);
    insta::assert_snapshot!(scene.handoffs(), @"
    from ada to rose
    from rose to ada
    from ada to main
    from rose to ada
    from main to ada
    ");
    insta::assert_snapshot!(scene.audit(), @"
    telegram:111 switch ada > rose in telegram:topic:-1001:6
    gateway switch rose > ada in telegram:topic:-1001:6
    telegram:111 switch ada > main in telegram:topic:-1001:6
    telegram:111 switch rose > ada in telegram:topic:-1001:5
    gateway switch main > ada in telegram:topic:-1001:6
    ");
    // A lasting switch, and taking it back, end it at once.
    scene.orders(&scene.roses, "/agent reset").await;
    assert_eq!(scene.says(&scene.roses, "hi").await, ["Rose"]);
    assert_eq!(scene.house.ask("SELECT count(*) FROM timed_pins"), "0");
    scene.ends().await;
}

/// How long a switch counts is in the audit, also where the agent stays the same.
#[tokio::test]
async fn the_audit_tells_switches_for_a_while_from_lasting_ones() {
    let scene = Scene::new().await;
    for command in [
        "/agent ada",
        "/agent main once",
        "/agent for 2h rose",
        "/agent reset",
        "/agent for 30m ada",
    ] {
        scene.orders(&scene.roses, command).await;
    }
    insta::assert_snapshot!(scene.house.ask(
        "SELECT group_concat(action || coalesce(' ' || subject, '') || ' ' || before || ' > ' || after, char(10)) FROM audit"
    ), @"
    switch rose > ada
    switch once ada > main
    switch for 2 hours main > rose
    switch rose > ada
    switch for 30 minutes ada > ada
    ");
    scene.ends().await;
}

/// A file with a mistake is told to owners in `/status`, and what waits is a list of its own.
#[tokio::test]
async fn status_tells_of_a_config_with_a_mistake() {
    let mut scene = Scene::new().await;
    scene.alice("/agent pause rose").await;
    scene.roses.says(BOB, "one").await;
    scene.roses.says(BOB, "two").await;
    scene.house.telegram.all_confirmed().await;
    scene.house.all_in_their_lanes().await;
    let line = scene.house.config().lines().count() + 1;
    scene.house.write(
        "config.toml",
        &format!("{}nonsense = 1\n", scene.house.config()),
    );
    let before = scene.roses.texts().len();
    scene.alice("/reload").await;
    scene.roses.says(ALICE, "/status").await;
    let status = scene.roses.wait_for_sent(before + 1).await.text;
    let config =
        format!("• config.toml has a mistake in line {line}; the gateway runs with the one from ");
    assert!(status.contains(&config), "{status}");
    let (here, rest) = status
        .split_once("\n\n2 messages wait:\n")
        .expect("a paragraph");
    let today = chrono::Local::now().format("%-d %b %Y").to_string();
    insta::assert_snapshot!(here.replace(&today, "DAY"), @"
    🌹 Rose answers here, but Alice paused it just now. Messages are kept until an owner resumes it.
    This conversation has 0 messages.
    You have used no tokens today.
    ");
    let (waiting, _) = rest
        .split_once("\n\nFor owners and admins:\n")
        .expect("a paragraph");
    insta::assert_snapshot!(waiting, @"
    • “one” (Bob)
    • “two” (Bob)
    ");
    scene.house.leave_leftovers();
    scene.house.configure("", TEAM);
    scene.ends().await;
}

/// The file keeps its comments, counts at once, and a switch in the way is undone.
#[tokio::test]
async fn an_owner_binds_and_unbinds_a_place_from_the_chat() {
    let scene = Scene::new().await;
    let forum = scene.house.telegram.forum(-1001);
    let place = forum.topic(7, "New");
    let config = scene.house.home.path().join("config.toml");
    let read = || fs::read_to_string(&config).expect("a config");
    let first = read();
    assert_eq!(scene.says(&place, "hi").await, ["Main"]);
    let refused = scene.says(&place, "/bind rose").await;
    insta::assert_snapshot!(refused.join("\n"), @"Only owners can give a place to an agent for good, or take it back. Ask one of them.");
    place.says(ALICE, "/agent ada").await;
    place.says(ALICE, "/bind rose").await;
    scene.settled().await;
    insta::assert_snapshot!(place.texts().last().expect("a reply").replace(|c: char| c.is_ascii_digit(), "0"), @r#"
    🌹 Rose answers in this topic for good. config.toml has it from line 00 on:
    [[bindings]]
    match = "telegram:topic:-0000:0"
    agent = "rose"
    "#);
    let bound = read();
    let lines = "\n[[bindings]]\nmatch = \"telegram:topic:-1001:7\"\nagent = \"rose\"\n";
    assert_eq!(
        bound.replacen(lines, "", 1),
        first,
        "nothing else is changed"
    );
    assert_eq!(scene.says(&place, "hi").await, ["Rose"]);
    // The binding that is there is changed in its place, with its comment.
    scene.roses.says(ALICE, "/bind ada").await;
    scene.settled().await;
    assert!(read().contains("# the roses\nmatch = \"telegram:topic:-1001:5\"\nagent = \"ada\"\n"));
    assert_eq!(scene.says(&scene.roses, "hi").await, ["Ada"]);
    place.says(ALICE, "/bind rose").await;
    place.says(ALICE, "/unbind").await;
    place.says(ALICE, "/unbind").await;
    scene.settled().await;
    let told = place.texts();
    insta::assert_snapshot!(told[told.len() - 3..].join("\n").replace(|c: char| c.is_ascii_digit(), "0"), @r#"
    config.toml gives this topic to 🌹 Rose already.
    The binding of this topic to 🌹 Rose is taken out of config.toml, where it stood from line 00 on. ☕ Main answers here. Main is the default agent. This topic stays open, because all groups are: groups = "open" under [access].
    config.toml has no binding for exactly this topic (telegram:topic:-0000:0). /agent why shows the rules that count.
    "#);
    assert_eq!(scene.says(&place, "hi").await, ["Main"]);
    insta::assert_snapshot!(scene.audit(), @"
    telegram:111 switch main > ada in telegram:topic:-1001:7
    telegram:111 reload > bindings
    telegram:111 bind > rose in telegram:topic:-1001:7
    config switch ada > rose in telegram:topic:-1001:7
    telegram:111 reload > bindings
    telegram:111 bind rose > ada in telegram:topic:-1001:5
    telegram:111 reload > bindings
    telegram:111 unbind rose in telegram:topic:-1001:7
    config switch rose > main in telegram:topic:-1001:7
    ");
    insta::assert_snapshot!(scene.handoffs(), @"
    from main to ada
    handed over from ada to rose by config.toml
    handed over from rose to main by config.toml
    ");
    scene.ends().await;
}

/// A binding opens an agent to everybody in the place, whatever its `who` says.
#[tokio::test]
async fn who_may_use_a_bound_agent_is_told() {
    let house = House::new(&TEAM.replacen(
        "who = \"guest\"\nname = \"Ada\"",
        "who = \"owner\"\nname = \"Ada\"",
        1,
    ))
    .await;
    let gateway = house.open().await;
    let place = house.telegram.forum(-1001).topic(7, "New");
    place.says(ALICE, "/bind rose").await;
    place.says(ALICE, "/bind ada").await;
    house.settled(&gateway).await;
    let told = place.texts();
    assert_eq!(told.len(), 2);
    assert!(!told[0].contains("may use"), "{}", told[0]);
    insta::assert_snapshot!(told[1].lines().last().expect("a reply"), @"Everybody who may write in this topic may use Ada here; its who counts elsewhere.");
    gateway.shutdown().await;
}

/// A report has the path and lines of config.toml, so only private chats show it.
#[tokio::test]
async fn problems_of_the_config_are_not_quoted_where_others_read_along() {
    let scene = Scene::new().await;
    let config = scene.house.home.path().join("config.toml");
    let whole = fs::read_to_string(&config).expect("a config");
    let broken = whole.replacen("groups = \"open\"", "groups = \"opne\"", 1);
    fs::write(&config, &broken).expect("writes");
    for command in ["/bind ada", "/unbind"] {
        assert_eq!(
            scene.orders(&scene.roses, command).await,
            [
                "config.toml has a problem, so nothing was changed. /reload in a private chat shows it."
            ]
        );
    }
    let told = scene.alice("/bind ada").await;
    assert!(told.contains("config.toml was not changed"), "{told}");
    assert!(told.contains("groups = \"opne\""), "{told}");
    let kept = fs::read_to_string(&config).expect("a config");
    assert_eq!(kept, broken);
    scene.ends().await;
}

/// Owners see every rule on the way, others only who answers.
#[tokio::test]
async fn the_walk_of_the_router_is_shown_to_owners() {
    let scene = Scene::new().await;
    scene.roses.says(ALICE, "/agent why").await;
    scene.settled().await;
    let told = scene.roses.texts().join("\n");
    assert!(
        told.contains("config.toml line ") && told.contains("default_agent"),
        "{told}"
    );
    let told = scene.says(&scene.roses, "/agent why").await.join("\n");
    insta::assert_snapshot!(told, @"
    🌹 Rose answers here. An owner gave this topic to Rose.
    Owners and admins see every rule here.
    ");
    scene.ends().await;
}

/// Newest first, in pages; a shared place shows its own changes only, and members nothing.
#[tokio::test]
async fn the_audit_is_shown_to_those_who_may_see_it() {
    let mut scene = Scene::new().await;
    for _ in 0..12 {
        scene.roses.says(ALICE, "/agent ada").await;
        scene.roses.says(ALICE, "/agent reset").await;
    }
    scene.code.says(ALICE, "/agent rose").await;
    scene.settled().await;
    let dated = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "0");
    let all = scene.alice("/audit").await;
    assert_eq!(all.lines().count(), 20, "{all}");
    insta::assert_snapshot!(dated(all.lines().next().expect("a line")).split(": ").skip(1).collect::<Vec<_>>().join(": "), @"Alice switched Code from Ada to Rose");
    let shown = scene.alice.wait_for_sent(scene.alice.texts().len()).await;
    let older = buttons(&shown.reply_markup);
    assert_eq!(older.len(), 1, "{older:?}");
    let rest = scene.alice("/audit before 6").await;
    assert_eq!(rest.lines().count(), 5, "{rest}");
    assert_eq!(scene.alice("/audit 3").await.lines().count(), 3);
    scene.code.says(ALICE, "/audit").await;
    scene.settled().await;
    let here = scene.code.texts().last().cloned().unwrap_or_default();
    assert_eq!(here.lines().count(), 1, "{here}");
    insta::assert_snapshot!(scene.says(&scene.code, "/audit").await.join("\n"), @"Only an owner or admin can read the audit.");
    scene.closes().await;
    let home = scene.house.home.path();
    let told = run(
        home,
        &[
            "audit",
            "--agent",
            "rose",
            "--place",
            "telegram:topic:-1001:6",
        ],
    )
    .await;
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", told.stdout);
    assert!(
        lines[1].contains("Alice") && lines[1].contains("switched the place from Ada to Rose"),
        "{}",
        lines[1]
    );
    assert!(lines[1].contains("Code"), "{}", lines[1]);
    let none = run(home, &["audit", "--since", "2020-01-01", "--by", "gateway"]).await;
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    let wrong = run(home, &["audit", "--since", "yesterday"]).await;
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

/// While no gateway runs, the command line steers by itself; the next start knows it.
#[tokio::test]
async fn the_command_line_steers_agents_of_a_closed_house() {
    let mut scene = Scene::new().await;
    scene.says(&scene.roses, "hi").await;
    let home = scene.house.home.path().to_owned();
    scene.closes().await;
    let paused = run(&home, &["agent", "pause", "rose"]).await;
    insta::assert_snapshot!(paused.stdout, @"🌹 Rose is paused. Messages are kept and answered after `parlor agent resume rose`.");
    let list = run(&home, &["agent", "list"]).await.stdout;
    assert!(list.contains("paused by"), "{list}");
    let explained = run(&home, &["route", "explain", "telegram:topic:-1001:5"])
        .await
        .stdout;
    assert!(explained.contains(" paused it just now"), "{explained}");
    insta::assert_snapshot!(run(&home, &["agent", "pause", "rose"]).await.stdout, @"🌹 Rose is paused already.");
    insta::assert_snapshot!(run(&home, &["agent", "restart", "rose"]).await.stdout, @"🌹 Rose is restarted: its past failures do not count any more.");
    insta::assert_snapshot!(run(&home, &["agent", "reset", "rose", "--yes"]).await.stdout, @"🌹 Rose begins a fresh conversation in 1 place.");
    scene.opens().await;
    let told = scene.says(&scene.roses, "one").await;
    assert!(told[0].contains("is paused"), "{told:?}");
    scene.closes().await;
    insta::assert_snapshot!(run(&home, &["agent", "resume", "rose"]).await.stdout, @"🌹 Rose is back, and answers what has waited when the gateway runs.");
    scene.opens().await;
    assert_eq!(scene.roses.texts().last().map(String::as_str), Some("Rose"));
    scene.ends().await;
}

/// While a gateway runs, the command line steers through it, and the change counts at once.
#[tokio::test]
async fn the_command_line_steers_agents_of_a_running_gateway() {
    let scene = Scene::new().await;
    scene.says(&scene.roses, "hi").await;
    let home = scene.house.home.path().to_owned();
    insta::assert_snapshot!(run(&home, &["agent", "pause", "Rose"]).await.stdout, @"🌹 Rose is paused. Messages are kept and answered after `parlor agent resume rose`.");
    let told = scene.says(&scene.roses, "one").await;
    assert!(told[0].contains("is paused"), "{told:?}");
    insta::assert_snapshot!(run(&home, &["agent", "resume", "rose"]).await.stdout, @"🌹 Rose is back, and answers what has waited.");
    scene.settled().await;
    assert_eq!(scene.roses.texts().last().map(String::as_str), Some("Rose"));
    insta::assert_snapshot!(run(&home, &["agent", "reset", "rose", "--yes"]).await.stdout, @"🌹 Rose begins a fresh conversation in 1 place.");
    let unknown = run(&home, &["agent", "pause", "rosa"]).await;
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    assert!(
        unknown.stderr.contains("Did you mean rose?"),
        "{}",
        unknown.stderr
    );
    let audit = scene.audit();
    let verbs: Vec<&str> = audit
        .lines()
        .filter_map(|line| line.strip_prefix("cli "))
        .collect();
    assert_eq!(
        verbs,
        [
            "agent pause rose",
            "agent resume rose",
            "agent reset rose > 1 places"
        ]
    );
    scene.ends().await;
}
