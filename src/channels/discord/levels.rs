//! Servers, categories and channels with their names: the `discord_servers` and `discord_channels`
//! tables. The house shows its places below them.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Transaction, params};
use serde_json::Value;

use super::directory::{id_in, list};
use crate::domain::{DiscordId, Origin, SessionKey};
use crate::printable::printable_line;
use crate::storage::Db;

/// Discord's numbers for kinds of channels.
const CATEGORY: u64 = 4;
const FORUMS: [u64; 2] = [15, 16];
const THREADS: [u64; 3] = [10, 11, 12];

/// Keeps what an event tells about servers, categories and channels. Other events are no news.
pub(super) async fn follow(db: &Db, event: &str, data: &Value) {
    let Some(news) = News::read(event, data) else {
        return;
    };
    if let Err(error) = db.write(move |tx| news.keep(tx)).await {
        tracing::warn!("names of Discord servers and channels were not kept: {error}");
    }
}

/// A kind of channel in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChannelKind {
    Category,
    Forum,
    Channel,
}

impl ChannelKind {
    fn as_str(self) -> &'static str {
        match self {
            ChannelKind::Category => "category",
            ChannelKind::Forum => "forum",
            ChannelKind::Channel => "channel",
        }
    }

    fn of(word: &str) -> Self {
        match word {
            "category" => ChannelKind::Category,
            "forum" => ChannelKind::Forum,
            _ => ChannelKind::Channel,
        }
    }
}

/// A category or a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownChannel {
    pub(crate) server: DiscordId,
    pub(crate) category: Option<DiscordId>,
    pub(crate) kind: ChannelKind,
    pub(crate) name: String,
}

/// All levels that are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Levels {
    pub(crate) servers: HashMap<DiscordId, String>,
    pub(crate) channels: HashMap<DiscordId, KnownChannel>,
}

impl Levels {
    /// Adds the server and category of a channel where they are known and no message told them.
    pub(crate) fn complete(&self, origin: &mut Origin) {
        let known = channel_of(&origin.key).and_then(|id| self.channels.get(&id));
        if let (None, Some(known)) = (origin.server, known) {
            (origin.server, origin.category) = (Some(known.server), known.category);
        }
    }
}

/// The channel of a place on a server.
pub(crate) fn channel_of(key: &SessionKey) -> Option<DiscordId> {
    match key {
        SessionKey::DiscordChannel { channel, .. } | SessionKey::DiscordThread { channel, .. } => {
            Some(*channel)
        }
        _ => None,
    }
}

/// All servers, categories and channels.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Levels> {
    let mut servers = connection.prepare_cached("SELECT id, name FROM discord_servers")?;
    let servers = servers.query_map([], |row| Ok((id(row.get(0)?), row.get(1)?)))?;
    let mut channels = connection
        .prepare_cached("SELECT id, server, category, kind, name FROM discord_channels")?;
    let channels = channels.query_map([], |row| {
        let known = KnownChannel {
            server: id(row.get(1)?),
            category: row.get::<_, Option<i64>>(2)?.map(id),
            kind: ChannelKind::of(&row.get::<_, String>(3)?),
            name: row.get(4)?,
        };
        Ok((id(row.get(0)?), known))
    })?;
    Ok(Levels {
        servers: servers.collect::<rusqlite::Result<_>>()?,
        channels: channels.collect::<rusqlite::Result<_>>()?,
    })
}

/// What an event tells.
#[derive(Debug, Clone, PartialEq, Eq)]
enum News {
    Server {
        id: DiscordId,
        name: String,
        /// All of the server; absent where only its name is told.
        channels: Option<Vec<(DiscordId, KnownChannel)>>,
    },
    LeftServer(DiscordId),
    Channel(DiscordId, KnownChannel),
    ChannelGone(DiscordId),
}

impl News {
    fn read(event: &str, data: &Value) -> Option<Self> {
        let id = id_in(data, "id")?;
        Some(match event {
            "GUILD_CREATE" | "GUILD_UPDATE" if data["unavailable"] != true => News::Server {
                id,
                name: name(data)?,
                channels: data["channels"].is_array().then(|| {
                    let channels = list(data, "channels");
                    channels.filter_map(|raw| channel(raw, Some(id))).collect()
                }),
            },
            // `unavailable` is an outage of the server; otherwise the bot has left.
            "GUILD_DELETE" if data["unavailable"] != true => News::LeftServer(id),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" => {
                let (id, known) = channel(data, None)?;
                News::Channel(id, known)
            }
            "CHANNEL_DELETE" => News::ChannelGone(id),
            _ => return None,
        })
    }

    fn keep(&self, tx: &Transaction<'_>) -> rusqlite::Result<()> {
        match self {
            News::Server { id, name, channels } => {
                keep_server(tx, *id, name)?;
                match channels {
                    Some(channels) => keep_all(tx, *id, channels),
                    None => Ok(()),
                }
            }
            News::LeftServer(id) => {
                let id = id.0.cast_signed();
                tx.execute("DELETE FROM discord_channels WHERE server = ?1", [id])?;
                tx.execute("DELETE FROM discord_servers WHERE id = ?1", [id])
                    .map(drop)
            }
            News::Channel(id, known) => keep_channel(tx, *id, known),
            News::ChannelGone(id) => forget(tx, *id),
        }
    }
}

