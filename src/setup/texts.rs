//! The words of a setup.

use std::path::Path;

use crate::channels::telegram::Account;
use crate::config::Config;
use crate::moving::{Glance, Report, State};

pub(super) fn welcome(home: &Path, is_new: bool) -> String {
    let home = home.display();
    match is_new {
        true => format!(
            "Four steps: a model, a bot, its places, a service. Enter takes what is offered, and Ctrl-C stops; run `parlor setup` again to go on. All files will be in {home}."
        ),
        false => format!("Going on with {home}. Enter takes what is offered, and Ctrl-C stops."),
    }
}

pub(super) fn looking(folder: &Path) -> String {
    format!("Looking at {} …", folder.display())
}

/// `~/.openclaw (OpenClaw): 3 agents, 5 topics, 812 conversations`.
pub(super) fn installation(system: &str, folder: &Path, has: Glance) -> String {
    let places = match has.topics == has.places {
        true => some(has.places, "topic"),
        false => some(has.places, "place"),
    };
    let parts = [
        some(has.agents, "agent"),
        places,
        some(has.conversations, "conversation"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{} ({system}): {}", folder.display(), parts.join(", "))
}

fn some(count: usize, one: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {one}s")),
    }
}

pub(super) const BRING: &str = "Bring them? You see the plan first.";

pub(super) const WITH_SECRETS: &str = "Bring its tokens and keys too, into secrets/?";
pub(super) const DECLINED: &str =
    "Left where they are. `parlor setup --add import` brings them later.";
pub(super) const ALL_HERE: &str = "\nEverything that can be carried is here.";
pub(super) const NOT_ALL_CARRIED: &str =
    "not everything could be carried; `parlor setup --add import` tries it once more";
pub(super) const IMPORT_BY_FLAGS: &str =
    "an import is asked for in a terminal; --import and --import-from name it by flags";
pub(super) const AGENTS_BY_FLAGS: &str = "new agents are asked for in a terminal; --agent, --personality and --skills name them by flags";

pub(super) fn carried(report: &Report) -> String {
    let done = report.count(State::Done);
    format!(
        "{done} {} carried. `parlor agent list` shows the agents.",
        if done == 1 {
            "thing was"
        } else {
            "things were"
        }
    )
}

pub(super) const ONE: &str = "\n1. The model";
pub(super) const TWO_TELEGRAM: &str = "\n2. Telegram";
pub(super) const TWO_DISCORD: &str = "\n2. Discord";
pub(super) const THREE: &str = "\n3. Places";
pub(super) const FOUR: &str = "\n4. Keep it running";

pub(super) const DEMO: &str = "demo, built in: needs no key, and only echoes";
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
    // The rest of an address may hold a secret.
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

pub(super) const CHOOSE_AGAIN: &str = "Nothing was written. Choose again?";
pub(super) const NOTHING_WRITTEN: &str =
    "All places stay as they are. `parlor setup --add places` asks again.";

pub(super) fn no_agent_made(place: &str) -> String {
    format!("No agent was made, so {place} stays as it is.")
}

/// No place was given to an agent in this run.
pub(super) fn no_places(others_have: bool) -> &'static str {
    match others_have {
        true => "No further place has an agent now.",
        false => {
            "No place has an agent yet. In a group, an owner writes `/bind rose` to give the topic to Rose, or runs `parlor setup --add places`."
        }
    }
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
