//! Starts, supervises and drains the gateway. Read `inbound` to follow a message.

mod at_the_terminal;
mod cleaning;
mod deletions;
mod generated_secrets;
mod grants;
mod group_migration;
mod guests;
mod ignored;
mod inbound;
mod known_people;
mod missing_keys;
mod person_pace;
mod platforms;
mod preflight;
mod reactions;
mod reload;
mod removals;
mod replies;
mod safekeeping;
mod slash;
mod storing;
mod topics;
mod watching;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashSet;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::{Memories, Registry};
use crate::answering::{TranscriptSearch, files};
use crate::channels::{Channel, Intake, outgoing};
use crate::clock::now_ms;
use crate::commands::CommandServices;
use crate::config::{Secrets, Switch};
use crate::delivery::{Delivery, MovedAway};
use crate::domain::{AgentId, Destination};
use crate::home::{
    CheckedConfig, ConfigError, Home, HomeLock, LockError, Reload, ReloadHandle, ReloadRequests,
    Snapshot, Snapshots,
};
use crate::lanes::{self, Sessions};
use crate::records::{journal, subagents};
use crate::routing::Router;
use crate::routing::aliases::{self, Aliases};
use crate::routing::names::{self, Names};
use crate::routing::pins::{self, Pins};
use crate::storage::{Db, Remedy, StoreError};
use crate::tenants::{self, Site, TenantError};
use crate::tools::{self, ToolBox};

pub(crate) use at_the_terminal::{Topic, TurnReport};
use guests::Guests;
use ignored::Ignored;
use person_pace::PersonPaces;
use platforms::{Listening, Made, Makings, Platforms};
use reload::Reloader;
use removals::Removals;

/// How long shutdown waits for turns, sends and summaries before it leaves the rest to the next
/// start.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// A running gateway.
pub struct Gateway {
    state: Arc<GatewayState>,
    tasks: TaskTracker,
    /// Follows group migrations for as long as delivery sends.
    moving: JoinHandle<()>,
    /// The number of channels still listening, and the reason of the latest channel to give up.
    listening: watch::Receiver<Listening>,
    _lock: HomeLock,
}

/// Shared by all tasks of the gateway.
struct GatewayState {
    services: CommandServices,
    /// The home folder.
    home: PathBuf,
    pins: Arc<Pins>,
    router: Router,
    names: Names,
    aliases: Arc<Aliases>,
    delivery: Delivery,
    removals: Removals,
    guests: Guests,
    ignored: Ignored,
    /// Held while the snapshot is replaced, so that a reload and a grant do not undo each other.
    replacing: tokio::sync::Mutex<()>,
    /// How much people may send in a minute.
    paces: watch::Sender<Arc<PersonPaces>>,
    /// Counts what has no answer yet: messages, subagents and sends.
    work: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0}")]
    Lock(#[from] LockError),
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Store(#[from] StoreError),
    /// An interrupted change of an agent could be neither finished nor undone.
    #[error("{0}")]
    Agents(#[from] TenantError),
    #[error(
        "there is nothing to connect to yet: {} has neither [telegram] nor [discord].\n\
         - To try the agents here, run `parlor chat`.\n\
         - For Telegram or Discord, take the `#` off that section in the file and store the bot's token where it points.\n  \
           Then `parlor config check` looks at the file, and `parlor run` connects.",
        .0.display()
    )]
    NoChannel(PathBuf),
}

/// Ends an interrupted change of an agent before the config is read.
async fn settle(home: &Home) -> Result<(), StartError> {
    if tenants::is_unsettled(home.path()) {
        let site = Site {
            home: home.path().to_owned(),
            db: Db::open(&home.database()).await?,
        };
        tenants::settle(&site).await?;
    }
    Ok(())
}

impl Gateway {
    /// Starts with the platforms named in the config.
    pub async fn start(home: Home) -> Result<Self, StartError> {
        let lock = home.lock()?;
        settle(&home).await?;
        let checked = CheckedConfig::load(&home, Secrets::Required)?;
        if checked.config.telegram.is_none() && checked.config.discord.is_none() {
            return Err(StartError::NoChannel(home.path().join("config.toml")));
        }
        let db = Db::open(&home.database()).await?;
        Self::start_with(home, lock, checked, db, None).await
    }

    /// Starts with a single channel, such as the terminal; the platforms in the config stay off.
    pub async fn start_local(home: Home, channel: Arc<dyn Channel>) -> Result<Self, StartError> {
        Self::start_local_with(home, channel, None).await
    }

    /// The same with an agent that answers every line of this process. Nothing is pinned.
    pub(crate) async fn start_local_with(
        home: Home,
        channel: Arc<dyn Channel>,
        agent: Option<AgentId>,
    ) -> Result<Self, StartError> {
        let lock = home.lock()?;
        settle(&home).await?;
        // The platforms' tokens are not needed here, and a missing key is reported when its model
        // is used.
        let checked = CheckedConfig::load(&home, Secrets::WherePresent)?;
        let db = Db::open(&home.database()).await?;
        Self::start_with(home, lock, checked, db, Some((channel, agent))).await
    }

