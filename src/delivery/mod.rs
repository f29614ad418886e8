//! Sends answers: rendered into outbox rows with their turn, then sent in order, place by place.

mod first_sent;
pub(crate) mod held;
mod letting_go;
pub(crate) mod outbox;
mod owner_notices;
mod pacing;
mod preview;
pub(crate) mod preview_messages;
mod progress;
pub(crate) mod reservation;
mod retry_after;
mod sender;
mod status_reactions;
pub(crate) mod undelivered;
pub(crate) mod usage;
mod verdict;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::{DashMap, DashSet};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::channels::{Channel, Health, Pace, Part, Progress, Text};
use crate::clock::now_ms;
use crate::domain::{Destination, Inbound, Moved, OutgoingFile, Platform, SessionKey};
use crate::metrics;
use crate::storage::{Db, Durability, StoreError};

pub(crate) use first_sent::{FirstPart, FirstSent};
pub use outbox::Kind;
pub use progress::{AnswerInProgress, ProgressHandle};
pub use reservation::Reservation;
pub use status_reactions::Mark;

/// The handle to everything on its way out. Cheap to clone.
#[derive(Clone)]
pub struct Delivery {
    inner: Arc<Inner>,
}

/// A channel, with the send budgets of its platform.
struct Outlet {
    channel: Arc<dyn Channel>,
    /// The budgets belong to the bot, so a reconnected channel keeps them.
    pacing: Arc<pacing::Pacing>,
    /// Limits the calls at the same time.
    in_flight: Arc<Semaphore>,
    /// Held while a worker asks whether the platform answers.
    asking: Semaphore,
}

impl Outlet {
    fn new(channel: Arc<dyn Channel>) -> Self {
        let (pacing, in_flight) = (
            Arc::<pacing::Pacing>::default(),
            Arc::new(Semaphore::new(MOST_IN_FLIGHT)),
        );
        Outlet {
            channel,
            pacing,
            in_flight,
            asking: Semaphore::new(1),
        }
    }

    /// The same budgets with a channel that was made anew. Other limits make other budgets, and the
    /// waits that the platform asked for go on.
    fn with_channel(&self, channel: Arc<dyn Channel>) -> Self {
        let is_same = self.channel.abilities().limits == channel.abilities().limits;
        let pacing = match is_same {
            true => self.pacing.clone(),
            false => Arc::new(self.pacing.renewed()),
        };
        Outlet {
            channel,
            pacing,
            in_flight: self.in_flight.clone(),
            asking: Semaphore::new(1),
        }
    }

    /// Stops sends to this chat for `wait`, as the platform asked.
    fn quiet_for(&self, to: &Destination, wait: Duration) -> Option<Pace> {
        let abilities = self.channel.abilities();
        metrics::asked_to_wait(abilities.platform);
        let pace = abilities.pace(to)?;
        self.pacing.quiet_for(pace.chat, wait);
        Some(pace)
    }
}

