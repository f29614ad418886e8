//! The target of a binding, read from its `match`.

use std::fmt;

use crate::domain::{ChatId, DiscordId, PersonId, Platform, SessionKey, nearest};

/// The target of a binding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// A session key. A group, channel, private chat or room without topic has its topics too.
    Place(SessionKey),
    /// `telegram:topic:<chat>:*`
    EveryTopic(ChatId),
    Category(DiscordId),
    /// `discord:guild:<id>`, a server in Discord's apps.
    Server(DiscordId),
    /// A person wherever they write.
    Person(PersonId),
    PrivateChats(Platform),
    Platform(Platform),
}

/// The problem of a text that is not a target, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) label: String,
    pub(super) help: String,
}

pub(super) fn parse(text: &str) -> Result<Target, Malformed> {
    let target = understood(text).ok_or_else(|| diagnose(text))?;
    match topic_without_prefix(&target) {
        Some(malformed) => Err(malformed),
        None => Ok(target),
    }
}

fn understood(text: &str) -> Option<Target> {
    let fields: Vec<&str> = text.split(':').collect();
    match fields.as_slice() {
        [platform] => platform.parse().ok().map(Target::Platform),
        ["telegram", "dm"] => Some(Target::PrivateChats(Platform::Telegram)),
        ["discord", "dm"] => Some(Target::PrivateChats(Platform::Discord)),
        ["telegram", "user", user] => format!("telegram:{user}").parse().ok().map(Target::Person),
        ["discord", "user", user] => format!("discord:{user}").parse().ok().map(Target::Person),
        ["telegram", "topic", chat, "*"] => chat
            .parse()
            .ok()
            .filter(|chat: &ChatId| chat.0 < 0)
            .map(Target::EveryTopic),
        ["telegram", chat, topic] if is_number(chat) => {
            understood(&format!("telegram:topic:{chat}:{topic}"))
        }
        ["discord", "category", id] => id.parse().ok().map(Target::Category),
        ["discord", "guild", id] => id.parse().ok().map(Target::Server),
        _ => text
            .parse()
            .ok()
            .filter(|key: &SessionKey| key.platform().is_some())
            .map(Target::Place),
    }
}

impl Target {
    pub(super) fn platform(&self) -> Platform {
        match self {
            Target::Place(key) => key
                .platform()
                .expect("places inside the gateway are refused when parsed"),
            Target::EveryTopic(_) => Platform::Telegram,
            Target::Category(_) | Target::Server(_) => Platform::Discord,
            Target::Person(person) => person.platform(),
            Target::PrivateChats(platform) | Target::Platform(platform) => *platform,
        }
    }

    /// The only person who can write there, if the target has a person.
    pub(super) fn only_person(&self) -> Option<PersonId> {
        match self {
            Target::Place(SessionKey::TelegramDm { user, .. }) => Some(PersonId::Telegram(*user)),
            Target::Place(SessionKey::TelegramGroup {
                member: Some(user), ..
            }) => Some(PersonId::Telegram(*user)),
            Target::Place(SessionKey::DiscordDm { user }) => Some(PersonId::Discord(*user)),
            Target::Place(SessionKey::DiscordChannel {
                member: Some(user), ..
            }) => Some(PersonId::Discord(*user)),
            Target::Person(person) => Some(person.clone()),
            _ => None,
        }
    }

    /// The target's Telegram group.
    pub(super) fn telegram_group(&self) -> Option<ChatId> {
        match self {
            Target::Place(
                SessionKey::TelegramTopic { chat, .. } | SessionKey::TelegramGroup { chat, .. },
            ) => Some(*chat),
            Target::EveryTopic(chat) => Some(*chat),
            _ => None,
        }
    }

    /// Whether the target is, or has, topics or threads, because `name` and `tag` are about them.
    pub(super) fn has_topics(&self) -> bool {
        match self {
            Target::Place(SessionKey::DiscordDm { .. }) => false,
            Target::Place(_) | Target::EveryTopic(_) | Target::Category(_) | Target::Server(_) => {
                true
            }
            Target::Person(_) | Target::PrivateChats(_) | Target::Platform(_) => false,
        }
    }

