//! Telegram and Discord: the bot answers, and has the rights the config needs in each bound place.

use super::{Patient, expectations};
use crate::channels::PlaceLoss;
use crate::channels::discord::examine as discord;
use crate::channels::telegram::Shortcoming;
use crate::channels::telegram::examine::{self as telegram, BoundTopic, Listening};
use crate::config::{Discord, Telegram};
use crate::domain::{Platform, SessionKey};
use crate::home::Snapshot;
use crate::operations::Link;
use crate::operations::diagnosis::Finding;

/// A larger difference of clocks is told.
const AHEAD_MS: i64 = 60 * 1000;

/// Asks both platforms, side by side.
pub(super) async fn ask(patient: &Patient<'_>) -> Vec<Finding> {
    let Some(snapshot) = &patient.snapshot else {
        return Vec::new();
    };
    let config = &snapshot.config;
    let on_telegram = async {
        match &config.telegram {
            Some(telegram) => ask_telegram(patient, snapshot, telegram).await,
            None => vec![Finding::ok(
                "telegram",
                "Telegram is off: there is no [telegram].",
            )],
        }
    };
    let on_discord = async {
        match &config.discord {
            Some(discord) => ask_discord(snapshot, discord).await,
            None => vec![Finding::ok(
                "discord",
                "Discord is off: there is no [discord].",
            )],
        }
    };
    let (mut findings, more) = tokio::join!(on_telegram, on_discord);
    findings.extend(more);
    findings
}

/// The state of the platforms, known to the gateway from its connections.
pub(super) fn known(patient: &Patient<'_>) -> Vec<Finding> {
    let gateway = patient
        .status
        .as_ref()
        .and_then(|status| status.gateway.as_ref());
    let platforms = gateway.into_iter().flat_map(|gateway| &gateway.platforms);
    let told = platforms.filter_map(|link| {
        let (id, name) = match link.platform {
            Platform::Telegram => ("telegram", "Telegram"),
            Platform::Discord => ("discord", "Discord"),
            Platform::Local | Platform::Web => return None,
        };
        Some(match link.state {
            Link::Connected => Finding::ok(id, format!("{name} is connected.")),
            Link::Connecting => Finding::note(id, format!("{name} is being connected.")),
            Link::Down => Finding::bad(id, format!("{name} is not connected."))
                .cause(link.reason.clone().unwrap_or_default())
                .fix("parlor status"),
        })
    });
    told.chain(shortcomings(patient)).collect()
}

/// Settings and rights missing in bound groups, as Telegram told the gateway last.
fn shortcomings(patient: &Patient<'_>) -> Vec<Finding> {
    let Some((operations, snapshot)) = patient.operations.zip(patient.snapshot.as_ref()) else {
        return Vec::new();
    };
    let expected = expectations::expectations(&snapshot.config.access, &snapshot.table);
    let short = expected.groups.into_iter().filter_map(|group| {
        let (chat, binding) = (group.chat, group.binding);
        let key = SessionKey::TelegramGroup { chat, member: None };
        let channel = operations.channel_of(&key)?;
        let hears_little = group.hears_everything && channel.is_hard_of_hearing(&key);
        match channel.barred(&key).map(|barred| barred.loss) {
            Some(PlaceLoss::NoSuchGroup) => Some(Shortcoming::NoSuchGroup(binding)),
            Some(PlaceLoss::Removed) => Some(Shortcoming::Outside(binding)),
            Some(_) => Some(Shortcoming::Mute(binding)),
            None => hears_little.then(|| Shortcoming::Privacy(format!("the binding `{binding}`"))),
        }
    });
    short.map(shortcoming).collect()
}

async fn ask_telegram(
    patient: &Patient<'_>,
    snapshot: &Snapshot,
    config: &Telegram,
) -> Vec<Finding> {
    if config.platform.token.expose().is_empty() {
        return Vec::new();
    }
    let expected = expectations::expectations(&snapshot.config.access, &snapshot.table);
    let topics = topics(snapshot);
    let listening = match patient.has_gateway() {
        true => Listening::Yes,
        false => Listening::No,
    };
    let found = telegram::examine(config, &expected, &topics, listening).await;
    found.into_iter().flat_map(of_telegram).collect()
}

/// Topics with a binding of their own.
fn topics(snapshot: &Snapshot) -> Vec<BoundTopic> {
    let agents = snapshot.config.agents.iter();
    let places = agents.flat_map(|agent| snapshot.table.places_of(&agent.id));
    let topic = |key: &SessionKey| match key {
        SessionKey::TelegramTopic { chat, topic } => Some(BoundTopic {
            chat: *chat,
            topic: *topic,
            key: key.to_string(),
        }),
        _ => None,
    };
    places.filter_map(topic).collect()
}

/// A wrong clock makes platforms refuse tokens, and gives messages wrong times.
fn skewed(id: &str, platform: &str, ahead_ms: i64) -> Option<Finding> {
    let text = format!(
        "This clock differs from {platform}'s by {} s.",
        ahead_ms / 1000
    );
    (ahead_ms.abs() > AHEAD_MS).then(|| Finding::warn(id, text).fix("timedatectl set-ntp true"))
}

