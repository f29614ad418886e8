//! The second dimension of the walls: every tool, command, button and verb, tried by everybody else
//! for the belongings of one member.
//!
//! Alice is a member. In her private chat with Main she has a memory, a note, a file and a
//! conversation, each with a secret. A guest, another member, an admin, an owner, and a subagent and
//! a peer that work for the other member try to get at them or to change them, from their own
//! private chats and from a topic. A tool, command or verb without a case here fails the suite.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use parlor::commands::SPECS;
use parlor::gateway::Gateway;
use parlor::tools::KNOWN;
use serde_json::{Value, json};

use super::people::calls;
use super::{SECRET, files, with};
use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::webhook::post;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Place, User, buttons};

const EVE: User = User::person(555, "Eve");
const DORA: User = User::person(666, "Dora");

/// Everybody may use every tool, so that the ceiling of a role is not the wall that holds.
const HOUSE: &str = r#"
[access]
owners = ["telegram:333"]
dms = "open"
groups = "open"
require_mention = false
tools = { guest = "reach", member = "reach", admin = "reach", owner = "reach" }
[limits]
tokens_per_day = 1_000_000_000
[people.alice]
ids = ["telegram:111"]
role = "member"
[people.bob]
ids = ["telegram:222"]
role = "member"
[people.dora]
ids = ["telegram:666"]
role = "admin"
[agents.main]
[agents.rose]
who = "guest"
read_memory_from = ["main"]
access = { write = ["main"] }
[peer_groups.desk]
members = ["main", "rose"]
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "main"
[[bindings]]
match = "telegram:topic:-1001:201"
agent = "rose"
"#;

/// Somebody other than Alice, and how the call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Actor {
    Guest,
    OtherMember,
    Admin,
    Owner,
    /// Main's subagent, for the other member.
    Subagent,
    /// Rose, asked by Main for the other member.
    Peer,
}

impl Actor {
    /// Those who write commands and press buttons.
    const PEOPLE: [Actor; 4] = [Actor::Guest, Actor::OtherMember, Actor::Admin, Actor::Owner];

    fn user(self) -> User {
        match self {
            Actor::Guest => EVE,
            Actor::OtherMember | Actor::Subagent | Actor::Peer => BOB,
            Actor::Admin => DORA,
            Actor::Owner => CAROL,
        }
    }

    /// Files are seen by the people of their place and by owners.
    fn may_see_files(self) -> bool {
        self == Actor::Owner
    }

    fn may_see(self, tool: &str) -> bool {
        self.may_see_files() && (tool.starts_with("file_"))
    }
}

/// A house in which Alice has something to lose.
struct Company {
    house: House,
    gateway: Gateway,
    /// Her file, below Main's workspace.
    file: String,
}

impl Company {
    async fn new() -> Self {
        let house = House::new(HOUSE).await;
        let gateway = house.open().await;
        house.model.answer_with(|_| Script::text("I see."));
        let mut company = Company {
            house,
            gateway,
            file: String::new(),
        };
        company.live().await;
        company
    }

    async fn live(&mut self) {
        let alice = self.house.telegram.dm(ALICE);
        let says = async |text: &str| {
            alice.says(text).await;
            self.house.settled(&self.gateway).await;
        };
        says(&format!("/remember The vault code is {SECRET}")).await;
        self.house.model.enqueue_when(
            "write that down",
            calls(&[(
                "memory_note",
                json!({ "text": format!("Talked about the vault {SECRET}") }),
            )]),
        );
        says("write that down").await;
        self.house
            .telegram
            .keeps_file("vault", format!("The vault code: {SECRET}").as_bytes());
        alice
            .says("")
            .without("text")
            .with(
                "document",
                json!({ "file_id": "vault", "file_unique_id": "vault", "file_name": "vault.txt" }),
            )
            .await;
        self.house.settled(&self.gateway).await;
        says(&format!("The vault code, for you alone: {SECRET}")).await;
        let workspace = self.house.home.path().join("agents/main/workspace");
        let stored = self.of_alice().files;
        let path = stored.keys().next().expect("her file is stored");
        let path = path.strip_prefix(workspace).expect("it is Main's");
        self.file = path.to_str().expect("a plain name").to_owned();
    }

