//! The way of a terminal into a gateway: that of another process, or one of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::host::Host;
use crate::access::Standing;
use crate::channels::local::{self, Audience, LocalChannel, Terminal};
use crate::cli::{Failure, note};
use crate::config::Secrets;
use crate::domain::{AgentId, Origin, SessionKey};
use crate::gateway::Gateway;
use crate::home::{CheckedConfig, Home};
use crate::operations::terminal::{PlaceWish, Visitor};
use crate::routing::Visit;
use crate::storage::Db;

/// A chat that has the gateway may take this long to end, after its terminal is gone.
const OTHER_CHAT_ENDS: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The way into a gateway.
pub(in crate::cli) struct Opening {
    pub(in crate::cli) home: Home,
    /// Answers every line of this terminal.
    pub(in crate::cli) agent: Option<String>,
    pub(in crate::cli) audience: Audience,
}

impl Opening {
    /// Joins the gateway that runs on this home, else starts one with the terminal alone. `again`:
    /// the chat that had the gateway is about to end.
    pub(in crate::cli) async fn open(
        &self,
        wish: &PlaceWish,
        again: bool,
    ) -> Result<(Host, Terminal, SessionKey), Failure> {
        let patience = Instant::now() + OTHER_CHAT_ENDS;
        loop {
            match self.try_open(wish).await {
                Err(_) if again && self.home.is_running() && Instant::now() < patience => {
                    sleep(LOOK_AGAIN).await;
                }
                opened => return opened,
            }
        }
    }

    async fn try_open(&self, wish: &PlaceWish) -> Result<(Host, Terminal, SessionKey), Failure> {
        if let Some(joined) = Host::join(&self.home, self.visitor(wish)).await? {
            return Ok(joined);
        }
        let place = wish.choices().and_then(|mut choices| choices.next());
        let place = place.ok_or_else(|| Failure::WrongUse("there is no such room".into()))?;
        let agent = match &self.agent {
            Some(agent) => Some(known_agent(&self.home, agent, &place).await?),
            None => None,
        };
        let (channel, terminal) = LocalChannel::for_audience(self.audience);
        let home = self.home.clone();
        let gateway = Gateway::start_local_with(home, Arc::new(channel), agent).await?;
        for missing in gateway.missing_keys() {
            note(format_args!("note: {missing}"));
        }
        Ok((Host::Own(Box::new(gateway)), terminal, place))
    }

    fn visitor(&self, wish: &PlaceWish) -> Visitor {
        Visitor {
            client: Uuid::now_v7().to_string(),
            place: wish.clone(),
            agent: self.agent.clone(),
            audience: self.audience,
        }
    }
}

/// A person must not be answered by another agent than asked for, so an unknown agent ends the chat
/// before it begins, and so does an agent that is closed to the terminal.
async fn known_agent(home: &Home, word: &str, place: &SessionKey) -> Result<AgentId, Failure> {
    let checked = CheckedConfig::load(home, Secrets::WherePresent)?;
    let db = Db::open(&home.database()).await?;
    let (registry, _) = checked.registry(home, &db).await?;
    let agent = crate::cli::agent::find(&registry, word)?;
    let (access, origin) = (
        &checked.config.access,
        Origin::new(place.clone(), local::person()),
    );
    let visit = Visit {
        access,
        origin: &origin,
        standing: &Standing::of(access, &origin.person, false),
    };
    let allowed = checked.table.may_switch(&agent.id, visit);
    allowed.map_err(|closed| {
        Failure::Failed(format!(
            "{closed}, and you are not among them. Add \"owner\" to `who` under [agents.{}]",
            agent.id
        ))
    })?;
    Ok(agent.id.clone())
}