    async fn start_with(
        home: Home,
        lock: HomeLock,
        checked: CheckedConfig,
        db: Db,
        alone: Option<(Arc<dyn Channel>, Option<AgentId>)>,
    ) -> Result<Self, StartError> {
        files::clear_unfinished(home.path()).await;
        let (registry, agent_rows) = checked.registry(&home, &db).await?;
        let checked = checked.with_grants(&db).await?;
        clear_results(&home, &registry).await;
        let snapshot = Snapshot::new(
            checked.config.clone(),
            checked.table.clone(),
            Arc::new(registry),
        );
        let snapshots = Snapshots::new(snapshot);
        let guest = alone.as_ref().and_then(|(_, agent)| agent.clone());
        let pins = Arc::new(match guest {
            Some(agent) => pins::with_guest(db.clone(), at_the_terminal::pin(agent), now_ms()),
            None => pins::remembered(db.clone()),
        });
        let makings = Makings {
            db: db.clone(),
            router: Router::new(pins.clone()),
            snapshots: snapshots.clone(),
        };
        let made = match alone {
            Some((channel, _)) => vec![Made::apart(channel)],
            None => platforms::made(&makings, &snapshots.current()).await?,
        };
        let channels: Vec<_> = made.iter().map(|made| made.channel.clone()).collect();
        let work = TaskTracker::new();
        // Closed from the start, so that waiting ends whenever nothing is counted.
        work.close();
        let owners = checked
            .config
            .access
            .owners
            .iter()
            .filter_map(Destination::owner)
            .collect();
        let (delivery, moves) = Delivery::new(
            db.clone(),
            &channels,
            owners,
            outgoing::folder(home.path()),
            work.clone(),
        );
        let moves_before = or_go_on("moves of groups", db.read(aliases::load).await)?;
        let aliases = Arc::new(Aliases::new(moves_before));
        let bootstrapped: DashSet<_> = agent_rows
            .values()
            .filter(|known| known.bootstrapped)
            .map(|known| known.uid)
            .collect();
        let orphans = db.write(|tx| subagents::close_orphans(tx, now_ms()));
        or_go_on("stopped subagents", orphans.await)?;
        let absorbing = db.read(journal::absorbing);
        let absorbing = or_go_on("turns from before", absorbing.await)?;
        let memories = Memories::new(db.clone());
        let switch = {
            let snapshots = snapshots.clone();
            Arc::new(move || snapshots.current().config.switch)
        };
        let sessions = Sessions::new(lanes::Services {
            db: db.clone(),
            snapshots: snapshots.clone(),
            pins: pins.clone(),
            aliases: aliases.clone(),
            delivery: delivery.clone(),
            tools: toolbox(&memories, &db, switch),
            memories: memories.clone(),
            work: work.clone(),
            absorbing: absorbing.into_iter().collect(),
            bootstrapped,
        });
        let names = names::remembered(db.clone());
        let (reload, requests) = ReloadHandle::new();
        let services = CommandServices {
            db,
            snapshots,
            memories,
            sessions,
            home: home.path().to_owned(),
            reload,
            started_at: now_ms(),
        };
        let stop = CancellationToken::new();
        let paces = Arc::new(PersonPaces::new(&checked.config.access.limits));
        let state = Arc::new(GatewayState {
            services,
            home: home.path().to_owned(),
            router: Router::new(pins.clone()),
            pins,
            names,
            aliases,
            delivery,
            removals: Removals::default(),
            guests: Guests::default(),
            ignored: Ignored::default(),
            replacing: tokio::sync::Mutex::default(),
            paces: watch::Sender::new(paces),
            work,
            stop,
        });
        state.tell_missing_keys().await;
        Ok(Self::run(state, home, lock, moves, (makings, made), requests).await)
    }

    /// Sentences about providers whose key cannot be read.
    pub fn missing_keys(&self) -> Vec<String> {
        self.state.missing_keys()
    }

    async fn run(
        state: Arc<GatewayState>,
        home: Home,
        lock: HomeLock,
        moves: mpsc::Receiver<MovedAway>,
        (makings, made): (Makings, Vec<Made>),
        requests: ReloadRequests,
    ) -> Self {
        let tasks = TaskTracker::new();
        let (intake, received) = Intake::new();
        // Held until the rows of an earlier process are under way again, so `settled` does not
        // return early.
        let starting = state.work.token();
        tasks.spawn(inbound::receive(state.clone(), received, starting));
        tasks.spawn(cleaning::keep_house(state.clone()));
        tasks.spawn(safekeeping::watch(state.clone()));
        tasks.spawn(removals::watch(state.clone()));
        let platforms = Platforms::new(
            makings,
            intake,
            state.stop.clone(),
            tasks.clone(),
            made.iter().any(Made::is_apart),
        );
        for made in made {
            platforms.listen(made).await;
        }
        let listening = platforms.listening();
        tasks.spawn(watching::watch(
            state.clone(),
            state.services.reload.clone(),
        ));
        tasks.spawn(Reloader::new(state.clone(), platforms, home).serve(requests));
        tasks.close();
        let moving = tokio::spawn(group_migration::watch(state.clone(), moves));
        Gateway {
            state,
            tasks,
            moving,
            listening,
            _lock: lock,
        }
    }