struct Inner {
    db: Db,
    /// Replaced when a platform's settings change.
    outlets: watch::Sender<HashMap<Platform, Arc<Outlet>>>,
    /// The channels of platforms that a reload took out of the config, and when. Answers that were
    /// under way are drafted by them, and wait for their platform.
    taken_out: DashMap<Platform, (Arc<dyn Channel>, Instant)>,
    /// The owners' private chats, for notices. Replaced with the config.
    owners: watch::Sender<Vec<Destination>>,
    /// Receives the move when a send learns about a migrated group.
    moves: mpsc::Sender<MovedAway>,
    /// The folder with the copies of outgoing files.
    outgoing: PathBuf,
    /// Places with a worker or a reservation, and how many rows each has left.
    places: DashMap<SessionKey, usize>,
    /// Rows whose state can never be written. The next start looks at them again.
    left_alone: Arc<outbox::LeftAlone>,
    /// Notified when a place with a worker gets more rows.
    more_rows: Notify,
    /// Deleted places. Drafts for them are dropped.
    gone: DashSet<SessionKey>,
    /// Told when the first part of the answer to a message is sent.
    awaited: DashMap<i64, oneshot::Sender<()>>,
    work: TaskTracker,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A group has moved. The sender waits on `done` until the rows of the group have followed.
#[derive(Debug)]
pub struct MovedAway {
    pub moved: Moved,
    pub done: oneshot::Sender<()>,
}

/// A turn that was under way when its platform was taken out has ended after this time. What begins
/// later, such as a job of every day, would pile up until the platform is back.
const UNDER_WAY: Duration = Duration::from_mins(30);
/// Most places remembered as gone. When full, all are forgotten: the platform then refuses the
/// send.
const MOST_GONE: usize = 10_000;
/// Moves waiting to be followed. When full, senders wait.
const MOVES: usize = 16;
/// Calls to a platform at the same time. After a kill all of them are repeated, where the platform
/// cannot detect a repeated send. While a call takes less than a second, Telegram's own limit is
/// reached first.
const MOST_IN_FLIGHT: usize = 32;

impl Delivery {
    pub fn new(
        db: Db,
        channels: &[Arc<dyn Channel>],
        owners: Vec<Destination>,
        outgoing: PathBuf,
        work: TaskTracker,
    ) -> (Self, mpsc::Receiver<MovedAway>) {
        let (moves, told) = mpsc::channel(MOVES);
        let outlet = |channel: &Arc<dyn Channel>| Arc::new(Outlet::new(channel.clone()));
        let delivery = Delivery {
            inner: Arc::new(Inner {
                db,
                outlets: watch::Sender::new(
                    channels
                        .iter()
                        .map(|channel| (channel.abilities().platform, outlet(channel)))
                        .collect(),
                ),
                taken_out: DashMap::new(),
                owners: watch::Sender::new(owners),
                moves,
                outgoing,
                places: DashMap::new(),
                left_alone: Arc::default(),
                more_rows: Notify::new(),
                gone: DashSet::new(),
                awaited: DashMap::new(),
                work,
                tasks: TaskTracker::new(),
                stop: CancellationToken::new(),
            }),
        };
        (delivery, told)
    }

    /// Forgets the budgets of idle chats.
    pub fn forget_idle(&self) {
        for (_, outlet) in self.inner.outlets() {
            outlet.pacing.forget_idle();
        }
    }

    /// The send budgets of connected platforms that have limits, with their use.
    pub(crate) fn usage(&self) -> Vec<(Platform, usage::Usage)> {
        let outlets = self.inner.outlets().into_iter();
        let mut used: Vec<_> = outlets
            .filter_map(|(platform, outlet)| {
                let limits = outlet.channel.abilities().limits?;
                Some((platform, outlet.pacing.usage(limits)))
            })
            .collect();
        used.sort_by_key(|(platform, _)| *platform);
        used
    }

    fn owners(&self) -> Vec<Destination> {
        self.inner.owners.borrow().clone()
    }

    /// Tells notices to these owners from now on.
    pub fn set_owners(&self, owners: Vec<Destination>) {
        self.inner.owners.send_replace(owners);
    }

    /// Sends by this channel from now on. Calls under way end with the channel they began with.
    pub async fn connect(&self, channel: Arc<dyn Channel>) -> Result<(), StoreError> {
        let platform = channel.abilities().platform;
        let before = self.inner.outlets.borrow().get(&platform).cloned();
        let outlet = match &before {
            Some(before) => before.with_channel(channel),
            None => Outlet::new(channel),
        };
        let outlet = Arc::new(outlet);
        self.inner.outlets.send_modify(|outlets| {
            outlets.insert(platform, outlet);
        });
        self.inner.taken_out.remove(&platform);
        if before.is_none() {
            self.resume_platform(platform).await?;
        }
        Ok(())
    }

    /// Sends nothing to this platform any more. Its rows stay in the outbox.
    pub fn disconnect(&self, platform: Platform) {
        self.inner.outlets.send_modify(|outlets| {
            if let Some(outlet) = outlets.remove(&platform) {
                let channel = outlet.channel.clone();
                let taken_out = (channel, Instant::now());
                self.inner.taken_out.insert(platform, taken_out);
            }
        });
    }

    /// Renders text for a place into rows. The caller writes them with `outbox::insert` in its
    /// own transaction and calls [`Delivery::submit`] after the commit.
    pub fn draft(&self, to: &Destination, kind: Kind, text: &Text<'_>) -> Vec<outbox::Draft> {
        if self.inner.is_gone(to.place()) {
            return Vec::new();
        }
        let Some(channel) = self.drafter_of(to.place()) else {
            tracing::warn!(session = %to.place(), "nothing can be sent: the platform is not connected");
            return Vec::new();
        };
        let mut parts = channel.render(to, text);
        if parts.is_empty() {
            parts = channel.render(
                to,
                &Text {
                    markdown: NOTHING_TO_SHOW,
                    ..*text
                },
            );
        }
        parts
            .into_iter()
            .map(|part| outbox::Draft {
                to: to.clone(),
                kind,
                part,
                file: None,
            })
            .collect()
    }

