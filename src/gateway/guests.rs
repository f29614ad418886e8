//! Guests who write for the first time: their code, the question to owners and admins, and the end
//! of the wait.
//!
//! A decision is a row that any process may write: the gateway itself for a button or `/pair`, or
//! `parlor pair` on the command line. [`settle`] then tells everybody, and has the kept first message
//! answered, in a single transaction. A kill in between leaves the decision to the next start.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::GatewayState;
use crate::access::people::{self, Acquaintance, Decided, Decision, Knock, Waiting};
use crate::access::{Role, Standing, people_with};
use crate::channels::Text;
use crate::clock::now_ms;
use crate::commands::first_minute::{self, Asked, First, HomeFolder};
use crate::config::{Access, Config};
use crate::console;
use crate::delivery::outbox::{Draft, Source};
use crate::delivery::{Delivery, Kind, outbox};
use crate::domain::{Destination, Inbound, Origin, PersonId, Platform, SessionKey};
use crate::records::guest_notices::{self, Telling};
use crate::records::inbox::{self, Accepted, Closing};
use crate::routing::{Visit, places};
use crate::storage::StoreError;

/// How often a gateway with waiting guests looks for decisions of another process.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Whether decisions are to be told.
#[derive(Default)]
pub(super) struct Guests {
    /// Held from a decision until it is told, so that a settled gateway has told it.
    decided: Mutex<Vec<TaskTrackerToken>>,
    /// Guests wait, so another process may decide.
    is_watched: AtomicBool,
    /// The last try failed, and the log says so.
    has_failed: AtomicBool,
}

impl Guests {
    /// A command of this process has decided.
    pub(super) fn decided(&self, token: TaskTrackerToken) {
        self.tokens().push(token);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    pub(super) fn looks() -> Interval {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks
    }

    fn watch(&self, is_watched: bool) {
        self.is_watched.store(is_watched, Ordering::Relaxed);
    }

    fn is_due(&self) -> bool {
        !self.tokens().is_empty()
    }

    fn take(&self) -> Vec<TaskTrackerToken> {
        std::mem::take(&mut *self.tokens())
    }

    fn tokens(&self) -> std::sync::MutexGuard<'_, Vec<TaskTrackerToken>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells a guest what happens next, keeps the first message, and asks owners and admins.
pub(super) async fn hint(
    state: &GatewayState,
    accepted: &Accepted,
    kept: Option<&Inbound>,
) -> Result<(), StoreError> {
    let inbound = &accepted.inbound;
    let message = kept.map(kept_form).transpose()?;
    let arrival = Arrival {
        id: accepted.id,
        guest: Acquaintance {
            person: inbound.origin.person.clone(),
            name: inbound.person_name.clone(),
        },
        to: Destination::of(inbound),
        message,
        home: match console::named_home(&state.home) {
            Some(_) => HomeFolder::Named,
            None => HomeFolder::Usual,
        },
        asking: Asking::of(state),
    };
    let has_owner = has_owner(&arrival.asking.config.access);
    let (new_code, rows, outcome) = state
        .services
        .db
        .write(move |tx| arrival.write(tx, now_ms()))
        .await?;
    for row in &rows {
        state.delivery.submit(row.place(), 1);
    }
    if new_code.is_none() && rows.is_empty() {
        state.ignored.tell(inbound, outcome);
    }
    if let Some(code) = new_code {
        state.guests.watch(true);
        let person = console::Person::of(inbound);
        console::wants_in(&person, &code, has_owner, &state.services.home);
    }
    Ok(())
}

/// A later answer has no interaction to reply to.
fn kept_form(inbound: &Inbound) -> Result<String, StoreError> {
    let mut kept = inbound.clone();
    kept.extras.reply = None;
    serde_json::to_string(&kept)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()).into())
}

/// A message of a guest.
struct Arrival {
    id: i64,
    guest: Acquaintance,
    to: Destination,
    /// The message as it is kept, if it is worth keeping.
    message: Option<String>,
    home: HomeFolder,
    asking: Asking,
}

