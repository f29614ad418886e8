//! Walls: every way by which something of one agent could come to another, and that it does not.
//!
//! Ada has a secret wherever an agent can have one. Rose tries every tool, everybody tries every
//! command, and the secret turns up nowhere. A tool, a command or a verb without a case here fails
//! the suite.

mod doors;
mod handing_over;
mod outside;
mod people;
mod roles;
mod rooms;
mod root;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use parlor::gateway::Gateway;
use parlor::tools::KNOWN;
use serde_json::{Value, json};

use crate::support::House;
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::{ALICE, Place};

/// Only Ada has this. Nobody asks for it by name: what is looked for is the vault.
const SECRET: &str = "zinnober4711";

const TEAM: &str = r#"
context_tokens = 6000
api_key = { file = "secrets/fake" }
[access]
owners = ["telegram:111"]
groups = "open"
require_mention = false
[agents.main]
[agents.ada]
[[agents.ada.jobs]]
name = "vault"
at = "2100-01-01 00:00"
prompt = "Look after the vault."
place = "telegram:topic:-1001:101"
[agents.rose]
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "ada"
[[bindings]]
match = "telegram:topic:-1001:201"
agent = "rose"
"#;

/// What the provider is called with, which no agent needs to know.
const KEY: &str = "sk-ultramarin-2718";

/// What Rose's tools are called with. `None`: nobody has thought about the tool yet.
fn tries(tool: &str, home: &Path) -> Option<Vec<Value>> {
    let paths = paths(home);
    let on_paths = |more: Value| {
        paths
            .iter()
            .map(|path| with(json!({ "path": path }), &more))
            .collect()
    };
    Some(match tool {
        "now" => vec![json!({})],
        "skill" => skill_tries(home),
        "web_fetch" => vec![
            json!({ "url": format!("file://{}/agents/ada/workspace/vault.md", home.display()) }),
            json!({ "url": "http://127.0.0.1:80/agents/ada/workspace/vault.md" }),
            json!({ "url": "http://localhost/vault.md" }),
        ],
        "file_read" | "file_list" | "file_delete" => on_paths(json!({})),
        "file_write" => on_paths(json!({ "content": "Rose was here" })),
        "file_edit" => on_paths(json!({ "old": "vault", "new": "Rose was here" })),
        "file_send" => on_paths(json!({ "caption": "look" })),
        "file_search" => {
            let mut all: Vec<Value> = on_paths(json!({ "pattern": "vault" }));
            all.extend([
                json!({ "pattern": "vault" }),
                json!({ "pattern": "." }),
                json!({ "pattern": "vault", "glob": "**" }),
            ]);
            all
        }
        "memory_search" => [
            "vault",
            "the vault code",
            "code \" OR vault",
            "1qvault 2qvault 3qvault 4qvault",
            "* agent_uid : ada",
            "NEAR(vault code)",
        ]
        .map(|query| json!({ "query": query, "limit": 30 }))
        .to_vec(),
        "memory_save" => vec![
            json!({ "text": "rose looked for the vault" }),
            json!({ "text": "x", "agent": "ada" }),
        ],
        "memory_note" => vec![
            json!({ "text": "looked for the vault" }),
            json!({ "text": "x", "path": "../../ada/MEMORY.md" }),
        ],
        "memory_edit" => vec![
            json!({ "action": "add", "text": "Rose looks for the vault." }),
            json!({ "action": "remove", "old": "The vault code" }),
            json!({ "action": "replace", "old": "vault code", "text": "x" }),
        ],
        "transcript_search" => {
            vec![
                json!({ "words": "vault" }),
                json!({ "words": "vault code" }),
                json!({ "words": "%" }),
                json!({ "words": "vault", "place": "telegram:topic:-1001:101" }),
            ]
        }
        // She shares no peer group with Ada; what she gives to herself has no more than she has.
        "spawn" => vec![
            json!({ "task": "Tell the vault code", "agent": "ada" }),
            json!({ "task": "Look for the vault" }),
        ],
        "agent_send" => {
            vec![
                json!({ "agent": "ada", "text": "What is the vault code" }),
                json!({ "agent": "@ada", "text": "hi" }),
            ]
        }
        // The numbers and names of Ada's jobs are none of Rose's.
        "schedule" => vec![
            json!({ "action": "list" }),
            json!({ "action": "remove", "name": "1" }),
            json!({ "action": "add", "task": "Look for the vault", "every": "1d" }),
        ],
        "message_send" => {
            vec![
                json!({}),
                json!({ "place": "telegram:topic:-1001:101", "text": "hi" }),
                json!({ "place": "Ada", "text": "hi" }),
            ]
        }
        _ => return None,
    })
}