    /// Everything that is Alice's.
    fn of_alice(&self) -> Belongings {
        let home = self.house.home.path();
        let inbox = home.join("agents/main/workspace/inbox/telegram.dm.111");
        let ask = |sql: &str| self.house.ask(sql);
        Belongings {
            files: if inbox.exists() {
                files(&inbox)
            } else {
                BTreeMap::new()
            },
            memories: ask(
                "SELECT group_concat(id || visibility || text, '|') FROM memories WHERE person = 'telegram:111'",
            ),
            words: ask(
                "SELECT group_concat(text, '|') FROM messages JOIN places ON places.id = messages.place_id \
                 WHERE places.key = 'telegram:dm:111'",
            ),
            place: ask(
                "SELECT group_concat(conversation, '|') FROM places WHERE key = 'telegram:dm:111'",
            ),
            pins: ask(
                "SELECT count(*) FROM pins JOIN places ON places.id = pins.place_id WHERE places.key = 'telegram:dm:111'",
            ),
            models: ask(
                "SELECT count(*) FROM model_overrides JOIN places ON places.id = place_id WHERE places.key = 'telegram:dm:111'",
            ),
        }
    }

    /// How often the secret stood in what a model read, and in what was sent to somebody else.
    fn times_told(&self) -> (usize, usize) {
        let read = self.house.model.journal();
        let sent = self.house.telegram.sent();
        (
            read.iter().filter(|request| request.has(SECRET)).count(),
            sent.iter()
                .filter(|sent| sent.chat_id != ALICE.id && format!("{sent:?}").contains(SECRET))
                .count(),
        )
    }

    /// Where this person writes: at home, and in a topic of the agent.
    fn places(&self, actor: Actor) -> [Place; 2] {
        let topic = self.house.telegram.forum(-1001).topic(101, "Main");
        [self.house.telegram.dm(actor.user()).place().clone(), topic]
    }

    /// Has the actor's model call a tool, and gives back what the calls came to.
    async fn calls(&self, actor: Actor, place: &Place, tool: &str, tries: &[Value]) -> Vec<String> {
        let wanted: Vec<(&str, Value)> = tries.iter().map(|args| (tool, args.clone())).collect();
        let model = &self.house.model;
        let asked = model.journal().len();
        let task = format!("go on with {tool}");
        let words = match actor {
            Actor::Subagent => {
                model.enqueue_when("hand it down", calls(&[("spawn", json!({ "task": task }))]));
                "hand it down"
            }
            Actor::Peer => {
                let send = json!({ "agent": "rose", "text": task });
                model.enqueue_when("hand it over", calls(&[("agent_send", send)]));
                "hand it over"
            }
            _ => task.as_str(),
        };
        model.enqueue_when(&task, calls(&wanted));
        place.says(actor.user(), words).await;
        self.house.settled(&self.gateway).await;
        let journal = model.journal().split_off(asked);
        let answered = journal.iter().find(|request| {
            let results = request.messages.iter().rev();
            results.take_while(|(role, _)| role == "tool").count() == tries.len()
                && request
                    .messages
                    .iter()
                    .any(|(role, text)| role == "call" && text.starts_with(tool))
        });
        let answered = answered.unwrap_or_else(|| panic!("{actor:?}: {tool} was not called"));
        let results = answered.results();
        results[results.len() - tries.len()..]
            .iter()
            .map(|result| (*result).to_owned())
            .collect()
    }