impl Arrival {
    /// Returns a new code, the rows to send, and what became of the message.
    fn write(
        &self,
        tx: &Transaction<'_>,
        now: i64,
    ) -> rusqlite::Result<(Option<String>, Vec<Draft>, &'static str)> {
        let Acquaintance { person, name } = &self.guest;
        let knock = people::knock(tx, person, name, now)?;
        let outcome = match &knock {
            Knock::New { .. } => inbox::NEW_GUEST,
            Knock::Waiting { .. } => inbox::WAITING_GUEST,
            Knock::TurnedAway => inbox::GUEST_TURNED_AWAY,
        };
        let mut first = First::NotKept;
        if let (Some(message), Knock::New { .. } | Knock::Waiting { .. }) = (&self.message, &knock)
            && people::keep_first(tx, person, message, now)?
        {
            first = First::Kept;
        }
        let (new_code, told, mut rows) = match knock {
            Knock::New { code, waiting } => {
                let notices = self
                    .asking
                    .ask(tx, &self.guest, &code, first, waiting, now)?;
                let asked = self.asked(!notices.is_empty());
                let told = first_minute::hello(name, &code, asked, first);
                (Some(code), Some(told), notices)
            }
            Knock::Waiting {
                code,
                waiting,
                is_told,
            } => {
                // Where the platform waits for a reply, silence would show as an error.
                let is_told = is_told || self.to.reply().is_some();
                let told = first_minute::still_waiting(self.asked(true));
                let notices = match code {
                    Some(code) => self.ask_late(tx, &code, waiting, now)?,
                    None => Vec::new(),
                };
                (None, is_told.then(|| told.to_owned()), notices)
            }
            Knock::TurnedAway => {
                let told = self.to.reply().map(|_| first_minute::STAYS_PRIVATE);
                (None, told.map(str::to_owned), Vec::new())
            }
        };
        inbox::close(tx, self.id, Closing::Refused, outcome, now)?;
        if let Some(told) = told {
            let reply = self
                .asking
                .delivery
                .draft(&self.to, Kind::Notice, &Text::plain(&told));
            outbox::insert(tx, &reply, Source::of(Some(self.id)), now)?;
            rows.extend(reply);
        }
        Ok((new_code, rows, outcome))
    }

    fn asked(&self, is_anybody_told: bool) -> Asked {
        match (has_owner(&self.asking.config.access), is_anybody_told) {
            (false, _) => Asked::NoOwnerYet(self.home),
            (true, true) => Asked::Owners,
            (true, false) => Asked::Nobody,
        }
    }

    /// Asks about a guest whom nobody was asked about: the first owner came after the first message.
    fn ask_late(
        &self,
        tx: &Transaction<'_>,
        code: &str,
        waiting: i64,
        now: i64,
    ) -> rusqlite::Result<Vec<Draft>> {
        if !has_owner(&self.asking.config.access) || guest_notices::is_known(tx, code)? {
            return Ok(Vec::new());
        }
        let first = match self.message {
            Some(_) => First::Kept,
            None => First::NotKept,
        };
        self.asking.ask(tx, &self.guest, code, first, waiting, now)
    }
}

/// Asks an owner or admin who writes in private about the guests whom nobody was asked about. On
/// Telegram they could not be asked before: a bot may not write first.
pub(super) async fn ask_whoever_decides(
    state: &GatewayState,
    origin: &Origin,
    role: Role,
) -> Result<(), StoreError> {
    if role < Role::Admin || !origin.key.is_private() || !state.guests.is_watched() {
        return Ok(());
    }
    let db = &state.services.db;
    let is_needed = |connection: &Connection| Ok(!unasked(connection, now_ms())?.is_empty());
    if !db.read(is_needed).await? {
        return Ok(());
    }
    let asking = Asking::of(state);
    let rows = db
        .write(move |tx| asking.ask_about_all(tx, now_ms()))
        .await?;
    for row in &rows {
        state.delivery.submit(row.place(), 1);
    }
    Ok(())
}

/// Guests whom nobody was asked about, the first to come first.
fn unasked(connection: &Connection, now: i64) -> rusqlite::Result<Vec<Waiting>> {
    let mut unasked = Vec::new();
    for guest in people::waiting(connection, now)?.into_iter().rev() {
        if !guest_notices::is_known(connection, &guest.code)? {
            unasked.push(guest);
        }
    }
    Ok(unasked)
}

/// Questions about guests, to owners and admins.
struct Asking {
    config: Arc<Config>,
    delivery: Delivery,
}

impl Asking {
    fn of(state: &GatewayState) -> Self {
        Asking {
            config: state.services.snapshots.current().config.clone(),
            delivery: state.delivery.clone(),
        }
    }

    fn ask_about_all(&self, tx: &Transaction<'_>, now: i64) -> rusqlite::Result<Vec<Draft>> {
        let all = people::waiting(tx, now)?.len();
        let waiting = i64::try_from(all).unwrap_or(i64::MAX);
        let kept = people::first_messages(tx)?;
        let mut rows = Vec::new();
        for guest in unasked(tx, now)? {
            let first = match kept.iter().any(|(person, _)| *person == guest.person) {
                true => First::Kept,
                false => First::NotKept,
            };
            let known = Acquaintance {
                person: guest.person,
                name: guest.name,
            };
            rows.extend(self.ask(tx, &known, &guest.code, first, waiting, now)?);
        }
        Ok(rows)
    }

