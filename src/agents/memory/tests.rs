use std::collections::HashMap;

use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::agents::{Registry, agent_rows};
use crate::config::{self, Secrets, Source};
use crate::domain::{Marks, PersonId};

/// A home with a database and a few agents.
struct House {
    home: TempDir,
    db: Db,
    registry: Registry,
    memories: Memories,
}

/// The operator, who sees what is for everybody.
fn desk() -> Reader {
    Reader::operator(&[], None)
}

const CONFIG: &str =
    "[agents.rose]\nread_memory_from = [\"ada\"]\n[agents.ada]\n[agents.mute]\nmemory = \"off\"\n";

impl House {
    async fn new(config: &str) -> Self {
        let home = TempDir::new().unwrap();
        let db = Db::open(&home.path().join("parlor.db")).await.unwrap();
        let registry = registry(&home, &db, config).await;
        House {
            memories: Memories::new(db.clone()),
            home,
            db,
            registry,
        }
    }

    fn agent(&self, id: &str) -> &Arc<Agent> {
        self.registry.find(id).unwrap()
    }

    fn memory(&self, id: &str) -> Memory {
        self.memories.of(self.agent(id)).unwrap()
    }

    async fn save(&self, id: &str, text: &str, visibility: Visibility) -> i64 {
        let memory = self.memory(id);
        let saving = memory.saving(&desk(), text, Some(visibility)).unwrap();
        memory.save(saving).await.unwrap().unwrap()
    }

