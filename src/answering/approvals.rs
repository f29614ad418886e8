//! Questions to people about calls of tools, and the turns that wait for the answers.
//!
//! A turn that only waits for approvals is parked: it holds no slot, and newer messages of its place
//! are answered meanwhile. The row outlives the process; this module only knows which parked turns
//! have news.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use rusqlite::{Connection, Transaction};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::approval_texts as texts;
use crate::access::{Role, people_with};
use crate::agents::Agent;
use crate::channels::Text;
use crate::clock::now_ms;
use crate::config::{Access, Config};
use crate::delivery::outbox::{self, Draft, Source};
use crate::delivery::{Delivery, Kind};
use crate::domain::{Destination, Inbound, Platform, SessionKey};
use crate::models::ToolCall;
use crate::records::approvals::{self, Approval, Wanted};
use crate::records::journal::CallId;
use crate::records::speakers;
use crate::routing::places;
use crate::storage::{Db, Durability, StoreError};
use crate::tools::Scope;

/// Open approvals of a place. A model that asks without end is refused.
const MOST_IN_A_PLACE: u64 = 5;
/// Open approvals of the house.
const MOST: u64 = 200;

/// Asks people, and knows which parked turns have news. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Approvals {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    delivery: Delivery,
    work: TaskTracker,
    stop: CancellationToken,
    /// Turns that wait, by their inbox row, with a switch that tells them of an answer.
    waiting: DashMap<i64, Arc<AtomicBool>>,
    /// Open approvals when last counted.
    open: AtomicU64,
    /// A question was asked or answered.
    changed: Notify,
    /// Held from a decision until people are told, so that a settled gateway has told it.
    decided: Mutex<Vec<TaskTrackerToken>>,
}

/// A turn's wait for answers.
pub(super) struct Expectation {
    inner: Arc<Inner>,
    inbox_id: i64,
    /// One of the questions has an answer.
    news: Arc<AtomicBool>,
}

impl Expectation {
    pub(super) fn has_news(&self) -> bool {
        self.news.load(Ordering::Acquire)
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        let is_own = |_: &i64, news: &Arc<AtomicBool>| Arc::ptr_eq(news, &self.news);
        self.inner.waiting.remove_if(&self.inbox_id, is_own);
    }
}

/// What became of a wish to ask.
pub(super) enum Asked {
    Waits,
    /// Nobody is asked; the sentence is for the model.
    Nobody(String),
}

/// The turn behind a call.
pub(super) struct Asking<'a> {
    accepted_place: Destination,
    is_of_person: bool,
    by: Role,
    expire_ms: i64,
    access: &'a Access,
    agent: &'a Agent,
    scope: &'a Scope,
    name: &'a str,
}

impl<'a> Asking<'a> {
    pub(super) fn of(
        config: &'a Config,
        inbound: &'a Inbound,
        agent: &'a Agent,
        scope: &'a Scope,
    ) -> Self {
        let rules = config.approvals;
        Asking {
            accepted_place: Destination::besides(inbound),
            is_of_person: inbound.extras.internal.is_none() && !inbound.origin.key.is_internal(),
            by: rules.by.role(),
            expire_ms: i64::try_from(rules.expire_after.as_millis()).unwrap_or(i64::MAX),
            access: &config.access,
            agent,
            scope,
            name: &inbound.person_name,
        }
    }

    fn wanted(&self, call: CallId, wish: &ToolCall, why: &str) -> Wanted {
        let now = now_ms();
        Wanted {
            call,
            place: self.scope.asked_in().clone(),
            agent: self.agent.uid,
            tool: wish.name.clone(),
            arguments: texts::arguments(&wish.arguments),
            hash: approvals::hash(wish),
            why: why.to_owned(),
            read: self.scope.read.labels,
            person: self.scope.person.clone(),
            person_name: self.name.to_owned(),
            role: self.scope.role,
            least: self.by.max(self.scope.role),
            asked_at: now,
            expires_at: now.saturating_add(self.expire_ms),
        }
    }
}

