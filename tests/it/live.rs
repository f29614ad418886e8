//! A config that counts when it is saved: what changes at once, what is refused, and that nothing is
//! lost meanwhile.

use std::fs;
use std::path::Path;

use parlor::gateway::Gateway;
use parlor::home::Reload;

use crate::support::House;
use crate::support::fake_discord;
use crate::support::fake_model::{Dialect, FakeModel, Script};
use crate::support::fake_telegram::{ALICE, BOB};
use crate::support::house::Process;

/// Alice owns the house, and the topic belongs to an agent.
fn with_topic_of(agent: &str) -> String {
    format!(
        "[access]\nowners = [\"telegram:111\"]\nrequire_mention = false\n\
         [agents.main]\n[agents.rose]\nname = \"Rose\"\n[agents.ada]\nname = \"Ada\"\n\
         [[bindings]]\nmatch = \"telegram:topic:-1001:5\"\nagent = \"{agent}\"\n"
    )
}

/// Every agent answers with its name.
fn names(house: &House) {
    house.model.answer_with(|request| {
        let name = ["Rose", "Ada", "Dot", "Main"]
            .into_iter()
            .find(|name| request.system.starts_with(&format!("You are {name}")));
        Script::text(name.unwrap_or("Nobody"))
    });
}

async fn reloaded(gateway: &Gateway) -> Vec<String> {
    match gateway.reload("a test").await {
        Some(Reload::Done { changed, .. }) => changed,
        other => panic!("{other:?}"),
    }
}

/// S4.35: a block is enough.
#[tokio::test]
async fn agents_bindings_and_owners_count_without_a_restart() {
    let house = House::new(&with_topic_of("rose")).await;
    let gateway = house.open().await;
    names(&house);
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    topic.says(BOB, "hi").await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), ["Rose"]);
    let polls = house.telegram.calls("getMe").len();

    let dot = with_topic_of("dot") + "[agents.dot]\nname = \"Dot\"\n";
    house.configure("", &dot.replace("telegram:111", "telegram:222"));
    assert_eq!(
        reloaded(&gateway).await,
        ["access", "agents.dot", "bindings"]
    );
    topic.says(BOB, "hi again").await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), ["Rose", "Dot"]);
    // Bob is an owner now and Alice is not.
    topic.says(ALICE, "/reload").await;
    house.settled(&gateway).await;
    topic.says(BOB, "/reload").await;
    house.settled(&gateway).await;
    insta::assert_snapshot!(topic.texts()[2..].join("\n"), @"
    Only owners can reload the config.
    The config is reloaded. Nothing in it has changed.
    ");
    assert_eq!(house.telegram.calls("getMe").len(), polls, "connected once");
    house.close(gateway).await;
}

/// S3.30: a block saved beside a running gateway is an agent, and its first turn writes its files:
/// none that the home has, none that the operator has.
#[tokio::test]
async fn a_block_is_enough_and_the_first_turn_writes_the_files() {
    let house = House::new(&with_topic_of("rose")).await;
    house.write("SOUL.md", "Everybody here is brief.");
    house.write("agents/rose/MEMORY.md", "Rose was here before.");
    let gateway = house.open().await;
    names(&house);
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let folder = house.home.path().join("agents/dot");
    house.configure(
        "",
        &(with_topic_of("dot") + "[agents.dot]\nname = \"Dot\"\n"),
    );
    reloaded(&gateway).await;
    assert!(!folder.exists(), "nothing is written before the first turn");
    topic.says(BOB, "hi").await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), ["Dot"]);
    let system = house.model.last_request().system;
    assert!(system.contains("Everybody here is brief."), "{system}");
    assert!(system.contains("An agent of this house"), "{system}");
    assert_eq!(listed(&folder), ["IDENTITY.md", "MEMORY.md"]);

    // Later turns write nothing: what the operator takes away stays away.
    fs::remove_file(folder.join("IDENTITY.md")).expect("is there");
    topic.says(BOB, "hi again").await;
    house.settled(&gateway).await;
    assert_eq!(listed(&folder), ["MEMORY.md"]);
    topic.says(ALICE, "/agent rose").await;
    topic.says(BOB, "hi Rose").await;
    house.settled(&gateway).await;
    let rose = house.home.path().join("agents/rose");
    assert_eq!(listed(&rose), ["IDENTITY.md", "MEMORY.md"]);
    let memory = fs::read_to_string(rose.join("MEMORY.md")).expect("reads");
    assert_eq!(memory, "Rose was here before.");
    house.close(gateway).await;
}