fn of_telegram(found: telegram::Found) -> Vec<Finding> {
    use telegram::Found;
    let one = match found {
        Found::Well { username, ahead_ms } => {
            let name = username.map_or_else(|| "the bot".into(), |name| format!("@{name}"));
            let well = Finding::ok("telegram", format!("Telegram knows {name}."));
            let skewed = skewed("clock.telegram", "Telegram", ahead_ms);
            return [Some(well), skewed].into_iter().flatten().collect();
        }
        Found::TokenRefused => Finding::bad("telegram.token", "Telegram does not accept the bot token.")
            .fix("Get a valid one from @BotFather (/token), put it where token of [telegram] points, then parlor reload; a new environment variable needs a new start"),
        Found::NotReached(why) => Finding::bad("telegram", "Telegram does not answer.")
            .cause(why)
            .fix("Check the network, and api_url and proxy of [telegram]."),
        Found::WebhookInTheWay(host) => Finding::warn(
            "telegram.webhook",
            format!("A webhook to {host} is set for this bot, and Parlor polls."),
        )
        .cause("another program used this bot, or uses it now")
        .fix("Stop that program. The next start of Parlor removes the webhook."),
        Found::WebhookElsewhere(host) => Finding::bad(
            "telegram.webhook",
            match host {
                Some(host) => format!("Telegram calls {host} and not the address of [telegram.webhook]."),
                None => "Telegram has no webhook, and [telegram] says mode = \"webhook\".".into(),
            },
        )
        .fix("Stop other programs with this token, and restart the gateway, which sets the webhook."),
        Found::WebhookFails(why) => Finding::bad("telegram.webhook", "Telegram cannot deliver to the webhook.")
            .cause(why)
            .fix("Check url of [telegram.webhook], its certificate, and the proxy in front of it."),
        Found::OtherPoller => Finding::bad("telegram.poller", "Another program polls with this bot token.")
            .cause("Telegram gives each message to only one of them")
            .fix("Stop it, or give Parlor a bot of its own."),
        Found::Short(short) => shortcoming(short),
        Found::TopicGone(key) => Finding::bad("telegram.topic", format!("The topic of the binding `{key}` is gone."))
            .fix("Bind a topic that is there: /bind NAME in it. Then remove this binding from config.toml."),
        Found::TopicClosed(key) => Finding::warn("telegram.topic", format!("The topic of the binding `{key}` is closed."))
            .fix("Reopen it, or make the bot an admin of the group."),
    };
    vec![one]
}

fn shortcoming(short: Shortcoming) -> Finding {
    match short {
        Shortcoming::NoSuchGroup(binding) => Finding::bad(
            "telegram.rights",
            format!("Telegram does not know the group of the binding `{binding}`."),
        )
        .cause("the number is wrong, or the bot was never in the group")
        .fix("Correct the number (/whoami in the group tells it), or add the bot there."),
        Shortcoming::Outside(binding) => Finding::bad(
            "telegram.rights",
            format!("The bot is not in the group of the binding `{binding}`."),
        )
        .fix("Add it there, or remove the binding."),
        Shortcoming::Mute(binding) => Finding::bad(
            "telegram.rights",
            format!("The bot may not write in the group of the binding `{binding}`."),
        )
        .fix("Let it send messages there, or make it an admin."),
        Shortcoming::Privacy(wanted_by) => Finding::warn(
            "telegram.privacy",
            format!("The bot's privacy mode is on, but {wanted_by} says require_mention = false."),
        )
        .cause("Telegram shows the bot only commands, mentions and replies")
        .fix("Send /setprivacy to @BotFather, choose Disable, then remove the bot from the group and add it again."),
    }
}

async fn ask_discord(snapshot: &Snapshot, config: &Discord) -> Vec<Finding> {
    if config.platform.token.expose().is_empty() {
        return Vec::new();
    }
    let expected = expectations::on_discord(&snapshot.table);
    let found = discord::examine(config, &expected).await;
    found.into_iter().flat_map(of_discord).collect()
}

fn of_discord(found: discord::Found) -> Vec<Finding> {
    use discord::Found;
    let one = match found {
        Found::Well { username, ahead_ms } => {
            let name = username.unwrap_or_else(|| "the bot".into());
            let well = Finding::ok("discord", format!("Discord knows {name}."));
            let skewed = skewed("clock.discord", "Discord", ahead_ms);
            return [Some(well), skewed].into_iter().flatten().collect();
        }
        Found::TokenRefused => Finding::bad("discord.token", "Discord does not accept the bot token.")
            .fix("Reset it on the Bot page of the developer portal, put it where token of [discord] points, then parlor reload; a new environment variable needs a new start"),
        Found::NotReached(why) => Finding::bad("discord", "Discord does not answer.")
            .cause(why)
            .fix("Check the network, and api_url of [discord]."),
        Found::NoMessageContent => Finding::bad("discord.intents", "Discord hides the text of messages from the bot.")
            .cause("Message Content Intent is off")
            .fix("Enable Message Content Intent on the Bot page of the developer portal."),
        Found::NotOnServer(binding) => Finding::bad(
            "discord.rights",
            format!("The bot is not on the server of the binding `{binding}`."),
        )
        .fix("Invite it there, or remove the binding."),
        Found::CannotSee(binding) => Finding::bad(
            "discord.rights",
            format!("The bot cannot see the place of the binding `{binding}`."),
        )
        .fix("Give its role View Channel there, or remove the binding."),
        Found::Lacks { binding, missing } => Finding::bad(
            "discord.rights",
            format!("The bot lacks rights in the place of the binding `{binding}`: {}.", missing.join(", ")),
        )
        .fix(format!("Give its role there: {}.", missing.join(", "))),
        Found::NoCommands => Finding::note("discord.commands", "No slash commands are registered with Discord.")
            .fix("The gateway registers them when it connects."),
    };
    vec![one]
}
