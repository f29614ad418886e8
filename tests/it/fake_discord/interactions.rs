//! Commands, buttons and menus, with Discord's deadlines.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use serenity::all::{
    CreateAllowedMentions, CreateAutocompleteResponse, CreateCommand, CreateCommandOption,
    CreateInteractionResponse, CreateInteractionResponseFollowup, CreateInteractionResponseMessage,
    EditInteractionResponse, Interaction,
};

use super::bot::Bot;
use super::{Caller, quiet};
use crate::support::fake_discord::{ALICE, APPLICATION_ID, BOB, FakeDiscord, Room};

async fn room_with_a_command() -> (FakeDiscord, Room, Caller) {
    let discord = FakeDiscord::start().await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let caller = Caller::new(&discord);
    let option = json!({ "type": 3, "name": "name", "description": "which", "autocomplete": true });
    let commands =
        json!([{ "name": "agent", "description": "Choose an agent", "options": [option] }]);
    let (status, body) = caller
        .call(
            "PUT",
            &format!("/applications/{APPLICATION_ID}/commands"),
            commands,
        )
        .await;
    assert_eq!(status, 200, "{body}");
    (discord, general, caller)
}

fn answer(text: &str) -> Value {
    json!({ "type": 4, "data": quiet(text) })
}

#[tokio::test]
async fn serenity_answers_a_command_a_button_and_somebody_typing() {
    let discord = FakeDiscord::start().await;
    let guild = discord.guild(8001, "Garden");
    guild.makes_administrator(ALICE);
    let general = guild.text_channel(8101, "general");
    let mut bot = Bot::connect(&discord).await;
    let option =
        CreateCommandOption::new(serenity::all::CommandOptionType::String, "name", "which")
            .set_autocomplete(true);
    let command = CreateCommand::new("agent")
        .description("Choose an agent")
        .add_option(option);
    serenity::all::Command::set_global_commands(&bot.http, vec![command])
        .await
        .expect("registered");
    assert_eq!(discord.wait_for_commands(1).await[0]["name"], "agent");

    let typing = general.types_into(ALICE, "agent", "name", "scr").await;
    let Interaction::Autocomplete(asked) = bot.next_interaction().await else {
        panic!("not autocomplete")
    };
    assert_eq!(
        asked.data.autocomplete().expect("a focused option").value,
        "scr"
    );
    let choices = CreateAutocompleteResponse::new().add_string_choice("scribe", "scribe");
    asked
        .create_response(&bot.http, CreateInteractionResponse::Autocomplete(choices))
        .await
        .expect("answered");
    assert_eq!(
        typing.choices().await,
        [("scribe".to_owned(), json!("scribe"))]
    );

    let used = general
        .command(ALICE, "agent")
        .option("name", "scribe")
        .await;
    let Interaction::Command(command) = bot.next_interaction().await else {
        panic!("not a command")
    };
    assert!(
        command
            .member
            .as_ref()
            .expect("in a guild")
            .permissions
            .expect("told")
            .administrator()
    );
    command.defer(&bot.http).await.expect("deferred");
    assert_eq!(used.first().await["type"], 5);
    let silent = CreateAllowedMentions::new();
    let button = serenity::all::CreateButton::new("undo").label("Undo");
    let row = serenity::all::CreateActionRow::Buttons(vec![button]);
    let edit = EditInteractionResponse::new()
        .content("scribe it is")
        .allowed_mentions(silent.clone())
        .components(vec![row]);
    command
        .edit_response(&bot.http, edit)
        .await
        .expect("edited");
    let message = used.message().await;
    assert_eq!(message.text, "scribe it is");
    let more = CreateInteractionResponseFollowup::new()
        .content("and more")
        .allowed_mentions(silent.clone());
    command
        .create_followup(&bot.http, more)
        .await
        .expect("followed up");
    assert_eq!(used.followup(1).await.text, "and more");

    let pressed = general.presses(BOB, message.message_id, "undo").await;
    let Interaction::Component(component) = bot.next_interaction().await else {
        panic!("not a component")
    };
    assert_eq!(component.user.id.get(), BOB.id);
    let update = CreateInteractionResponseMessage::new()
        .content("undone")
        .allowed_mentions(silent)
        .components(vec![]);
    component
        .create_response(&bot.http, CreateInteractionResponse::UpdateMessage(update))
        .await
        .expect("updated");
    assert_eq!(pressed.first().await["type"], 7);
    assert_eq!(general.texts(), ["undone", "and more"]);
}

