//! `parlor route explain`: every rule tried for a place, the winner, and why. Asks the function the gateway asks.

use clap::{Args, Subcommand};

use super::{Failure, Outcome, data};
use crate::config::Secrets;
use crate::domain::{DiscordId, Origin, PersonId, SessionKey};
use crate::gateway::{Home, Plan};
use crate::routing::aliases::{self, Aliases};
use crate::routing::{self, Pin, names, pins};
use crate::storage::Db;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Tell which agent answers in a place, and why
    Explain(Explain),
}

#[derive(Args)]
pub(super) struct Explain {
    /// A session key, as /whoami prints it
    key: String,
    /// Who writes, such as telegram:12345678
    #[arg(long, value_name = "PERSON")]
    user: Option<String>,
    /// A Discord role the person has; may be given several times
    #[arg(long = "role", value_name = "ID")]
    roles: Vec<u64>,
    /// The topic's or thread's name
    #[arg(long)]
    name: Option<String>,
    /// A tag of the forum post; may be given several times
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// The Discord server
    #[arg(long, value_name = "ID")]
    server: Option<u64>,
    /// The Discord category
    #[arg(long, value_name = "ID")]
    category: Option<u64>,
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, Verb::Explain(arguments): Verb) -> Outcome {
    let plan = Plan::load(&home, Secrets::WherePresent)?;
    let json = arguments.json;
    let mut origin = origin(arguments)?;
    let stored = stored(&home, &mut origin).await?;
    origin.name = origin.name.or(stored.name);
    let pin = stored.pin.filter(|pin| plan.table.knows(&pin.agent));
    let explanation = routing::explain(&plan.table, pin.as_ref(), &origin);
    if json {
        data(format_args!("{}", serde_json::to_string_pretty(&explanation)?));
    } else {
        data(format_args!("{explanation}"));
    }
    Ok(())
}

fn origin(arguments: Explain) -> Result<Origin, Failure> {
    let key: SessionKey = arguments.key.parse().map_err(|error| Failure::WrongUse(format!("{error}")))?;
    let person = match &arguments.user {
        Some(text) => {
            text.parse().map_err(|()| Failure::WrongUse(format!("`{text}` is no person; one looks like telegram:12345678")))?
        }
        None => person_of(&key),
    };
    Ok(Origin {
        roles: arguments.roles.into_iter().map(DiscordId).collect(),
        server: arguments.server.map(DiscordId),
        category: arguments.category.map(DiscordId),
        name: arguments.name,
        tags: arguments.tags,
        ..Origin::new(key, person)
    })
}

/// Whom the key itself names, else somebody no rule can know.
fn person_of(key: &SessionKey) -> PersonId {
    match key {
        SessionKey::TelegramDm { user, .. } | SessionKey::TelegramGroup { member: Some(user), .. } => PersonId::Telegram(*user),
        SessionKey::DiscordDm { user } | SessionKey::DiscordChannel { member: Some(user), .. } => PersonId::Discord(*user),
        SessionKey::DiscordThread { .. } | SessionKey::DiscordChannel { member: None, .. } => PersonId::Discord(DiscordId(0)),
        SessionKey::Local { .. } => crate::channels::local::person(),
        _ => PersonId::Telegram(crate::domain::TelegramUserId(0)),
    }
}

/// What the store knows about a place.
#[derive(Default)]
struct Stored {
    pin: Option<Pin>,
    name: Option<String>,
}

/// A home without a database knows nothing.
async fn stored(home: &Home, origin: &mut Origin) -> Result<Stored, Failure> {
    if !home.database().exists() {
        return Ok(Stored::default());
    }
    let db = Db::open(&home.database()).await?;
    Aliases::new(db.read(aliases::load).await?).follow(origin);
    let key = origin.key.clone();
    let read = db.read(move |connection| Ok(Stored { pin: pins::load(connection, &key)?, name: names::load(connection, &key)? }));
    Ok(read.await?)
}