    async fn found(&self, scope: Scope<'_>, text: &str) -> Vec<String> {
        let found = self.memories.search(scope, text, 10).await.unwrap();
        found
            .into_iter()
            .map(|entry| format!("{}: {}", entry.agent, entry.text))
            .collect()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    async fn count(&self, sql: &'static str) -> i64 {
        self.db
            .read(move |connection| connection.query_row(sql, [], |row| row.get(0)))
            .await
            .unwrap()
    }
}

async fn registry(home: &TempDir, db: &Db, text: &str) -> Registry {
    let source = Source {
        path: "config.toml".into(),
        text: text.to_owned(),
    };
    let config = config::draft(source, home.path(), Secrets::WherePresent)
        .finish()
        .unwrap();
    let ids: Vec<AgentId> = config.agents.iter().map(|agent| agent.id.clone()).collect();
    db.write(move |tx| agent_rows::add(tx, &ids, 1))
        .await
        .unwrap();
    let known = db.read(agent_rows::load).await.unwrap();
    let uids: HashMap<_, _> = known
        .into_iter()
        .map(|(id, known)| (id, known.uid))
        .collect();
    Registry::new(&config, home.path(), &uids)
}

/// S0.63, S0.64, S0.21, S4.16, S3.17
#[tokio::test]
async fn an_agent_sees_its_own_the_global_and_those_it_reads_from() {
    let (house, desk) = (House::new(CONFIG).await, desk());
    for id in ["main", "rose", "ada"] {
        house.save(id, "a private bee", Visibility::Private).await;
        house.save(id, "a global bee", Visibility::Global).await;
    }
    let sorted = async |scope| {
        let mut found = house.found(scope, "bee").await;
        found.sort();
        found
    };
    let globals = [
        "ada: a global bee",
        "main: a global bee",
        "rose: a global bee",
    ];
    assert_eq!(sorted(Scope::Global).await, globals);
    let with = |private: &[&str]| {
        let mut all: Vec<String> = globals
            .iter()
            .chain(private)
            .map(ToString::to_string)
            .collect();
        all.sort();
        all
    };
    assert_eq!(
        sorted(Scope::Of(house.agent("main"), &desk)).await,
        with(&["main: a private bee"])
    );
    assert_eq!(
        sorted(Scope::Of(house.agent("ada"), &desk)).await,
        with(&["ada: a private bee"])
    );
    assert_eq!(
        sorted(Scope::Of(house.agent("rose"), &desk)).await,
        with(&["ada: a private bee", "rose: a private bee"])
    );
    let listed = house
        .memories
        .list(Scope::Global, i64::MAX, 10)
        .await
        .unwrap();
    assert_eq!(listed.len(), 3);
    let listed = house
        .memories
        .list(Scope::Of(house.agent("main"), &desk), i64::MAX, 10)
        .await
        .unwrap();
    assert_eq!(listed.len(), 4);
}

/// S0.16: better ranked rows of other agents neither hide visible rows nor change their order.
#[tokio::test]
async fn better_foreign_rows_hide_nothing() {
    let house = House::new(CONFIG).await;
    let (main, ada) = (house.memory("main"), house.memory("ada"));
    for number in 0..10 {
        // In a longer row each word counts less.
        let text = format!("honey {}", "filler ".repeat(10 + number));
        main.save(main.saving(&desk(), &text, None).unwrap())
            .await
            .unwrap()
            .unwrap();
    }
    let rows: Vec<ExportedMemory> = (0..1000)
        .map(|number| ExportedMemory {
            agent: AgentId::parse("ada").unwrap(),
            visibility: Visibility::Private,
            text: "honey honey honey".into(),
            said: Provenance::default(),
            created_at: number,
        })
        .collect();
    assert_eq!(
        ada.import(rows).await.unwrap(),
        Imported {
            new: 1000,
            known: 0
        }
    );
    let found = main.search(&desk(), "honey", 10).await.unwrap();
    assert_eq!(found.len(), 10);
    assert!(found.iter().all(|entry| entry.agent == "main"));
    assert!(
        found.is_sorted_by_key(|entry| entry.text.len()),
        "best first"
    );
}

/// S0.61, S0.62, S2.48
#[tokio::test]
async fn the_config_says_who_sees_what_nobody_said() {
    for (config, expected) in [
        ("", Visibility::Private),
        (
            "[memory]\ndefault_visibility = \"global\"\n",
            Visibility::Global,
        ),
    ] {
        let house = House::new(config).await;
        let memory = house.memory("main");
        let saving = |visibility| {
            memory
                .saving(&desk(), "x", visibility)
                .unwrap()
                .visibility()
        };
        assert_eq!(saving(None), expected);
        assert_eq!(saving(Some(Visibility::Private)), Visibility::Private);
    }
}

/// S3.23
#[tokio::test]
async fn an_agent_without_memory_has_no_handle() {
    let house = House::new(CONFIG).await;
    assert!(house.memories.of(house.agent("mute")).is_none());
}

/// S0.53
#[tokio::test]
async fn two_agents_writing_at_once_lose_nothing() {
    let house = House::new(CONFIG).await;
    let other = Memories::new(
        Db::open(&house.home.path().join("parlor.db"))
            .await
            .unwrap(),
    );
    let writers =
        [house.memory("main"), other.of(house.agent("ada")).unwrap()].map(|memory| async move {
            let saves = (0..1000).map(|number| {
                let saving = memory
                    .saving(&desk(), &format!("number {number}"), None)
                    .unwrap();
                memory.save(saving)
            });
            futures_util::future::join_all(saves).await
        });
    let results = futures_util::future::join_all(writers).await;
    assert!(results.iter().flatten().all(Result::is_ok));
    assert_eq!(
        house
            .memory("main")
            .stats_of_all()
            .await
            .unwrap()
            .counts
            .private,
        1000
    );
    assert_eq!(
        house
            .memory("ada")
            .stats_of_all()
            .await
            .unwrap()
            .counts
            .private,
        1000
    );
}

/// S1.14, S1.15, S1.16, S2.41
#[tokio::test]
async fn files_are_found_while_they_are_there_and_under_their_agent_only() {
    let house = House::new(CONFIG).await;
    let (main, ada) = (house.memory("main"), house.memory("ada"));
    house.write(
        "agents/main/MEMORY.md",
        "# People\n\nAnn keeps bees.\n\n# Things\n\nThe kettle is loud.\n",
    );
    main.note("saw a heron".into()).await.unwrap();
    house.write("agents/main/memory/README.md", "heron notes are elsewhere");
    let texts = async |memory: &Memory, text: &str| {
        let found = memory.search(&desk(), text, 10).await.unwrap();
        found
            .into_iter()
            .map(|entry| (entry.path.unwrap_or_default(), entry.text))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts(&main, "bees").await,
        [(
            "MEMORY.md".to_owned(),
            "# People\n\nAnn keeps bees.".to_owned()
        )]
    );
    assert_eq!(texts(&main, "heron").await.len(), 1);
    assert_eq!(texts(&ada, "bees heron").await, []);

    let before = house.count("SELECT max(id) FROM memories").await;
    main.edit(Edit::Replace {
        old: "bees".into(),
        new: "wasps".into(),
    })
    .await
    .unwrap();
    assert_eq!(texts(&main, "bees").await, []);
    assert_eq!(texts(&main, "wasps").await.len(), 1);
    assert_eq!(
        house.count("SELECT max(id) FROM memories").await,
        before + 1,
        "only the changed piece was written anew"
    );

    house
        .save("main", "bees moved out", Visibility::Private)
        .await;
    std::fs::remove_file(house.home.path().join("agents/main/MEMORY.md")).unwrap();
    assert_eq!(texts(&main, "wasps").await, []);
    assert_eq!(texts(&main, "bees").await.len(), 1);
}

/// A reader also sees the present files of the agents it reads from.
#[tokio::test]
async fn a_reader_sees_the_files_of_those_it_reads_from() {
    let house = House::new(CONFIG).await;
    house.write("agents/ada/MEMORY.md", "The valve sticks.");
    let found = house
        .memory("rose")
        .search(&desk(), "valve", 5)
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    assert!(
        found[0]
            .shown_to(Some(house.agent("rose")))
            .starts_with("[ada] ")
    );
}

#[tokio::test]
async fn unchanged_files_cost_no_write_and_no_read_of_them() {
    let house = House::new(CONFIG).await;
    house.write("agents/main/MEMORY.md", "The kettle is loud.");
    let main = house.memory("main");
    main.refresh().await.unwrap();
    let changes = house.count("SELECT count(*) FROM memory_files").await;
    assert_eq!(changes, 1);
    // Were the file read again, these rows would come back.
    house
        .db
        .write(|tx| tx.execute("DELETE FROM memory_files", []))
        .await
        .unwrap();
    main.refresh().await.unwrap();
    assert_eq!(house.count("SELECT count(*) FROM memory_files").await, 0);
}

/// S1.16, S1.17
#[tokio::test]
async fn a_removed_agent_takes_its_memories_along_and_brings_them_back() {
    let house = House::new(CONFIG).await;
    house.save("ada", "private bee", Visibility::Private).await;
    house.save("ada", "global bee", Visibility::Global).await;
    house.save("main", "own bee", Visibility::Private).await;
    let (ada, seen) = (house.agent("ada").uid, async || {
        house
            .found(Scope::Of(house.agent("rose"), &desk()), "bee")
            .await
            .len()
    });
    assert_eq!(seen().await, 2);
    assert_eq!(house.db.write(move |tx| archive(tx, ada)).await.unwrap(), 2);
    assert_eq!(seen().await, 0);
    assert_eq!(
        house
            .found(Scope::Of(house.agent("main"), &desk()), "bee")
            .await,
        ["main: own bee"]
    );
    let stats = house.memory("ada").stats_of_all().await.unwrap();
    assert_eq!((stats.counts.archived, stats.global_of_all), (2, 0));
    assert_eq!(house.db.write(move |tx| restore(tx, ada)).await.unwrap(), 2);
    assert_eq!(seen().await, 2);
    assert_eq!(house.found(Scope::Global, "bee").await, ["ada: global bee"]);
    assert_eq!(house.db.write(move |tx| purge(tx, ada)).await.unwrap(), 2);
    assert_eq!(seen().await, 0);
    assert_eq!(house.count("SELECT count(*) FROM memories_fts").await, 1);
}

/// S3.18
#[tokio::test]
async fn a_renamed_agent_keeps_its_memories() {
    let house = House::new(CONFIG).await;
    house.save("ada", "bee", Visibility::Private).await;
    house
        .db
        .write(|tx| tx.execute("UPDATE agents SET slug = 'lovelace' WHERE slug = 'ada'", []))
        .await
        .unwrap();
    assert_eq!(
        house
            .found(Scope::Of(house.agent("ada"), &desk()), "bee")
            .await,
        ["lovelace: bee"]
    );
}

#[tokio::test]
async fn only_own_saved_memories_can_be_forgotten() {
    let house = House::new(CONFIG).await;
    house.save("ada", "ada's bee", Visibility::Global).await;
    house.save("rose", "rose's bee", Visibility::Private).await;
    house.write("agents/rose/MEMORY.md", "a bee in a file");
    let rose = house.memory("rose");
    let found = rose.search(&desk(), "bee", 10).await.unwrap();
    assert_eq!(found.len(), 3);
    let forgetting = rose.forgetting(&desk(), &found);
    assert_eq!(
        house
            .db
            .write(move |tx| forgetting.write(tx))
            .await
            .unwrap(),
        1
    );
    assert_eq!(rose.search(&desk(), "bee", 10).await.unwrap().len(), 2);
    let foreign = house
        .memories
        .list(Scope::Global, i64::MAX, 10)
        .await
        .unwrap()[0]
        .id;
    assert_eq!(rose.own(&desk(), foreign).await.unwrap(), None);
}

fn in_words(recalled: &[Said]) -> String {
    Marks::new(&[7, 5, 3, 0]).mark_all(recalled).into_text()
}

/// S2.37
#[tokio::test]
async fn recall_fits_its_budget_and_leaves_out_what_the_prompt_has() {
    let house =
        House::new("[agents.rose]\nrecall_tokens = 80\n[agents.ada]\nrecall = false\n").await;
    for number in 0..5 {
        house
            .save(
                "rose",
                &format!("bee number {number} lives in the old oak"),
                Visibility::Global,
            )
            .await;
    }
    house.write("agents/rose/MEMORY.md", "bee bee bee");
    let block = house
        .memory("rose")
        .recall(&desk(), "tell me about the bee")
        .await
        .unwrap();
    let block = in_words(&block.said);
    assert_eq!(block.matches("old oak").count(), 1, "{block}");
    assert!(!block.contains("bee bee"), "{block}");
    assert_eq!(
        house
            .memory("rose")
            .recall(&desk(), "nothing known")
            .await
            .unwrap()
            .said,
        []
    );
    let found = house.memory("ada").recall(&desk(), "bee").await.unwrap();
    assert_eq!(found.said, []);
    let found = house.memory("main").recall(&desk(), "bee").await.unwrap();
    assert!(in_words(&found.said).contains(" of @rose⟧ "));
}

/// `recall = false` asks nothing at all: a missing table is not noticed.
#[tokio::test]
async fn without_recall_nothing_is_asked() {
    let house = House::new("[agents.ada]\nrecall = false\n").await;
    house
        .db
        .write(|tx| tx.execute_batch("DROP TABLE memories_fts; DROP TABLE memory_files"))
        .await
        .unwrap();
    let found = house.memory("ada").recall(&desk(), "bee").await.unwrap();
    assert_eq!(found.said, []);
    assert!(house.memory("main").recall(&desk(), "bee").await.is_err());
}

/// A turn asks on its own connection, and takes the longer way only after a change of a file: the
/// agent's own file, or a readable file of another agent.
#[tokio::test]
async fn a_recall_at_hand_says_when_the_index_is_old() {
    let house = House::new("[agents.rose]\nread_memory_from = [\"ada\"]\n[agents.ada]\n").await;
    let at_hand = async |text: &'static str| {
        let rose = house.memory("rose");
        house
            .db
            .read(move |connection| rose.recall_on(connection, &desk(), text))
            .await
            .unwrap()
    };
    for (path, line) in [
        ("agents/rose/memory/2026-11-16.md", "the bee"),
        ("agents/ada/memory/2026-11-16.md", "the wasp"),
    ] {
        house.write(path, line);
        assert_eq!(at_hand(line).await, Recalled::IndexIsOld);
        let found = house.memory("rose").recall(&desk(), line).await.unwrap();
        assert!(in_words(&found.said).contains(line), "{found:?}");
        assert_eq!(at_hand(line).await, Recalled::Found(found));
    }
    assert_eq!(
        at_hand("nothing known").await,
        Recalled::Found(Recollection::default())
    );
}

