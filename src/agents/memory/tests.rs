use std::collections::HashMap;

use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::agents::{Registry, agent_rows};
use crate::config::{self, Secrets, Source};

/// A home with a database and a few agents.
struct House {
    home: TempDir,
    db: Db,
    registry: Registry,
    memories: Memories,
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
        let saving = memory
            .saving(text, Some(visibility), Provenance::default())
            .unwrap();
        memory.save(saving).await.unwrap()
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
    let house = House::new(CONFIG).await;
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
        sorted(Scope::Of(house.agent("main"))).await,
        with(&["main: a private bee"])
    );
    assert_eq!(
        sorted(Scope::Of(house.agent("ada"))).await,
        with(&["ada: a private bee"])
    );
    assert_eq!(
        sorted(Scope::Of(house.agent("rose"))).await,
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
        .list(Scope::Of(house.agent("main")), i64::MAX, 10)
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
        main.save(main.saving(&text, None, Provenance::default()).unwrap())
            .await
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
    let found = main.search("honey", 10).await.unwrap();
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
                .saving("x", visibility, Provenance::default())
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
                    .saving(&format!("number {number}"), None, Provenance::default())
                    .unwrap();
                memory.save(saving)
            });
            futures_util::future::join_all(saves).await
        });
    let results = futures_util::future::join_all(writers).await;
    assert!(results.iter().flatten().all(Result::is_ok));
    assert_eq!(
        house.memory("main").stats().await.unwrap().counts.private,
        1000
    );
    assert_eq!(
        house.memory("ada").stats().await.unwrap().counts.private,
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
        let found = memory.search(text, 10).await.unwrap();
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
    let found = house.memory("rose").search("valve", 5).await.unwrap();
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
            .found(Scope::Of(house.agent("rose")), "bee")
            .await
            .len()
    });
    assert_eq!(seen().await, 2);
    assert_eq!(house.db.write(move |tx| archive(tx, ada)).await.unwrap(), 2);
    assert_eq!(seen().await, 0);
    assert_eq!(
        house.found(Scope::Of(house.agent("main")), "bee").await,
        ["main: own bee"]
    );
    let stats = house.memory("ada").stats().await.unwrap();
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
        house.found(Scope::Of(house.agent("ada")), "bee").await,
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
    let found = rose.search("bee", 10).await.unwrap();
    assert_eq!(found.len(), 3);
    let forgetting = rose.forgetting(&found);
    assert_eq!(
        house
            .db
            .write(move |tx| forgetting.write(tx))
            .await
            .unwrap(),
        1
    );
    assert_eq!(rose.search("bee", 10).await.unwrap().len(), 2);
    let foreign = house
        .memories
        .list(Scope::Global, i64::MAX, 10)
        .await
        .unwrap()[0]
        .id;
    assert_eq!(rose.own(foreign).await.unwrap(), None);
}