/// The messages of a question.
struct Asks {
    wanted: Wanted,
    agent: String,
    /// The name of the person in config.toml.
    written_name: Option<String>,
    /// The place of the turn, and whether somebody there may decide.
    here: Option<(Destination, bool)>,
    /// Private chats of people who may decide.
    elsewhere: Vec<Destination>,
    delivery: Delivery,
}

impl Approvals {
    pub(super) fn new(
        db: Db,
        delivery: Delivery,
        work: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let inner = Inner {
            db,
            delivery,
            work,
            stop,
            waiting: DashMap::new(),
            open: AtomicU64::new(0),
            changed: Notify::new(),
            decided: Mutex::default(),
        };
        Approvals {
            inner: Arc::new(inner),
        }
    }

    /// Writes the question and its messages. Fails when the process stops, and when a write cannot
    /// work.
    pub(super) async fn ask(
        &self,
        asking: &Asking<'_>,
        call: CallId,
        (wish, why): (&ToolCall, &str),
    ) -> Result<Asked, StoreError> {
        let wanted = asking.wanted(call, wish, why);
        let (place, least) = (wanted.place.clone(), wanted.least);
        let (access, delivery) = (asking.access.clone(), self.inner.delivery.clone());
        let here = asking.accepted_place.place().clone();
        let read = move |connection: &Connection| {
            let open = (
                approvals::open_in(connection, &place)?,
                approvals::open(connection)?,
            );
            let reachable = reachable(connection, &delivery, &access, least, &here)?;
            Ok((open, reachable))
        };
        let ((open_here, open), reachable) = self.inner.db.read(read).await?;
        if open_here >= MOST_IN_A_PLACE || open >= MOST {
            return Ok(Asked::Nobody(texts::too_many(&wish.name)));
        }
        let decides = asking.scope.role >= wanted.least;
        let is_shared = !asking.accepted_place.place().is_private();
        let here = asking
            .is_of_person
            .then(|| (asking.accepted_place.clone(), decides || is_shared));
        let elsewhere = match asking.is_of_person && decides {
            true => Vec::new(),
            false => reachable,
        };
        if elsewhere.is_empty() && !here.as_ref().is_some_and(|(_, decides)| *decides) {
            return Ok(Asked::Nobody(texts::nobody(&wish.name, wanted.least)));
        }
        let person = asking.access.people.of(&wanted.person);
        let written_name = person.map(|person| person.name.clone());
        let asks = Arc::new(Asks {
            wanted,
            agent: asking.agent.label(),
            written_name,
            here,
            elsewhere,
            delivery: self.inner.delivery.clone(),
        });
        let write = || {
            let asks = asks.clone();
            move |tx: &Transaction<'_>| asks.write(tx)
        };
        let rows = self
            .inner
            .db
            .write_patiently(&self.inner.stop, Durability::Kill, write)
            .await?;
        self.inner.delivery.submit_drafted(&rows);
        self.inner.open.fetch_add(1, Ordering::Relaxed);
        self.inner.changed.notify_one();
        tracing::info!(agent.id = %asking.agent.id, tool = %wish.name, "asks for an approval");
        Ok(Asked::Waits)
    }

    /// Notes that a turn waits for answers.
    pub(super) fn expect(&self, inbox_id: i64) -> Expectation {
        let news = Arc::<AtomicBool>::default();
        self.inner.waiting.insert(inbox_id, news.clone());
        Expectation {
            inner: self.inner.clone(),
            inbox_id,
            news,
        }
    }

    /// Call after the commit of an answer, and then have lanes look again.
    pub(crate) fn answered(&self, inbox_id: i64) {
        if let Some(news) = self.inner.waiting.get(&inbox_id) {
            news.store(true, Ordering::Release);
        }
    }

    /// Returns when a question was asked or answered.
    pub(crate) async fn changed(&self) {
        self.inner.changed.notified().await;
    }