#[tokio::test]
async fn words_that_nearly_every_row_has_find_the_newest() {
    let house = House::new("").await;
    let carried = (0..3000).map(|number| ExportedMemory {
        agent: AgentId::main(),
        visibility: Visibility::Private,
        text: format!("the plan {number}"),
        said: Provenance::default(),
        created_at: number,
    });
    let main = house.memory("main");
    main.import(carried.collect()).await.unwrap();
    let newest = main.search(&desk(), "the plan", 3).await.unwrap();
    assert_eq!(newest.len(), 3);
    assert!(newest.iter().all(|entry| entry.created_at >= 1000));
    assert_eq!(
        main.search(&desk(), "the plan 7", 3).await.unwrap()[0].text,
        "the plan 7"
    );
    insta::assert_snapshot!(main.memories.explain(Scope::Global, "the plan").await.unwrap(), @"
    searched: global memories
    for: nothing: none of these memories has any of the words
    ");
    let explained = main
        .memories
        .explain(Scope::Of(house.agent("main"), &desk()), "the plan 7")
        .await
        .unwrap();
    insta::assert_snapshot!(explained, @"
    searched: memories of Main, global memories
    for: any of: 7; the best match first
    ");
}

/// Words found in every text find nothing, in any language.
#[tokio::test]
async fn a_question_finds_what_it_is_about() {
    let house = House::new("").await;
    house
        .save(
            "main",
            "The kettle is in the kitchen, and it is the one that leaks.",
            Visibility::Private,
        )
        .await;
    house
        .save(
            "main",
            "Der Schlüssel ist in der Garage bei dem Rad.",
            Visibility::Private,
        )
        .await;
    house
        .save("main", "猫的名字是小白", Visibility::Private)
        .await;
    let main = house.memory("main");
    let found = async |text: &str| main.search(&desk(), text, 5).await.unwrap().len();
    for text in [
        "who is the one?",
        "What is it that is in there?",
        "wer ist das?",
        "Where is the heron?",
        "这是什么",
        "¿qué es?",
    ] {
        assert_eq!(found(text).await, 0, "{text}");
        assert_eq!(main.recall(&desk(), text).await.unwrap().said, [], "{text}");
    }
    for text in [
        "Is the kettle in here?",
        "Wo ist der Schlüssel?",
        "kettles",
        "小白是谁",
        "Is there a Garage?",
    ] {
        assert_eq!(found(text).await, 1, "{text}");
    }
    let explained = house
        .memories
        .explain(Scope::Of(house.agent("main"), &desk()), "who is the one?")
        .await
        .unwrap();
    assert!(
        explained.ends_with("for: nothing: these words are in almost every text"),
        "{explained}"
    );
}

#[tokio::test]
async fn what_is_said_with_other_endings_and_accents_is_found() {
    let house = House::new("").await;
    house
        .save(
            "main",
            "Invoices for Zoë are paid in Zürich. 记忆搜索",
            Visibility::Private,
        )
        .await;
    for text in ["invoice", "PAYING invoice?", "zoe", "zurich", "搜索"] {
        assert_eq!(
            house
                .memory("main")
                .search(&desk(), text, 5)
                .await
                .unwrap()
                .len(),
            1,
            "{text}"
        );
    }
}

#[test]
fn memories_have_a_size() {
    let agent = Arc::new(super::super::tests::agent_of(Path::new("home"), "main"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let home = TempDir::new().unwrap();
    let db = runtime
        .block_on(Db::open(&home.path().join("parlor.db")))
        .unwrap();
    let memory = Memories::new(db).of(&agent).unwrap();
    let told = |text: &str| memory.saving(&desk(), text, None).unwrap_err().to_string();
    insta::assert_snapshot!(told(" \n"), @"There is nothing to remember.");
    insta::assert_snapshot!(told(&"x".repeat(8 * 1024 + 1)), @"A memory has at most 8 KiB. Make it shorter, or save it in parts.");
}

/// Rows of four agents from three people in three places, with readers drawn by lot.
#[derive(Debug, Clone)]
struct World {
    rows: Vec<Row>,
    reads: Vec<(usize, usize)>,
    query: String,
    limit: u32,
}

#[derive(Debug, Clone)]
struct Row {
    owner: usize,
    visibility: Visibility,
    person: usize,
    place: usize,
    text: String,
}

const IDS: [&str; 4] = ["main", "a", "b", "c"];
/// The first two are the same person.
const PEOPLE: [&str; 3] = ["telegram:1", "discord:2", "telegram:3"];
const OF_ONE: [&[usize]; 3] = [&[0, 1], &[0, 1], &[2]];
const KEYS: [&str; 4] = [
    "telegram:dm:1",
    "telegram:topic:-100:7",
    "telegram:dm:3",
    "telegram:group:-100:3",
];

fn worlds() -> impl Strategy<Value = World> {
    let word = prop_oneof![
        Just("bee"),
        Just("tea"),
        Just("oak"),
        Just("AND"),
        Just("1q")
    ];
    let text = proptest::collection::vec(word, 1..4).prop_map(|words| words.join(" "));
    let visibility = proptest::sample::select(Visibility::ALL);
    let row = (
        0..IDS.len(),
        visibility,
        0..PEOPLE.len(),
        0..KEYS.len(),
        text,
    );
    let row = row.prop_map(|(owner, visibility, person, place, text)| Row {
        owner,
        visibility,
        person,
        place,
        text,
    });
    let rows = proptest::collection::vec(row, 0..24);
    let reads = proptest::collection::vec((0..IDS.len(), 0..IDS.len()), 0..4);
    let query = prop_oneof![
        3 => "(bee|tea|oak|AND|OR|NOT|NEAR|\"|'|\\*|\\^|:|\\(|\\)|-|\\+|\\{|\\}|words:|1q| ){0,12}",
        1 => "\\PC{0,40}",
        1 => Just("0qbee 1qbee 2qbee 3qbee 4qbee 5qbee".to_owned()),
        3 => Just("bee tea oak".to_owned()),
    ];
    (rows, reads, query, 1_u32..12).prop_map(|(rows, reads, query, limit)| World {
        rows,
        reads,
        query,
        limit,
    })
}

impl Row {
    fn said(&self) -> Provenance {
        Provenance {
            place: Some(KEYS[self.place].parse().unwrap()),
            person: Some(PEOPLE[self.person].parse().unwrap()),
        }
    }
}

/// For whom and where something is read; no person: several people ask.
type Asker = (Option<usize>, usize);

fn reader((person, place): Asker) -> Reader {
    let ids: Vec<PersonId> = person
        .iter()
        .flat_map(|person| OF_ONE[*person])
        .map(|id| PEOPLE[*id].parse().unwrap())
        .collect();
    let speaker = PEOPLE[person.unwrap_or(0)].parse().unwrap();
    Reader::new(&speaker, &ids, &KEYS[place].parse().unwrap(), Role::Member)
}

impl World {
    fn config(&self) -> String {
        let reads = |reader: usize| {
            let of = self
                .reads
                .iter()
                .filter(|(one, other)| *one == reader && one != other);
            of.map(|(_, other)| format!("\"{}\"", IDS[*other]))
                .collect::<Vec<_>>()
                .join(", ")
        };
        (0..IDS.len())
            .map(|agent| {
                format!(
                    "[agents.{}]\nread_memory_from = [{}]\n",
                    IDS[agent],
                    reads(agent)
                )
            })
            .collect()
    }

    /// The rule in plain words.
    fn sees(&self, agent: usize, (person, place): Asker, is_searched_for: bool, row: &Row) -> bool {
        let is_read = row.owner == agent || self.reads.contains(&(agent, row.owner));
        let is_own = person.is_some_and(|person| OF_ONE[person].contains(&row.person));
        let is_private = KEYS[place].starts_with("telegram:dm:");
        match row.visibility {
            Visibility::Global => true,
            Visibility::Private => is_read,
            Visibility::Place => is_read && row.place == place,
            Visibility::Person => is_read && is_own && (is_private || is_searched_for),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..Default::default() })]

    /// S0.63 for every agent, person and place: a read finds exactly the rows that the rule allows,
    /// and no question fails.
    #[test]
    fn nobody_finds_what_it_may_not_see(world in worlds()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let house = House::new(&world.config()).await;
            let mut ids = Vec::new();
            for row in &world.rows {
                let new = rows::New {
                    owner: house.agent(IDS[row.owner]).uid,
                    visibility: row.visibility,
                    path: None,
                    text: row.text.clone(),
                    said: row.said(),
                    labels: crate::domain::Labels::NONE,
                    created_at: 1,
                };
                ids.push(house.db.write(move |tx| rows::insert(tx, &new)).await.unwrap());
            }
            let row_of = |id: i64| &world.rows[ids.iter().position(|known| *known == id).unwrap()];
            let asked = stop_words::telling(&world.query);
            let fits = |row: &Row| tokenizer::words(&row.text).iter().any(|word| asked.contains(word));
            let askers = [None, Some(0), Some(1), Some(2)];
            let askers = askers.into_iter().flat_map(|person| (0..KEYS.len()).map(move |place| (person, place)));
            for asker in askers {
                let reader = reader(asker);
                for (number, id) in IDS.iter().enumerate() {
                    let agent = house.agent(id);
                    for is_searched_for in [true, false] {
                        let scope = if is_searched_for { Scope::Of(agent, &reader) } else { Scope::RecalledBy(agent, &reader) };
                        let sees = |row: &Row| world.sees(number, asker, is_searched_for, row);
                        let found = house.memories.search(scope, &world.query, world.limit).await.unwrap();
                        prop_assert!(found.iter().all(|entry| sees(row_of(entry.id))), "{asker:?} {id}");
                        // All visible rows are found, up to the limit.
                        let visible = world.rows.iter().filter(|row| sees(row) && fits(row)).count();
                        prop_assert_eq!(found.len(), visible.min(world.limit as usize));
                        let listed = house.memories.list(scope, i64::MAX, 100).await.unwrap();
                        prop_assert_eq!(listed.len(), world.rows.iter().filter(|row| sees(row)).count());
                    }
                    let memory = house.memory(id);
                    let is_own = |row: &&Row| row.owner == number;
                    let newest = memory.newest(&reader, 100).await.unwrap();
                    let expected = world.rows.iter().filter(is_own).filter(|row| world.sees(number, asker, false, row));
                    prop_assert_eq!(newest.len(), expected.count());
                    for (known, row) in ids.iter().zip(&world.rows) {
                        let found = memory.own(&reader, *known).await.unwrap();
                        prop_assert_eq!(found.is_some(), is_own(&row) && world.sees(number, asker, true, row));
                    }
                }
            }
            let global = house.memories.search(Scope::Global, &world.query, 100).await.unwrap();
            prop_assert!(global.iter().all(|entry| row_of(entry.id).visibility == Visibility::Global));
            Ok(())
        })?;
    }
}

fn person_in(id: &str, place: &str, role: Role) -> Reader {
    let id: PersonId = id.parse().unwrap();
    Reader::new(
        &id,
        std::slice::from_ref(&id),
        &place.parse().unwrap(),
        role,
    )
}

#[tokio::test]
async fn an_agent_keeps_so_much_from_a_guest_and_no_more() {
    let house = House::new(CONFIG).await;
    let main = house.memory("main");
    let bob = person_in("telegram:5", "telegram:topic:-100:7", Role::Guest);
    let save = async |reader: &Reader, text: &str| {
        let saving = main.saving(reader, text, None).unwrap();
        let room = main.room_for(&saving).await.unwrap();
        let saved = main.save(saving).await.unwrap().map(drop);
        assert_eq!(saved, room, "what was told before holds");
        saved
    };
    for number in 0..20 {
        save(&bob, &format!("tea {number}")).await.unwrap();
    }
    assert_eq!(
        house.count("SELECT count(*) FROM memories").await,
        20,
        "not one less"
    );
    let told = save(&bob, "tea again").await.unwrap_err().to_string();
    insta::assert_snapshot!(told, @"This person has 20 things remembered already, and that is the most. `/forget` takes one away. Nothing was saved.");
    assert_eq!(house.count("SELECT count(*) FROM memories").await, 20);
    let member = person_in("telegram:6", "telegram:topic:-100:7", Role::Member);
    save(&member, "tea of a member").await.unwrap();
    let found = main.search(&member, "tea", 30).await.unwrap();
    assert_eq!(found.len(), 21);
    assert!(
        found
            .iter()
            .filter(|entry| entry.text.starts_with("[guest] "))
            .count()
            == 20
    );
}

#[tokio::test]
async fn people_forget_their_own_and_owners_everything_they_see() {
    let house = House::new(CONFIG).await;
    let main = house.memory("main");
    let topic = "telegram:topic:-100:7";
    let (alice, bob, guest) = (
        person_in("telegram:1", topic, Role::Owner),
        person_in("telegram:2", topic, Role::Member),
        person_in("telegram:3", topic, Role::Guest),
    );
    for reader in [&alice, &bob, &guest] {
        let saving = main.saving(reader, "tea", None).unwrap();
        main.save(saving).await.unwrap().unwrap();
    }
    let may = async |reader: &Reader| {
        let seen = main.search(reader, "tea", 10).await.unwrap();
        assert_eq!(seen.len(), 3, "all are of this place");
        let mut ids = main.forgetting(reader, &seen).ids;
        ids.sort_unstable();
        ids
    };
    assert_eq!(may(&alice).await, [1, 2, 3]);
    assert_eq!(may(&bob).await, [2]);
    assert_eq!(may(&guest).await, [] as [i64; 0]);
    let elsewhere = person_in("telegram:2", "telegram:dm:2", Role::Member);
    assert_eq!(main.search(&elsewhere, "tea", 10).await.unwrap(), []);
}

/// Rows with a person or a place from before the rule stay as visible as they were.
#[tokio::test]
async fn a_restore_brings_rows_of_people_and_places_back_to_them_alone() {
    let house = House::new(CONFIG).await;
    let main = house.memory("main");
    let (dm, topic) = (
        person_in("telegram:1", "telegram:dm:1", Role::Member),
        person_in("telegram:1", "telegram:topic:-100:7", Role::Member),
    );
    for reader in [&dm, &topic] {
        let saving = main.saving(reader, "tea", None).unwrap();
        main.save(saving).await.unwrap().unwrap();
    }
    let uid = house.agent("main").uid;
    house.db.write(move |tx| archive(tx, uid)).await.unwrap();
    assert_eq!(main.search(&dm, "tea", 10).await.unwrap(), []);
    house.db.write(move |tx| restore(tx, uid)).await.unwrap();
    let seen = async |reader: &Reader| {
        let found = main.search(reader, "tea", 10).await.unwrap();
        found
            .into_iter()
            .map(|entry| entry.visibility)
            .collect::<Vec<_>>()
    };
    assert_eq!(seen(&dm).await, [Visibility::Person]);
    let recalled = main.recall(&topic, "tea").await.unwrap();
    assert_eq!(in_words(&recalled.said).matches("tea").count(), 1);
    assert_eq!(
        seen(&person_in("telegram:2", "telegram:dm:2", Role::Owner)).await,
        []
    );
}

/// S2.40
#[tokio::test]
async fn an_import_brings_the_same_rows_and_a_second_one_none() {
    let house = House::new(CONFIG).await;
    for text in ["tea\nwith milk", "tea", "tea", "<!-- memory -->"] {
        house.save("rose", text, Visibility::Private).await;
    }
    let rose = house.memory("rose");
    let exported = rose.everything(i64::MAX, 100).await.unwrap();
    let text = export::write(&exported, export::Form::Markdown);
    let other = House::new(CONFIG).await;
    let carried = export::read(&text).unwrap();
    assert_eq!(agents_of(&carried), [AgentId::parse("rose").unwrap()]);
    assert_eq!(
        other.memory("rose").import(carried.clone()).await.unwrap(),
        Imported { new: 4, known: 0 }
    );
    assert_eq!(
        other.memory("rose").import(carried.clone()).await.unwrap(),
        Imported { new: 0, known: 4 }
    );
    assert_eq!(
        rose.import(carried).await.unwrap(),
        Imported { new: 0, known: 4 }
    );
    let again = other
        .memory("rose")
        .everything(i64::MAX, 100)
        .await
        .unwrap();
    let (mut one, mut two) = (text, export::write(&again, export::Form::Markdown));
    for text in [&mut one, &mut two] {
        let mut parts: Vec<&str> = text.split("\n\n").collect();
        parts.sort_unstable();
        *text = parts.join("\n\n");
    }
    assert_eq!(one, two);
}

/// A later agent of the same id knows nothing of the first agent.
#[tokio::test]
async fn rows_hang_on_the_uid_and_not_on_the_name() {
    let house = House::new(CONFIG).await;
    house.save("ada", "bee", Visibility::Private).await;
    let newcomer = Agent {
        uid: AgentUid(Uuid::now_v7()),
        ..Agent::clone(house.agent("ada"))
    };
    assert_eq!(
        house.found(Scope::Of(&newcomer, &desk()), "bee").await,
        [] as [String; 0]
    );
}

/// The index keeps words of deleted rows until its pages are written anew.
#[tokio::test]
async fn words_of_deleted_memories_leave_the_index() {
    let house = House::new(CONFIG).await;
    let mut saved = Vec::new();
    for number in 0..300 {
        let word = if number / 5 == 2 {
            "vorblexian"
        } else {
            "green"
        };
        let text = format!("number{number} likes {word} tea in room{}", number % 7);
        saved.push(house.save("rose", &text, Visibility::Private).await);
    }
    house
        .save("rose", "roses are red", Visibility::Private)
        .await;
    house
        .save("ada", "roses are global", Visibility::Global)
        .await;
    let with_word =
        "SELECT count(*) FROM memories_fts_data WHERE instr(block, CAST('vorblex' AS BLOB)) > 0";
    let with_mark = "SELECT count(*) FROM memories_fts_data WHERE id >= 9007199254740992";
    let memory = house.memory("rose");
    let (owner, ids) = (memory.agent().uid, saved[10..15].to_vec());
    let forgetting = Forgetting { owner, ids };
    let gone = house.db.write(move |tx| forgetting.write(tx)).await;
    assert_eq!(gone.unwrap(), 5);
    house.memories.wipe().await.unwrap();
    assert_eq!(house.count(with_word).await, 0);
    assert_eq!(house.count(with_mark).await, 0);
    let found = house
        .found(
            Scope::Of(memory.agent(), &Reader::operator(&[], None)),
            "roses",
        )
        .await;
    assert_eq!(found.len(), 2, "{found:?}");
    house.memories.wipe().await.unwrap();
    let whole = "SELECT count(*) FROM memories_fts WHERE memories_fts MATCH '1qrose'";
    assert_eq!(house.count(whole).await, 1);
}

/// Memories of the schema before people and places were told apart.
const OLD_ROWS: &str = "
    INSERT INTO agents (uid, slug, created_at) VALUES ('00000000-0000-0000-0000-000000000001', 'main', 0);
    INSERT INTO places (id, key, created_at) VALUES (1, 'telegram:dm:1', 0);
    INSERT INTO memory_scopes (agent_uid, slots) VALUES ('00000000-0000-0000-0000-000000000001', 2);
    INSERT INTO memories (id, slot, agent_uid, visibility, source, text, place_id, person, created_at)
        SELECT 5, (number << 40) + 1, agent_uid, 'private', 'saved', 'old tea', 1, 'telegram:1', 7 FROM memory_scopes WHERE number > 0;
    INSERT INTO memories_fts (rowid, words) SELECT slot, '1qold 1qtea' FROM memories;
    INSERT INTO memories (id, agent_uid, visibility, archived_from, source, text, created_at)
        VALUES (9, '00000000-0000-0000-0000-000000000001', 'archived', 'global', 'saved', 'gone', 7);
    DELETE FROM memories WHERE id = 9;
    PRAGMA user_version = 2;";

#[tokio::test]
async fn memories_from_before_stay_as_visible_as_they_were() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("parlor.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    for sql in [
        include_str!("../../../migrations/V1__schema.sql"),
        include_str!("../../../migrations/V2__admins.sql"),
        OLD_ROWS,
    ] {
        old.execute_batch(sql).unwrap();
    }
    drop(old);
    let db = Db::open(&path).await.unwrap();
    let registry = registry(&home, &db, "").await;
    let house = House {
        memories: Memories::new(db.clone()),
        home,
        db,
        registry,
    };
    let bob = person_in("telegram:2", "telegram:topic:-100:7", Role::Guest);
    let main = house.memory("main");
    let found = main.search(&bob, "tea", 10).await.unwrap();
    let told: Vec<_> = found
        .iter()
        .map(|entry| (entry.id, entry.visibility, entry.text.as_str()))
        .collect();
    assert_eq!(told, [(5, Visibility::Private, "old tea")]);
    assert_eq!(house.save("main", "new tea", Visibility::Private).await, 10);
    assert_eq!(main.search(&bob, "tea", 10).await.unwrap().len(), 2);
}
