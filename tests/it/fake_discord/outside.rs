//! The fake under the eyes of a client from outside: discord.py.

use futures_util::FutureExt;
use serde_json::json;

use crate::support::fake_discord::{ALICE, BOB, FakeDiscord, Fault, PARLOR_BOT, Room, Route};
use crate::support::tell_skipped;

/// The Python that has discord.py; `scripts/check` makes one and sets this.
const PYTHON: &str = "PARLOR_DISCORD_PYTHON";
const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/fake_discord/discord_check.py"
);

#[tokio::test]
async fn discord_py_understands_what_the_fake_says() {
    let Some(python) = std::env::var_os(PYTHON) else {
        tell_skipped(&format!(
            "discord.py does not look at the fake, because {PYTHON} is not set; scripts/check sets it"
        ));
        return;
    };
    let discord = FakeDiscord::start().await;
    let guild = discord.guild(8001, "Garden");
    guild.role(61, "gardeners");
    guild.gives_roles(ALICE, &[61]);
    let general = guild
        .text_channel(8101, "general")
        .below(&guild.category(8100, "plants"));
    let forum = guild.forum(8102, "help", &[(51, "bug")]);
    guild.voice_channel(8103, "voice");
    guild.announcement_channel(8104, "news");
    guild.stage(8105, "stage");
    general.thread(8201, "roses");
    discord.fail(Route::GetUser, Fault::RateLimited(0.1)).once();
    discord
        .fail(Route::GetGuildMember, Fault::MISSING_ACCESS)
        .once();
    let mut looking = tokio::process::Command::new(python)
        .args([SCRIPT, discord.url(), discord.token()])
        .kill_on_drop(true)
        .output()
        .boxed();

    // A script that gives up early has the better story to tell.
    let looked = tokio::select! {
        looked = &mut looking => looked,
        () = everything_people_do(&discord, &general, &forum) => looking.await,
    };
    let looked = looked.expect("Python starts");
    let (said, complained) = (
        String::from_utf8_lossy(&looked.stdout),
        String::from_utf8_lossy(&looked.stderr),
    );
    assert!(
        looked.status.success() && said.ends_with("discord.py agrees\n"),
        "{said}{complained}"
    );
}

async fn everything_people_do(discord: &FakeDiscord, general: &Room, forum: &Room) {
    // The script greets in #general when it is ready, and after the resume.
    general.wait_for_sent(1).await;
    let commands = discord.wait_for_commands(1).await;
    assert_eq!(commands[0]["name"], "agent");
    let said = general
        .says(ALICE, &format!("{} hello", PARLOR_BOT.mention()))
        .await;
    general
        .says(BOB, "an answer")
        .replying_to(said.message_id)
        .attaching("a.txt", "text/plain", b"abc")
        .await;
    general.edits(said.message_id, "hello, edited").await;
    general.reacts(BOB, said.message_id, "🌹").await;
    forum.posts(ALICE, "Wilting", &[51], "help me").await;
    discord.dm(ALICE).says("in private").await;
    let used = general
        .command(ALICE, "agent")
        .option("name", "scribe")
        .await;
    assert_eq!(used.text().await, "scribe it is");
    let typing = general.types_into(ALICE, "agent", "name", "scr").await;
    assert_eq!(
        typing.choices().await,
        [("scribe".to_owned(), json!("scribe"))]
    );
    let with_button = used.followup(1).await;
    let pressed = general.presses(BOB, with_button.message_id, "undo").await;
    assert_eq!(pressed.first().await["type"], 7);
    discord.drop_connections();
    discord.wait_for_resumes(1).await;
    general.says(ALICE, "goodbye").await;
}
