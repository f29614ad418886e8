//! The levels above places of Discord: the server, then the category.

use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::place_tree::{Branch, Node, PlaceKind};
use crate::channels::discord::levels::{self, ChannelKind, Levels};
use crate::domain::{Platform, SessionKey};

/// A server or a category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Level {
    /// As a binding matches it: discord:guild:8001 or discord:category:8200.
    pub(crate) id: String,
    pub(crate) kind: LevelKind,
    pub(crate) name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LevelKind {
    Server,
    Category,
}

/// Tells the places of Discord their server and category, and forums from other channels.
pub(super) fn complete(connection: &Connection, tree: &mut [Branch]) -> rusqlite::Result<()> {
    let branch = tree
        .iter_mut()
        .find(|branch| branch.platform == Platform::Discord);
    let Some(branch) = branch else { return Ok(()) };
    let levels = levels::all(connection)?;
    for node in &mut branch.places {
        put_below(node, &levels);
    }
    Ok(())
}

fn put_below(node: &mut Node, levels: &Levels) {
    let key = node.place.id.parse::<SessionKey>();
    let channel = key.ok().as_ref().and_then(levels::channel_of);
    let Some(known) = channel.and_then(|id| levels.channels.get(&id)) else {
        return;
    };
    if known.kind == ChannelKind::Forum && node.kind == PlaceKind::Channel {
        node.kind = PlaceKind::Forum;
    }
    let server = levels.servers.get(&known.server).map(|name| Level {
        id: format!("discord:guild:{}", known.server),
        kind: LevelKind::Server,
        name: name.clone(),
    });
    let category = known.category.and_then(|id| {
        let category = levels.channels.get(&id)?;
        Some(Level {
            id: format!("discord:category:{id}"),
            kind: LevelKind::Category,
            name: category.name.clone(),
        })
    });
    node.within = server.into_iter().chain(category).collect();
}
