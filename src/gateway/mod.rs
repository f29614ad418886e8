//! Starts, supervises and drains the gateway. Read `inbound` to follow a message.

mod at_the_terminal;
mod cleaning;
mod deletions;
mod generated_secrets;
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
mod socket;
mod storing;
mod terminals;
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
use crate::channels::local::LocalChannel;
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
use crate::operations::{Live, Operations, Pulse};
use crate::records::audit::Actor;
use crate::records::{journal, subagents};
use crate::routing::Router;
use crate::routing::aliases::{self, Aliases};
use crate::routing::names::{self, Names};
use crate::routing::pins::{self, Pins, StandIns};
use crate::storage::{Db, Remedy, StoreError};
use crate::tenants::{self, Site, TenantError};
use crate::tools::{self, ToolBox};

use guests::Guests;
use ignored::Ignored;
use person_pace::PersonPaces;
use platforms::{Listening, Made, Makings, Platforms};
use reload::Reloader;
use removals::Removals;
use terminals::Terminals;

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
    operations: Operations,
    pulse: Arc<Pulse>,
    /// The home folder.
    home: PathBuf,
    /// Terminals of other processes. None where this process is a terminal itself.
    terminals: Option<Terminals>,
    pins: Arc<Pins>,
    router: Router,
    names: Names,
    aliases: Arc<Aliases>,
    delivery: Delivery,
    removals: Arc<Removals>,
    guests: Guests,
    ignored: Ignored,
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

/// How long a start waits for verbs that work on the home.
const VERBS_END: Duration = Duration::from_secs(2);

/// Takes the home, after the verbs that are just working on it.
async fn locked(home: &Home) -> Result<HomeLock, LockError> {
    let patience = Instant::now() + VERBS_END;
    loop {
        match home.lock() {
            Err(LockError::Held { .. }) if Instant::now() < patience => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            locked => return locked,
        }
    }
}

/// Ends an interrupted change of an agent before the config is read.
async fn settle(home: &Home) -> Result<(), StartError> {
    if tenants::is_unsettled(home.path()) {
        let site = Site {
            home: home.path().to_owned(),
            db: Db::open(&home.database()).await?,
            by: Actor::Gateway,
        };
        tenants::settle(&site).await?;
    }
    Ok(())
}

impl Gateway {
    /// Starts with the platforms named in the config.
    pub async fn start(home: Home) -> Result<Self, StartError> {
        let lock = locked(&home).await?;
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
        let lock = locked(&home).await?;
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
        let links = tenants::stop_leading_all(home.path(), &db).await;
        or_go_on("folders of renamed agents", links)?;
        let (registry, agent_rows) = checked.registry(&home, &db).await?;
        clear_results(&home, &registry).await;
        let snapshot = Snapshot::new(
            checked.config.clone(),
            checked.table.clone(),
            Arc::new(registry),
        );
        let snapshots = Snapshots::new(snapshot);
        let stand_in = alone.as_ref().and_then(|(_, agent)| agent.clone());
        let stand_ins = StandIns::everywhere(stand_in.map(at_the_terminal::pin));
        let pins = Arc::new(pins::with_stand_ins(db.clone(), stand_ins.clone()));
        // A terminal alone in its process has the gateway for itself.
        let terminals = alone
            .is_none()
            .then(|| Terminals::new(stand_ins, LocalChannel::without_terminals()));
        let pulse = Arc::<Pulse>::default();
        let makings = Makings {
            db: db.clone(),
            router: Router::new(pins.clone()),
            snapshots: snapshots.clone(),
            pulse: pulse.clone(),
        };
        let made = match alone {
            Some((channel, _)) => vec![Made::apart(channel)],
            None => platforms::made(&makings, &snapshots.current()).await?,
        };
        let mut channels: Vec<_> = made.iter().map(|made| made.channel.clone()).collect();
        channels.extend(terminals.as_ref().map(Terminals::channel));
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
        let (removals, tasks) = (Arc::<Removals>::default(), TaskTracker::new());
        let stop = CancellationToken::new();
        let operations = Operations::in_gateway(
            home.path().to_owned(),
            db.clone(),
            Live {
                sessions: sessions.clone(),
                snapshots: snapshots.clone(),
                pins: pins.clone(),
                delivery: delivery.clone(),
                reload: reload.clone(),
                pulse: pulse.clone(),
                words_are_gone: {
                    let removals = removals.clone();
                    Arc::new(move || removals.note())
                },
                tasks: tasks.clone(),
                stop: stop.clone(),
                started_at: now_ms(),
            },
        );
        let services = CommandServices {
            db,
            snapshots,
            memories,
            sessions,
            home: home.path().to_owned(),
            reload,
            started_at: now_ms(),
        };
        let paces = Arc::new(PersonPaces::new(&checked.config.access.limits));
        let state = Arc::new(GatewayState {
            services,
            operations,
            pulse: pulse.clone(),
            home: home.path().to_owned(),
            terminals,
            router: Router::new(pins.clone()),
            pins,
            names,
            aliases,
            delivery,
            removals,
            guests: Guests::default(),
            ignored: Ignored::default(),
            paces: watch::Sender::new(paces),
            work,
            stop,
        });
        state.tell_missing_keys().await;
        let connecting = (makings, made);
        Ok(Self::run(state, (home, lock), tasks, moves, connecting, requests).await)
    }

    /// Sentences about providers whose key cannot be read.
    pub fn missing_keys(&self) -> Vec<String> {
        self.state.missing_keys()
    }

    async fn run(
        state: Arc<GatewayState>,
        (home, lock): (Home, HomeLock),
        tasks: TaskTracker,
        moves: mpsc::Receiver<MovedAway>,
        (makings, made): (Makings, Vec<Made>),
        requests: ReloadRequests,
    ) -> Self {
        let (intake, received) = Intake::new();
        // Held until the rows of an earlier process are under way again, so `settled` does not
        // return early.
        let starting = state.work.token();
        tasks.spawn(inbound::receive(state.clone(), received, starting));
        tasks.spawn(cleaning::keep_house(state.clone()));
        tasks.spawn(safekeeping::watch(state.clone()));
        tasks.spawn(removals::watch(state.clone()));
        if let Some(terminals) = &state.terminals {
            tasks.spawn(terminals.listen(intake.clone(), state.stop.clone()));
        }
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
        socket::open(&state, &tasks);
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
