//! The words of a setup.

use std::path::Path;

use crate::channels::telegram::Account;
use crate::config::Config;

pub(super) fn welcome(home: &Path, is_new: bool) -> String {
    let home = home.display();
    match is_new {
        true => format!(
            "Four steps: a model, a bot, its places, a service. Enter takes what is offered, and Ctrl-C stops; run `parlor setup` again to go on. All files will be in {home}."
        ),
        false => format!("Going on with {home}. Enter takes what is offered, and Ctrl-C stops."),
    }
}

pub(super) const ONE: &str = "\n1. The model";
pub(super) const TWO_TELEGRAM: &str = "\n2. Telegram";
pub(super) const TWO_DISCORD: &str = "\n2. Discord";
pub(super) const THREE: &str = "\n3. Places";
pub(super) const FOUR: &str = "\n4. Keep it running";

pub(super) const DEMO: &str = "demo, the built-in stand-in: needs no key, and only echoes";
pub(super) const OTHER_MODEL: &str = "another server, or a key to paste";
pub(super) const HELLO: &str =
    "Say hello to the person who has just set you up, in one short sentence.";

pub(super) fn account(account: &Account) -> String {
    let name = &account.username;
    let privacy = match account.reads_all {
        true => {
            "It sees all messages of its groups; agents answer where they are mentioned, unless you set require_mention = false."
        }
        false => {
            "Privacy mode is on: in groups it sees messages that mention it, replies to it and commands. That is enough."
        }
    };
    let groups = match account.joins_groups {
        true => "",
        false => {
            "\nIt may not join groups yet: write /setjoingroups to @BotFather and choose Enable."
        }
    };
    format!("This is @{name}. {privacy}{groups}")
}

pub(super) fn webhook(url: &str) -> String {
    // The rest of an address may have a secret in it.
    let host = url.split('/').nth(2).unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    format!(
        "Another program has this bot's messages sent to {host} (a webhook), so nobody else gets them."
    )
}

pub(super) const KEEPS_WEBHOOK: &str = "The webhook stays, so Parlor would get no messages. Make another bot with @BotFather, or run `parlor setup` again and let it be removed.";
pub(super) const ANOTHER_LISTENER: &str = "Another program listens to this bot with the same token, and gets some of the messages. Stop it, or make another bot with @BotFather. Trying on.";

pub(super) fn write_to(username: &str) -> String {
    format!(
        "Now write something to @{username} (https://t.me/{username}), so that it knows you. Enter goes on without."
    )
}

pub(super) fn add_to_group(username: &str) -> String {
    format!(
        "Add @{username} to a group with topics, and write \"@{username} hello\" in each topic that an agent shall have. They appear here; press Enter when all are here."
    )
}

pub(super) fn gateway_listens(username: &str) -> String {
    format!(
        "A gateway runs on this home and listens to @{username}. Write to the bot: `parlor pair` lists you with a code, and `parlor pair CODE --owner` makes you an owner."
    )
}

/// The last line.
pub(super) fn next(config: &Config, is_running: bool, runs_here: bool) -> String {
    let has_bot = config.telegram.is_some() || config.discord.is_some();
    match (is_running, runs_here, has_bot) {
        (_, true, _) => {
            "Starting. Ctrl-C stops the gateway; `parlor run` starts it again.".to_owned()
        }
        (true, _, _) => {
            "Next: write to your bot. `parlor status` shows what the gateway does.".to_owned()
        }
        (_, _, true) => {
            "Next: `parlor run`. What was written to the bot meanwhile is answered then.".to_owned()
        }
        (_, _, false) => {
            "Next: `parlor chat` talks to the agents here; `parlor setup` goes on with a bot."
                .to_owned()
        }
    }
}
