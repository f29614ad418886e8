//! The house as a tree: platform, server and category (on Discord), group or channel, topic or
//! thread, person; each place with its agent and the rule that decides.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::discord_levels::{self, Level};
use super::house::{DecidedBy, Holder, House, Settings};
use super::named::{Moment, Named};
use super::{Operations, Refusal};
use crate::access::Standing;
use crate::answering::{Question, who_answers};
use crate::channels::local;
use crate::delivery::undelivered::{self, Which};
use crate::domain::{Origin, Platform, SessionKey};
use crate::records::sessions::{self, Open, Used};
use crate::routing::{FromChat, Visit};

/// A place in the tree.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Node {
    pub(crate) place: Named,
    pub(crate) kind: PlaceKind,
    pub(crate) agent: Named,
    pub(crate) by: DecidedBy,
    /// The deciding rule in words.
    pub(crate) rule: String,
    /// `/agent` is refused here, except for owners and admins.
    pub(crate) locked: bool,
    /// The bot answers here at all.
    pub(crate) open: bool,
    pub(crate) last_active_at: Option<Moment>,
    pub(crate) waiting: i64,
    pub(crate) unanswered: i64,
    pub(crate) undelivered: i64,
    /// Why the bot cannot write here.
    pub(crate) trouble: Option<String>,
    /// The Discord server and category that the place is in.
    pub(crate) within: Vec<Level>,
    #[schema(no_recursion)]
    pub(crate) children: Vec<Node>,
}

impl Node {
    /// The name where one is known, else the end of the key.
    pub(crate) fn name(&self) -> &str {
        let key = self.place.id.as_str();
        let end = || key.rsplit(':').next().unwrap_or(key);
        self.place.name.as_deref().unwrap_or_else(end)
    }
}

/// A place as people would call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlaceKind {
    PrivateChat,
    Group,
    Channel,
    /// A Discord channel whose posts are threads.
    Forum,
    Topic,
    Thread,
    /// A member of a group, with a conversation of their own.
    Person,
    /// Of the terminal or the web chat.
    Room,
    /// Of the gateway itself.
    Inner,
}

/// A platform with its places.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Branch {
    /// telegram, discord, local or web.
    #[schema(value_type = String)]
    pub(crate) platform: Platform,
    pub(crate) places: Vec<Node>,
}

impl Operations {
    /// All places that people have used, or that a binding or pin names.
    pub(crate) async fn place_tree(&self) -> Result<Vec<Branch>, Refusal> {
        let house = self.house().await?;
        let read = move |connection: &Connection| grown(connection, &house);
        Ok(self.db.read(read).await?)
    }

    /// A part of them, and the position of the last if more follow.
    pub(crate) async fn part_of_place_tree(
        &self,
        wanted: Wanted,
    ) -> Result<(Vec<Branch>, Option<Position>), Refusal> {
        let house = self.house().await?;
        let read = move |connection: &Connection| {
            let mut known = known(connection, &house)?;
            let last = narrow(&mut known, &house, &wanted);
            Ok((filled(connection, &house, known)?, last))
        };
        Ok(self.db.read(read).await?)
    }
}

/// Places by their keys, with their rows.
type Known = BTreeMap<String, (SessionKey, Option<Used>)>;

pub(super) fn grown(connection: &Connection, house: &House) -> rusqlite::Result<Vec<Branch>> {
    filled(connection, house, known(connection, house)?)
}

fn known(connection: &Connection, house: &House) -> rusqlite::Result<Known> {
    let bound = house.config.bindings.iter();
    let bound = bound.filter_map(|binding| binding.pattern.value.parse::<SessionKey>().ok());
    let mut known = Known::new();
    for key in bound.filter(|key| !key.is_internal()) {
        known.insert(key.to_string(), (key, None));
    }
    for used in sessions::with_rows(connection)? {
        if !used.key.is_internal() {
            known.insert(used.key.to_string(), (used.key.clone(), Some(used)));
        }
    }
    // The group of a topic is a place too, also where nobody wrote in the group itself.
    let groups: Vec<SessionKey> = known
        .values()
        .filter_map(|(key, _)| group_of(key))
        .collect();
    for group in groups {
        known
            .entry(group.to_string())
            .or_insert_with(|| (group.clone(), None));
    }
    Ok(known)
}