    async fn end(self) {
        self.house.close(self.gateway).await;
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Belongings {
    files: BTreeMap<PathBuf, Vec<u8>>,
    memories: String,
    words: String,
    place: String,
    pins: String,
    models: String,
}

/// Calls for something of Alice's. `None`: nobody has thought about the tool yet.
fn tries(tool: &str, file: &str) -> Option<Vec<Value>> {
    let folder = file.rsplit_once('/').expect("a folder").0;
    let paths = [
        file.to_owned(),
        format!("./{file}"),
        format!(
            "inbox/telegram.dm.222/../telegram.dm.111/{}",
            &file[folder.len() + 1..]
        ),
        format!("@main/{file}"),
        folder.to_owned(),
        "inbox".to_owned(),
        ".".to_owned(),
    ];
    let on_paths = |more: Value| {
        let one = |path: &String| with(json!({ "path": path }), &more);
        paths.iter().map(one).collect::<Vec<Value>>()
    };
    Some(match tool {
        "now" => vec![json!({})],
        "skill" => vec![json!({ "name": "vault" })],
        "web_fetch" => vec![json!({ "url": format!("http://127.0.0.1/{file}") })],
        "file_read" | "file_delete" => on_paths(json!({})),
        "file_list" => on_paths(json!({ "recursive": true })),
        "file_write" => on_paths(json!({ "content": "x" })),
        "file_edit" => on_paths(json!({ "old": "vault", "new": "x" })),
        "file_send" => on_paths(json!({ "caption": "look" })),
        "file_search" => on_paths(json!({ "pattern": "vault" })),
        "memory_search" => vec![
            json!({ "query": "vault code", "limit": 30 }),
            json!({ "query": "vault", "person": "telegram:111" }),
            json!({ "query": "vault", "place": "telegram:dm:111" }),
        ],
        "memory_save" => vec![
            json!({ "text": "x", "person": "telegram:111" }),
            json!({ "text": "x", "place": "telegram:dm:111" }),
        ],
        "memory_note" => vec![json!({ "text": "x", "person": "telegram:111" })],
        "memory_edit" => vec![
            json!({ "action": "remove", "old": "vault" }),
            json!({ "action": "replace", "old": "vault", "text": "x" }),
        ],
        "transcript_search" => vec![
            json!({ "words": "vault" }),
            json!({ "words": "vault code", "place": "telegram:dm:111" }),
            json!({ "words": "vault", "person": "telegram:111" }),
        ],
        "spawn" => vec![json!({ "task": "tell the code of the vault" })],
        "agent_send" => vec![json!({ "agent": "rose", "text": "tell the code of the vault" })],
        // An owner may write to anybody; see `only_an_owner_has_an_agent_write_to_other_people`.
        "message_send" => vec![json!({}), json!({ "place": "Alice", "text": "x" })],
        // Jobs are made in the place of the turn alone, and listed for their maker and admins there.
        "schedule" => vec![
            json!({ "action": "list" }),
            json!({ "action": "remove", "name": "vault" }),
        ],
        _ => return None,
    })
}

/// Guests get fewer calls in a round than a member.
const CALLS_AT_ONCE: usize = 3;

async fn try_every_tool(actor: Actor) {
    let company = Company::new().await;
    let before = company.of_alice();
    for (tool, _) in KNOWN {
        let tries = tries(tool, &company.file).unwrap_or_else(|| {
            panic!("{tool} has no case in walls/roles.rs: whose things could it reach?")
        });
        // Owners may change what people sent.
        if actor.may_see(tool) && ["file_write", "file_edit", "file_delete"].contains(tool) {
            continue;
        }
        for place in company.places(actor) {
            for tries in tries.chunks(CALLS_AT_ONCE) {
                let told = company.times_told();
                let results = company.calls(actor, &place, tool, tries).await;
                assert_eq!(results.len(), tries.len());
                if !actor.may_see(tool) {
                    assert_eq!(
                        company.times_told(),
                        told,
                        "{actor:?}: {tool} {tries:?} {results:?}"
                    );
                }
                assert_eq!(company.of_alice(), before, "{actor:?}: {tool} {tries:?}");
            }
        }
    }
    company.end().await;
}

#[tokio::test]
async fn no_tool_brings_a_guest_to_a_members_things() {
    try_every_tool(Actor::Guest).await;
}

#[tokio::test]
async fn no_tool_brings_a_member_to_another_members_things() {
    try_every_tool(Actor::OtherMember).await;
}

#[tokio::test]
async fn no_tool_brings_an_admin_to_a_members_things() {
    try_every_tool(Actor::Admin).await;
}

#[tokio::test]
async fn no_tool_but_those_for_files_brings_an_owner_to_a_members_things() {
    try_every_tool(Actor::Owner).await;
}

#[tokio::test]
async fn no_tool_of_a_subagent_reaches_further_than_its_person() {
    try_every_tool(Actor::Subagent).await;
}

#[tokio::test]
async fn no_tool_of_a_peer_reaches_further_than_its_person() {
    try_every_tool(Actor::Peer).await;
}

/// The tries find something: Alice herself gets at all of it, and an owner at the file.
#[tokio::test]
async fn alice_herself_finds_all_of_it() {
    let company = Company::new().await;
    let alice = company.house.telegram.dm(ALICE);
    for tool in ["file_read", "file_search", "memory_search"] {
        let tries = tries(tool, &company.file).expect("a case");
        let wanted = [(tool, tries[0].clone())];
        company
            .house
            .model
            .enqueue_when(&format!("go on with {tool}"), calls(&wanted));
        alice.says("/new").await;
        alice.says(&format!("go on with {tool}")).await;
        company.house.settled(&company.gateway).await;
        let results = company.house.model.last_request();
        assert!(results.results()[0].contains(SECRET), "{tool}: {results:?}");
    }
    let [carol, _] = company.places(Actor::Owner);
    let read = tries("file_read", &company.file).expect("a case");
    let results = company
        .calls(Actor::Owner, &carol, "file_read", &read[..1])
        .await;
    assert!(results[0].contains(SECRET), "{results:?}");
    company.end().await;
}

#[tokio::test]
async fn only_an_owner_has_an_agent_write_to_other_people() {
    let company = Company::new().await;
    let alice = company.house.telegram.dm(ALICE);
    let send = [json!({ "place": "telegram:dm:111", "text": "boo" })];
    let heard = alice.texts().len();
    for actor in [Actor::Guest, Actor::OtherMember, Actor::Admin] {
        for place in company.places(actor) {
            company.calls(actor, &place, "message_send", &send).await;
            assert_eq!(alice.texts().len(), heard, "{actor:?}");
        }
    }
    let [carol, _] = company.places(Actor::Owner);
    company
        .calls(Actor::Owner, &carol, "message_send", &send)
        .await;
    assert_eq!(alice.texts().len(), heard + 1);
    company.end().await;
}

/// Commands aimed at Alice's things. `None`: nobody has thought about the command yet.
fn commands(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "agent" => &[
            "/agent",
            "/agent rose",
            "/agent rose once",
            "/agent for 1h rose",
            "/agent why",
            "/agent reset",
            // An owner may do these; nobody else reaches a member's conversation with them.
            "/agent pause rose",
            "/agent restart rose",
            "/agent resume rose",
        ],
        "agents" => &["/agents"],
        "model" => &["/model", "/model fake/other", "/model reset"],
        "models" => &["/models"],
        "whoami" => &["/whoami", "/whoami telegram:111"],
        "new" => &["/new"],
        "stop" => &["/stop", "/stop all"],
        "queue" => &["/queue", "/queue clear"],
        "status" => &["/status"],
        "usage" => &["/usage", "/usage 30d"],
        "skills" => &["/skills"],
        "memory" => &["/memory", "/memory vault", "/memory telegram:111"],
        "remember" => &["/remember the sky is blue"],
        // The first two memories are Alice's.
        "forget" => &[
            "/forget vault",
            "/forget 1",
            "/forget 1 yes",
            "/forget 2 yes",
        ],
        "help" => &["/help"],
        "reload" => &["/reload"],
        "bind" => &["/bind main"],
        "unbind" => &["/unbind"],
        "audit" => &["/audit", "/audit 100"],
        // There is nothing of Alice's to decide about.
        "approvals" => &["/approvals"],
        "approve" => &["/approve 1"],
        "refuse" => &["/refuse 1"],
        "doctor" => &["/doctor"],
        "trace" => &["/trace"],
        "dashboard" => &["/dashboard"],
        "retry" => &["/retry"],
        "deliver" => &["/deliver", "/deliver off", "/deliver on"],
        "pair" => &["/pair", "/pair ABCD-EFGH", "/pair ABCD-EFGH yes"],
        // The config says who Alice is, and no command changes that.
        "unpair" => &["/unpair telegram:111"],
        "people" => &[
            "/people",
            "/people show telegram:111",
            "/people role telegram:111 guest",
            "/people role alice owner",
            "/people role telegram:222 admin main",
        ],
        "allow" => &["/allow telegram:111 5 today", "/allow house 5 this month"],
        "pause" => &["/pause background"],
        "resume" => &["/resume background"],
        "jobs" => &["/jobs", "/jobs pause 1"],
        _ => return None,
    })
}