/// The names in a folder.
fn listed(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// S3.30: a process that is killed in the first turn leaves whole files, and the next turn writes the
/// rest. An agent whose manner is in the config gets no other.
#[tokio::test]
async fn an_interrupted_first_turn_is_seeded_again_and_words_of_the_config_are_kept() {
    let own = "[agents.pirate]\nname = \"Pirate\"\nsystem_prompt = \"Talk like a pirate.\"\n";
    let mut house = House::new(&(with_topic_of("pirate") + own)).await;
    house.leave_leftovers();
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    house.model.enqueue(Script::text("too late").held());
    let process = house.spawn().await;
    topic.says(BOB, "hi").await;
    house.model.wait_for_requests(1).await;
    process.kill().await;
    let folder = house.home.path().join("agents/pirate");
    assert_eq!(listed(&folder), ["IDENTITY.md", "MEMORY.md"]);
    fs::remove_file(folder.join("MEMORY.md")).expect("is there");
    house.write("agents/pirate/IDENTITY.md", "Mine.");
    house.model.release();
    let process = house.spawn().await;
    topic.wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(listed(&folder), ["IDENTITY.md", "MEMORY.md"]);
    let identity = fs::read_to_string(folder.join("IDENTITY.md")).expect("reads");
    assert_eq!(identity, "Mine.");
}

const HANDOFFS: &str = "SELECT coalesce(group_concat(text, ' | '), '') FROM (SELECT text FROM messages WHERE kind = 'handoff' ORDER BY id)";

/// A conversation that a rule gives to another agent is handed over, once, as with `/agent`.
#[tokio::test]
async fn a_running_conversation_that_the_config_gives_away_gets_a_handoff_line() {
    let house = House::new(&with_topic_of("rose")).await;
    let gateway = house.open().await;
    names(&house);
    let forum = house.telegram.forum(-1001);
    let (topic, other) = (forum.topic(5, "Five"), forum.topic(6, "Six"));
    topic.says(BOB, "hi").await;
    house.settled(&gateway).await;
    let bound = |agent: &str| {
        with_topic_of(agent) + "[[bindings]]\nmatch = \"telegram:topic:-1001:6\"\nagent = \"ada\"\n"
    };
    house.configure("", &bound("ada"));
    reloaded(&gateway).await;
    assert_eq!(house.ask(HANDOFFS), "", "nobody has written since");
    topic.says(ALICE, "hi again").await;
    house.settled(&gateway).await;
    let line = "handed over from rose to ada by config.toml";
    assert!(house.model.last_request().has(line));
    topic.says(BOB, "and again").await;
    other.says(BOB, "a new conversation").await;
    house.settled(&gateway).await;
    assert_eq!(house.ask(HANDOFFS), line);
    // Also where the config was changed while no gateway ran.
    gateway.shutdown().await;
    house.configure("", &bound("main"));
    let gateway = house.open().await;
    topic.says(BOB, "hi").await;
    house.settled(&gateway).await;
    let back = "handed over from ada to main by config.toml";
    assert_eq!(house.ask(HANDOFFS), format!("{line} | {back}"));
    // A switch in chat has its own line, and a single message has none for the way back.
    topic.says(ALICE, "/agent rose").await;
    topic.says(BOB, "hi").await;
    house.settled(&gateway).await;
    topic.says(ALICE, "/agent ada once").await;
    topic.says(BOB, "hi").await;
    house.settled(&gateway).await;
    topic.says(BOB, "hi").await;
    house.settled(&gateway).await;
    assert_eq!(
        house.ask(HANDOFFS),
        format!("{line} | {back} | from main to rose | from rose to ada")
    );
    let audited = "SELECT group_concat(actor || ' ' || before || ' ' || after, ', ') FROM (SELECT * FROM audit WHERE action = 'switch' ORDER BY id LIMIT 2)";
    assert_eq!(house.ask(audited), "config rose ada, config ada main");
    house.close(gateway).await;
}

/// Where rules tell people apart, everybody keeps the agent they had, without a line.
#[tokio::test]
async fn people_with_agents_of_their_own_in_one_place_are_no_handoff() {
    let house = House::new(
        &(with_topic_of("rose")
            + "[[bindings]]\nmatch = \"telegram:topic:-1001:5\"\nusers = [\"telegram:222\"]\nagent = \"ada\"\n"),
    )
    .await;
    let gateway = house.open().await;
    names(&house);
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    for _ in 0..3 {
        topic.says(BOB, "hi").await;
        house.settled(&gateway).await;
        topic.says(ALICE, "hi").await;
        house.settled(&gateway).await;
    }
    assert_eq!(topic.texts(), ["Ada", "Rose", "Ada", "Rose", "Ada", "Rose"]);
    assert_eq!(house.ask(HANDOFFS), "");
    house.configure("", &with_topic_of("rose"));
    reloaded(&gateway).await;
    topic.says(ALICE, "hi").await;
    topic.says(BOB, "hi").await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts().last().map(String::as_str), Some("Rose"));
    house.close(gateway).await;
}