    /// Call after the commit of a decision, to have it told.
    pub(crate) fn decided(&self) {
        self.tokens().push(self.inner.work.token());
        self.inner.changed.notify_one();
    }

    /// Call after a change that may have taken questions back.
    pub(crate) fn look_again(&self) {
        if self.open() > 0 {
            self.tokens().push(self.inner.work.token());
            self.inner.changed.notify_one();
        }
    }

    /// The tokens of decisions, to be dropped once people are told.
    pub(crate) fn take_tokens(&self) -> Vec<TaskTrackerToken> {
        std::mem::take(&mut *self.tokens())
    }

    /// The number of open approvals when they were last counted.
    pub(crate) fn open(&self) -> u64 {
        self.inner.open.load(Ordering::Relaxed)
    }

    pub(crate) fn counted(&self, open: u64) {
        self.inner.open.store(open, Ordering::Relaxed);
    }

    /// The approvals of a turn's round since the turn began.
    pub(super) async fn of_round(
        &self,
        inbox_id: i64,
        round: u32,
        since: i64,
    ) -> Result<Vec<Approval>, StoreError> {
        let read = move |connection: &Connection| approvals::of_turn(connection, inbox_id);
        let mut found = self.inner.db.read(read).await?;
        found.retain(|approval| {
            approval.wanted.call.round == round && approval.wanted.asked_at >= since
        });
        Ok(found)
    }

    /// Notes that an allowed call begins. False if it has begun before.
    pub(super) async fn begin(&self, id: i64) -> Result<bool, StoreError> {
        let write = || move |tx: &Transaction<'_>| approvals::begin(tx, id, now_ms());
        let (db, stop) = (&self.inner.db, &self.inner.stop);
        db.write_patiently(stop, Durability::PowerCut, write).await
    }

    fn tokens(&self) -> MutexGuard<'_, Vec<TaskTrackerToken>> {
        self.inner
            .decided
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asks {
    fn write(&self, tx: &Transaction<'_>) -> rusqlite::Result<Vec<Draft>> {
        let mut wanted = self.wanted.clone();
        if self.here.is_none() {
            // The message of such a turn names an agent or a job as its writer.
            let known = speakers::name(tx, &wanted.person)?;
            wanted.person_name = known.or(self.written_name.clone()).unwrap_or_default();
        }
        let id = approvals::ask(tx, &wanted)?;
        let approval = Approval::new(id, wanted);
        let mut rows = Vec::new();
        if let Some((to, decides)) = &self.here {
            rows.extend(self.draft(to, &approval, *decides));
        }
        for to in &self.elsewhere {
            rows.extend(self.draft(to, &approval, true));
        }
        let now = self.wanted.asked_at;
        let ids = outbox::insert_numbered(tx, &rows, Source::default(), now)?;
        approvals::shown_in(tx, id, &ids)?;
        Ok(rows)
    }

    /// Buttons are only for people who may decide.
    fn draft(&self, to: &Destination, approval: &Approval, decides: bool) -> Vec<Draft> {
        let told = texts::question(approval, &self.agent, to.place(), decides);
        let choices = match decides {
            true => texts::choices(approval.id),
            false => Vec::new(),
        };
        let text = Text {
            choices: &choices,
            ..Text::plain(&told)
        };
        self.delivery.draft(to, Kind::Notice, &text)
    }
}

/// Private chats of people with this role that the bot can write to, without one place. A bot on
/// Telegram may not write first.
fn reachable(
    connection: &Connection,
    delivery: &Delivery,
    access: &Access,
    least: Role,
    without: &SessionKey,
) -> rusqlite::Result<Vec<Destination>> {
    let mut reachable = Vec::new();
    for to in people_with(access, least)
        .iter()
        .filter_map(Destination::owner)
    {
        let place = to.place();
        let may_write_first = place.platform() != Some(Platform::Telegram);
        if place != without
            && delivery.reaches(place)
            && (may_write_first || places::is_known_chat(connection, place)?)
        {
            reachable.push(to);
        }
    }
    Ok(reachable)
}