    /// Whether people have server roles there.
    pub(super) fn has_roles(&self) -> bool {
        let private = matches!(
            self,
            Target::PrivateChats(_) | Target::Place(SessionKey::DiscordDm { .. })
        );
        self.platform() == Platform::Discord && !private
    }

    /// The usual word for such a place.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Target::Place(SessionKey::TelegramDm { .. } | SessionKey::DiscordDm { .. }) => {
                "private chat"
            }
            Target::Place(SessionKey::DiscordChannel { .. }) => "channel",
            Target::Place(SessionKey::Local { .. } | SessionKey::Web { .. }) => "room",
            _ => "group",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Place(key) => key.fmt(f),
            Target::EveryTopic(chat) => write!(f, "telegram:topic:{chat}:*"),
            Target::Category(id) => write!(f, "discord:category:{id}"),
            Target::Server(id) => write!(f, "discord:guild:{id}"),
            Target::Person(PersonId::Telegram(user)) => write!(f, "telegram:user:{user}"),
            Target::Person(PersonId::Discord(user)) => write!(f, "discord:user:{user}"),
            Target::Person(PersonId::Local(name)) => write!(f, "local:{name}"),
            Target::PrivateChats(platform) => write!(f, "{platform}:dm"),
            Target::Platform(platform) => platform.fmt(f),
        }
    }
}

/// Every form with ids, for the help texts. A kind's forms stand together.
const FORMS: [&str; 14] = [
    "telegram:topic:<chat>:<topic>",
    "telegram:topic:<chat>:*",
    "telegram:group:<chat>",
    "telegram:group:<chat>:<user>",
    "telegram:dm:<user>",
    "telegram:dm:<user>:<topic>",
    "telegram:user:<user>",
    "discord:thread:<channel>:<thread>",
    "discord:channel:<channel>",
    "discord:channel:<channel>:<user>",
    "discord:category:<category>",
    "discord:guild:<server>",
    "discord:dm:<user>",
    "discord:user:<user>",
];

/// Words of people for a kind with another name here.
const SYNONYMS: [(&str, &str, &str); 8] = [
    ("telegram", "chat", "group"),
    ("telegram", "supergroup", "group"),
    ("telegram", "forum", "group"),
    ("telegram", "thread", "topic"),
    ("discord", "server", "guild"),
    ("discord", "forum", "channel"),
    ("discord", "post", "thread"),
    ("discord", "topic", "thread"),
];

const PASTE: &str = "/whoami prints the key to paste";

/// Ids of groups with topics begin so.
const PREFIX: &str = "-100";
/// Ids with fewer digits behind the minus are made up, as in examples.
const REAL_DIGITS: usize = 9;

/// Only supergroups have topics, and their ids begin with -100. Links and other programs leave this
/// prefix away.
fn topic_without_prefix(target: &Target) -> Option<Malformed> {
    let (chat, topic) = match target {
        Target::Place(SessionKey::TelegramTopic { chat, topic }) => (chat, topic.to_string()),
        Target::EveryTopic(chat) => (chat, "*".to_owned()),
        _ => return None,
    };
    let digits = chat.to_string();
    let digits = digits.trim_start_matches('-');
    (digits.len() >= REAL_DIGITS && !digits.starts_with("100")).then(|| {
        malformed(
            "ids of groups with topics begin with -100",
            format!("write `telegram:topic:{PREFIX}{digits}:{topic}`"),
        )
    })
}