    /// The outbox row of a file. Written with `outbox::insert`, like the rows of a text.
    pub fn draft_file(&self, to: &Destination, file: &OutgoingFile) -> Vec<outbox::Draft> {
        if self.inner.is_gone(to.place()) {
            return Vec::new();
        }
        if self.drafter_of(to.place()).is_none() {
            tracing::warn!(session = %to.place(), "a file cannot be sent: the platform is not connected");
            return Vec::new();
        }
        let part = Part(serde_json::to_string(file).expect("text and numbers are JSON"));
        vec![outbox::Draft {
            to: to.clone(),
            kind: Kind::Final,
            part,
            file: Some(file.stored.clone()),
        }]
    }

    /// The channel that writes rows for a place.
    fn drafter_of(&self, place: &SessionKey) -> Option<Arc<dyn Channel>> {
        let taken_out = || {
            let known = self.inner.taken_out.get(&place.platform()?)?;
            let (channel, since) = known.value();
            (since.elapsed() < UNDER_WAY).then(|| channel.clone())
        };
        self.channel_of(place).or_else(taken_out)
    }

    /// Starts sending the committed rows of a place.
    pub fn submit(&self, place: &SessionKey, rows: usize) {
        sender::submit(&self.inner, place, rows);
    }

    /// Whether the platform of this place is connected.
    pub fn reaches(&self, place: &SessionKey) -> bool {
        self.inner.outlet_of(place).is_some()
    }

    /// The connected channels, in the order of the platforms.
    pub(crate) fn channels(&self) -> Vec<Arc<dyn Channel>> {
        let outlets = self.inner.outlets.borrow();
        let mut platforms: Vec<&Platform> = outlets.keys().collect();
        platforms.sort();
        let channel = |platform| outlets.get(platform).map(|outlet| outlet.channel.clone());
        platforms.into_iter().filter_map(channel).collect()
    }

    /// The channel of a place, if its platform is connected.
    pub fn channel_of(&self, place: &SessionKey) -> Option<Arc<dyn Channel>> {
        self.inner
            .outlet_of(place)
            .map(|outlet| outlet.channel.clone())
    }

    /// Shows the progress of an answer until the handle ends.
    pub fn progress(&self, answer: AnswerInProgress) -> ProgressHandle {
        ProgressHandle::start(&self.inner, answer)
    }

    /// Puts a status reaction on the messages of a turn; `Mark::end` shows the outcome.
    pub fn mark<'a>(&self, messages: impl Iterator<Item = &'a Inbound>) -> Mark {
        Mark::begin(&self.inner, messages)
    }

    /// Ends the waiting sign on a pressed button.
    pub(crate) async fn taken(&self, press: &Inbound) {
        let to = Destination::of(press);
        if let Some(outlet) = self.inner.outlet_of(to.place()) {
            // Only a sign, which ends by itself too.
            drop(outlet.channel.progress(&to, Progress::Taken).await);
        }
    }

    /// Acknowledges a queued message before its turn begins.
    pub fn noticed(&self, inbound: &Inbound) {
        status_reactions::notice(&self.inner, inbound);
    }

    /// Drops later drafts for a deleted place and its parts. Rows already written are given up with
    /// `outbox::give_up`.
    pub fn close_place(&self, place: &SessionKey) {
        if self.inner.gone.len() >= MOST_GONE {
            self.inner.gone.clear();
        }
        self.inner.gone.insert(place.clone());
    }

    /// Reopens the rows of an earlier process. Called before this process sends anything: a call of
    /// its own would count as interrupted. Returns the places with rows to send.
    pub(crate) async fn reopen(&self) -> Result<Vec<(SessionKey, usize)>, StoreError> {
        match self.inner.remember_waits().await {
            Err(error) if error.is_permanent() => {
                tracing::error!("chats that asked for a pause are not known: {error}");
            }
            remembered => remembered?,
        }
        let inner = self.inner.clone();
        let is_told_apart = move |place: &SessionKey, part: &Part, age| {
            inner
                .outlet_of(place)
                .is_some_and(|outlet| age < outlet.channel.tells_repeats_for(part))
        };
        let outbox::Reopened { open, stuck } = self
            .inner
            .db
            .write(move |tx| outbox::reopen(tx, now_ms(), is_told_apart))
            .await?;
        for (id, error) in stuck {
            tracing::error!(
                outbox.id = id,
                "a message is left alone until the next start: {error}"
            );
            self.inner.left_alone.insert(id);
        }
        Ok(open)
    }

