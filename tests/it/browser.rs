//! The dashboard and the web chat in a real browser, against the real binary and the fakes. The
//! scenarios are in `tests/browser/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::mini_app::init_data;
use crate::support::House;
use crate::support::fake_discord as discord;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, Fault};
use crate::support::house::{Process, parlor};
use crate::support::tell_skipped;
use crate::webhook::free_address;
use crate::what_if::{Forum, moves};

/// The folder with playwright-core; `scripts/check` makes one and sets this.
const BROWSER: &str = "PARLOR_BROWSER";
const PATIENCE: Duration = Duration::from_secs(280);

/// Nothing, and a word about it, where there is no browser.
fn browser() -> Option<PathBuf> {
    let found = std::env::var_os(BROWSER).map(PathBuf::from);
    if found.is_none() {
        tell_skipped(&format!(
            "no browser, because {BROWSER} is not set; scripts/check sets it"
        ));
    }
    found
}

/// A fresh home, as a newcomer has it.
fn fresh_home() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

async fn started(home: &Path) -> Process {
    let process = Process::start(home, &["run"]);
    process.wait_for_log("the admin listener is on").await;
    process
}

/// A link that signs a browser in.
async fn link(home: &Path) -> String {
    let output = parlor(home)
        .args(["dashboard", "--no-open"])
        .output()
        .await
        .expect("the binary starts");
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(text.starts_with("http://"), "{output:?}");
    text
}

/// Runs a scenario to its end.
async fn browse(browser: &Path, scenario: &str, environment: &[(&str, &str)]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let running = Command::new("node")
        .arg(script.join(scenario))
        .env(BROWSER, browser)
        .envs(environment.iter().copied())
        .kill_on_drop(true)
        .output();
    let output = timeout(PATIENCE, running).await.expect("it ends in time");
    let output = output.expect("node starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {told}");
}

/// S1.4, S1.20, S1.24, S1.48, S0.46: two agents in two topics, on a fresh machine.
#[tokio::test]
async fn a_newcomer_talks_to_two_agents_in_two_topics() {
    let Some(browser) = browser() else { return };
    let home = fresh_home();
    let process = started(home.path()).await;
    let link = link(home.path()).await;
    browse(&browser, "chat.mjs", &[("PARLOR_LINK", &link)]).await;
    process.stop().await;
}

#[tokio::test]
async fn strangers_see_nothing() {
    let Some(browser) = browser() else { return };
    let home = fresh_home();
    let process = started(home.path()).await;
    let link = link(home.path()).await;
    let base = link.split("/enter").next().expect("a base");
    browse(&browser, "stranger.mjs", &[("PARLOR_BASE", base)]).await;
    process.stop().await;
}

/// A place given away in the house is answered by its new agent, on Telegram too.
#[tokio::test]
async fn an_agent_dragged_onto_a_topic_answers_the_next_message() {
    let Some(browser) = browser() else { return };
    let house = House::new(&format!(
        "[access]\nowners = [\"telegram:111\"]\nrequire_mention = false\n[admin]\nlisten = \"{}\"\n\
         [agents.main]\n[agents.rose]\nwho = \"guest\"\n\
         [[bindings]]\nmatch = \"telegram:topic:-1001:101\"\nagent = \"rose\"\n",
        free_address()
    ))
    .await;
    let process = house.spawn().await;
    process.wait_for_log("the admin listener is on").await;
    let topic = house.telegram.forum(-1001).topic(101, "Work");
    topic.says(ALICE, "hello").await;
    let last = "SELECT coalesce((SELECT slug FROM turns JOIN agents ON uid = agent_uid ORDER BY turns.id DESC LIMIT 1), '')";
    house.wait_until_stored(last, "rose").await;
    let link = link(house.home.path()).await;
    let environment = [
        ("PARLOR_LINK", link.as_str()),
        ("PARLOR_PLACE", "telegram:topic:-1001:101"),
    ];
    browse(&browser, "house.mjs", &environment).await;
    assert!(
        house.config().contains("agent = \"main\""),
        "{}",
        house.config()
    );
    topic.says(ALICE, "and now").await;
    house.wait_until_stored(last, "main").await;
    process.stop().await;
}

/// S2.7: the list that What if shows is what happens after saving, when everybody writes once more.
#[tokio::test]
async fn what_is_shown_to_change_changes() {
    let Some(browser) = browser() else { return };
    let forum = Forum::open().await;
    let before = forum.all_write().await;
    let newest = forum.house.ask("SELECT max(id) FROM inbox");
    let home = forum.house.home.path();
    let (link, list) = (link(home).await, home.join("list.json"));
    let list = list.to_str().expect("a path");
    let environment = [("PARLOR_LINK", link.as_str()), ("PARLOR_LIST", list)];
    browse(&browser, "what_if.mjs", &environment).await;
    let shown = std::fs::read_to_string(list).expect("written");
    let shown: Vec<Value> = serde_json::from_str(&shown).expect("a list");
    let shown = moves(&shown, newest.parse().expect("a number"), &forum.voices());
    let after = forum.all_write().await;
    let happened: BTreeMap<&str, (String, String)> = after
        .iter()
        .filter(|(name, agent)| before[*name] != **agent)
        .map(|(name, agent)| (*name, (before[name].clone(), agent.clone())))
        .collect();
    assert_eq!(shown, happened);
    assert!(happened.len() >= 3, "{happened:?}");
    let check = parlor(home).args(["config", "check"]).output().await;
    assert!(check.expect("it runs").status.success());
    forum.stop().await;
}

