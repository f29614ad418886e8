//! `parlor doctor` and `/doctor`: each fault is found, with its fix, and nothing is changed unasked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;

use crate::cli::{Ran, fresh_home, run};
use crate::support::House;
use crate::support::fake_discord::{BotMay, Fault as DiscordFault, Route};
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, Fault};
use crate::tenants::{fine, lived_in};

const OWNED: &str = "[access]\nowners = [\"telegram:111\"]\n";
const BOUND: &str = r#"
[access]
owners = ["telegram:111"]
[agents.main]
[agents.rose]
[[bindings]]
match = "telegram:topic:-1001:5"
agent = "rose"
"#;

async fn json(home: &Path, more: &[&str]) -> (i32, Value) {
    let arguments = [&["doctor", "--json"], more].concat();
    let Ran { code, stdout, .. } = run(home, &arguments).await;
    (code, serde_json::from_str(&stdout).expect("JSON"))
}

/// All findings that are not fine: state, id and sentence.
fn troubles(told: &Value) -> String {
    let findings = told["findings"].as_array().expect("a list");
    let lines = findings.iter().filter(|found| found["state"] != "ok");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines
        .map(|found| {
            format!(
                "{} {}: {}\n",
                text(&found["state"]),
                text(&found["id"]),
                text(&found["text"])
            )
        })
        .collect()
}

/// The finding with an id, as `state: text → fix`.
async fn found(home: &Path, id: &str) -> String {
    let (code, told) = json(home, &[]).await;
    let findings = told["findings"].as_array().expect("a list");
    let mut own = findings.iter().filter(|found| found["id"] == id);
    let one = own.next().unwrap_or_else(|| panic!("no {id} in {told:#}"));
    let is_bad = findings.iter().any(|found| found["state"] == "bad");
    assert_eq!(code, i32::from(is_bad), "{told:#}");
    let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
    assert!(
        one["state"] == "ok" || !text("fix").is_empty(),
        "{one}: no fix"
    );
    format!(
        "{}: {} ({}) → {}",
        text("state"),
        text("text"),
        text("cause"),
        text("fix")
    )
    .replace(&home.display().to_string(), "HOME")
}

#[tokio::test]
async fn a_fresh_home_is_well_and_every_part_is_looked_at() {
    let home = fresh_home().await;
    let (code, told) = json(home.path(), &[]).await;
    assert_eq!(code, 0, "{told:#}");
    assert_snapshot!(troubles(&told), @"
    note gateway: No gateway runs on this home.
    note database: There is no database yet.
    note models: All agents answer with the built-in demo model, which only echoes.
    note backup: No backup is in backups/ of the home folder.
    ");
    let ran = run(home.path(), &["doctor", "--state"]).await;
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains("settings"), "{}", ran.stdout);
    assert_snapshot!(ran.stderr, @"0 bad, 0 warnings, 4 notes, 9 fine.");
    assert!(
        !home.path().join("parlor.db").exists(),
        "a look makes no database"
    );
}