    /// Sends the rows of a place that wait without a sender, such as kept answers. If they cannot be
    /// counted, the next start sends them.
    pub(crate) async fn send_waiting(&self, place: &SessionKey) {
        match self.inner.db.read(outbox::open_places).await {
            Ok(open) => {
                let here = open.into_iter().filter(|(open, _)| open == place);
                here.for_each(|(place, rows)| self.submit(&place, rows));
            }
            Err(error) => {
                tracing::error!(session = %place, "kept answers wait for the next start: {error}");
            }
        }
    }

    /// Sends the rows that wait for a platform, after the platform was off.
    async fn resume_platform(&self, platform: Platform) -> Result<(), StoreError> {
        let open = self.inner.db.read(outbox::open_places).await?;
        let of_platform = open
            .into_iter()
            .filter(|(place, _)| place.platform() == Some(platform));
        // A place with a worker is served already.
        for (place, rows) in of_platform {
            if !self.inner.places.contains_key(&place) {
                self.submit(&place, rows);
            }
        }
        Ok(())
    }

    /// The connected platforms, and whether the newest call to each worked.
    pub(crate) fn health(&self) -> Vec<(Platform, bool)> {
        let answers = |outlet: &Outlet| outlet.channel.health().is_none_or(Health::answers);
        let mut health: Vec<_> = self
            .inner
            .outlets()
            .into_iter()
            .map(|(platform, outlet)| (platform, answers(&outlet)))
            .collect();
        health.sort_by_key(|(platform, _)| platform.as_str());
        health
    }

    /// Ends sending after the calls in progress. Other rows stay in the outbox for the next start.
    pub fn stop(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
    }

    /// Returns once [`Delivery::stop`] was called.
    pub async fn stopped(&self) {
        self.inner.stop.cancelled().await;
    }

    /// Returns when every sender has ended; call after [`Delivery::stop`].
    pub async fn ended(&self) {
        self.inner.tasks.wait().await;
    }
}

impl Inner {
    fn is_gone(&self, place: &SessionKey) -> bool {
        self.gone.contains(place)
            || place
                .whole_group()
                .is_some_and(|whole| self.gone.contains(&whole))
    }

    fn outlet_of(&self, place: &SessionKey) -> Option<Arc<Outlet>> {
        self.outlets.borrow().get(&place.platform()?).cloned()
    }

    fn outlets(&self) -> Vec<(Platform, Arc<Outlet>)> {
        let outlets = self.outlets.borrow();
        let all = outlets.iter();
        all.map(|(&platform, outlet)| (platform, outlet.clone()))
            .collect()
    }

    /// Stops sends to this chat for `wait`, as the platform asked, also after a restart.
    async fn asked_to_wait(&self, outlet: &Outlet, to: &Destination, wait: Duration) {
        let Some(pace) = outlet.quiet_for(to, wait) else {
            return;
        };
        tracing::warn!(session = %to.place(), "the platform asks to wait {} s", wait.as_secs());
        let platform = outlet.channel.abilities().platform;
        let note = move |tx: &rusqlite::Transaction<'_>| {
            retry_after::note(tx, platform, pace.chat, wait, now_ms())
        };
        if let Err(error) = self.db.write_as(Durability::Kill, note).await {
            tracing::warn!(session = %to.place(), "a wait would be forgotten by a restart: {error}");
        }
    }

    async fn remember_waits(&self) -> Result<(), StoreError> {
        for (platform, outlet) in self.outlets() {
            for (chat, wait) in self
                .db
                .read(move |connection| retry_after::open(connection, platform, now_ms()))
                .await?
            {
                outlet.pacing.quiet_for(chat, wait);
            }
        }
        Ok(())
    }
}

/// Sent in place of Markdown without visible text, such as a lone link definition.
const NOTHING_TO_SHOW: &str = "(an empty answer)";