/// Every page in both colours: nothing serious for axe, nothing wider than the screen, no error on the
/// console.
async fn look_at_every_page(size: &str) {
    let Some(browser) = browser() else { return };
    let home = fresh_home();
    let process = started(home.path()).await;
    let link = link(home.path()).await;
    let environment = [("PARLOR_LINK", link.as_str()), ("PARLOR_SIZE", size)];
    browse(&browser, "pages.mjs", &environment).await;
    process.stop().await;
}

#[tokio::test]
async fn every_page_is_accessible_on_a_wide_screen() {
    look_at_every_page("wide").await;
}

#[tokio::test]
async fn every_page_is_accessible_and_fits_a_phone() {
    look_at_every_page("narrow").await;
}

/// S0.43, S0.44, S1.4, S1.5, S1.43, S1.45, S1.46, S1.48, S1.49, S1.63: made, edited, switched to, archived, brought back.
#[tokio::test]
async fn an_agent_is_made_edited_archived_and_brought_back() {
    let Some(browser) = browser() else { return };
    let home = fresh_home();
    let process = started(home.path()).await;
    let link = link(home.path()).await;
    browse(&browser, "agents.mjs", &[("PARLOR_LINK", &link)]).await;
    process.stop().await;
}

/// S0.42, S0.65, S3.21: the chosen agent decides which memories are shown, and stays chosen.
#[tokio::test]
async fn memory_is_that_of_the_chosen_agent() {
    let Some(browser) = browser() else { return };
    let home = fresh_home();
    let config = format!(
        "[web]\n[admin]\nlisten = \"{}\"\n[log]\nfile = \"logs/parlor.log\"\n\
         [agents.main]\n[agents.rose]\nread_memory_from = [\"main\"]\n",
        free_address()
    );
    std::fs::write(home.path().join("config.toml"), config).expect("writes");
    let process = started(home.path()).await;
    let link = link(home.path()).await;
    browse(&browser, "memory.mjs", &[("PARLOR_LINK", &link)]).await;
    process.stop().await;
}

#[tokio::test]
async fn config_is_edited_checked_applied_and_rolled_back() {
    let Some(browser) = browser() else { return };
    let home = fresh_home();
    let process = started(home.path()).await;
    let link = link(home.path()).await;
    browse(&browser, "config.mjs", &[("PARLOR_LINK", &link)]).await;
    process.stop().await;
}

/// The pages also act, and a key that may only look sees no button.
#[tokio::test]
async fn the_house_is_run_from_its_pages() {
    let Some(browser) = browser() else { return };
    let mut house = House::new(&format!(
        "[access]\nowners = [\"telegram:111\"]\nrequire_mention = false\n[web]\n[admin]\nlisten = \"{}\"\n\
         [agents.main]\n[agents.rose]\n\
         [[bindings]]\nmatch = \"telegram:topic:-1001:101\"\nagent = \"rose\"\n",
        free_address()
    ))
    .await;
    // With limits, so that their use can be seen.
    let config = house.config();
    let limited = config
        .replace("chat_per_second = 0", "chat_per_second = 9")
        .replace("per_second = 0", "per_second = 30")
        .replace("group_per_minute = 0", "group_per_minute = 20");
    house.write("config.toml", &limited);
    let process = house.spawn().await;
    process.wait_for_log("the admin listener is on").await;
    let topic = house.telegram.forum(-1001).topic(101, "Garden");
    topic.says(ALICE, "hello").await;
    topic.wait_for_sent(1).await;
    // Two answers that Telegram refuses.
    let failed = "SELECT count(*) FROM outbox WHERE state = 'failed'";
    for number in 1..=2 {
        let refused = Fault::Refused(400, "Bad Request: not now");
        house.telegram.fail("sendMessage", refused).once();
        topic.says(ALICE, "and again").await;
        house.wait_until_stored(failed, &number.to_string()).await;
    }
    // Somebody at the door.
    let bob = house.telegram.dm(BOB);
    bob.says("let me in").await;
    bob.wait_for_sent(1).await;
    // And a turn that hangs.
    house.model.hold();
    let alice = house.telegram.dm(ALICE);
    alice.says("think hard").await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "1")
        .await;
    let link = link(house.home.path()).await;
    let reader = parlor(house.home.path())
        .args(["token", "create", "reader", "--scope", "read"])
        .output()
        .await
        .expect("the binary starts");
    let reader = String::from_utf8_lossy(&reader.stdout).trim().to_owned();
    let environment = [
        ("PARLOR_LINK", link.as_str()),
        ("PARLOR_READER", reader.as_str()),
    ];
    browse(&browser, "actions.mjs", &environment).await;
    house.model.release();
    house.leave_leftovers();
    process.stop().await;
}