#[tokio::test]
async fn faults_on_telegram_are_told_apart() {
    let house = House::new(BOUND).await;
    let topic = house.telegram.forum(-1001).topic(5, "Roses");
    let home = house.home.path();
    assert_snapshot!(found(home, "telegram").await, @"ok: Telegram knows @parlor_bot. () →");
    {
        let _refused = house
            .telegram
            .fail("getMe", Fault::Unauthorized)
            .until_dropped();
        assert_snapshot!(found(home, "telegram.token").await, @"bad: Telegram does not accept the bot token. () → Get a valid one from @BotFather (/token), put it where token of [telegram] points, then parlor reload; a new environment variable needs a new start");
    }
    {
        let _down = house
            .telegram
            .fail("getMe", Fault::Html(502))
            .until_dropped();
        assert_snapshot!(found(home, "telegram").await, @"bad: Telegram does not answer. (Telegram was not reached: something on the way answered 502) → Check the network, and api_url and proxy of [telegram].");
    }
    {
        let rival = Fault::Refused(409, "Conflict: terminated by other getUpdates request");
        let _rival = house.telegram.fail("getUpdates", rival).until_dropped();
        assert_snapshot!(found(home, "telegram.poller").await, @"bad: Another program polls with this bot token. (Telegram gives each message to only one of them) → Stop it, or give Parlor a bot of its own.");
    }
    house
        .telegram
        .set_webhook("https://other.example/secret-path");
    assert_snapshot!(found(home, "telegram.webhook").await, @"warn: A webhook to other.example is set for this bot, and Parlor polls. (another program used this bot, or uses it now) → Stop that program. The next start of Parlor removes the webhook.");
    house.telegram.set_webhook("");
    {
        let closed = Fault::Refused(400, "Bad Request: TOPIC_CLOSED");
        let _closed = house
            .telegram
            .fail("sendChatAction", closed)
            .until_dropped();
        assert_snapshot!(found(home, "telegram.topic").await, @"warn: The topic of the binding `telegram:topic:-1001:5` is closed. () → Reopen it, or make the bot an admin of the group.");
    }
    topic.deletes_topic();
    assert_snapshot!(found(home, "telegram.topic").await, @"bad: The topic of the binding `telegram:topic:-1001:5` is gone. () → Bind a topic that is there: /bind NAME in it. Then remove this binding from config.toml.");
    house.telegram.set_me("can_read_all_group_messages", false);
    house.configure(
        "",
        &BOUND.replace(
            "agent = \"rose\"",
            "agent = \"rose\"\nrequire_mention = false",
        ),
    );
    assert_snapshot!(found(home, "telegram.privacy").await, @"warn: The bot's privacy mode is on, but the binding `telegram:topic:-1001:5` says require_mention = false. (Telegram shows the bot only commands, mentions and replies) → Send /setprivacy to @BotFather, choose Disable, then remove the bot from the group and add it again.");
    {
        let _kicked = house
            .telegram
            .fail("getChatMember", Fault::Kicked)
            .until_dropped();
        assert_snapshot!(found(home, "telegram.rights").await, @"bad: The bot is not in the group of the binding `telegram:topic:-1001:5`. () → Add it there, or remove the binding.");
    }
}

/// Of a bot that Telegram calls: another program took it over, or the calls fail.
#[tokio::test]
async fn faults_of_a_webhook_are_told_apart() {
    let house = House::new(OWNED).await;
    crate::webhook::hook(&house, "127.0.0.1:0");
    let home = house.home.path();
    let webhook = async || {
        let (_, told) = json(home, &[]).await;
        let findings = told["findings"].as_array().expect("a list").clone();
        findings
            .iter()
            .any(|found| found["id"] == "telegram.webhook")
    };
    assert!(!webhook().await, "the gateway sets it at its start");
    house
        .telegram
        .set_webhook("https://old.example/secret-path");
    assert_snapshot!(found(home, "telegram.webhook").await, @"bad: Telegram calls old.example and not the address of [telegram.webhook]. () → Stop other programs with this token, and restart the gateway, which sets the webhook.");
    house.telegram.set_webhook("https://bot.example.org/hook");
    assert!(!webhook().await);
    house
        .telegram
        .fail_webhook("Connection refused", 2 * 60 * 60);
    assert!(!webhook().await, "two hours ago is no news");
    house
        .telegram
        .fail_webhook("SSL error {error:0A000086}", 60);
    assert_snapshot!(found(home, "telegram.webhook").await, @"bad: Telegram cannot deliver to the webhook. (SSL error {error:0A000086}) → Check url of [telegram.webhook], its certificate, and the proxy in front of it.");
    assert!(
        house.telegram.calls("getUpdates").is_empty(),
        "nobody polls"
    );
}