/// Who reloaded, and what changed.
#[tokio::test]
async fn reloads_are_in_the_audit() {
    let house = House::new(&with_topic_of("rose")).await;
    let gateway = house.open().await;
    let owner = house.telegram.dm(ALICE);
    house.configure("", &with_topic_of("ada"));
    reloaded(&gateway).await;
    owner.says("/reload").await;
    house.settled(&gateway).await;
    house.configure("", &with_topic_of("adda"));
    gateway.reload("a test").await;
    house.settled(&gateway).await;
    let audited = "SELECT group_concat(actor || ' ' || name || ' ' || after, ', ') FROM (SELECT * FROM audit WHERE action = 'reload' ORDER BY id)";
    assert_eq!(
        house.ask(audited),
        "cli a signal bindings, telegram:111 Alice "
    );
    house.close(gateway).await;
}

/// Only a restart brings new variables, and that is said.
#[tokio::test]
async fn a_variable_that_is_not_set_is_told_with_what_to_do() {
    let house = House::new(&with_topic_of("rose")).await;
    let gateway = house.open().await;
    let owner = house.telegram.dm(ALICE);
    house.configure_provider("api_key = { env = \"PARLOR_TEST_UNSET\" }");
    assert_eq!(reloaded(&gateway).await, ["providers.fake"]);
    insta::assert_snapshot!(owner.wait_for_sent(1).await.text, @"⚠️ My agents can't use fake: the API key for fake is missing. The environment variable PARLOR_TEST_UNSET is not set (api_key in [providers.fake], line 8 of config.toml). Set it where Parlor is started, then start Parlor again: a reload brings no new variables.");
    let path = house.home.path().join("config.toml");
    let text = fs::read_to_string(&path).expect("a config");
    let text = text.replace(
        "token = { file = \"secrets/telegram\" }",
        "token = { env = \"PARLOR_TEST_UNSET\" }",
    );
    house.write("config.toml", &text);
    let refused = match gateway.reload("a test").await {
        Some(Reload::Refused(problem)) => problem,
        other => panic!("{other:?}"),
    };
    assert!(
        refused.ends_with("A reload brings no new environment variables: set it where Parlor is started, then start Parlor again."),
        "{refused}"
    );
    let told = owner.wait_for_sent(2).await.text;
    assert!(
        told.contains("PARLOR_TEST_UNSET") && told.ends_with("then start Parlor again."),
        "{told}"
    );
    house.configure("", &with_topic_of("rose"));
    reloaded(&gateway).await;
    house.close(gateway).await;
}

#[tokio::test]
async fn a_provider_is_replaced_for_the_next_message() {
    let house = House::new(&with_topic_of("rose")).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    topic.says(BOB, "one").await;
    house.settled(&gateway).await;
    let other = FakeModel::start().await;
    let path = house.home.path().join("config.toml");
    let written = fs::read_to_string(&path).expect("a config");
    let moved = written.replace(
        &house.model.base_url(Dialect::OpenAi),
        &other.base_url(Dialect::OpenAi),
    );
    house.write("config.toml", &moved);
    assert_eq!(reloaded(&gateway).await, ["providers.fake"]);
    topic.says(BOB, "two").await;
    house.settled(&gateway).await;
    assert_eq!(house.model.journal().len(), 1);
    assert_eq!(other.journal().len(), 1);
    house.close(gateway).await;
}