/// Every command by everybody, then every button that was shown, pressed by everybody.
#[tokio::test]
async fn no_command_and_no_button_reaches_another_members_things() {
    let company = Company::new().await;
    let (before, told) = (company.of_alice(), company.times_told());
    for spec in SPECS {
        let lines = commands(spec.name).unwrap_or_else(|| {
            panic!(
                "/{} has no case in walls/roles.rs: whose things could it show?",
                spec.name
            )
        });
        for actor in Actor::PEOPLE {
            for (place, line) in company
                .places(actor)
                .into_iter()
                .flat_map(|place| lines.iter().map(move |line| (place.clone(), line)))
            {
                place.says(actor.user(), line).await;
                company.house.settled(&company.gateway).await;
                assert_eq!(company.times_told(), told, "{actor:?}: {line}");
                assert_eq!(company.of_alice(), before, "{actor:?}: {line}");
            }
        }
    }
    let shown = company.house.telegram.sent();
    let mut pressed = 0;
    for message in shown.iter().filter(|sent| sent.chat_id != ALICE.id) {
        for (label, data) in buttons(&message.reply_markup) {
            for actor in Actor::PEOPLE {
                for place in company.places(actor) {
                    if place.chat_id != message.chat_id {
                        continue;
                    }
                    place.presses(actor.user(), message.message_id, &data).await;
                    company.house.settled(&company.gateway).await;
                    pressed += 1;
                    assert_eq!(company.times_told(), told, "{actor:?} pressed {label}");
                    assert_eq!(company.of_alice(), before, "{actor:?} pressed {label}");
                }
            }
        }
    }
    assert!(pressed > 20, "{pressed} buttons were pressed");
    company.end().await;
}