/// Finds out who answers in the places, and puts each into the place around it.
fn filled(connection: &Connection, house: &House, known: Known) -> rusqlite::Result<Vec<Branch>> {
    let open = Open::load(connection)?;
    let failed = undelivered::list(connection, &Which::All)?.into_iter();
    let failed = failed.filter(|row| !row.is_kept);
    let troubles: HashMap<String, String> = failed
        .map(|row| (row.place.to_string(), row.error))
        .collect();
    let settings = Settings::load(connection)?;
    let mut nodes: Vec<(SessionKey, Node)> = Vec::with_capacity(known.len());
    for (key, used) in known.into_values() {
        let holder = house.holder_among(&settings, &key, used.as_ref())?;
        let counts = used.as_ref().map(|used| open.of(used.id));
        let counts = counts.unwrap_or_default();
        let place = house.names.place(&key);
        let node = Node {
            kind: kind(&key),
            agent: house.agent(&holder.agent),
            by: holder.by,
            locked: holder.resolved.route.locked,
            open: is_open(house, &key, &holder),
            rule: holder.rule,
            last_active_at: used.and_then(|used| used.active_at).map(Moment),
            waiting: counts.waiting,
            unanswered: counts.unanswered,
            undelivered: counts.undelivered,
            trouble: troubles.get(&place.id).cloned(),
            place,
            within: Vec::new(),
            children: Vec::new(),
        };
        nodes.push((key, node));
    }
    let mut tree = branches(nodes);
    discord_levels::complete(connection, &mut tree)?;
    Ok(tree)
}

/// Puts each place into the place around it, and all into their platforms.
fn branches(nodes: Vec<(SessionKey, Node)>) -> Vec<Branch> {
    let mut inside: HashMap<SessionKey, Vec<Node>> = HashMap::new();
    let mut places: HashMap<Platform, Vec<Node>> = HashMap::new();
    let mut outer = Vec::new();
    for (key, node) in nodes {
        match group_of(&key) {
            Some(group) => inside.entry(group).or_default().push(node),
            None => outer.push((key, node)),
        }
    }
    for (key, mut node) in outer {
        let Some(platform) = key.platform() else {
            continue;
        };
        node.children = inside.remove(&key).unwrap_or_default();
        node.children.sort_by_cached_key(latest);
        places.entry(platform).or_default().push(node);
    }
    let branch = |platform| {
        let mut places = places.remove(&platform)?;
        places.sort_by_cached_key(latest);
        Some(Branch { platform, places })
    };
    Platform::ALL.into_iter().filter_map(branch).collect()
}

/// A part of the tree: outer places with all that is inside them.
pub(crate) struct Wanted {
    pub(crate) platform: Option<Platform>,
    /// Words in the name or the key of a place, or of a place inside.
    pub(crate) words: String,
    pub(crate) limit: usize,
    pub(crate) behind: Option<Position>,
}

/// Where an outer place stands in the tree. A place that is used meanwhile goes to the beginning,
/// and moves no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    platform: Platform,
    latest: std::cmp::Reverse<i64>,
    key: String,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.latest.0, self.key)
    }
}

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (latest, key) = text.split_once('.').ok_or(())?;
        let parsed: SessionKey = key.parse().map_err(drop)?;
        Ok(Position {
            platform: parsed.platform().ok_or(())?,
            latest: std::cmp::Reverse(latest.parse().map_err(drop)?),
            key: key.to_owned(),
        })
    }
}