/// The running config stays, owners are told once, and told again when the file is fine.
#[tokio::test]
async fn a_file_with_a_problem_changes_nothing_and_is_told_once() {
    let house = House::new(&with_topic_of("rose")).await;
    let gateway = house.open().await;
    names(&house);
    let (owner, topic) = (
        house.telegram.dm(ALICE),
        house.telegram.forum(-1001).topic(5, "Five"),
    );
    house.configure("", &with_topic_of("adda"));
    for _ in 0..3 {
        let refused = gateway.reload("a test").await;
        assert!(
            matches!(&refused, Some(Reload::Refused(problem)) if problem.contains("unknown agent `adda`")),
            "{refused:?}"
        );
    }
    house.settled(&gateway).await;
    let told = owner.texts();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("config.toml:") && told[0].contains("adda"),
        "{}",
        told[0]
    );
    topic.says(BOB, "hi").await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), ["Rose"]);
    // An emptied file is no wish for the web chat alone, and without that nothing would listen.
    for text in ["", "[web]\nenabled = false\n"] {
        house.write("config.toml", text);
        assert!(matches!(
            gateway.reload("a test").await,
            Some(Reload::Refused(_))
        ));
    }
    fs::remove_file(house.home.path().join("config.toml")).expect("it was there");
    assert!(matches!(
        gateway.reload("a test").await,
        Some(Reload::Refused(_))
    ));
    house.configure("", &with_topic_of("ada"));
    reloaded(&gateway).await;
    topic.says(BOB, "hi").await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), ["Rose", "Ada"]);
    assert_eq!(
        owner.texts()[1..],
        [
            "config.toml was saved, and the running config stays as it was: it names neither [telegram] nor [discord] any more; add [web] if the web chat alone is meant.",
            "config.toml was saved, and the running config stays as it was: it switches the web chat off and names neither [telegram] nor [discord], so the gateway would have nothing to listen to.",
            "The running config stays as it was. config.toml is gone. Put it back before the gateway stops, because the next start needs it.",
            "config.toml is fine again and counts now.",
        ]
    );
    house.close(gateway).await;
}

/// Only the platform whose settings changed is connected again, and no message is lost.
#[tokio::test]
async fn a_platform_is_connected_again_when_its_own_settings_change() {
    let house = House::new(
        &(with_topic_of("rose")
            + "[[bindings]]\nmatch = \"discord:guild:8001\"\nagent = \"ada\"\n"),
    )
    .await;
    let discord = house.add_discord("").await;
    let channel = discord.guild(8001, "Garden").text_channel(501, "general");
    let gateway = house.open_with(&discord).await;
    names(&house);
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let identified = discord.identifies();
    house.configure_telegram("nicknames = [\"Parlie\"]");
    match gateway.reload("a test").await {
        Some(Reload::Done { changed, renewed }) => {
            assert_eq!(changed, ["telegram"]);
            assert_eq!(renewed.len(), 1);
        }
        other => panic!("{other:?}"),
    }
    for number in 1..=20 {
        topic.says(BOB, &format!("message {number}")).await;
    }
    channel
        .says(crate::support::fake_discord::BOB, "hello")
        .await;
    channel.wait_for_sent(1).await;
    house
        .telegram
        .wait_until(|journal| !journal.sent().is_empty())
        .await;
    house.settled(&gateway).await;
    let asked: String = house
        .model
        .journal()
        .iter()
        .map(|request| request.last_text().to_owned())
        .collect::<Vec<_>>()
        .join("\n");
    for number in 1..=20 {
        assert!(asked.contains(&format!("message {number}")), "{number}");
    }
    assert_eq!(discord.identifies(), identified, "Discord did not notice");
    house.close(gateway).await;
}