/// S2.37
#[tokio::test]
async fn recall_fits_its_budget_and_leaves_out_what_the_prompt_has() {
    let house =
        House::new("[agents.rose]\nrecall_tokens = 60\n[agents.ada]\nrecall = false\n").await;
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
        .recall("tell me about the bee")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(block.matches("old oak").count(), 1, "{block}");
    assert!(!block.contains("bee bee"), "{block}");
    assert_eq!(
        house.memory("rose").recall("nothing known").await.unwrap(),
        None
    );
    assert_eq!(house.memory("ada").recall("bee").await.unwrap(), None);
    assert!(
        house
            .memory("main")
            .recall("bee")
            .await
            .unwrap()
            .unwrap()
            .contains("- [rose] ")
    );
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
    assert_eq!(house.memory("ada").recall("bee").await.unwrap(), None);
    assert!(house.memory("main").recall("bee").await.is_err());
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
            .read(move |connection| rose.recall_on(connection, text))
            .await
            .unwrap()
    };
    for (path, line) in [
        ("agents/rose/memory/2026-11-16.md", "the bee"),
        ("agents/ada/memory/2026-11-16.md", "the wasp"),
    ] {
        house.write(path, line);
        assert_eq!(at_hand(line).await, Recalled::IndexIsOld);
        let found = house.memory("rose").recall(line).await.unwrap();
        assert!(
            found.as_ref().is_some_and(|found| found.contains(line)),
            "{found:?}"
        );
        assert_eq!(at_hand(line).await, Recalled::Found(found));
    }
    assert_eq!(at_hand("nothing known").await, Recalled::Found(None));
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
    let newest = main.search("the plan", 3).await.unwrap();
    assert_eq!(newest.len(), 3);
    assert!(newest.iter().all(|entry| entry.created_at >= 1000));
    assert_eq!(
        main.search("the plan 7", 3).await.unwrap()[0].text,
        "the plan 7"
    );
    insta::assert_snapshot!(main.memories.explain(Scope::Global, "the plan").await.unwrap(), @"
    clause: visibility = 'global'
    words:  nothing: no visible memory has any of these words
    ");
    let explained = main
        .memories
        .explain(Scope::Of(house.agent("main")), "the plan 7")
        .await
        .unwrap();
    insta::assert_snapshot!(explained.replace(&house.agent("main").uid.to_string(), "UID"), @r#"
    clause: visibility = 'global' OR (visibility = 'private' AND agent_uid IN ('UID'))
    words:  "1q7", best first (bm25)
    "#);
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
    let found = async |text: &str| main.search(text, 5).await.unwrap().len();
    for text in [
        "who is the one?",
        "What is it that is in there?",
        "wer ist das?",
        "Where is the heron?",
        "这是什么",
        "¿qué es?",
    ] {
        assert_eq!(found(text).await, 0, "{text}");
        assert_eq!(main.recall(text).await.unwrap(), None, "{text}");
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
        .explain(Scope::Of(house.agent("main")), "who is the one?")
        .await
        .unwrap();
    assert!(
        explained.ends_with("words:  nothing: these words are in every text"),
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
            house.memory("main").search(text, 5).await.unwrap().len(),
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
    let told = |text: &str| {
        memory
            .saving(text, None, Provenance::default())
            .unwrap_err()
            .to_string()
    };
    insta::assert_snapshot!(told(" \n"), @"There is nothing to remember.");
    insta::assert_snapshot!(told(&"x".repeat(MAX_TEXT_BYTES + 1)), @"A memory has at most 8 KiB. Make it shorter, or save it in parts.");
}

/// Rows of four agents, with readers drawn by lot.
#[derive(Debug, Clone)]
struct World {
    rows: Vec<(usize, Visibility, String)>,
    reads: Vec<(usize, usize)>,
    query: String,
    limit: u32,
}

const IDS: [&str; 4] = ["main", "a", "b", "c"];

fn worlds() -> impl Strategy<Value = World> {
    let visibility = prop_oneof![Just(Visibility::Private), Just(Visibility::Global)];
    let word = prop_oneof![
        Just("bee"),
        Just("tea"),
        Just("oak"),
        Just("AND"),
        Just("1q")
    ];
    let text = proptest::collection::vec(word, 1..4).prop_map(|words| words.join(" "));
    let rows = proptest::collection::vec((0..IDS.len(), visibility, text), 0..20);
    let reads = proptest::collection::vec((0..IDS.len(), 0..IDS.len()), 0..4);
    let query = prop_oneof![
        "(bee|tea|oak|AND|OR|NOT|NEAR|\"|'|\\*|\\^|:|\\(|\\)|-|\\+|\\{|\\}|words:|1q| ){0,12}",
        "\\PC{0,40}",
        Just("0qbee 1qbee 2qbee 3qbee".to_owned()),
    ];
    (rows, reads, query, 1_u32..8).prop_map(|(rows, reads, query, limit)| World {
        rows,
        reads,
        query,
        limit,
    })
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

    fn sees(&self, reader: usize, (owner, visibility, _): &(usize, Visibility, String)) -> bool {
        *visibility == Visibility::Global
            || *owner == reader
            || self.reads.contains(&(reader, *owner))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..Default::default() })]

    /// S0.63 for every pair of agents; no question fails.
    #[test]
    fn nobody_finds_what_it_may_not_see(world in worlds()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let house = House::new(&world.config()).await;
            let mut ids = Vec::new();
            for (owner, visibility, text) in &world.rows {
                ids.push(house.save(IDS[*owner], text, *visibility).await);
            }
            let row_of = |id: i64| &world.rows[ids.iter().position(|known| *known == id).unwrap()];
            for (reader, id) in IDS.iter().enumerate() {
                let agent = house.agent(id);
                let found = house.memories.search(Scope::Of(agent), &world.query, world.limit).await.unwrap();
                prop_assert!(found.iter().all(|entry| world.sees(reader, row_of(entry.id))));
                // All visible rows are found, up to the limit.
                let asked = stop_words::telling(&world.query);
                let fits = |row: &(usize, Visibility, String)| tokenizer::words(&row.2).iter().any(|word| asked.contains(word));
                let visible = world.rows.iter().filter(|row| world.sees(reader, row) && fits(row)).count();
                prop_assert_eq!(found.len(), visible.min(world.limit as usize));
            }
            let global = house.memories.search(Scope::Global, &world.query, 100).await.unwrap();
            prop_assert!(global.iter().all(|entry| row_of(entry.id).1 == Visibility::Global));
            Ok(())
        })?;
    }
}

/// S2.40
#[tokio::test]
async fn an_import_brings_the_same_rows_and_a_second_one_none() {
    let house = House::new(CONFIG).await;
    for text in ["tea\nwith milk", "tea", "tea", "<!-- memory -->"] {
        house.save("rose", text, Visibility::Private).await;
    }
    let rose = house.memory("rose");
    let exported = rose.newest(i64::MAX, 100).await.unwrap();
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
    let again = other.memory("rose").newest(i64::MAX, 100).await.unwrap();
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
        house.found(Scope::Of(&newcomer), "bee").await,
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
    let found = house.found(Scope::Of(memory.agent()), "roses").await;
    assert_eq!(found.len(), 2, "{found:?}");
    house.memories.wipe().await.unwrap();
    let whole = "SELECT count(*) FROM memories_fts WHERE memories_fts MATCH '1qrose'";
    assert_eq!(house.count(whole).await, 1);
}