/// Only an owner changes roles and budgets and pauses work; an admin sees people, others do not.
#[tokio::test]
async fn only_an_owner_changes_people_budgets_and_switches() {
    let company = Company::new().await;
    let changed = || {
        company.house.ask(
            "SELECT (SELECT count(*) FROM person_roles) + (SELECT count(*) FROM person_links)
                 + (SELECT count(*) FROM pauses) + (SELECT sum(more_tokens) FROM budgets)",
        )
    };
    let lines = [
        "/allow house 7 tokens today",
        "/people role telegram:555 admin",
        "/people role telegram:555 member rose",
        "/pause background",
    ];
    for actor in [Actor::Guest, Actor::OtherMember, Actor::Admin] {
        let [home, topic] = company.places(actor);
        for line in lines {
            for place in [&home, &topic] {
                place.says(actor.user(), line).await;
                company.house.settled(&company.gateway).await;
                let told = place.texts().pop().expect("a reply");
                assert!(told.starts_with("Only owners"), "{actor:?}: {line}: {told}");
                assert_eq!(changed(), "0", "{actor:?}: {line}");
            }
        }
        home.says(actor.user(), "/people").await;
        company.house.settled(&company.gateway).await;
        let told = home.texts().pop().expect("a reply");
        assert_eq!(
            told.contains("telegram:111"),
            actor == Actor::Admin,
            "{told}"
        );
        topic.says(DORA, "/people").await;
        company.house.settled(&company.gateway).await;
        let told = topic.texts().pop().expect("a reply");
        assert!(!told.contains("telegram:"), "others read along: {told}");
    }
    let [carol, _] = company.places(Actor::Owner);
    for line in lines {
        carol.says(CAROL, line).await;
        company.house.settled(&company.gateway).await;
    }
    assert_eq!(changed(), "10", "two roles, a switch and seven tokens");
    company.end().await;
}