    /// Writes the messages to owners and admins, and returns them.
    fn ask(
        &self,
        tx: &Transaction<'_>,
        guest: &Acquaintance,
        code: &str,
        first: First,
        waiting: i64,
        now: i64,
    ) -> rusqlite::Result<Vec<Draft>> {
        let (text, choices, code) = match guest_notices::telling(tx, waiting, now)? {
            Telling::ByName => (
                first_minute::wants_in(guest, first),
                first_minute::decisions(code),
                Some(code),
            ),
            Telling::Count => (first_minute::many_want_in(waiting), Vec::new(), None),
            Telling::Nothing => return Ok(Vec::new()),
        };
        let mut rows = Vec::new();
        for to in self.reachable(tx)? {
            let text = Text {
                choices: &choices,
                ..Text::plain(&text)
            };
            rows.extend(self.delivery.draft(&to, Kind::Notice, &text));
        }
        let ids = outbox::insert_numbered(tx, &rows, Source::default(), now)?;
        guest_notices::note(tx, code, &ids, waiting, now)?;
        Ok(rows)
    }

    /// Private chats of owners and admins that the bot can write to. A bot on Telegram may not write
    /// first.
    fn reachable(&self, connection: &Connection) -> rusqlite::Result<Vec<Destination>> {
        let mut reachable = Vec::new();
        for person in people_with(&self.config.access, Role::Admin) {
            let Some(to) = Destination::owner(&person) else {
                continue;
            };
            let may_write_first = to.place().platform() != Some(Platform::Telegram);
            if self.delivery.reaches(to.place())
                && (may_write_first || places::is_known_chat(connection, to.place())?)
            {
                reachable.push(to);
            }
        }
        Ok(reachable)
    }
}

/// Whether anybody but the operator's terminal owns the house.
fn has_owner(access: &Access) -> bool {
    let is_remote = |person: &PersonId| !matches!(person, PersonId::Local(_));
    access.owners.iter().any(is_remote)
        || access
            .people
            .all()
            .iter()
            .any(|person| person.role == Some(Role::Owner) && person.ids.iter().any(is_remote))
}

/// Tells the decisions of this process, if there are any. Returns the first messages to answer now,
/// each with the token that counts it as work.
pub(super) async fn settle_if_due(state: &GatewayState) -> Vec<(Accepted, TaskTrackerToken)> {
    if state.guests.is_due() {
        Box::pin(settle(state)).await
    } else {
        Vec::new()
    }
}

/// Tells decisions of any process.
pub(super) async fn settle(state: &GatewayState) -> Vec<(Accepted, TaskTrackerToken)> {
    let tokens = state.guests.take();
    let settled = try_settle(state).await;
    let had_failed = state
        .guests
        .has_failed
        .swap(settled.is_err(), Ordering::Relaxed);
    let accepted = settled.unwrap_or_else(|error| {
        if !had_failed {
            tracing::error!("people were not told whether they are let in; trying again: {error}");
        }
        state.guests.watch(true);
        Vec::new()
    });
    let counted = accepted
        .into_iter()
        .map(|accepted| (accepted, state.work.token()));
    let counted = counted.collect();
    drop(tokens);
    counted
}

async fn try_settle(state: &GatewayState) -> Result<Vec<Accepted>, StoreError> {
    let db = &state.services.db;
    let outlook = db
        .read(|connection| people::outlook(connection, now_ms()))
        .await?;
    state.guests.watch(outlook.is_watched);
    if !outlook.is_due {
        return Ok(Vec::new());
    }
    db.write(|tx| people::end_codes(tx, now_ms())).await?;
    let due = db.read(people::due).await?;
    if due
        .iter()
        .any(|decided| decided.decision == Decision::MadeOwner)
    {
        follow_owners(state).await;
    }
    let mut accepted = Vec::new();
    for decided in due {
        accepted.extend(settle_one(state, decided).await?);
    }
    Ok(accepted)
}

/// Tells a decision to its guest and to the people who were asked. Decisions for a platform that is
/// off in this process wait.
async fn settle_one(
    state: &GatewayState,
    decided: Decided,
) -> Result<Option<Accepted>, StoreError> {
    let kept = decided
        .first_message
        .as_deref()
        .and_then(|message| serde_json::from_str::<Inbound>(message).ok());
    let to = match &kept {
        Some(kept) => Some(Destination::besides(kept)),
        None => Destination::guest(&decided.known.person),
    };
    let Some(to) = to.filter(|to| state.delivery.reaches(to.place())) else {
        return Ok(None);
    };
    let had_words = decided.first_message.is_some();
    let is_answered = decided.decision.lets_in();
    let (person, by, decision) = seen_by_operator(&decided);
    let telling = TellingAll {
        told: told(state, &decided, &to, kept.as_ref()).await?,
        notice: first_minute::decided(&decided),
        kept: kept.filter(|_| is_answered),
        decided,
        to,
        delivery: state.delivery.clone(),
    };
    let written = state
        .services
        .db
        .write(move |tx| telling.write(tx, now_ms()))
        .await?;
    for (place, rows) in &written.rows {
        state.delivery.submit(place, *rows);
    }
    if written.is_news {
        console::decided(&person, decision, by.as_ref());
    }
    if had_words {
        state.removals.note();
    }
    Ok(written.accepted)
}