/// A call waits for a yes, which is given on the dashboard.
#[tokio::test]
async fn a_call_is_allowed_on_the_dashboard_and_runs() {
    let Some(browser) = browser() else { return };
    let house = House::new(&format!(
        "[access]\nowners = [\"telegram:111\"]\n[admin]\nlisten = \"{}\"\n\
         [agents.main]\ntools = {{ ask = [\"file_write\"] }}\n",
        free_address()
    ))
    .await;
    let process = house.spawn().await;
    process.wait_for_log("the admin listener is on").await;
    let alice = house.telegram.dm(ALICE);
    let arguments = serde_json::json!({ "path": "a.md", "content": "tea" });
    house
        .model
        .enqueue(Script::tool_call("file_write", arguments));
    alice.says("write it").await;
    house
        .wait_until_stored("SELECT count(*) FROM open_turns WHERE parked = 1", "1")
        .await;
    let link = link(house.home.path()).await;
    browse(&browser, "approvals.mjs", &[("PARLOR_LINK", &link)]).await;
    let written = house.home.path().join("agents/main/workspace/a.md");
    assert!(written.exists(), "the tool has run");
    alice.wait_for_sent(2).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    process.stop().await;
}

#[tokio::test]
async fn a_revoked_sign_in_ends_the_open_chat() {
    let Some(browser) = browser() else { return };
    let home = fresh_home();
    let process = started(home.path()).await;
    let link = link(home.path()).await;
    browse(&browser, "signed_out.mjs", &[("PARLOR_LINK", &link)]).await;
    process.stop().await;
}

/// S0.50
#[tokio::test]
async fn a_single_agent_needs_no_choice() {
    let Some(browser) = browser() else { return };
    let home = fresh_home();
    let config = format!("[web]\n[admin]\nlisten = \"{}\"\n", free_address());
    std::fs::write(home.path().join("config.toml"), config).expect("writes");
    let process = started(home.path()).await;
    let link = link(home.path()).await;
    browse(&browser, "single.mjs", &[("PARLOR_LINK", &link)]).await;
    process.stop().await;
}

/// The gateway is killed in the middle of a turn. Its page shows the gap, and goes on.
#[tokio::test]
async fn the_page_of_a_turn_shows_the_gap_of_a_kill() {
    let Some(browser) = browser() else { return };
    let house = House::new(&format!(
        "[access]\nowners = [\"telegram:111\"]\n[admin]\nlisten = \"{}\"\n",
        free_address()
    ))
    .await;
    let process = house.spawn().await;
    let owner = house.telegram.dm(ALICE);
    house
        .model
        .enqueue(Script::tool_call("now", serde_json::json!({})));
    house.model.enqueue(Script::text("never seen").held());
    owner.says("the time?").await;
    house.model.wait_for_requests(2).await;
    process.kill().await;
    house.model.enqueue(Script::text("Noon."));
    let process = house.spawn().await;
    process.wait_for_log("the admin listener is on").await;
    owner.wait_for_sent(1).await;
    let open = "SELECT count(*) FROM outbox WHERE state <> 'sent'";
    house.wait_until_stored(open, "0").await;
    let (link, turn) = (
        link(house.home.path()).await,
        house.ask("SELECT inbox_id FROM turns"),
    );
    let environment = [
        ("PARLOR_LINK", link.as_str()),
        ("PARLOR_TURN", turn.as_str()),
    ];
    browse(&browser, "turn.mjs", &environment).await;
    process.stop().await;
}

/// An owner opens the dashboard from Telegram, and what opened it counts once.
#[tokio::test]
async fn what_telegram_hands_over_signs_a_browser_in() {
    let Some(browser) = browser() else { return };
    let address = free_address();
    let house = House::new(&format!(
        "[access]\nowners = [\"telegram:111\"]\n[admin]\nlisten = \"{address}\"\n"
    ))
    .await;
    let process = house.spawn().await;
    process.wait_for_log("the admin listener is on").await;
    let base = format!("http://{address}");
    let handed = init_data(house.telegram.token(), ALICE, 1);
    let environment = [
        ("PARLOR_BASE", base.as_str()),
        ("PARLOR_INIT_DATA", handed.as_str()),
    ];
    browse(&browser, "mini-app.mjs", &environment).await;
    process.stop().await;
}

/// Platform, server, category, channel or forum, thread.
#[tokio::test]
async fn servers_and_categories_are_levels_of_the_house() {
    let Some(browser) = browser() else { return };
    let config = format!(
        "[access]\nowners = [\"discord:111\"]\nrequire_mention = false\n[admin]\nlisten = \"{}\"\n\
         [agents.main]\n[agents.rose]\n[[bindings]]\nmatch = \"discord:guild:8001\"\nagent = \"rose\"\n",
        free_address()
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
    let link = link(house.home.path()).await;
    browse(&browser, "levels.mjs", &[("PARLOR_LINK", &link)]).await;
    process.stop().await;
}
