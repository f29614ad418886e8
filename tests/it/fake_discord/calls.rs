//! What the REST side accepts, refuses and remembers.

use std::time::Duration;

use insta::assert_snapshot;
use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use super::{Caller, quiet};
use crate::support::fake_discord::{
    ALICE, APPLICATION_ID, BotMay, FakeDiscord, GuildHandle, PARLOR_BOT, Room,
};

async fn garden() -> (FakeDiscord, GuildHandle, Room, Caller) {
    let discord = FakeDiscord::start().await;
    let guild = discord.guild(8001, "Garden");
    let general = guild.text_channel(8101, "general");
    let caller = Caller::new(&discord);
    (discord, guild, general, caller)
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

#[tokio::test]
async fn messages_that_break_a_rule_are_refused() {
    let (_discord, guild, general, caller) = garden().await;
    guild.forum(8102, "help", &[]);
    let theirs = general.says(ALICE, "mine").await.message_id;
    let button = |id: &str| json!({ "type": 2, "style": 1, "label": "x", "custom_id": id });
    let row = |parts: Value| json!([{ "type": 1, "components": parts }]);
    let bodies = [
        quiet(&"x".repeat(2001)),
        quiet(" \n"),
        with(quiet("x"), "nonce", "n".repeat(26).into()),
        with(
            quiet("x"),
            "message_reference",
            json!({ "message_id": "1" }),
        ),
        with(
            quiet("x"),
            "components",
            row(json!([button("a"), button("a")])),
        ),
        with(
            quiet("x"),
            "components",
            row(json!([button(&"i".repeat(101))])),
        ),
        with(
            quiet("x"),
            "components",
            row((0..6).map(|n| button(&n.to_string())).collect()),
        ),
    ];
    let mut refusals = Vec::new();
    for body in bodies {
        refusals.push(
            caller
                .refusal("POST", "/channels/8101/messages", body)
                .await,
        );
    }
    for path in ["/channels/1/messages", "/channels/8102/messages"] {
        refusals.push(caller.refusal("POST", path, quiet("x")).await);
    }
    refusals.push(
        caller
            .refusal(
                "PATCH",
                &format!("/channels/8101/messages/{theirs}"),
                quiet("x"),
            )
            .await,
    );
    refusals.push(
        caller
            .refusal(
                "DELETE",
                &format!("/channels/8101/messages/{theirs}"),
                Value::Null,
            )
            .await,
    );
    refusals.push(
        caller
            .refusal("DELETE", "/channels/8101/messages/1", Value::Null)
            .await,
    );
    refusals.push(
        caller
            .refusal(
                "PUT",
                &format!("/channels/8101/messages/{theirs}/reactions/no/@me"),
                Value::Null,
            )
            .await,
    );
    let own = caller.send(8101, &"🌹".repeat(1000)).await;
    refusals.push(
        caller
            .refusal(
                "PATCH",
                &format!("/channels/8101/messages/{own}"),
                quiet(""),
            )
            .await,
    );
    refusals.push(
        caller
            .refusal("POST", "/channels/8101/pins", Value::Null)
            .await,
    );

    assert_snapshot!(refusals.join("\n"), @r#"
    400 50035 Invalid Form Body {"content":{"_errors":[{"code":"BASE_TYPE_MAX_LENGTH","message":"Must be 2000 or fewer in length."}]}}
    400 50006 Cannot send an empty message
    400 50035 Invalid Form Body {"nonce":{"_errors":[{"code":"BASE_TYPE_MAX_LENGTH","message":"Must be 25 or fewer in length."}]}}
    400 50035 Invalid Form Body {"message_reference":{"_errors":[{"code":"REPLIES_UNKNOWN_MESSAGE","message":"Unknown message"}]}}
    400 50035 Invalid Form Body {"components":{"_errors":[{"code":"COMPONENT_CUSTOM_ID_DUPLICATED","message":"Component custom id cannot be duplicated"}]}}
    400 50035 Invalid Form Body {"components":{"_errors":[{"code":"BASE_TYPE_BAD_LENGTH","message":"Must be between 1 and 100 in length."}]}}
    400 50035 Invalid Form Body {"components":{"_errors":[{"code":"BASE_TYPE_BAD_LENGTH","message":"Must be between 1 and 5 in length."}]}}
    404 10003 Unknown Channel
    400 50008 Cannot send messages in a non-text channel
    403 50005 Cannot edit a message authored by another user
    403 50013 Missing Permissions
    404 10008 Unknown Message
    400 10014 Unknown Emoji
    400 50006 Cannot send an empty message
    404 0 404: Not Found
    "#);
}

#[tokio::test]
async fn a_wrong_token_opens_nothing() {
    let (_discord, _guild, _general, caller) = garden().await;
    let stranger = Caller {
        token: "Bot wrong".into(),
        ..caller
    };
    assert_eq!(
        stranger.refusal("GET", "/users/@me", Value::Null).await,
        "401 0 401: Unauthorized"
    );
    assert_eq!(stranger.call("GET", "/gateway", Value::Null).await.0, 200);
}

#[tokio::test]
async fn the_bot_is_told_what_it_may_not() {
    let (discord, _guild, general, caller) = garden().await;
    let dm = discord.dm(ALICE);
    dm.blocks_bot();
    let in_dm = caller
        .refusal(
            "POST",
            &format!("/channels/{}/messages", dm.id()),
            quiet("x"),
        )
        .await;
    general.lets_bot(BotMay::OnlyRead);
    let silenced = caller
        .refusal("POST", "/channels/8101/messages", quiet("x"))
        .await;
    let typing = caller
        .refusal("POST", "/channels/8101/typing", Value::Null)
        .await;
    general.lets_bot(BotMay::NotSee);
    let hidden = caller.refusal("GET", "/channels/8101", Value::Null).await;
    assert_snapshot!([in_dm, silenced, typing, hidden].join("\n"), @"
    403 50007 Cannot send messages to this user
    403 50013 Missing Permissions
    403 50013 Missing Permissions
    403 50001 Missing Access
    ");
}

#[tokio::test]
async fn an_enforced_nonce_makes_one_message_of_two_calls() {
    let (discord, _guild, general, caller) = garden().await;
    let body = with(
        with(quiet("once"), "nonce", "row-7".into()),
        "enforce_nonce",
        true.into(),
    );
    let first = caller
        .call("POST", "/channels/8101/messages", body.clone())
        .await
        .1;
    let again = caller
        .call("POST", "/channels/8101/messages", body.clone())
        .await
        .1;
    assert_eq!(first["id"], again["id"]);
    assert_eq!(general.texts(), ["once"]);

    let loose = with(quiet("once"), "nonce", "row-7".into());
    caller.call("POST", "/channels/8101/messages", loose).await;
    assert_eq!(general.texts().len(), 2, "not enforced");
    discord.advance(Duration::from_secs(600));
    caller.call("POST", "/channels/8101/messages", body).await;
    assert_eq!(general.texts().len(), 3, "forgotten after minutes");
}

#[tokio::test]
async fn history_comes_in_pages_with_the_newest_first() {
    let (_discord, _guild, general, caller) = garden().await;
    let mut ids = Vec::new();
    for n in 1..=5 {
        ids.push(general.says(ALICE, &n.to_string()).await.message_id);
    }
    let texts = async |query: &str| -> Vec<String> {
        let page = caller
            .call(
                "GET",
                &format!("/channels/8101/messages?{query}"),
                Value::Null,
            )
            .await
            .1;
        page.as_array()
            .expect("a list")
            .iter()
            .map(|it| it["content"].as_str().expect("text").to_owned())
            .collect()
    };
    assert_eq!(
        texts(&format!("after={}&limit=2", ids[1])).await,
        ["4", "3"]
    );
    assert_eq!(
        texts(&format!("before={}&limit=2", ids[3])).await,
        ["3", "2"]
    );
    assert_eq!(texts("limit=2").await, ["5", "4"]);
    let refusal = caller
        .refusal("GET", "/channels/8101/messages?limit=101", Value::Null)
        .await;
    assert!(refusal.starts_with("400 50035"), "{refusal}");
}

#[tokio::test]
async fn writing_wakes_an_archived_thread_unless_it_is_locked() {
    let (_discord, _guild, general, caller) = garden().await;
    let thread = general.thread(8201, "roses");
    let own = caller.send(8201, "first").await;
    thread.archives().await;
    let edit = caller
        .refusal(
            "PATCH",
            &format!("/channels/8201/messages/{own}"),
            quiet("x"),
        )
        .await;
    assert_eq!(edit, "400 50083 Thread is archived");
    caller.send(8201, "hello").await;
    assert!(!thread.is_archived());

    thread.locks().await;
    assert_eq!(
        caller
            .refusal("POST", "/channels/8201/messages", quiet("x"))
            .await,
        "400 50083 Thread is archived"
    );
    let (status, changed) = caller
        .call(
            "PATCH",
            "/channels/8201",
            json!({ "archived": false, "locked": false }),
        )
        .await;
    assert_eq!(
        (status, &changed["thread_metadata"]["archived"]),
        (200, &json!(false))
    );
    caller.send(8201, "again").await;
}

#[tokio::test]
async fn the_bot_opens_threads_and_forum_posts() {
    let (discord, guild, general, caller) = garden().await;
    guild.forum(8102, "help", &[(51, "bug")]);
    let post = json!({ "name": "Roses", "applied_tags": ["51"], "message": quiet("first") });
    let (_, thread) = caller.call("POST", "/channels/8102/threads", post).await;
    assert_eq!(thread["id"], thread["message"]["id"]);
    assert_eq!(
        (&thread["parent_id"], &thread["type"]),
        (&json!("8102"), &json!(11))
    );
    let id = thread["id"]
        .as_str()
        .expect("an id")
        .parse()
        .expect("a number");
    assert_eq!(discord.room(id).texts(), ["first"]);
    let wrong = json!({ "name": "Roses", "applied_tags": ["99"], "message": quiet("first") });
    assert!(
        caller
            .refusal("POST", "/channels/8102/threads", wrong)
            .await
            .starts_with("400 50035")
    );

    let said = general.says(ALICE, "about roses").await.message_id;
    let path = format!("/channels/8101/messages/{said}/threads");
    let (_, thread) = caller.call("POST", &path, json!({ "name": "Roses" })).await;
    assert_eq!(thread["id"], said.to_string());
    let again = caller
        .refusal("POST", &path, json!({ "name": "Roses" }))
        .await;
    assert_eq!(
        again,
        "400 160004 A thread has already been created for this message"
    );
    let (_, active) = caller
        .call("GET", "/guilds/8001/threads/active", Value::Null)
        .await;
    assert_eq!(active["threads"].as_array().expect("a list").len(), 2);
}

#[tokio::test]
async fn files_travel_both_ways() {
    let (discord, _guild, general, caller) = garden().await;
    let payload = with(
        quiet("see"),
        "attachments",
        json!([{ "id": "0", "description": "a rose" }]),
    );
    let file = Part::bytes(b"petals".to_vec())
        .file_name("rose.txt")
        .mime_str("text/plain")
        .expect("a type");
    let form = Form::new()
        .text("payload_json", payload.to_string())
        .part("files[0]", file);
    let url = format!("{}/api/v10/channels/8101/messages", discord.url());
    let sending = caller
        .client
        .post(url)
        .header("authorization", &caller.token)
        .multipart(form)
        .send();
    let message: Value = sending.await.expect("sent").json().await.expect("JSON");
    let attachment = &message["attachments"][0];
    assert_eq!(
        (&attachment["filename"], &attachment["description"]),
        (&json!("rose.txt"), &json!("a rose"))
    );
    let fetched = caller
        .client
        .get(attachment["url"].as_str().expect("an address"))
        .send()
        .await
        .expect("there");
    assert_eq!(fetched.text().await.expect("text"), "petals");

    general
        .says(ALICE, "mine")
        .attaching("leaf.png", "image/png", b"green")
        .await;
    let theirs = &general.messages()[1]["attachments"][0];
    assert_eq!(
        (&theirs["size"], &theirs["content_type"]),
        (&json!(5), &json!("image/png"))
    );
    let big = Part::bytes(vec![0; (10 << 20) + 1]).file_name("big");
    let form = Form::new()
        .text("payload_json", quiet("see").to_string())
        .part("files[0]", big);
    let url = format!("{}/api/v10/channels/8101/messages", discord.url());
    let sending = caller
        .client
        .post(url)
        .header("authorization", &caller.token)
        .multipart(form)
        .send();
    assert_eq!(sending.await.expect("answered").status(), 413);
}

#[tokio::test]
async fn attachments_decides_which_files_are_in_a_message() {
    let (discord, _guild, _general, caller) = garden().await;
    let call = async |method: Method, path: &str, body: Value| -> Value {
        let form = Form::new().text("payload_json", body.to_string()).part(
            "files[0]",
            Part::bytes(b"petals".to_vec()).file_name("rose.txt"),
        );
        let url = format!("{}/api/v10/channels/8101/messages{path}", discord.url());
        let sending = caller
            .client
            .request(method, url)
            .header("authorization", &caller.token)
            .multipart(form)
            .send();
        sending.await.expect("sent").json().await.expect("JSON")
    };
    let files = |message: &Value| message["attachments"].as_array().expect("a list").len();
    let unlisted = with(quiet("see"), "attachments", json!([]));
    let listed = with(
        quiet("see"),
        "attachments",
        json!([{ "id": 0, "filename": "rose.txt" }]),
    );
    assert_eq!(files(&call(Method::POST, "", quiet("see")).await), 1);
    assert_eq!(
        files(&call(Method::POST, "", unlisted.clone()).await),
        0,
        "what is not listed is dropped"
    );
    let message = call(Method::POST, "", listed.clone()).await;
    assert_eq!(files(&message), 1);
    let path = format!("/{}", message["id"].as_str().expect("an id"));
    assert_eq!(
        files(&call(Method::PATCH, &path, quiet("see")).await),
        2,
        "an edit without a list adds"
    );
    assert_eq!(
        files(&call(Method::PATCH, &path, listed).await),
        1,
        "one with a list keeps what it names"
    );
    assert_eq!(files(&call(Method::PATCH, &path, unlisted).await), 0);
    let violations = discord.take_violations();
    assert!(
        violations.len() == 2
            && violations[0].starts_with("attachments does not list files[0], rose.txt"),
        "{violations:?}"
    );
}

#[tokio::test]
async fn commands_are_checked_and_keep_their_ids() {
    let (discord, _guild, _general, caller) = garden().await;
    let path = format!("/applications/{APPLICATION_ID}/commands");
    let command = |name: &str| json!({ "name": name, "description": "does it" });
    let first = caller
        .call("PUT", &path, json!([command("help"), command("agent")]))
        .await
        .1;
    let second = caller.call("PUT", &path, json!([command("agent")])).await.1;
    assert_eq!(first[1]["id"], second[0]["id"]);
    assert_eq!(
        (discord.commands().len(), discord.command_overwrites()),
        (1, 2)
    );

    let long = json!({ "name": "help", "description": "d".repeat(101) });
    let many: Vec<Value> = (0..101).map(|n| command(&format!("c{n}"))).collect();
    let wrong = [
        json!([command("Help")]),
        json!([command("")]),
        json!([long]),
        json!(many),
        json!([command("a"), command("a")]),
    ];
    for body in wrong {
        let refusal = caller.refusal("PUT", &path, body).await;
        assert!(
            refusal.starts_with("400 50035") || refusal.starts_with("400 30032"),
            "{refusal}"
        );
    }
    let foreign = caller
        .refusal(
            "PUT",
            &format!("/applications/{}/commands", PARLOR_BOT.id),
            json!([]),
        )
        .await;
    assert!(foreign.starts_with("403 20012"), "{foreign}");
}

#[tokio::test]
async fn reactions_and_private_conversations() {
    let (discord, _guild, general, caller) = garden().await;
    let said = general.says(ALICE, "hello").await.message_id;
    let path = format!("/channels/8101/messages/{said}/reactions/%F0%9F%91%80/@me");
    assert_eq!(caller.call("PUT", &path, Value::Null).await.0, 204);
    assert_eq!(
        general.reactions_to(said),
        [(PARLOR_BOT.id, "👀".to_owned())]
    );
    assert_eq!(caller.call("DELETE", &path, Value::Null).await.0, 204);
    assert!(general.reactions_to(said).is_empty());

    let (_, channel) = caller
        .call(
            "POST",
            "/users/@me/channels",
            json!({ "recipient_id": ALICE.id.to_string() }),
        )
        .await;
    assert_eq!(channel["id"], discord.dm(ALICE).id().to_string());
    assert_eq!(channel["recipients"][0]["id"], ALICE.id.to_string());
}
