//! Starts, supervises and drains the gateway. Read `inbound` to follow a message.

mod approvals;
mod at_the_terminal;
mod barred;
mod cleaning;
mod decide;
mod deletions;
mod generated_secrets;
mod grants;
mod group_migration;
mod guests;
mod hooks;
mod ignored;
mod inbound;
mod jobs;
mod known_people;
mod missing_keys;
mod monitor;
mod person_pace;
mod pin_ends;
mod platforms;
mod reactions;
mod reload;
mod removals;
mod replay;
mod replies;
mod safekeeping;
mod slash;
mod socket;
mod steering;
mod storing;
mod terminals;
mod topics;
mod watched_folders;
mod watching;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dashmap::{DashMap, DashSet};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access;
use crate::agents::{AgentRows, Memories, Registry};
use crate::answering::{files, toolbox};
use crate::channels::local::LocalChannel;
use crate::channels::web::WebChannel;
use crate::channels::{Intake, outgoing};
use crate::clock::now_ms;
use crate::commands::CommandServices;
use crate::config::{Config, Secrets, Switch};
use crate::delivery::{Delivery, MovedAway};
use crate::domain::{AgentId, AgentUid, Destination, PersonId};
use crate::home::{
    CheckedConfig, ConfigError, Home, HomeLock, LockError, Purpose, Reload, ReloadHandle,
    ReloadRequests, Snapshot, Snapshots,
};
use crate::jobs::Alarm;
use crate::lanes::{self, Sessions};
use crate::operations::http_keys::Entrance;
use crate::operations::{Live, Operations, Pulse};
use crate::records::audit::Actor;
use crate::records::{agent_pauses, journal, subagents};
use crate::routing::Router;
use crate::routing::aliases::{self, Aliases};
use crate::routing::names::{self, Names};
use crate::routing::pins::{self, Pins, StandIns};
use crate::storage::{Db, Remedy, StoreError};
use crate::telemetry;
use crate::tenants::{self, Site, TenantError};
use crate::tools;

use guests::Guests;
pub(crate) use hooks::HookTaken;
use ignored::Ignored;
pub(crate) use monitor::Monitor;
use person_pace::PersonPaces;
use pin_ends::PinEnds;
use platforms::{Listening, Made, Makings, Platforms};
use reload::Reloader;
use removals::Removals;
use replay::{Left, PassedOver};
use terminals::Terminals;

/// How long shutdown waits for turns, sends and summaries before it leaves the rest to the next
/// start.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// How long shutdown waits until clients have read their last words.
const CLIENTS_LEAVE: Duration = Duration::from_secs(2);

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
    /// Terminals of other processes.
    terminals: Terminals,
    web: WebChannel,
    pins: Arc<Pins>,
    router: Router,
    names: Names,
    aliases: Arc<Aliases>,
    delivery: Delivery,
    removals: Arc<Removals>,
    pin_ends: PinEnds,
    guests: Guests,
    ignored: Ignored,
    passed_over: PassedOver,
    /// Held while the snapshot is replaced, so that a reload and a grant do not undo each other.
    replacing: tokio::sync::Mutex<()>,
    /// How much people may send in a minute.
    paces: watch::Sender<Arc<PersonPaces>>,
    /// Counts what has no answer yet: messages, subagents and sends.
    work: TaskTracker,
    /// Clients of the socket.
    clients: TaskTracker,
    stop: CancellationToken,
    /// Set after the last answers: terminals that were shown them are let go.
    hang_up: CancellationToken,
}

impl GatewayState {
    fn new(
        home: &Home,
        config: &Config,
        services: lanes::Services,
        reload: ReloadHandle,
        (pulse, tasks): (Arc<Pulse>, TaskTracker),
        terminals: Terminals,
        web: WebChannel,
    ) -> Self {
        let (db, pins) = (services.db.clone(), services.pins.clone());
        let (aliases, delivery) = (services.aliases.clone(), services.delivery.clone());
        let (snapshots, memories) = (services.snapshots.clone(), services.memories.clone());
        let paces = watch::Sender::new(Arc::new(PersonPaces::new(&config.access.limits)));
        let ignored = Ignored::default();
        let (removals, stop) = (Arc::<Removals>::default(), CancellationToken::new());
        let (work, sessions) = (services.work.clone(), Sessions::new(services));
        let live = Live {
            sessions: sessions.clone(),
            snapshots: snapshots.clone(),
            pins: pins.clone(),
            aliases: aliases.clone(),
            delivery: delivery.clone(),
            reload: reload.clone(),
            pulse: pulse.clone(),
            entrance: Entrance::default(),
            ignored: ignored.names(),
            wait_of: {
                let (paces, snapshots) = (paces.subscribe(), snapshots.clone());
                Arc::new(move |person: &PersonId| {
                    let snapshot = snapshots.current();
                    let people = &snapshot.config.access.people;
                    paces.borrow().wait_of(people.main_id(person))
                })
            },
            words_are_gone: {
                let removals = removals.clone();
                Arc::new(move || removals.note())
            },
            tasks,
            stop: stop.clone(),
            started_at: now_ms(),
            is_chat: terminals.are_of_a_chat(),
        };
        let operations = Operations::in_gateway(home.path().to_owned(), db.clone(), live);
        GatewayState {
            operations: operations.clone(),
            pulse,
            home: home.path().to_owned(),
            terminals,
            web,
            router: Router::new(pins.clone()),
            pins,
            names: names::remembered(db.clone()),
            aliases,
            delivery,
            removals,
            pin_ends: PinEnds::default(),
            guests: Guests::default(),
            ignored,
            passed_over: PassedOver::default(),
            replacing: tokio::sync::Mutex::default(),
            paces,
            work,
            clients: TaskTracker::new(),
            stop,
            hang_up: CancellationToken::new(),
            services: CommandServices {
                db,
                snapshots,
                memories,
                sessions,
                home: home.path().to_owned(),
                reload,
                started_at: now_ms(),
                operations,
            },
        }
    }
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
        "there is nothing to connect to: {} switches the web chat off, and has neither [telegram] nor [discord].\n\
         - For the web chat, delete `enabled = false` under [web].\n\
         - To try the agents here, run `parlor chat`.\n\
         - `parlor setup` connects a model and a bot, step by step. Then `parlor run` starts.",
        .0.display()
    )]
    NoChannel(PathBuf),
}