/// What is Alice's is changed neither by commands of others in a topic that she talks in: her
/// running turn and her waiting messages stay.
#[tokio::test]
async fn commands_of_lower_roles_leave_a_members_work_alone() {
    let company = Company::new().await;
    let topic = company.house.telegram.forum(-1001).topic(101, "Main");
    let asked = company.house.model.journal().len();
    company
        .house
        .model
        .enqueue_when("a long task", Script::text("Done with it.").held());
    topic.says(ALICE, "a long task").await;
    company.house.model.wait_for_requests(asked + 1).await;
    topic.says(ALICE, "and then this").await;
    company.house.all_in_their_lanes().await;
    let mut sent = topic.texts().len();
    for line in ["/stop", "/stop all", "/queue clear", "/new"] {
        topic.says(EVE, line).await;
        sent += 1;
        topic.wait_for_sent(sent).await;
    }
    company.house.model.release();
    company.house.settled(&company.gateway).await;
    assert!(
        topic
            .texts()
            .iter()
            .any(|text| text.contains("Done with it."))
    );
    assert_eq!(company.house.model.asked_about("and then this").len(), 1);
    company.end().await;
}

/// Whom a verb of the command line acts for.
enum ActsFor {
    /// The owner of the machine, who may read every file of the home anyway.
    Operator,
    /// The person at the terminal, with a place of their own.
    Terminal,
}

/// `None`: nobody has thought about the verb yet.
fn acts_for(verb: &str) -> Option<ActsFor> {
    Some(match verb {
        "chat" | "ask" => ActsFor::Terminal,
        "run" | "init" | "setup" | "config" | "route" | "agent" | "skill" | "memory" | "recall"
        | "remember" | "forget" | "usage" | "audit" | "failed" | "pair" | "people" | "allow"
        | "pause" | "resume" | "job" | "security" | "status" | "queue" | "pin" | "new" | "stop"
        | "reload" | "dashboard" | "token" | "help" | "version" | "completions" | "logs"
        | "man" | "approvals" | "sessions" | "backup" | "restore" | "doctor" | "import"
        | "export" => ActsFor::Operator,
        _ => return None,
    })
}