/// The key of a place behind a link of Telegram's or Discord's apps.
fn key_of_link(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://").unwrap_or(("", text));
    let parts: Vec<&str> = rest
        .split(['/', '#', '_'])
        .filter(|part| !part.is_empty())
        .collect();
    match parts.as_slice() {
        ["t.me" | "telegram.me", "c", chat, topic, ..] if is_id(chat) && is_id(topic) => {
            Some(format!("telegram:topic:{PREFIX}{chat}:{topic}"))
        }
        ["t.me" | "telegram.me", "c", chat] if is_id(chat) => {
            Some(format!("telegram:group:{PREFIX}{chat}"))
        }
        ["web.telegram.org", _, chat, topic] if is_number(chat) && is_id(topic) => {
            Some(format!("telegram:topic:{chat}:{topic}"))
        }
        ["web.telegram.org", _, chat] if is_number(chat) && chat.starts_with('-') => {
            Some(format!("telegram:group:{chat}"))
        }
        [
            "discord.com" | "discordapp.com",
            "channels",
            server,
            channel,
            ..,
        ] if is_id(server) && is_id(channel) => Some(format!("discord:channel:{channel}")),
        _ => None,
    }
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Platforms of others.
const ABSENT: [(&str, &str); 10] = [
    ("slack", "Slack"),
    ("whatsapp", "WhatsApp"),
    ("signal", "Signal"),
    ("matrix", "Matrix"),
    ("teams", "Teams"),
    ("irc", "IRC"),
    ("imessage", "iMessage"),
    ("mattermost", "Mattermost"),
    ("xmpp", "XMPP"),
    ("email", "e-mail"),
];

fn diagnose(text: &str) -> Malformed {
    if let Some(key) = key_of_link(text.trim()) {
        let label = "a link, and not a key";
        return malformed(
            label,
            format!("write `{key}`, if the link leads there; {PASTE}"),
        );
    }
    let tidy = text.trim().to_lowercase();
    let colons = tidy.replace('/', ":");
    if colons != tidy && understood(&colons).is_some() {
        return malformed(
            "the parts are joined by colons",
            format!("write `{colons}`"),
        );
    }
    if tidy != text && understood(&tidy).is_some() {
        return malformed("written with spaces or capitals", format!("write `{tidy}`"));
    }
    let fields: Vec<&str> = text.split(':').collect();
    match fields.as_slice() {
        ["cron" | "child" | "import", ..] => malformed(
            "a session inside the gateway, where nobody writes",
            "bind the place where people write; a job names its own agent".to_owned(),
        ),
        [chat @ ("local" | "web"), ..] => malformed(
            "no name of a room",
            format!(
                "write `{chat}`, `{chat}:<room>` or `{chat}:<room>:<topic>`; a name has 1 to 64 of a-z, 0-9, - and _"
            ),
        ),
        ["telegram", chat] if is_number(chat) => bare_id(chat),
        ["telegram", chat, topic] if is_number(chat) => {
            diagnose(&format!("telegram:topic:{chat}:{topic}"))
        }
        [platform @ ("telegram" | "discord"), kind, ids @ ..] => {
            wrong_kind_or_ids(platform, kind, ids)
        }
        _ => unknown_platform(fields[0]),
    }
}

fn bare_id(chat: &str) -> Malformed {
    let help = match chat.starts_with('-') {
        true => format!("write `telegram:group:{chat}` for the group with its topics"),
        false => format!(
            "write `telegram:dm:{chat}` for the private chat, `telegram:user:{chat}` for the person anywhere"
        ),
    };
    malformed("an id alone does not say what it is", help)
}

fn unknown_platform(word: &str) -> Malformed {
    let label = "begins with no platform";
    let plain = word.trim().to_lowercase();
    if let Some((_, name)) = ABSENT.iter().find(|(word, _)| *word == plain) {
        return malformed(
            &format!("Parlor has no {name}"),
            "delete this binding, or begin with telegram, discord, web or local".to_owned(),
        );
    }
    match nearest(word, Platform::ALL.map(Platform::as_str)) {
        Some(platform) => malformed(label, format!("did you mean `{platform}`?")),
        None => malformed(
            label,
            format!("begin with telegram, discord, web or local; {PASTE}"),
        ),
    }
}

fn wrong_kind_or_ids(platform: &str, kind: &str, ids: &[&str]) -> Malformed {
    let forms: Vec<&str> = forms_of(platform)
        .filter(|form| kind_of(form) == kind)
        .collect();
    if forms.is_empty() {
        return unknown_kind(platform, kind);
    }
    let same_length = forms.iter().find(|form| ids_of(form).count() == ids.len());
    let wrong_id = same_length.and_then(|form| {
        ids_of(form)
            .zip(ids)
            .find_map(|(expected, id)| wrong_id(expected, id))
    });
    wrong_id.unwrap_or_else(|| {
        malformed(
            "not the right number of ids",
            format!("write {}; {PASTE}", one_of(&forms)),
        )
    })
}

fn unknown_kind(platform: &str, word: &str) -> Malformed {
    let synonym = SYNONYMS
        .iter()
        .find(|synonym| (synonym.0, synonym.1) == (platform, word))
        .map(|synonym| synonym.2);
    let kind = synonym.or_else(|| nearest(word, forms_of(platform).map(kind_of)));
    let forms: Vec<&str> = forms_of(platform)
        .filter(|form| kind.is_none_or(|kind| kind_of(form) == kind))
        .collect();
    malformed(
        &format!("{platform} has no kind of place called `{word}`"),
        format!("write {}; {PASTE}", one_of(&forms)),
    )
}

fn wrong_id(expected: &str, id: &str) -> Option<Malformed> {
    let number = id
        .parse::<i128>()
        .ok()
        .filter(|number| number.to_string() == id);
    let (label, help) = match (expected, number) {
        ("<chat>", Some(0..)) if id.len() >= REAL_DIGITS + 3 && id.starts_with("100") => {
            return Some(malformed(
                &format!("`{id}` is not the id of a group"),
                format!("group ids are negative: write `-{id}`; {PASTE}"),
            ));
        }
        ("<chat>", Some(0..)) if id.len() >= REAL_DIGITS => {
            return Some(malformed(
                &format!("`{id}` is not the id of a group"),
                format!(
                    "group ids are negative: write `{PREFIX}{id}`, if it is from a link; {PASTE}"
                ),
            ));
        }
        ("<chat>", Some(0..)) => ("not the id of a group", "group ids are negative"),
        ("<user>", Some(..=0)) => (
            "not the id of a person",
            "ids of people are positive, those of groups negative",
        ),
        ("<topic>", Some(..=0)) => (
            "not the id of a topic",
            "topic ids begin at 1, which is General",
        ),
        ("<thread>", None) if id == "*" => (
            "not the id of a thread",
            "`discord:channel:<channel>` has all its threads",
        ),
        (_, None) => (
            "not an id",
            "an id is a number, written without spaces, plus sign or zeros in front",
        ),
        ("<chat>", Some(n)) if i64::try_from(n).is_err() => {
            ("not the id of a group", "it has too many digits")
        }
        ("<topic>", Some(n)) if i32::try_from(n).is_err() => {
            ("not the id of a topic", "it has too many digits")
        }
        (_, Some(n)) if u64::try_from(n.abs()).is_err() => ("not an id", "it has too many digits"),
        (_, Some(n)) if n < 0 && expected != "<chat>" => {
            ("not an id on Discord", "ids are positive there")
        }
        _ => return None,
    };
    Some(malformed(
        &format!("`{id}` is {label}"),
        format!("{help}; {PASTE}"),
    ))
}

fn forms_of(platform: &str) -> impl Iterator<Item = &'static str> {
    FORMS
        .into_iter()
        .filter(move |form| form.split(':').next() == Some(platform))
}

fn kind_of(form: &str) -> &str {
    form.split(':').nth(1).unwrap_or_default()
}

fn ids_of(form: &str) -> impl Iterator<Item = &str> {
    form.split(':').skip(2)
}

fn one_of(forms: &[&str]) -> String {
    let quoted: Vec<String> = forms.iter().map(|form| format!("`{form}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<i128>().is_ok()
}

fn malformed(label: &str, help: String) -> Malformed {
    Malformed {
        label: label.to_owned(),
        help,
    }
}