/// Private chats have no server, and threads stand below their channel anyway.
fn channel(raw: &Value, server: Option<DiscordId>) -> Option<(DiscordId, KnownChannel)> {
    let number = raw["type"].as_u64()?;
    let kind = match number {
        CATEGORY => ChannelKind::Category,
        number if FORUMS.contains(&number) => ChannelKind::Forum,
        number if THREADS.contains(&number) => return None,
        _ => ChannelKind::Channel,
    };
    let known = KnownChannel {
        server: id_in(raw, "guild_id").or(server)?,
        category: id_in(raw, "parent_id"),
        kind,
        name: name(raw)?,
    };
    Some((id_in(raw, "id")?, known))
}

fn name(raw: &Value) -> Option<String> {
    raw["name"].as_str().map(printable_line)
}

/// Unchanged rows are not written again: a server is told anew with every connection.
fn keep_server(tx: &Transaction<'_>, id: DiscordId, name: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO discord_servers (id, name) VALUES (?1, ?2)
               ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE name <> excluded.name";
    let mut statement = tx.prepare_cached(sql)?;
    statement
        .execute(params![id.0.cast_signed(), name])
        .map(drop)
}

fn keep_channel(tx: &Transaction<'_>, id: DiscordId, known: &KnownChannel) -> rusqlite::Result<()> {
    let sql = "INSERT INTO discord_channels (id, server, category, kind, name) VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT (id) DO UPDATE SET server = excluded.server, category = excluded.category,
                   kind = excluded.kind, name = excluded.name
               WHERE server <> excluded.server OR category IS NOT excluded.category
                   OR kind <> excluded.kind OR name <> excluded.name";
    let mut statement = tx.prepare_cached(sql)?;
    let values = params![
        id.0.cast_signed(),
        known.server.0.cast_signed(),
        known.category.map(|category| category.0.cast_signed()),
        known.kind.as_str(),
        known.name,
    ];
    statement.execute(values).map(drop)
}

/// Keeps the channels of a server, and forgets those that went while the bot was away.
fn keep_all(
    tx: &Transaction<'_>,
    server: DiscordId,
    channels: &[(DiscordId, KnownChannel)],
) -> rusqlite::Result<()> {
    let present: HashSet<DiscordId> = channels.iter().map(|(id, _)| *id).collect();
    let before: Vec<i64> = {
        let sql = "SELECT id FROM discord_channels WHERE server = ?1";
        let mut statement = tx.prepare_cached(sql)?;
        let rows = statement.query_map([server.0.cast_signed()], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for gone in before.into_iter().map(id) {
        if !present.contains(&gone) {
            forget(tx, gone)?;
        }
    }
    channels
        .iter()
        .try_for_each(|(id, known)| keep_channel(tx, *id, known))
}

fn forget(tx: &Transaction<'_>, channel: DiscordId) -> rusqlite::Result<()> {
    let sql = "DELETE FROM discord_channels WHERE id = ?1";
    tx.execute(sql, [channel.0.cast_signed()]).map(drop)
}

fn id(number: i64) -> DiscordId {
    DiscordId(number.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn servers_and_channels_follow_the_events() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let told = async |event: &str, data: Value| {
            follow(&db, event, &data).await;
            let levels = db.read(all).await.unwrap();
            let mut lines: Vec<String> = levels
                .channels
                .iter()
                .map(|(id, known)| {
                    let category = known.category.map_or(0, |category| category.0);
                    let server = &levels.servers[&known.server];
                    format!("{id} {server}/{category}/{} {:?}", known.name, known.kind)
                })
                .collect();
            lines.sort();
            lines
        };
        let garden = json!({ "id": "1", "name": "Garden", "channels": [
            { "id": "10", "type": 4, "name": "Help" },
            { "id": "20", "type": 15, "name": "questions", "parent_id": "10" },
            { "id": "30", "type": 0, "name": "general" },
            { "id": "18446744073709551615", "type": 0, "name": "last" },
        ], "threads": [{ "id": "21", "type": 11, "name": "It broke", "parent_id": "20" }] });
        assert_eq!(
            told("GUILD_CREATE", garden.clone()).await,
            [
                "10 Garden/0/Help Category",
                "18446744073709551615 Garden/0/last Channel",
                "20 Garden/10/questions Forum",
                "30 Garden/0/general Channel"
            ]
        );
        let outage = json!({ "id": "1", "unavailable": true });
        assert_eq!(told("GUILD_DELETE", outage).await.len(), 4);
        let moved =
            json!({ "id": "30", "type": 0, "guild_id": "1", "name": "talk", "parent_id": "10" });
        assert_eq!(
            told("CHANNEL_UPDATE", moved).await[3],
            "30 Garden/10/talk Channel"
        );
        let thread =
            json!({ "id": "31", "type": 11, "guild_id": "1", "name": "aside", "parent_id": "30" });
        assert_eq!(told("CHANNEL_CREATE", thread).await.len(), 4);
        let gone = json!({ "id": "20", "type": 15, "guild_id": "1" });
        assert_eq!(told("CHANNEL_DELETE", gone).await.len(), 3);
        let renamed = json!({ "id": "1", "name": "Park" });
        assert_eq!(
            told("GUILD_UPDATE", renamed).await[0],
            "10 Park/0/Help Category"
        );
        let smaller = json!({ "id": "1", "name": "Park", "channels": [{ "id": "10", "type": 4, "name": "Help" }] });
        assert_eq!(
            told("GUILD_CREATE", smaller).await,
            ["10 Park/0/Help Category"]
        );
        let left = json!({ "id": "1" });
        assert!(told("GUILD_DELETE", left).await.is_empty());
    }
}