#[tokio::test]
async fn a_clock_that_differs_from_the_platforms_is_told() {
    let (house, discord, _) = House::with_garden("", "[agents.main]\n").await;
    let home = house.home.path();
    let (_, told) = json(home, &[]).await;
    assert!(!told.to_string().contains("This clock differs"), "{told:#}");
    let late = std::time::Duration::from_secs(300);
    house.telegram.set_back(late);
    discord.set_back(late);
    for id in ["clock.telegram", "clock.discord"] {
        let told = found(home, id).await;
        let (_, rest) = told.split_once("'s by -").expect("a difference");
        let (seconds, fix) = rest.split_once(" s. () → ").expect("a fix");
        let seconds: u64 = seconds.parse().expect("a number");
        assert!((295..=305).contains(&seconds), "{told}");
        assert!(told.starts_with("warn: This clock differs from "), "{told}");
        assert_eq!(fix, "timedatectl set-ntp true");
    }
}

/// A second poll would take messages away from the gateway.
#[tokio::test]
async fn the_doctor_of_a_running_gateway_does_not_poll() {
    let house = House::new(BOUND).await;
    house.telegram.forum(-1001).topic(5, "Roses");
    let process = house.spawn().await;
    let (code, told) = json(house.home.path(), &[]).await;
    assert_eq!(code, 0, "{told:#}");
    let findings = told["findings"].as_array().expect("a list");
    let text = |id: &str| {
        let found = findings.iter().find(|found| found["id"] == id);
        found
            .and_then(|found| found["text"].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    assert!(text("gateway").contains("runs"), "{told:#}");
    assert_eq!(text("telegram"), "Telegram knows @parlor_bot.");
    let held: Vec<_> = house
        .telegram
        .calls("getUpdates")
        .iter()
        .filter_map(|call| call.params["timeout"].as_u64())
        .collect();
    assert!(!held.contains(&2), "{held:?}");
    assert_eq!(process.stop().await, 0);
    let (_, told) = json(house.home.path(), &[]).await;
    assert!(told.to_string().contains("No gateway runs"));
    let last = house.telegram.calls("getUpdates");
    assert_eq!(
        last.last().expect("a poll").params["timeout"],
        2,
        "now it may look for rivals"
    );
    assert!(
        last.last().expect("a poll").params["offset"].is_null(),
        "and confirms nothing"
    );
}

/// A gateway that cannot be asked may be polling all the same.
#[tokio::test]
async fn beside_a_gateway_without_a_word_nobody_polls() {
    let house = House::new(BOUND).await;
    house.telegram.forum(-1001).topic(5, "Roses");
    let _lock = parlor::home::Home::new(house.home.path())
        .lock()
        .expect("is free");
    assert_snapshot!(found(house.home.path(), "gateway").await, @"bad: A gateway runs on this home, but does not answer. () → Restart it, if parlor status does not reach it either.");
    assert!(house.telegram.calls("getUpdates").is_empty());
    assert!(!house.telegram.calls("getMe").is_empty());
}

#[tokio::test]
async fn faults_on_discord_are_told_apart() {
    let rest = "[agents.main]\n[agents.rose]\n[[bindings]]\nmatch = \"discord:channel:2001\"\nagent = \"rose\"\n\
                [[bindings]]\nmatch = \"discord:guild:8001\"\nagent = \"main\"\n";
    let (house, discord, guild) = House::with_garden("", rest).await;
    let room = guild.text_channel(2001, "roses");
    let home = house.home.path();
    assert_snapshot!(found(home, "discord").await, @"ok: Discord knows parlor. () →");
    assert_snapshot!(found(home, "discord.commands").await, @"note: No slash commands are registered with Discord. () → The gateway registers them when it connects.");
    {
        let _refused = discord
            .fail(Route::GetMe, DiscordFault::UNAUTHORIZED)
            .until_dropped();
        assert_snapshot!(found(home, "discord.token").await, @"bad: Discord does not accept the bot token. () → Reset it on the Bot page of the developer portal, put it where token of [discord] points, then parlor reload; a new environment variable needs a new start");
    }
    {
        let _down = discord
            .fail(Route::GetMe, DiscordFault::Html(502))
            .until_dropped();
        assert_snapshot!(found(home, "discord").await, @"bad: Discord does not answer. (Discord was not reached: something on the way answered 502) → Check the network, and api_url of [discord].");
    }
    discord.show_message_content(false);
    assert_snapshot!(found(home, "discord.intents").await, @"bad: Discord hides the text of messages from the bot. (Message Content Intent is off) → Enable Message Content Intent on the Bot page of the developer portal.");
    discord.show_message_content(true);
    room.lets_bot(BotMay::OnlyRead);
    assert_snapshot!(found(home, "discord.rights").await, @"bad: The bot lacks rights in the place of the binding `discord:channel:2001`: Send Messages. () → Give its role there: Send Messages.");
    room.lets_bot(BotMay::NotSee);
    assert_snapshot!(found(home, "discord.rights").await, @"bad: The bot cannot see the place of the binding `discord:channel:2001`. () → Give its role View Channel there, or remove the binding.");
    room.lets_bot(BotMay::Write);
    guild.removes_bot();
    let (_, told) = json(home, &[]).await;
    assert!(
        told.to_string()
            .contains("The bot is not on the server of the binding `discord:guild:8001`."),
        "{told:#}"
    );
}

#[tokio::test]
async fn models_are_asked_side_by_side() {
    let house = House::new(
        "[agents.main]\nmodel = \"fake/first\"\nfallback = [\"fake/second\"]\n[agents.rose]\nmodel = \"gone/far\"\n\
         [providers.gone]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/\"\n",
    )
    .await;
    let refusal = |code: u16| {
        Script::Status {
        code,
        headers: Vec::new(),
        body: "{\"error\":{\"message\":\"Incorrect API key provided.\",\"type\":\"invalid_request_error\"}}".into(),
    }
    };
    house.model.enqueue_when("Say ok.", refusal(401));
    house.model.enqueue_when("Say ok.", refusal(401));
    let (code, told) = json(house.home.path(), &[]).await;
    assert_eq!(code, 1);
    let models: Vec<&Value> = told["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|found| found["id"] == "models")
        .collect();
    let lines: Vec<String> = models
        .iter()
        .map(|found| {
            let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
            format!(
                "{}: {} ({}) → {}",
                text("state"),
                text("text"),
                text("cause"),
                text("fix")
            )
        })
        .collect();
    assert_snapshot!(lines.join("\n"), @"
    bad: fake/first does not answer. (the model provider refused: it wants a key, and the config has none (401): Incorrect API key provided.) → Add api_key to [providers.fake] in config.toml, then parlor reload
    warn: fake/second does not answer. (the model provider refused: it wants a key, and the config has none (401): Incorrect API key provided.) → Add api_key to [providers.fake] in config.toml, then parlor reload
    bad: gone/far does not answer. (cannot reach the model server: the connection was refused: client error (Connect): tcp connect error: Connection refused (os error 111)) → Check base_url of [providers.gone], and that the server runs.
    ");
    let asked = house.model.last_request();
    assert!(
        asked.system.is_empty(),
        "no prompt goes to a model for a look"
    );
}

/// A model that says nothing is not waited for.
#[tokio::test]
async fn a_slow_model_is_told_after_five_seconds() {
    let house = House::new("[agents.main]\n").await;
    house
        .model
        .enqueue_when("Say ok.", Script::text("late").held());
    let began = std::time::Instant::now();
    assert_snapshot!(found(house.home.path(), "models").await, @"warn: fake/any did not answer within 5 s. () → Try again; if it stays so, choose another model or add a fallback.");
    assert!(began.elapsed() < std::time::Duration::from_secs(15));
    house.model.release();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("sets");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("is there").permissions().mode() & 0o777
}

#[tokio::test]
async fn what_is_safe_is_repaired_when_asked() {
    let home = lived_in().await;
    let path = home.path();
    fs::create_dir_all(path.join("secrets")).expect("makes");
    fs::write(path.join("secrets/old"), "123").expect("writes");
    set_mode(&path.join("secrets"), 0o700);
    set_mode(&path.join("secrets/old"), 0o644);
    fs::create_dir(path.join(".restoring-1")).expect("makes");
    set_mode(path, 0o755);
    let (code, told) = json(path, &[]).await;
    assert_eq!(code, 1);
    assert_snapshot!(troubles(&told).replace(&path.display().to_string(), "HOME"), @"
    note gateway: No gateway runs on this home.
    bad home.modes: Other users of this machine can enter the home folder.
    note home.leftovers: .restoring-1 is the rest of a restore that was cut short.
    bad secrets.modes: Other users of this machine may read HOME/secrets/old.
    note secrets.unused: config.toml does not name HOME/secrets/old.
    note models: All agents answer with the built-in demo model, which only echoes.
    note backup: No backup is in backups/ of the home folder.
    ");
    assert_eq!(
        (mode(path), mode(&path.join("secrets/old"))),
        (0o755, 0o644),
        "a look changes nothing"
    );
    let (code, told) = json(path, &["--fix"]).await;
    assert_eq!(code, 0, "{told:#}");
    assert_eq!(
        told["repaired"].as_array().map(Vec::len),
        Some(3),
        "{told:#}"
    );
    assert_eq!(
        (mode(path), mode(&path.join("secrets/old"))),
        (0o700, 0o600)
    );
    assert!(!path.join(".restoring-1").exists());
}

/// Doctor judges a secret's file as the config does, also within a closed home.
#[tokio::test]
async fn a_secret_that_the_config_refuses_is_not_fine() {
    let home = fresh_home().await;
    let path = home.path();
    fs::create_dir_all(path.join("secrets")).expect("makes");
    fs::write(path.join("secrets/key"), "sk-1").expect("writes");
    set_mode(path, 0o700);
    set_mode(&path.join("secrets"), 0o700);
    set_mode(&path.join("secrets/key"), 0o644);
    let config = fs::read_to_string(path.join("config.toml")).expect("reads");
    let provider = "[providers.far]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = { file = \"secrets/key\" }\n";
    fs::write(path.join("config.toml"), format!("{config}\n{provider}")).expect("writes");
    let found = found(path, "secrets.modes").await;
    assert!(
        found.contains("the file secrets/key is open to other users of this machine")
            && found.ends_with("→ chmod 600 HOME/secrets/key, then parlor reload"),
        "{found}"
    );
    let (_, told) = json(path, &["--fix"]).await;
    assert!(!troubles(&told).contains("secrets.modes"), "{told:#}");
    assert_eq!(mode(&path.join("secrets/key")), 0o600);
}

/// S1.66
#[tokio::test]
async fn unused_files_of_the_root_are_told_and_archived_when_asked() {
    let home = fresh_home().await;
    let path = home.path();
    for agent in ["main", "rose", "ada"] {
        fs::write(path.join("agents").join(agent).join("TOOLS.md"), "own").expect("writes");
    }
    fs::write(path.join("TOOLS.md"), "for nobody").expect("writes");
    fs::write(path.join("BOOTSTRAP_OLD.md"), "old").expect("writes");
    fs::write(path.join(".env"), "A=b").expect("writes");
    let (_, told) = json(path, &["--fix"]).await;
    assert_snapshot!(troubles(&told), @"
    note gateway: No gateway runs on this home.
    note database: There is no database yet.
    note models: All agents answer with the built-in demo model, which only echoes.
    note backup: No backup is in backups/ of the home folder.
    note files.unknown: BOOTSTRAP_OLD.md in the home folder is unused: Parlor does not use it.
    note files.overridden: TOOLS.md in the home folder is unused: every agent has its own.
    ");
    assert!(path.join("TOOLS.md").exists(), "--fix moves nothing");
    let (_, told) = json(path, &["--tidy"]).await;
    assert_eq!(
        told["repaired"].as_array().map(Vec::len),
        Some(2),
        "{told:#}"
    );
    let day = chrono::Utc::now().format("%Y-%m-%d").to_string();
    let archive = path.join("archive").join(format!("unused-{day}"));
    assert!(archive.join("TOOLS.md").exists() && archive.join("BOOTSTRAP_OLD.md").exists());
    assert!(path.join(".env").exists() && !path.join("TOOLS.md").exists());
    let checked = run(path, &["config", "check"]).await;
    assert_eq!(checked.code, 0, "{}", checked.stderr);
}

#[tokio::test]
async fn a_broken_home_is_looked_at_as_far_as_it_goes() {
    let home = lived_in().await;
    let path = home.path();
    let config = fs::read_to_string(path.join("config.toml")).expect("a config");
    fs::write(
        path.join("config.toml"),
        format!("{config}\n[agents.dot]\ncolour = 1\n"),
    )
    .expect("writes");
    assert!(
        found(path, "config")
            .await
            .starts_with("bad: config.toml has problems, so nothing starts. (")
    );
    assert!(
        found(path, "database").await.starts_with("ok"),
        "the rest is looked at"
    );
    fs::write(path.join("config.toml"), format!("{config}\n[telegram]\ntoken = {{ env = \"NOT_SET\" }}\n[discord]\ntoken = {{ file = \"secrets/none\" }}\n")).expect("writes");
    let (_, told) = json(path, &[]).await;
    assert_snapshot!(troubles(&told), @"
    note gateway: No gateway runs on this home.
    bad secrets.missing: The secret of `discord.token` cannot be read.
    warn secrets.missing: The secret of `telegram.token` is not set.
    note models: All agents answer with the built-in demo model, which only echoes.
    note security.no-owner: Nobody is an owner on a platform, so nobody is told of problems there.
    note backup: No backup is in backups/ of the home folder.
    ");
    fs::write(path.join("config.toml"), &config).expect("writes");
    let connection = rusqlite::Connection::open(path.join("parlor.db")).expect("opens");
    connection
        .pragma_update(None, "user_version", 99_999)
        .expect("sets");
    drop(connection);
    assert_snapshot!(crate::support::without_schema(&found(path, "database").await), @"bad: The database cannot be used. (HOME/parlor.db was written by a newer Parlor (schema 99999, this one knows N). Start the newer version, or restore an older copy) → Bring back a backup: parlor restore FILE");
    fs::write(path.join("parlor.db"), vec![7; 9000]).expect("writes");
    assert!(
        found(path, "database")
            .await
            .starts_with("bad: The database cannot be used.")
    );
    fs::remove_file(path.join("parlor.db")).expect("is there");
    let lost = found(path, "database").await;
    assert!(
        lost.starts_with("bad:") && lost.contains("is missing"),
        "{lost}"
    );
    fs::write(path.join("parlor.db"), vec![7; 9000]).expect("writes");
    fs::remove_file(path.join("config.toml")).expect("is there");
    assert!(
        found(path, "config")
            .await
            .starts_with("bad: There is no config file")
    );
}

#[tokio::test]
async fn old_backups_and_places_without_a_rule_are_told() {
    let mut house = House::new(
        "[access]\nowners = [\"telegram:111\"]\ngroups = \"open\"\nrequire_mention = false\n",
    )
    .await;
    house.leave_leftovers();
    let process = house.spawn().await;
    let topic = house.telegram.forum(-1001).topic(5, "Roses");
    topic.says(ALICE, "hello").await;
    topic.wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);
    let home = house.home.path();
    assert_snapshot!(found(home, "routing").await, @"note: 1 shared place has no rule and falls to the default agent: Roses (telegram:topic:-1001:5). () → Give them to agents with /bind NAME there, or in config.toml.");
    assert_snapshot!(found(home, "backup").await, @"note: No backup is in backups/ of the home folder. () → parlor backup --keep 7, every night");
    house.write("backups/parlor-2020-01-01T00-00-00Z.tar.gz", "");
    assert!(
        found(home, "backup")
            .await
            .starts_with("warn: The newest backup is ")
    );
    fine(home, &["backup"]).await;
    assert!(
        found(home, "backup")
            .await
            .starts_with("ok: The newest backup is less than a day old.")
    );
}

/// No secret, no word of anybody, no name: only facts.
#[tokio::test]
async fn a_bundle_has_facts_and_no_words() {
    let mut house = House::new(
        "[access]\nowners = [\"telegram:111\"]\n[agents.main]\n[agents.zinnober]\nsystem_prompt = \"vermilion prompt\"\nname = \"Zinnober\"\n",
    )
    .await;
    house.leave_leftovers();
    house.write("SOUL.md", "cerulean soul");
    house.write("carmine-notes.txt", "x");
    let process = house.spawn().await;
    let topic = house.telegram.forum(-1001).topic(5, "magenta topic");
    topic.says(ALICE, "/agent zinnober").await;
    topic.wait_for_sent(1).await;
    house.telegram.dm(ALICE).says("indigo words").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.tar.gz");
    let ran = run(
        house.home.path(),
        &["doctor", "--bundle", &file.display().to_string()],
    )
    .await;
    assert!(file.exists(), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(mode(&file), 0o600);
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(
        fs::File::open(&file).expect("opens"),
    ));
    let (mut names, mut all) = (Vec::new(), String::new());
    for entry in archive.entries().expect("entries") {
        let mut entry = entry.expect("an entry");
        names.push(entry.path().expect("a name").display().to_string());
        std::io::Read::read_to_string(&mut entry, &mut all).expect("text");
    }
    assert_eq!(
        names,
        [
            "parlor-report/doctor.json",
            "parlor-report/version.json",
            "parlor-report/config.json",
            "parlor-report/rows.json"
        ]
    );
    for word in [
        "zinnober",
        "vermilion",
        "cerulean",
        "carmine",
        "magenta",
        "indigo",
        "telegram:111",
        "-1001",
        house.telegram.token(),
        "Alice",
    ] {
        assert!(
            !all.to_lowercase().contains(&word.to_lowercase()),
            "{word} is in the bundle:\n{all}"
        );
    }
    assert!(all.contains("\"messages\""), "{all}");
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn owners_ask_the_doctor_in_their_private_chat() {
    let house = House::new(&format!(
        "{OWNED}[people.bob]\nids = [\"telegram:222\"]\nrole = \"admin\"\n"
    ))
    .await;
    set_mode(&house.home.path().join("secrets"), 0o700);
    let gateway = house.open().await;
    let owner = house.telegram.dm(ALICE);
    owner.says("/doctor").await;
    assert_snapshot!(owner.wait_for_sent(1).await.text, @"
    • No backup is in backups/ of the home folder. → parlor backup --keep 7, every night

    14 checks are fine. parlor doctor on the machine also asks every model and platform, and repairs with --fix.
    ");
    let admin = house.telegram.dm(BOB);
    admin.says("/doctor").await;
    assert_snapshot!(admin.wait_for_sent(1).await.text, @"Only owners can ask the doctor.");
    let topic = house.telegram.forum(-1001).topic(5, "Roses");
    topic.says(ALICE, "/doctor").await;
    assert_snapshot!(topic.wait_for_sent(1).await.text, @"Others read along here, so ask me in our private chat: /doctor");
    house.close(gateway).await;
}