#[tokio::test]
async fn the_first_answer_must_come_once_and_within_three_seconds() {
    let (discord, general, caller) = room_with_a_command().await;
    let used = general.command(ALICE, "agent").await;
    let callback = format!("/interactions/{}/{}/callback", used.id, used.token());
    let early = caller
        .refusal(
            "POST",
            &format!("/webhooks/{APPLICATION_ID}/{}", used.token()),
            quiet("x"),
        )
        .await;
    assert_eq!(caller.call("POST", &callback, answer("hello")).await.0, 204);
    let twice = caller.refusal("POST", &callback, answer("hello")).await;
    let late = general.command(ALICE, "agent").await;
    discord.advance(Duration::from_millis(3001));
    let callback = format!("/interactions/{}/{}/callback", late.id, late.token());
    let too_late = caller.refusal("POST", &callback, answer("hello")).await;

    assert_snapshot!([early, twice, too_late].join("\n"), @"
    404 10015 Unknown Webhook
    400 40060 Interaction has already been acknowledged.
    404 10062 Unknown interaction
    ");
    assert_eq!(general.texts(), ["hello"]);
}

#[tokio::test]
async fn the_token_of_an_interaction_lives_fifteen_minutes() {
    let (discord, general, caller) = room_with_a_command().await;
    let used = general.command(ALICE, "agent").await;
    caller
        .call(
            "POST",
            &format!("/interactions/{}/{}/callback", used.id, used.token()),
            json!({ "type": 5 }),
        )
        .await;
    let original = format!(
        "/webhooks/{APPLICATION_ID}/{}/messages/@original",
        used.token()
    );
    discord.advance(Duration::from_secs(15 * 60));
    assert_eq!(
        caller.call("PATCH", &original, quiet("in time")).await.0,
        200
    );
    assert_eq!(used.text().await, "in time");

    discord.advance(Duration::from_millis(1));

    assert_eq!(
        caller.refusal("PATCH", &original, quiet("late")).await,
        "401 50027 Invalid Webhook Token"
    );
    assert_eq!(
        caller.refusal("DELETE", &original, Value::Null).await,
        "401 50027 Invalid Webhook Token"
    );
}

#[tokio::test]
async fn the_first_follow_up_fills_a_deferral() {
    let (_discord, general, caller) = room_with_a_command().await;
    let used = general.command(ALICE, "agent").await;
    caller
        .call(
            "POST",
            &format!("/interactions/{}/{}/callback", used.id, used.token()),
            json!({ "type": 5 }),
        )
        .await;

    caller
        .call(
            "POST",
            &format!("/webhooks/{APPLICATION_ID}/{}", used.token()),
            quiet("done"),
        )
        .await;

    assert_eq!(used.text().await, "done");
    assert_eq!(general.texts(), ["done"]);
}

#[tokio::test]
async fn an_ephemeral_answer_is_not_in_the_channel() {
    let (_discord, general, caller) = room_with_a_command().await;
    let used = general.command(ALICE, "agent").await;
    let callback = format!("/interactions/{}/{}/callback", used.id, used.token());
    let mut hidden = answer("only you");
    hidden["data"]["flags"] = 64.into();
    caller.call("POST", &callback, hidden).await;

    let message = used.message().await;

    assert!(message.ephemeral && general.texts().is_empty());
    let path = format!("/channels/{}/messages/{}", general.id, message.message_id);
    assert_eq!(
        caller.refusal("PATCH", &path, quiet("x")).await,
        "404 10008 Unknown Message"
    );
    assert_eq!(
        caller
            .call(
                "GET",
                &format!("/channels/{}/messages", general.id),
                Value::Null
            )
            .await
            .1,
        json!([])
    );
}

#[tokio::test]
async fn each_kind_of_interaction_takes_only_its_answers() {
    let (_discord, general, caller) = room_with_a_command().await;
    let used = general.command(ALICE, "agent").await;
    let typing = general.types_into(ALICE, "agent", "name", "s").await;
    let callback = |id: u64, token: &str| format!("/interactions/{id}/{token}/callback");
    for wrong in [6, 7, 8] {
        let refusal = caller
            .refusal(
                "POST",
                &callback(used.id, used.token()),
                json!({ "type": wrong }),
            )
            .await;
        assert!(refusal.starts_with("400 50035"), "{refusal}");
    }
    let refusal = caller
        .refusal(
            "POST",
            &callback(typing.id, typing.token()),
            json!({ "type": 5 }),
        )
        .await;
    assert!(refusal.starts_with("400 50035"), "{refusal}");
    let choices: Vec<Value> = (0..26)
        .map(|n| json!({ "name": n.to_string(), "value": n.to_string() }))
        .collect();
    let many = json!({ "type": 8, "data": { "choices": choices } });
    let refusal = caller
        .refusal("POST", &callback(typing.id, typing.token()), many)
        .await;
    assert!(refusal.starts_with("400 50035"), "{refusal}");
}

#[tokio::test]
#[should_panic(expected = "the bot has not registered /model")]
async fn nobody_can_use_a_command_that_is_not_registered() {
    let (_discord, general, _caller) = room_with_a_command().await;
    general.command(ALICE, "model").await;
}

#[tokio::test]
async fn serenity_reads_menus_forms_and_commands_in_private() {
    let (discord, general, caller) = room_with_a_command().await;
    let options =
        json!([{ "label": "Rose", "value": "rose" }, { "label": "Lily", "value": "lily" }]);
    let menu = json!([{ "type": 1, "components": [{ "type": 3, "custom_id": "flower", "options": options }] }]);
    let mut body = quiet("choose");
    body["components"] = menu;
    let sent = caller.call("POST", "/channels/8101/messages", body).await.1;
    let message_id = sent["id"]
        .as_str()
        .expect("an id")
        .parse()
        .expect("a number");
    let mut bot = Bot::connect(&discord).await;

    general
        .selects(ALICE, message_id, "flower", &["lily"])
        .await;
    let Interaction::Component(chosen) = bot.next_interaction().await else {
        panic!("not a component")
    };
    let serenity::all::ComponentInteractionDataKind::StringSelect { values } = chosen.data.kind
    else {
        panic!("not a menu")
    };
    assert_eq!(values, ["lily"]);

    general.submits(ALICE, "form", &[("name", "Alice")]).await;
    let Interaction::Modal(form) = bot.next_interaction().await else {
        panic!("not a form")
    };
    assert_eq!(form.data.custom_id, "form");

    discord
        .dm(BOB)
        .room()
        .command(BOB, "agent")
        .option("name", "scribe")
        .await;
    let Interaction::Command(private) = bot.next_interaction().await else {
        panic!("not a command")
    };
    assert_eq!((private.guild_id, private.user.id.get()), (None, BOB.id));

    general
        .command(ALICE, "gone")
        .even_if_unknown()
        .subcommand("now")
        .await;
    let Interaction::Command(stale) = bot.next_interaction().await else {
        panic!("not a command")
    };
    assert_eq!(stale.data.options[0].name, "now");
}