/// How long a start waits for verbs that work on the home.
const VERBS_END: Duration = Duration::from_secs(2);

/// Takes the home, after the verbs that are just working on it.
async fn locked(home: &Home, purpose: Purpose) -> Result<HomeLock, LockError> {
    let patience = Instant::now() + VERBS_END;
    loop {
        match home.lock_for(purpose) {
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

/// Brings the folders of the home in order, and reads the agents in them.
async fn agents_at_home(
    home: &Home,
    checked: CheckedConfig,
    db: &Db,
) -> Result<(CheckedConfig, Snapshots, DashSet<AgentUid>), StartError> {
    files::clear_unfinished(home.path()).await;
    let links = tenants::stop_leading_all(home.path(), db).await;
    or_go_on("folders of renamed agents", links)?;
    let (registry, agent_rows) = checked.registry(home, db).await?;
    let checked = checked.with_grants(db).await?;
    clear_results(home, &registry).await;
    let (config, table) = (checked.config.clone(), checked.table.clone());
    let snapshots = Snapshots::new(Snapshot::new(config, table, Arc::new(registry)));
    Ok((checked, snapshots, bootstrapped(&agent_rows)))
}

impl Gateway {
    /// Starts with the platforms named in the config.
    pub async fn start(home: Home) -> Result<Self, StartError> {
        let lock = locked(&home, Purpose::Other).await?;
        settle(&home).await?;
        let checked = CheckedConfig::load(&home, Secrets::Required)?;
        if !checked.config.has_channel() {
            return Err(StartError::NoChannel(home.path().join("config.toml")));
        }
        telemetry::follow(home.path(), &checked.config.log);
        let db = Db::open(&home.database()).await?;
        Self::start_with(home, lock, checked, db, None).await
    }

    /// Starts with the terminal alone; the platforms in the config stay off.
    pub async fn start_local(home: Home, channel: Arc<LocalChannel>) -> Result<Self, StartError> {
        Self::start_local_with(home, channel, None).await
    }

    /// The same with an agent that answers every line of this process. Nothing is pinned.
    pub(crate) async fn start_local_with(
        home: Home,
        channel: Arc<LocalChannel>,
        agent: Option<AgentId>,
    ) -> Result<Self, StartError> {
        let lock = locked(&home, Purpose::Chat).await?;
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
        alone: Option<(Arc<LocalChannel>, Option<AgentId>)>,
    ) -> Result<Self, StartError> {
        let (checked, snapshots, bootstrapped) = agents_at_home(&home, checked, &db).await?;
        let stand_in = alone.as_ref().and_then(|(_, agent)| agent.clone());
        let stand_ins = StandIns::everywhere(stand_in.map(at_the_terminal::pin));
        let pins = Arc::new(pins::with_stand_ins(db.clone(), stand_ins.clone()));
        let terminals = match &alone {
            Some((channel, _)) => Terminals::beside(stand_ins, channel.clone()),
            None => Terminals::new(stand_ins),
        };
        let pulse = Arc::<Pulse>::default();
        let web = WebChannel::new(db.clone(), home.path().to_owned());
        let makings = Makings {
            db: db.clone(),
            router: Router::new(pins.clone()),
            snapshots: snapshots.clone(),
            pulse: pulse.clone(),
            web: web.clone(),
        };
        let made = match alone {
            Some((channel, _)) => vec![Made::apart(channel)],
            None => platforms::made(&makings, &snapshots.current()).await?,
        };
        let mut channels: Vec<_> = made.iter().map(|made| made.channel.clone()).collect();
        channels.extend(terminals.own_channel());
        let work = TaskTracker::new();
        // Closed from the start, so that waiting ends whenever nothing is counted.
        work.close();
        let (delivery, moves) = Delivery::new(
            db.clone(),
            &channels,
            owners(&checked.config),
            outgoing::folder(home.path()),
            work.clone(),
        );
        // A single question waits for no answer but its own, so its gateway leaves the rows of an
        // earlier process to others.
        let left = match terminals.are_of_a_question() {
            true => Left::default(),
            false => Left::look_up(&db, &delivery).await?,
        };
        let moves_before = or_go_on("moves of groups", db.read(aliases::load).await)?;
        let memories = Memories::new(db.clone());
        let services = lanes::Services {
            tools: toolbox(&memories, &db, switch(&snapshots)),
            absorbing: turns_from_before(&db).await?,
            bootstrapped,
            db,
            snapshots,
            pins,
            aliases: Arc::new(Aliases::new(moves_before)),
            delivery,
            memories,
            work,
            alarm: Alarm::default(),
        };
        let (reload, requests) = ReloadHandle::new();
        let paused = or_go_on("paused agents", services.db.read(agent_pauses::all).await)?;
        let tasks = TaskTracker::new();
        let state = Arc::new(GatewayState::new(
            &home,
            &checked.config,
            services,
            reload,
            (pulse, tasks.clone()),
            terminals,
            web,
        ));
        for (agent, pause) in paused {
            state.services.sessions.pause_changed(agent, Some(pause));
        }
        state.tell_missing_keys().await;
        let connecting = (makings, made);
        Ok(Self::run(
            state,
            (home, lock),
            left,
            tasks,
            moves,
            connecting,
            requests,
        )
        .await)
    }

    /// Sentences about providers whose key cannot be read.
    pub fn missing_keys(&self) -> Vec<String> {
        self.state.missing_keys()
    }

    async fn run(
        state: Arc<GatewayState>,
        (home, lock): (Home, HomeLock),
        left: Left,
        tasks: TaskTracker,
        moves: mpsc::Receiver<MovedAway>,
        (makings, made): (Makings, Vec<Made>),
        requests: ReloadRequests,
    ) -> Self {
        let (intake, received) = Intake::new();
        // Held until the rows of an earlier process are under way again, so `settled` does not
        // return early.
        let starting = state.work.token();
        tasks.spawn(inbound::receive(state.clone(), received, left, starting));
        tasks.spawn(cleaning::keep_house(state.clone()));
        tasks.spawn(safekeeping::watch(state.clone()));
        tasks.spawn(jobs::run(state.clone()));
        tasks.spawn(removals::watch(state.clone()));
        if let Some(channel) = state.terminals.own_channel() {
            tasks.spawn(terminals::listen(
                channel,
                intake.clone(),
                state.stop.clone(),
            ));
        }
        tasks.spawn(pin_ends::watch(state.clone()));
        tasks.spawn(approvals::watch(state.clone()));
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
        self.state.services.reload.ask_by_signal(cause).await
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
        self.shutdown_within(DRAIN).await;
    }

    /// The same without a wait for turns.
    pub(crate) async fn shutdown_at_once(self) {
        self.shutdown_within(Duration::ZERO).await;
    }

    async fn shutdown_within(self, drain: Duration) {
        self.state.stop.cancel();
        self.tasks.wait().await;
        // Without a working database, waiting would finish no turn.
        let is_hopeless = self.state.services.db.is_harmed();
        let deadline = Instant::now() + drain;
        if !is_hopeless && timeout_at(deadline, self.answered()).await.is_err() {
            tracing::warn!(
                "not everything could be answered in time; the next start goes on with it"
            );
        }
        // A summary that takes longer is given up: a later turn has it made.
        if !is_hopeless {
            drop(timeout_at(deadline, self.settled()).await);
        }
        self.let_clients_go().await;
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

impl Gateway {
    /// Terminals of other processes see the last answers to their end.
    async fn let_clients_go(&self) {
        self.state.hang_up.cancel();
        self.state.clients.close();
        // A client that reads nothing does not keep the gateway.
        drop(tokio::time::timeout(CLIENTS_LEAVE, self.state.clients.wait()).await);
    }
}

/// The private chats of the owners.
fn owners(config: &Config) -> Vec<Destination> {
    let owners = access::owners(&config.access);
    owners.iter().filter_map(Destination::owner).collect()
}

/// Closes what an earlier process cannot go on with. Returns its turns that can, each with the other
/// inbox rows it answers.
async fn turns_from_before(db: &Db) -> Result<DashMap<i64, Vec<i64>>, StoreError> {
    let orphans = db.write(|tx| subagents::close_orphans(tx, now_ms()));
    or_go_on("stopped subagents", orphans.await)?;
    let absorbing = db.read(journal::absorbing);
    let absorbing = or_go_on("turns from before", absorbing.await)?;
    Ok(absorbing.into_iter().collect())
}

/// Agents that have finished a turn before.
fn bootstrapped(rows: &AgentRows) -> DashSet<AgentUid> {
    rows.values()
        .filter(|known| known.bootstrapped)
        .map(|known| known.uid)
        .collect()
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

/// Looks up how agents of a place share its conversation, at the time of the call.
fn switch(snapshots: &Snapshots) -> Arc<dyn Fn() -> Switch + Send + Sync> {
    let snapshots = snapshots.clone();
    Arc::new(move || snapshots.current().config.switch)
}