/// A start may read a config in the moment in which it is saved, without its platforms. What waited
/// from before is answered as soon as the whole file counts, once and in order.
#[tokio::test]
async fn platforms_that_come_with_a_reload_have_their_waiting_messages_answered() {
    let rules =
        with_topic_of("rose") + "[[bindings]]\nmatch = \"discord:guild:8001\"\nagent = \"ada\"\n";
    let (house, discord, guild) = House::with_garden("", &rules).await;
    let channel = guild.text_channel(501, "general");
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    house.model.answer_with(|_| Script::text("too late").held());
    let process = house.spawn().await;
    discord.connected().await;
    for number in 1..=3 {
        topic.says(BOB, &format!("question {number}")).await;
        channel
            .says(fake_discord::BOB, &format!("question {number}"))
            .await;
    }
    let waiting = "SELECT count(*) FROM inbox WHERE state = 'waiting'";
    house.wait_until_stored(waiting, "6").await;
    process.kill().await;
    let whole = house.config();
    house.write("config.toml", "");
    house.model.answer_with(|request| {
        let asked = request.last_text();
        let asked = (1..=3).filter(|number| asked.contains(&format!("question {number}")));
        Script::text(
            asked
                .map(|number| format!("answer {number} "))
                .collect::<String>(),
        )
    });
    let process = Process::start(house.home.path(), &["run"]);
    process.wait_for_log("is up.").await;
    assert_eq!(house.ask(waiting), "6");
    house.write("config.toml", &whole);
    house.wait_until_stored(waiting, "0").await;
    let all = ["answer 1", "answer 2", "answer 3"];
    assert_eq!(process.stop().await, 0);
    for texts in [topic.texts(), channel.texts()] {
        let said = texts.join(" ");
        let times = all.map(|answer| said.matches(answer).count());
        assert_eq!(times, [1, 1, 1], "{said}");
    }
}

/// An answer that is being written when its platform is taken out of the config waits until the
/// platform is back.
#[tokio::test]
async fn an_answer_under_way_waits_for_a_platform_that_was_taken_out() {
    let house = House::new(&(with_topic_of("rose") + "[web]\n")).await;
    let process = house.spawn().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    house.model.enqueue(Script::text("Here it is.").held());
    topic.says(BOB, "hello").await;
    house.model.wait_for_open(1).await;
    let whole = house.config();
    let begin = whole.find("[telegram]").expect("a platform");
    let end = whole.find("[providers.fake]").expect("a provider");
    let without = format!("{}{}", &whole[..begin], &whole[end..]);
    house.write("config.toml", &without);
    process
        .wait_for_log("telegram is disconnected: config.toml does not name it any more")
        .await;
    house.model.release();
    let kept = "SELECT count(*) FROM outbox WHERE state = 'waiting'";
    house.wait_until_stored(kept, "1").await;
    house.write("config.toml", &whole);
    assert_eq!(topic.wait_for_sent(1).await.text, "Here it is.");
    assert_eq!(process.stop().await, 0);
}

/// The limits of the platform are its settings too.
#[tokio::test]
async fn changed_limits_of_a_platform_count_after_a_reload() {
    let house = House::new(&with_topic_of("rose")).await;
    let unlimited = house.config();
    let limited = unlimited.replace("group_per_minute = 0", "group_per_minute = 1");
    house.write("config.toml", &limited);
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    topic.says(BOB, "hi").await;
    topic.wait_for_sent(1).await;
    let asked = house.telegram.calls("getMe").len();
    house.write("config.toml", &unlimited);
    gateway.reload("a test").await;
    house.telegram.wait_for_calls("getMe", asked + 1).await;
    topic.says(BOB, "hi again").await;
    let within = std::time::Duration::from_secs(10);
    let sent = tokio::time::timeout(within, topic.wait_for_sent(2)).await;
    assert!(sent.is_ok(), "the old limit of a minute counts");
    house.close(gateway).await;
}

/// A thousand reloads under load, through the file itself: every message is answered once, by an agent of the old or the new config.
#[tokio::test]
async fn reloads_under_load_lose_nothing() {
    let house = House::new(&with_topic_of("rose")).await;
    let gateway = house.open().await;
    names(&house);
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let path = house.home.path().join("config.toml");
    let versions: Vec<String> = ["rose", "ada"]
        .map(|agent| {
            house.configure("", &with_topic_of(agent));
            fs::read_to_string(&path).expect("a config")
        })
        .to_vec();
    let mut sent = 0;
    for round in 0..1000 {
        house.write("config.toml", &versions[round % 2]);
        gateway.reload("a test").await;
        if round % 10 == 0 {
            topic.says(BOB, &format!("question {round}")).await;
            sent += 1;
        }
    }
    house.settled(&gateway).await;
    let kept = "SELECT count(*) || ' ' || count(DISTINCT text) FROM messages WHERE kind = 'person'";
    assert_eq!(house.ask(kept), format!("{sent} {sent}"));
    let answered = "SELECT count(*) FROM messages WHERE kind = 'agent'";
    assert_eq!(house.ask(answered), topic.texts().len().to_string());
    let open = "SELECT count(*) FROM inbox WHERE state <> 'done'";
    assert_eq!(house.ask(open), "0");
    assert!(
        topic
            .texts()
            .iter()
            .all(|text| text == "Rose" || text == "Ada")
    );
    house.close(gateway).await;
}