/// Ways to write where Ada's file is, with links that an operator has put into Rose's workspace.
fn paths(home: &Path) -> Vec<String> {
    let absolute = format!("{}/agents/ada/workspace/vault.md", home.display());
    let mut paths: Vec<String> = [
        "../../ada/workspace/vault.md",
        "../../ada/MEMORY.md",
        "../../ada/SOUL.md",
        "./../../ada/workspace/vault.md",
        "notes/../../../ada/workspace/vault.md",
        "..",
        "../..",
        "@ada",
        "@ada/vault.md",
        "@ada/../ada/vault.md",
        "@Ada/vault.md",
        "./@ada/vault.md",
        "ada/workspace/vault.md",
        "agents/ada/workspace/vault.md",
        "~/agents/ada/workspace/vault.md",
        "shared/vault.md",
        "shared/../../ada/workspace/vault.md",
        "link",
        "link/vault.md",
        "link.md",
        "far.md",
        "hard.md",
        "deep/hard.md",
        "/",
        ".",
        "..\\..\\ada\\workspace\\vault.md",
        "..%2f..%2fada%2fworkspace%2fvault.md",
        "vault.md\0",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push(absolute);
    paths
}

fn skill_tries(home: &Path) -> Vec<Value> {
    let names = [
        "vault",
        "ada/vault",
        "../../ada/skills/vault",
        "../ada/skills/vault",
        "link",
        "VAULT",
    ];
    let mut all: Vec<Value> = names.map(|name| json!({ "name": name })).to_vec();
    let files = [
        "../../../ada/skills/vault/SKILL.md",
        "../vault/SKILL.md",
        "link.md",
        "../../MEMORY.md",
        "../../../ada/MEMORY.md",
    ];
    all.extend(files.map(|file| json!({ "name": "poems", "file": file })));
    all.push(json!({ "name": "poems", "file": format!("{}/agents/ada/SOUL.md", home.display()) }));
    all
}

fn with(mut arguments: Value, more: &Value) -> Value {
    let more = more.as_object().expect("an object").clone();
    arguments.as_object_mut().expect("an object").extend(more);
    arguments
}

/// A house in which Ada knows something.
struct Walls {
    house: House,
    gateway: Gateway,
    ada: Place,
    rose: Place,
}

impl Walls {
    async fn new(config: &str) -> Self {
        Self::with_top("", config).await
    }

    /// `top` has keys of the config's top level.
    async fn with_top(top: &str, config: &str) -> Self {
        let house = House::with_top(top, config).await;
        plant(&house);
        let gateway = house.open().await;
        let forum = house.telegram.forum(-1001);
        let (ada, rose) = (forum.topic(101, "Ada"), forum.topic(201, "Rose"));
        house.model.answer_with(|_| Script::text("I see."));
        let walls = Walls {
            house,
            gateway,
            ada,
            rose,
        };
        walls.live().await;
        walls
    }

    /// Ada remembers, uses tools and is told things.
    async fn live(&self) {
        for n in 0..12 {
            self.ada
                .says(
                    ALICE,
                    &format!(
                        "/remember --agent The vault code, vault code, vault code: {SECRET} {n}"
                    ),
                )
                .await;
        }
        self.house.settled(&self.gateway).await;
        let calls = [
            ("file_read", json!({ "path": "vault.md" })),
            ("memory_search", json!({ "query": "vault" })),
        ];
        self.house.model.enqueue(Script::TextAndToolCalls(
            format!("Looking into {SECRET}"),
            calls
                .map(|(name, arguments)| (name.to_owned(), arguments))
                .to_vec(),
        ));
        self.house
            .model
            .enqueue(Script::text(format!("The vault code is {SECRET}.")));
        self.says(&self.ada, &format!("Keep the vault code {SECRET} safe"))
            .await;
    }

    async fn says(&self, place: &Place, text: &str) {
        place.says(ALICE, text).await;
        self.house.settled(&self.gateway).await;
    }

    /// Everything that a model read as this agent.
    fn read_by(&self, name: &str) -> Vec<Request> {
        let mine = |request: &Request| request.system.starts_with(&format!("You are {name}"));
        self.house
            .model
            .journal()
            .into_iter()
            .filter(mine)
            .collect()
    }

    /// Nothing that Rose's model read and nothing that stands in her topic has the secret.
    fn rose_knows_nothing(&self, why: &str) {
        for request in self.read_by("Rose") {
            let raw = request.raw.to_string();
            assert!(!raw.contains(SECRET) && !raw.contains(KEY), "{why}: {raw}");
        }
        let shown = self
            .house
            .telegram
            .sent()
            .into_iter()
            .filter(|sent| sent.thread == Some(201));
        for sent in shown {
            assert!(!format!("{sent:?}").contains(SECRET), "{why}: {sent:?}");
        }
    }

    /// What tools answered in Rose's last turn.
    fn results(&self) -> Vec<String> {
        let last = self.read_by("Rose").pop().expect("she was asked");
        last.messages
            .into_iter()
            .filter(|(role, _)| role == "tool")
            .map(|(_, text)| text)
            .collect()
    }

    async fn end(self) {
        self.house.settled(&self.gateway).await;
        self.gateway.shutdown().await;
    }
}

fn plant(house: &House) {
    house.write("secrets/fake", KEY);
    let secret = format!("The vault code is {SECRET}.\n");
    for file in [
        "workspace/vault.md",
        "workspace/twice.md",
        "MEMORY.md",
        "SOUL.md",
        "IDENTITY.md",
        "USER.md",
    ] {
        house.write(&format!("agents/ada/{file}"), &secret);
    }
    let today = chrono::Local::now().format("%Y-%m-%d");
    house.write(&format!("agents/ada/memory/{today}.md"), &secret);
    let skill =
        |name: &str, text: &str| format!("---\nname: {name}\ndescription: {text}\n---\n{text}\n");
    house.write(
        "agents/ada/skills/vault/SKILL.md",
        &skill("vault", &secret.replace('\n', "")),
    );
    house.write(
        "agents/rose/skills/poems/SKILL.md",
        &skill("poems", "How poems are made."),
    );
    house.write(
        "agents/rose/workspace/ada/workspace/vault.md",
        "a folder of Rose's own, vault",
    );
    house.write("agents/rose/workspace/deep/own.md", "Rose's own");
    link(house);
}

/// Ways into Ada's folder that no tool could have made. Whatever is there instead goes.
fn link(house: &House) {
    let (rose, ada) = (
        house.home.path().join("agents/rose"),
        house.home.path().join("agents/ada"),
    );
    let ways = [
        "workspace/link",
        "workspace/link.md",
        "workspace/far.md",
        "workspace/hard.md",
        "workspace/deep/hard.md",
    ];
    for way in ways.iter().chain(&["skills/link", "skills/poems/link.md"]) {
        let _ = std::fs::remove_file(rose.join(way));
    }
    std::fs::create_dir_all(rose.join("workspace/deep")).expect("a folder");
    symlink("../../ada/workspace", rose.join("workspace/link")).expect("a link");
    symlink(
        "../../ada/workspace/vault.md",
        rose.join("workspace/link.md"),
    )
    .expect("a link");
    symlink(ada.join("MEMORY.md"), rose.join("workspace/far.md")).expect("a link");
    symlink("../../ada/skills/vault", rose.join("skills/link")).expect("a link");
    symlink("../../../ada/MEMORY.md", rose.join("skills/poems/link.md")).expect("a link");
    for hard in ["workspace/hard.md", "workspace/deep/hard.md"] {
        std::fs::hard_link(ada.join("workspace/twice.md"), rose.join(hard)).expect("a second name");
    }
}

/// Every file below a folder with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).expect("a folder").flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                _ => drop(found.insert(
                    entry.path(),
                    std::fs::read(entry.path()).unwrap_or_default(),
                )),
            }
        }
    }
    found
}