/// Leaves the wanted places, and returns the position of the last if more follow.
fn narrow(known: &mut Known, house: &House, wanted: &Wanted) -> Option<Position> {
    let words = wanted.words.to_lowercase();
    let has_words = |key: &SessionKey, text: &str| {
        let name = || house.names.place(key).name.unwrap_or_default();
        text.contains(&words) || name().to_lowercase().contains(&words)
    };
    let mut outer: HashMap<String, (i64, bool)> = HashMap::new();
    for (text, (key, used)) in known.iter() {
        let whole = group_of(key).map_or_else(|| text.clone(), |group| group.to_string());
        let (latest, is_found) = outer.entry(whole).or_default();
        *latest = used
            .as_ref()
            .and_then(|used| used.active_at)
            .max(Some(*latest))
            .unwrap_or(0);
        *is_found |= has_words(key, text);
    }
    let found = outer.into_iter().filter(|(_, (_, is_found))| *is_found);
    let mut positions: Vec<Position> = found
        .filter_map(|(key, (latest, _))| {
            let platform = known.get(&key)?.0.platform()?;
            let latest = std::cmp::Reverse(latest);
            Some(Position {
                platform,
                latest,
                key,
            })
        })
        .filter(|position| wanted.platform.is_none_or(|only| only == position.platform))
        .filter(|position| {
            wanted
                .behind
                .as_ref()
                .is_none_or(|behind| position > behind)
        })
        .collect();
    positions.sort();
    let has_more = positions.len() > wanted.limit;
    positions.truncate(wanted.limit);
    let kept: HashSet<&str> = positions
        .iter()
        .map(|position| position.key.as_str())
        .collect();
    known.retain(|text, (key, _)| match group_of(key) {
        Some(group) => kept.contains(group.to_string().as_str()),
        None => kept.contains(text.as_str()),
    });
    positions.pop().filter(|_| has_more)
}

/// The latest first, with all that is inside.
fn latest(node: &Node) -> std::cmp::Reverse<i64> {
    let inside = node
        .children
        .iter()
        .filter_map(|child| child.last_active_at);
    let times = inside.chain(node.last_active_at).map(|at| at.0);
    std::cmp::Reverse(times.max().unwrap_or(0))
}

/// The place that a place is shown in.
fn group_of(key: &SessionKey) -> Option<SessionKey> {
    match key {
        SessionKey::TelegramDm {
            user,
            topic: Some(_),
        } => Some(SessionKey::TelegramDm {
            user: *user,
            topic: None,
        }),
        SessionKey::Local {
            room,
            topic: Some(_),
        } => Some(SessionKey::Local {
            room: room.clone(),
            topic: None,
        }),
        SessionKey::Web {
            room,
            topic: Some(_),
        } => Some(SessionKey::Web {
            room: room.clone(),
            topic: None,
        }),
        other => other.whole_group().filter(|group| group != other),
    }
}

/// Whether a member of the place would be answered there at all.
fn is_open(house: &House, key: &SessionKey, holder: &Holder) -> bool {
    if key.is_private() {
        return true;
    }
    let access = &house.config.access;
    let mut origin = Origin::new(key.clone(), local::person());
    house.follow(&mut origin);
    let standing = Standing::of(access, &origin.person, false);
    let visit = Visit {
        access,
        origin: &origin,
        standing: &standing,
    };
    let from_chat = FromChat {
        pin: holder.resolved.pin.clone(),
        opened: holder.resolved.opened.clone(),
        delivery_off: None,
    };
    who_answers(Question::said_to_the_bot(&house.table, visit, from_chat)).is_open
}

fn kind(key: &SessionKey) -> PlaceKind {
    match key {
        SessionKey::TelegramDm { topic: None, .. } | SessionKey::DiscordDm { .. } => {
            PlaceKind::PrivateChat
        }
        SessionKey::TelegramDm { .. } | SessionKey::TelegramTopic { .. } => PlaceKind::Topic,
        SessionKey::TelegramGroup { member: None, .. } => PlaceKind::Group,
        SessionKey::DiscordChannel { member: None, .. } => PlaceKind::Channel,
        SessionKey::TelegramGroup { .. } | SessionKey::DiscordChannel { .. } => PlaceKind::Person,
        SessionKey::DiscordThread { .. } => PlaceKind::Thread,
        SessionKey::Local { topic: None, .. } | SessionKey::Web { topic: None, .. } => {
            PlaceKind::Room
        }
        SessionKey::Local { .. } | SessionKey::Web { .. } => PlaceKind::Topic,
        SessionKey::Cron { .. } | SessionKey::Child { .. } | SessionKey::Import { .. } => {
            PlaceKind::Inner
        }
    }
}