/// The ways of programs to save a file.
fn save(way: &str, path: &Path, text: &str) {
    let beside = path.with_extension("toml~");
    match way {
        "in place" => fs::write(path, text),
        "renamed over it" => fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)),
        "moved away and written anew" => {
            fs::rename(path, &beside).and_then(|()| fs::write(path, text))
        }
        "in pieces" => {
            let (one, two) = text.split_at(text.len() / 2);
            fs::write(path, one).and_then(|()| {
                use std::io::Write;
                let mut file = fs::OpenOptions::new().append(true).open(path)?;
                file.write_all(two.as_bytes())
            })
        }
        "with CRLF" => fs::write(path, text.replace('\n', "\r\n")),
        other => panic!("{other}"),
    }
    .expect("the file can be saved");
}

/// S0.28, S0.29, S0.68: the real binary notices every way of saving by itself, once per save, and its
/// own reading is no save.
#[tokio::test]
async fn a_saved_file_is_noticed_however_it_is_saved() {
    let house = House::new(&with_topic_of("rose")).await;
    names(&house);
    let process = Process::start(house.home.path(), &["run"]);
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    topic.says(BOB, "hi").await;
    topic.wait_for_sent(1).await;
    let path = house.home.path().join("config.toml");
    let written = fs::read_to_string(&path).expect("a config");
    let ways = [
        "in place",
        "renamed over it",
        "moved away and written anew",
        "in pieces",
        "with CRLF",
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let agent = ["ada", "rose"][number % 2];
        let text = written
            .replace("agent = \"rose\"", &format!("agent = \"{agent}\""))
            .replace(
                "[agents.main]\n",
                &format!("[agents.main]\nname = \"Main{number}\"\n"),
            );
        save(way, &path, &text);
        process
            .wait_for_log_lines("cause=config.toml", number + 1)
            .await;
        topic.says(BOB, way).await;
        let answered = topic.wait_for_sent(number + 2).await;
        let expected = if agent == "ada" { "Ada" } else { "Rose" };
        assert_eq!(answered.text, expected, "{way}");
    }
    let soul = house.home.path().join("agents/rose/SOUL.md");
    for (number, way) in ways.into_iter().enumerate() {
        if number == 0 {
            house.write("agents/rose/SOUL.md", "Be brief.\n");
        } else {
            save(way, &soul, &format!("Be brief, as ever {number}.\n"));
        }
        process
            .wait_for_log_lines("reload agent=rose cause=SOUL.md", number + 1)
            .await;
    }
    // Ten saves in a row are at most two lines, and the last words count.
    for number in 0..10 {
        fs::write(&soul, format!("Be brief, says save {number}.")).expect("writes");
    }
    // The same words again are no change, and neither is another file.
    fs::write(&soul, fs::read(&soul).expect("a soul")).expect("writes");
    house.write("agents/rose/USER.md", "Bob likes tea.");
    process
        .wait_for_log("reload agent=rose cause=USER.md")
        .await;
    let log = process.log();
    let souls = log.matches("reload agent=rose cause=SOUL.md").count();
    assert!((ways.len() + 1..=ways.len() + 2).contains(&souls), "{log}");
    assert_eq!(log.matches("reload agent=").count(), souls + 1, "{log}");
    house.write("config.toml", &written);
    process
        .wait_for_log_lines("cause=config.toml", ways.len() + 1)
        .await;
    topic.says(BOB, "how are you").await;
    topic.wait_for_sent(ways.len() + 2).await;
    assert!(house.model.last_request().system.contains("says save 9"));
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn sighup_has_the_config_read_anew() {
    let house = House::new(&with_topic_of("rose")).await;
    names(&house);
    let process = Process::start(house.home.path(), &["run"]);
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    topic.says(BOB, "hi").await;
    topic.wait_for_sent(1).await;
    process.hang_up().await;
    process.wait_for_log("SIGHUP").await;
    topic.says(BOB, "still there").await;
    topic.wait_for_sent(2).await;
    assert_eq!(process.stop().await, 0);
}