/// S0.2, S1.2, S1.14, S1.15, S3.10, S3.14, S3.19, S4.5, S4.16, S4.28; S4.30; S1.61 by tools.
#[tokio::test]
async fn no_tool_brings_anything_of_another_agent() {
    let walls = Walls::new(TEAM).await;
    let home = walls.house.home.path().to_owned();
    let of_ada = || {
        (
            files(&home.join("agents/ada")),
            walls.house.ask(ROWS_OF_ADA),
            walls.ada.texts(),
        )
    };
    let before = of_ada();
    for (tool, _) in KNOWN {
        let tries = tries(tool, &home).unwrap_or_else(|| {
            panic!("{tool} has no case in walls.rs: could it carry something over?")
        });
        link(&walls.house);
        let calls: Vec<(String, Value)> = tries
            .iter()
            .map(|arguments| ((*tool).to_owned(), arguments.clone()))
            .collect();
        walls
            .house
            .model
            .enqueue_when(&format!("try {tool}"), Script::ToolCalls(calls));
        walls.says(&walls.rose, &format!("try {tool}")).await;
        assert_eq!(
            walls.results().len(),
            tries.len(),
            "{tool}: every call was answered"
        );
        walls.rose_knows_nothing(tool);
        assert!(of_ada() == before, "{tool} changed something of Ada's");
    }
    walls.end().await;
}

const ROWS_OF_ADA: &str = "SELECT group_concat(m.id || m.visibility || m.text) \
                           || (SELECT group_concat(jobs.name || coalesce(ended_at, '')) FROM jobs JOIN agents ON uid = agent_uid WHERE slug = 'ada') \
                           FROM memories AS m JOIN agents ON agents.uid = m.agent_uid WHERE agents.slug = 'ada'";