fn seen_by_operator(
    decided: &Decided,
) -> (console::Person, Option<console::Person>, console::Decision) {
    let Acquaintance { person, name } = &decided.known;
    let by = decided.decider.as_ref();
    let decision = match decided.decision {
        Decision::LetIn => console::Decision::LetIn,
        Decision::MadeOwner => console::Decision::MadeOwner,
        Decision::TurnedAway => console::Decision::TurnedAway,
        Decision::RanOut => console::Decision::RanOut,
    };
    (
        console::Person::new(name, person),
        by.map(|by| console::Person::new(&by.name, &by.id)),
        decision,
    )
}

/// The words to the guest. A guest whose code ran out hears nothing.
async fn told(
    state: &GatewayState,
    decided: &Decided,
    to: &Destination,
    kept: Option<&Inbound>,
) -> Result<Option<String>, StoreError> {
    let name = &decided.known.name;
    Ok(match decided.decision {
        Decision::LetIn | Decision::MadeOwner => {
            let agent = listener(state, &decided.known.person, to.place()).await?;
            let first = kept.map_or(First::NotKept, |_| First::Kept);
            Some(first_minute::welcome(
                name,
                decided.decision,
                agent.as_deref(),
                first,
            ))
        }
        Decision::TurnedAway => Some(first_minute::turned_away(name)),
        Decision::RanOut => None,
    })
}

/// The agent that listens to a new member in their private chat; none if it is closed to members.
async fn listener(
    state: &GatewayState,
    person: &PersonId,
    place: &SessionKey,
) -> Result<Option<String>, StoreError> {
    let snapshot = state.services.snapshots.current();
    let access = &snapshot.config.access;
    let origin = Origin::new(place.clone(), person.clone());
    let standing = Standing::of(access, person, true);
    let visit = Visit {
        access,
        origin: &origin,
        standing: &standing,
    };
    let route = state.router.resolve(&snapshot.table, visit).await?.route;
    let is_open = snapshot.table.may_use(&route.agent, visit).is_ok();
    Ok(is_open.then(|| snapshot.agent_of(&route).label()))
}

/// A decision, with everything there is to tell.
struct TellingAll {
    decided: Decided,
    to: Destination,
    /// For the guest.
    told: Option<String>,
    /// For owners and admins.
    notice: String,
    /// The first message, if it is answered now.
    kept: Option<Inbound>,
    delivery: Delivery,
}

/// A told decision.
#[derive(Default)]
struct Settled {
    /// No other process has told the decision before.
    is_news: bool,
    rows: BTreeMap<SessionKey, usize>,
    accepted: Option<Accepted>,
}

impl TellingAll {
    fn write(&self, tx: &Transaction<'_>, now: i64) -> rusqlite::Result<Settled> {
        let mut settled = Settled::default();
        if !people::told(tx, &self.decided)? {
            return Ok(settled);
        }
        settled.is_news = true;
        let mut count = |place: &SessionKey, rows: usize| {
            *settled.rows.entry(place.clone()).or_default() += rows;
        };
        if let Some(told) = &self.told {
            let rows = self
                .delivery
                .draft(&self.to, Kind::Notice, &Text::plain(told));
            outbox::insert(tx, &rows, Source::default(), now)?;
            count(self.to.place(), rows.len());
        }
        for notice in guest_notices::of_code(tx, &self.decided.code)? {
            let to = Destination::stored(notice.place);
            let rows = self
                .delivery
                .draft(&to, Kind::Notice, &Text::plain(&self.notice));
            match (notice.message, rows.first()) {
                (Some(message), Some(_)) => {
                    outbox::insert_change(tx, &rows, &message, Source::default(), now)?;
                    count(to.place(), rows.len());
                }
                // A notice on its way keeps its buttons, and a press says what was decided.
                (None, Some(row)) => drop(outbox::replace_untried(tx, notice.outbox_id, row)?),
                (_, None) => {}
            }
        }
        if let Some((kept, platform)) = self
            .kept
            .as_ref()
            .and_then(|kept| Some((kept, kept.origin.key.platform()?)))
        {
            let id = inbox::insert_kept(tx, platform, kept, now)?;
            settled.accepted = id.map(|id| Accepted::new(id, kept.clone()));
        }
        Ok(settled)
    }
}

/// Takes over a new owner, and whatever else was saved in config.toml.
async fn follow_owners(state: &GatewayState) {
    drop(state.services.reload.ask("parlor pair").await);
}