    /// Reads the config anew, as after SIGHUP. `None`: the gateway stops.
    pub async fn reload(&self, cause: &str) -> Option<Reload> {
        self.state.services.reload.ask(cause).await
    }

    /// Returns when no accepted message still waits for its answer.
    pub async fn answered(&self) {
        self.state.work.wait().await;
    }

    /// Returns when no answer and no summary is under way.
    pub async fn settled(&self) {
        self.answered().await;
        self.state.services.sessions.summed_up().await;
        // Owners may have been told what a summary cost.
        self.answered().await;
    }

    /// How many messages, subagents and sends are under way.
    pub fn under_way(&self) -> usize {
        self.state.work.len()
    }

    /// Whether a summary is being made, beside the answers.
    pub fn is_summing_up(&self) -> bool {
        self.state.services.sessions.is_summing_up()
    }

    /// Returns with the reason when the gateway can take in no more messages: no channel listens,
    /// or the database cannot store.
    pub async fn deserted(&self) -> String {
        let harmed = tokio::select! {
            harmed = self.state.services.db.harmed() => harmed,
            reason = self.unheard() => return reason,
        };
        safekeeping::give_up(&self.state, &harmed).await;
        harmed.to_string()
    }

    /// Returns with the reason when no channel listens any more.
    async fn unheard(&self) -> String {
        let mut listening = self.listening.clone();
        let ended = listening
            .wait_for(|listening| listening.channels == 0)
            .await;
        ended
            .ok()
            .and_then(|listening| listening.ended.clone())
            .unwrap_or_else(|| "every channel has stopped".into())
    }

    /// Stops intake, lets turns and sends finish for a while, and leaves the rest in the database
    /// for the next start.
    pub async fn shutdown(self) {
        self.state.stop.cancel();
        self.tasks.wait().await;
        // Without a working database, waiting would finish no turn.
        let is_hopeless = self.state.services.db.is_harmed();
        let deadline = Instant::now() + DRAIN;
        if !is_hopeless && timeout_at(deadline, self.answered()).await.is_err() {
            tracing::warn!(
                "not everything could be answered in time; the next start goes on with it"
            );
        }
        // A summary that takes longer is given up: a later turn has it made.
        if !is_hopeless {
            drop(timeout_at(deadline, self.settled()).await);
        }
        self.state.services.sessions.stop();
        self.state.delivery.stop();
        self.state.services.sessions.abandon().await;
        if tokio::time::timeout(DRAIN, self.state.delivery.ended())
            .await
            .is_err()
        {
            tracing::warn!("a send did not end in time; it is repeated at the next start");
        }
        if let Err(error) = self.moving.await {
            tracing::error!("following moves ended badly: {error}");
        }
        if !is_hopeless {
            removals::finish(&self.state).await;
        }
    }
}

/// Rows that cannot be read or written for good must not keep the gateway from starting.
fn or_go_on<T: Default>(what: &str, done: Result<T, StoreError>) -> Result<T, StoreError> {
    match done {
        Err(error) if error.remedy() == Remedy::GiveUp => {
            tracing::error!("the gateway starts without a look at {what}: {error}");
            Ok(T::default())
        }
        done => done,
    }
}

/// Removes long results of tools that an earlier process left.
async fn clear_results(home: &Home, registry: &Registry) {
    let agents = registry.all().to_vec();
    let home = home.path().to_owned();
    let clear = move || {
        let workspaces = agents.iter().map(|agent| agent.files.own());
        tools::clear_results(&home, workspaces);
    };
    if let Err(error) = tokio::task::spawn_blocking(clear).await {
        tracing::warn!("old results of tools were not removed: {error}");
    }
}

/// All tools. The policy of an agent decides which of them the agent has.
fn toolbox(memories: &Memories, db: &Db, switch: Arc<dyn Fn() -> Switch + Send + Sync>) -> ToolBox {
    ToolBox::standard()
        .with(tools::memory_tools(memories))
        .with(vec![Box::new(TranscriptSearch {
            db: db.clone(),
            switch,
        })])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The config is checked against this list before there is a database to make the tools with.
    #[tokio::test]
    async fn the_list_of_known_tools_is_the_list_of_tools() {
        let home = tempfile::tempdir().expect("a folder");
        let db = Db::open(&home.path().join("parlor.db"))
            .await
            .expect("the store opens");
        let tools = toolbox(&Memories::new(db.clone()), &db, Arc::new(Switch::default));
        assert_eq!(tools.names().collect::<Vec<_>>(), tools::KNOWN);
    }
}