/// The terminal is a place of its own: it recalls nothing of a member. And everybody else on the
/// machine is kept out by the modes of the home.
#[tokio::test]
async fn every_verb_acts_for_the_operator_or_for_the_terminal() {
    let company = Company::new().await;
    let home = company.house.home.path().to_owned();
    let help = run(&home, &["--help"]).await.stdout;
    let mut of_terminal = Vec::new();
    for verb in super::outside::verbs(&help) {
        match acts_for(&verb) {
            Some(ActsFor::Operator) => {}
            Some(ActsFor::Terminal) => of_terminal.push(verb),
            None => panic!("`parlor {verb}` has no case in walls/roles.rs: whom does it act for?"),
        }
    }
    assert!(of_terminal.contains(&"chat".to_owned()));
    let told = company.times_told();
    let Company { house, gateway, .. } = company;
    gateway.shutdown().await;
    house.model.enqueue_when(
        "go on",
        calls(&[
            (
                "memory_search",
                json!({ "query": "vault code", "limit": 30 }),
            ),
            ("transcript_search", json!({ "words": "vault" })),
        ]),
    );
    let said =
        crate::cli::run_with_input(&home, &["chat"], "what is the vault code\ngo on\n").await;
    assert!(!said.stdout.contains(SECRET), "{}", said.stdout);
    let read = house.model.journal();
    let read = read.iter().filter(|request| request.has(SECRET)).count();
    assert_eq!(read, told.0, "the terminal's model read it");
    let mode = std::fs::metadata(&home)
        .expect("a home")
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0, "others may not enter the home");
}

/// Tries to be an owner at a door that listens. `None`: nobody has thought about the door yet.
async fn knock(section: &str) -> Option<()> {
    match section {
        "telegram.webhook" => knock_at_the_webhook().await,
        "admin" => knock_at_the_admin_listener().await,
        _ => return None,
    }
    Some(())
}

async fn knock_at_the_webhook() {
    let house = House::new(HOUSE).await;
    let listen = crate::webhook::free_address();
    crate::webhook::hook(&house, &listen);
    let gateway = crate::webhook::open(&house).await;
    let update = json!({ "update_id": 7, "message": { "message_id": 7, "date": 1_770_000_000,
        "chat": { "id": CAROL.id, "type": "private", "first_name": "Carol" }, "from": CAROL.json(), "text": "/pair" } });
    let body = update.to_string();
    let secret = house.telegram.webhook_secret();
    for forged in [None, Some(""), Some("0"), Some(&secret[1..])] {
        let status = post(&listen, forged, body.as_bytes()).await;
        assert_ne!(status.expect("an answer"), 200, "{forged:?}");
    }
    house.settled(&gateway).await;
    assert_eq!(house.ask("SELECT count(*) FROM inbox"), "0");
    assert!(house.telegram.sent().is_empty());
    gateway.shutdown().await;
}

/// The admin listener shows numbers and takes in nothing, with or without a token.
async fn knock_at_the_admin_listener() {
    let listen = crate::webhook::free_address();
    let admin = format!("[admin]\nlisten = \"{listen}\"\ntoken = {{ file = \"secrets/admin\" }}\n");
    let house = House::new(&format!("{HOUSE}{admin}")).await;
    house.write("secrets/admin", "a-token-of-the-operator");
    let process = house.spawn().await;
    process
        .wait_for_log(&format!("the admin listener is on {listen}"))
        .await;
    let update = json!({ "from": ALICE.json(), "text": "/pair" }).to_string();
    for forged in [
        None,
        Some("a-token-of-the-operato"),
        Some("a-token-of-the-operator"),
    ] {
        let status = post(&listen, forged, update.as_bytes()).await;
        assert_ne!(status.expect("an answer"), 200, "{forged:?}");
    }
    assert_eq!(house.ask("SELECT count(*) FROM inbox"), "0");
    assert!(house.telegram.sent().is_empty());
    assert_eq!(process.stop().await, 0);
}

/// A stranger at a door says that an owner wrote: without the secret nothing of it is taken in.
#[tokio::test]
async fn no_listener_takes_an_owners_words_from_a_stranger() {
    let mut section = "";
    let mut doors = 0;
    for line in include_str!("../../../config.example.toml").lines() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
        } else if line.starts_with("listen = ") {
            doors += 1;
            knock(section)
                .await
                .unwrap_or_else(|| panic!("[{section}] listens and has no case in walls/roles.rs"));
        }
    }
    assert!(doors > 0, "the example shows the doors");
}
