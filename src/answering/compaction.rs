//! Long conversations: before a model's window is full, the agent sums up the older part. Later
//! turns read the summary instead.
//!
//! A summary is made beside the lane, after the answer is written, so people do not wait. Only a
//! turn with too little room for the conversation waits for a running summary.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use rusqlite::{Connection, Transaction};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::active_turn::ActiveTurn;
use super::budgets::{self, Budgets};
use crate::access::numbers;
use crate::backoff::Backoff;
use crate::clock::now_ms;
use crate::config::{ModelRef, ModelSettings, Reasoning};
use crate::domain::{Label, Labels, Marks, SessionKey};
use crate::home::Snapshot;
use crate::models::{Cut, Lineup, ModelMessage, Models, Usage, estimate_tokens};
use crate::records::ledger::{self, Spending, Sums};
use crate::records::pauses::{self, Work};
use crate::records::summaries::{self, Summary};
use crate::records::transcript::{self, Conversation, Message};
use crate::records::turn_log::{self, TurnRow};
use crate::records::view::View;
use crate::routing::aliases::Aliases;
use crate::storage::{Db, StoreError};
use crate::tools::{Relation, Scope, ToolBox};
use crate::turn::budget::{Span, Whose};
use crate::turn::history::{self, MAX_MESSAGES};
use crate::turn::{Outline, Run, Step, TurnError, TurnLimits, TurnRequest};

/// The most tokens for writing a summary, thoughts included: more than its 500 words need in any
/// language. The length limit of the agent's answers does not matter here.
const MAX_SUMMARY_TOKENS: u32 = 8 * 1024;
/// The window divided by this is the most a summary may take; the conversation needs the rest.
const SHARE_OF_WINDOW: u32 = 4;
/// The longest summary in bytes.
const MAX_SUMMARY_BYTES: usize = 32 * 1024;
/// A conversation with this many messages is summed up, however short they are.
const MANY_MESSAGES: usize = MAX_MESSAGES as usize * 3 / 4;
/// A summary is given up after this time.
const MAX_TIME: Duration = Duration::from_secs(120);
/// Summaries at once. Summaries need no slot, and so have a bound of their own.
const MOST_AT_ONCE: usize = 4;
/// The pause of a conversation after a failed summary, longer after each further one. The cause is
/// often there for hours, and each try costs a model call.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);
/// Conversations in a pause. Beyond that, the one whose pause ends first is forgotten.
const MOST_PAUSED: usize = 1000;

/// The length of the conversation read by a turn, and the room for it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fill {
    pub(super) tokens: usize,
    pub(super) messages: usize,
    pub(super) room: usize,
}

impl Fill {
    /// The next turn, or a turn soon after, would lose the oldest messages.
    fn is_nearly_full(self) -> bool {
        self.tokens > self.room / 4 * 3 || self.messages >= MANY_MESSAGES
    }

    /// This turn loses the oldest messages.
    pub(super) fn is_too_much(self) -> bool {
        self.tokens > self.room || self.messages >= MAX_MESSAGES as usize
    }
}

/// Makes summaries beside the lanes. Cheap to clone.
#[derive(Clone)]
pub(super) struct Compaction {
    pub(super) db: Db,
    pub(super) aliases: Arc<Aliases>,
    pub(super) budgets: Budgets,
    pub(super) summing: Arc<Summing>,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

/// Counts the tasks of summaries apart from those of answers, because people wait for answers only.
/// Closed from the start, so that waiting ends whenever no summary runs.
pub(super) fn tasks() -> TaskTracker {
    let tasks = TaskTracker::new();
    tasks.close();
    tasks
}

/// Running summaries.
pub(super) struct Summing {
    // A plain lock: every section is a look at a few entries, and none awaits.
    under_way: Mutex<Vec<RunningSummary>>,
    paused: Mutex<Vec<FailedSummary>>,
    at_once: Semaphore,
}

/// A view of a place whose last summary failed.
struct FailedSummary {
    place: SessionKey,
    view: View,
    backoff: Backoff,
    /// No summary is tried before.
    until: Instant,
}

/// A summary of a view of a place. The place may have moved since the start.
struct RunningSummary {
    place: SessionKey,
    view: View,
    /// Cancelled at the end of the summary, successful or not.
    over: CancellationToken,
}

impl Summing {
    pub(super) fn new() -> Self {
        Summing {
            under_way: Mutex::default(),
            paused: Mutex::default(),
            at_once: Semaphore::new(MOST_AT_ONCE),
        }
    }

    /// None if a summary of this view is running already, or has just failed.
    fn begin(&self, aliases: &Aliases, place: &SessionKey, view: View) -> Option<DropGuard> {
        if self.is_paused(place, view) {
            return None;
        }
        let mut under_way = self.under_way();
        if find(&under_way, aliases, place, view).is_some() {
            return None;
        }
        let over = CancellationToken::new();
        under_way.push(RunningSummary {
            place: place.clone(),
            view,
            over: over.clone(),
        });
        Some(over.drop_guard())
    }

    /// Waits for the running summary of this view of the place. False if there is none.
    pub(super) async fn over(&self, aliases: &Aliases, place: &SessionKey, view: View) -> bool {
        let found = find(&self.under_way(), aliases, place, view);
        let Some(over) = found else { return false };
        over.cancelled().await;
        true
    }

    fn end(&self, place: &SessionKey, view: View) {
        self.under_way()
            .retain(|summary| (&summary.place, summary.view) != (place, view));
    }

    fn is_paused(&self, place: &SessionKey, view: View) -> bool {
        let now = Instant::now();
        self.paused()
            .iter()
            .any(|failed| failed.is_of(place, view) && failed.until > now)
    }

    fn succeeded(&self, place: &SessionKey, view: View) {
        self.paused().retain(|failed| !failed.is_of(place, view));
    }

    fn failed(&self, place: &SessionKey, view: View) {
        let mut paused = self.paused();
        let known = paused.iter().position(|failed| failed.is_of(place, view));
        let known = known.map(|index| paused.swap_remove(index).backoff);
        let mut backoff = known.unwrap_or(Backoff::new(FIRST_PAUSE, LONGEST_PAUSE));
        let until = Instant::now() + backoff.next().at_most;
        if paused.len() >= MOST_PAUSED {
            let first = (0..paused.len()).min_by_key(|index| paused[*index].until);
            first.map(|index| paused.swap_remove(index));
        }
        paused.push(FailedSummary {
            place: place.clone(),
            view,
            backoff,
            until,
        });
    }

    fn paused(&self) -> MutexGuard<'_, Vec<FailedSummary>> {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn under_way(&self) -> MutexGuard<'_, Vec<RunningSummary>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailedSummary {
    fn is_of(&self, place: &SessionKey, view: View) -> bool {
        self.view == view && self.place == *place
    }
}

fn find(
    under_way: &[RunningSummary],
    aliases: &Aliases,
    place: &SessionKey,
    view: View,
) -> Option<CancellationToken> {
    let place = aliases.current(place);
    let found = under_way
        .iter()
        .find(|summary| summary.view == view && aliases.current(&summary.place) == place);
    found.map(|summary| summary.over.clone())
}

/// A finished turn, as far as a summary needs it.
pub(super) struct Finished {
    snapshot: Arc<Snapshot>,
    inbox_id: i64,
    lineup: Lineup,
    scope: Scope,
    view: View,
    room: usize,
}

impl Finished {
    /// None if the conversation needs no summary yet.
    pub(super) fn of(finished: &ActiveTurn) -> Option<Self> {
        let asked = finished.question.iter().map(history::cost);
        let answer = || estimate_tokens(finished.run.said()) + asked.sum::<usize>();
        let Fill {
            tokens,
            messages,
            room,
        } = finished.fill;
        let fill = Fill {
            tokens: tokens + answer(),
            messages: messages + 2,
            room,
        };
        let scope = finished.run.scope();
        // A subagent's session ends with its turn; only peers go on in theirs.
        let goes_on = scope
            .parent
            .as_ref()
            .is_none_or(|parent| parent.relation == Relation::Peer);
        (goes_on && fill.is_nearly_full()).then(|| Finished {
            snapshot: finished.snapshot.clone(),
            inbox_id: finished.accepted.id,
            lineup: finished.run.lineup().clone(),
            scope: scope.clone(),
            view: finished.view(),
            room,
        })
    }
}

impl Finished {
    fn run(&self, asked: String) -> Run {
        let (mut lineup, scope) = (self.lineup.clone(), self.scope.clone());
        lineup.settings = settings(&self.snapshot.models, &lineup);
        let (system, limits) = (
            history::how_to_sum_up(&scope.agent.name, &scope.agent.marks()),
            TurnLimits::of(&scope.agent.limits),
        );
        let (messages, tools) = (
            vec![ModelMessage::user(asked)],
            ToolBox::of(Vec::new()).view(&scope.agent, scope.role),
        );
        Run::new(TurnRequest {
            lineup,
            system: system.into(),
            outline: Outline::default(),
            messages,
            tools,
            scope,
            limits,
        })
    }
}

#[derive(Debug, thiserror::Error)]
enum NoSummary {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Turn(#[from] TurnError),
    #[error("the model said nothing")]
    Empty,
    /// A cut summary would lack the end of the conversation without a trace.
    #[error("it was cut off {0}")]
    CutOff(Cut),
    #[error("it is longer than {MAX_SUMMARY_BYTES} bytes")]
    TooLong,
    #[error("it took too long")]
    TooSlow,
    #[error("the process stops")]
    Stopping,
}

impl Compaction {
    /// Waits for the running summary of this view of the place. False if there is none.
    pub(super) async fn over(&self, place: &SessionKey, view: View) -> bool {
        self.summing.over(&self.aliases, place, view).await
    }

    /// Begins to sum up the older part of the turn's conversation. A failure costs only the
    /// summary.
    pub(super) fn begin(&self, finished: Finished) {
        let (place, view) = (finished.scope.place.clone(), finished.view);
        let Some(over) = self.summing.begin(&self.aliases, &place, view) else {
            return;
        };
        let own = self.clone();
        self.tasks.spawn(
            async move {
                let agent = finished.scope.agent.id.clone();
                match AssertUnwindSafe(own.sum_up(finished)).catch_unwind().await {
                    Ok(Ok(())) => own.summing.succeeded(&place, view),
                    Ok(Err(error)) => {
                        own.summing.failed(&place, view);
                        tracing::warn!(agent.id = %agent, session = %place, "no summary: {error}");
                    }
                    Err(_) => {
                        own.summing.failed(&place, view);
                        tracing::error!(agent.id = %agent, session = %place, "a summary panicked");
                    }
                }
                own.summing.end(&place, view);
                drop(over);
            }
            .in_current_span(),
        );
    }

    async fn sum_up(&self, finished: Finished) -> Result<(), NoSummary> {
        let deadline = Instant::now() + MAX_TIME;
        let _permit = tokio::select! {
            permit = timeout_at(deadline, self.summing.at_once.acquire()) => permit.map_err(|_| NoSummary::TooSlow)?,
            () = self.stop.cancelled() => return Err(NoSummary::Stopping),
        };
        let paused = self
            .db
            .read(|connection| pauses::get(connection, Work::Background));
        // A later turn has the summary made.
        if paused.await?.is_some() {
            return Ok(());
        }
        let Scope {
            agent,
            person,
            role,
            ..
        } = &finished.scope;
        let mut allowance = self
            .budgets
            .open(&finished.snapshot, agent, person, *role)
            .await?;
        // At a limit no turn begins either. A later turn will begin the summary again.
        if budgets::exhausted(&allowance, now_ms()).is_some() {
            return Ok(());
        }
        let started_at = now_ms();
        let Some(older) = self.older(&finished).await? else {
            return Ok(());
        };
        let run = finished.run(older.to_sum_up(&agent.marks()));
        let estimate = || budgets::estimate(&finished.snapshot.models, &run);
        let reserved = tokio::select! {
            reserved = self.budgets.reserve(&mut allowance, estimate) => reserved?,
            () = sleep_until(deadline) => return Err(NoSummary::TooSlow),
            () = self.stop.cancelled() => return Err(NoSummary::Stopping),
        };
        if reserved.is_err() {
            return Ok(());
        }
        let (agent, snapshot) = (agent.clone(), finished.snapshot.clone());
        let Answer { text, usage, model } = self.ask(&finished, run, deadline).await;
        let bill = Bill {
            finished,
            usage,
            model,
            started_at,
            labels: older.labels(),
            limited: allowance.limits(),
        };
        let (summary, failure) = match text {
            Ok(text) => (Some(older.summed_up(text)), None),
            Err(failure) => (None, Some(failure)),
        };
        let outcome = failure.as_ref().map(NoSummary::to_string);
        let today = self
            .write(bill, older.conversation, summary, outcome)
            .await?;
        allowance.settle(&today);
        self.budgets.warn_owners(&snapshot, &agent, today).await;
        failure.map_or(Ok(()), Err)
    }

    /// The part of the conversation to sum up, if it is worth a summary.
    async fn older(&self, finished: &Finished) -> Result<Option<Older>, StoreError> {
        let place = self.aliases.current(&finished.scope.place);
        let (view, people, room) = (finished.view, finished.scope.people.clone(), finished.room);
        let read = move |connection: &Connection| {
            let conversation = transcript::conversation(connection, &place)?;
            let before = summaries::of(connection, &place, conversation, view)?;
            let after = before.as_ref().map_or(0, |summary| summary.upto);
            let mut messages = transcript::after(connection, &place, conversation, view, after)?;
            let said = messages.iter_mut().map(|message| &mut message.said);
            numbers::fill_in_shared(connection, &people, said)?;
            let count = older_part(&messages, room).map(<[_]>::len);
            Ok(count.map(|count| {
                messages.truncate(count);
                Older {
                    conversation,
                    before,
                    messages,
                }
            }))
        };
        self.db.read(read).await
    }

    /// Writes the summary, if there is one, and its cost.
    async fn write(
        &self,
        bill: Bill,
        conversation: Conversation,
        summary: Option<Summary>,
        failure: Option<String>,
    ) -> Result<Sums, StoreError> {
        let place = self.aliases.current(&bill.finished.scope.place);
        let spending = bill.spending(&place);
        let write = move |tx: &Transaction<'_>| {
            let (now, spot) = (now_ms(), (conversation, bill.finished.view));
            let is_gone = |summary: &Summary| {
                transcript::was_blanked(tx, &place, conversation, summary.upto, bill.started_at)
            };
            // The words of a message deleted meanwhile must not live on in the summary.
            if let Some(summary) = &summary
                && !is_gone(summary)?
            {
                let agent = bill.finished.scope.agent.uid;
                summaries::keep(tx, &place, spot, agent, summary, now)?;
            }
            turn_log::record(tx, &bill.turn(&place, failure), now)?;
            ledger::spend(tx, &spending, now)
        };
        self.db.write(write).await
    }

    async fn ask(&self, finished: &Finished, mut run: Run, deadline: Instant) -> Answer {
        // There is no preview of a summary.
        let (events, unheard) = mpsc::channel(1);
        drop(unheard);
        let step = tokio::select! {
            step = run.ask(&finished.snapshot.models, &events) => step.map_err(NoSummary::Turn),
            () = sleep_until(deadline) => Err(NoSummary::TooSlow),
            () = self.stop.cancelled() => Err(NoSummary::Stopping),
        };
        let text = step.and_then(|step| text_of(&step, &run));
        let mut usage = run.usage();
        usage.add(run.guess_of_cut_call());
        let model = run
            .model()
            .or(finished.lineup.models.first())
            .cloned()
            .unwrap_or_default();
        Answer { text, usage, model }
    }
}

/// The part of a conversation to sum up.
struct Older {
    conversation: Conversation,
    /// The summary of what was said before.
    before: Option<Summary>,
    /// At least three.
    messages: Vec<Message>,
}

impl Older {
    /// The text for the model.
    fn to_sum_up(&self, marks: &Marks) -> String {
        history::to_sum_up(
            self.before.as_ref().map(|summary| summary.text.as_str()),
            self.messages.iter().map(|message| &*message.said),
            marks,
        )
    }

    fn labels(&self) -> Labels {
        self.messages
            .iter()
            .map(|message| message.labels)
            .chain(self.before.as_ref().map(|summary| summary.labels))
            .collect::<Labels>()
            .with(Label::Summary)
    }

    fn summed_up(&self, text: String) -> Summary {
        let before = self.before.as_ref().map_or(0, |summary| summary.messages);
        let count = i64::try_from(self.messages.len()).unwrap_or(i64::MAX);
        Summary {
            text,
            upto: self.messages.last().map_or(0, |message| message.id),
            labels: self.labels(),
            messages: before.saturating_add(count),
        }
    }
}

/// The cost of a summary, also of a failed attempt.
struct Bill {
    finished: Finished,
    usage: Usage,
    model: ModelRef,
    started_at: i64,
    labels: Labels,
    limited: Vec<(Whose, Span)>,
}

impl Bill {
    fn spending(&self, place: &SessionKey) -> Spending {
        let Scope { agent, person, .. } = &self.finished.scope;
        Spending {
            place: place.clone(),
            agent: agent.uid,
            person: budgets::spender(&self.finished.snapshot, person).clone(),
            model: self.model.to_string(),
            usage: self.usage,
            price: self.finished.snapshot.models.price(&self.model),
            turns: 0,
            limited: self.limited.clone(),
        }
    }

    fn turn(&self, place: &SessionKey, failure: Option<String>) -> TurnRow {
        TurnRow {
            inbox_id: self.finished.inbox_id,
            place: place.clone(),
            agent: self.finished.scope.agent.uid,
            model: self.model.to_string(),
            route: turn_log::SUMMARY.into(),
            started_at: self.started_at,
            outcome: failure.unwrap_or_else(|| "summed up".into()),
            steps: 1,
            usage: self.usage,
            read: self.labels,
        }
    }
}

/// The messages to sum up. The newest stay: at most a quarter of the room.
fn older_part(messages: &[Message], room: usize) -> Option<&[Message]> {
    let mut tokens = 0;
    let kept = messages
        .iter()
        .rev()
        .take(MANY_MESSAGES / 3)
        .take_while(|message| {
            tokens += estimate_tokens(&message.said.text);
            tokens <= room / 4
        });
    let older = &messages[..messages.len() - kept.count()];
    // One or two messages are not worth a model call.
    (older.len() > 2).then_some(older)
}

struct Answer {
    text: Result<String, NoSummary>,
    usage: Usage,
    model: ModelRef,
}

fn text_of(step: &Step, run: &Run) -> Result<String, NoSummary> {
    let text = match step {
        Step::Answered => run.said(),
        Step::Wants(round) => &round.text,
    };
    let cut = match step {
        Step::Answered => run.cut(),
        Step::Wants(round) => round.cut,
    };
    match (text.trim(), cut) {
        (_, Some(cut)) => Err(NoSummary::CutOff(cut)),
        ("", None) => Err(NoSummary::Empty),
        (text, None) if text.len() > MAX_SUMMARY_BYTES => Err(NoSummary::TooLong),
        (text, None) => Ok(text.to_owned()),
    }
}

/// The agent's settings, with limits on tokens and reasoning for summaries.
fn settings(models: &Models, lineup: &Lineup) -> ModelSettings {
    let window = lineup
        .models
        .iter()
        .map(|model| models.window(model))
        .min()
        .unwrap_or(u32::MAX);
    let reasoning = lineup.settings.reasoning.map(|effort| match effort {
        Reasoning::None => Reasoning::None,
        Reasoning::Low | Reasoning::Medium | Reasoning::High => Reasoning::Low,
    });
    ModelSettings {
        max_tokens: Some(MAX_SUMMARY_TOKENS.min(window / SHARE_OF_WINDOW)),
        reasoning,
        ..lineup.settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Said;

    #[tokio::test(start_paused = true)]
    async fn a_failed_summary_pauses_its_conversation_and_no_other() {
        let (summing, aliases) = (Summing::new(), Aliases::default());
        let place = |text: &str| text.parse::<SessionKey>().unwrap();
        let (one, other) = (place("telegram:dm:1"), place("telegram:dm:2"));
        let begins = |place: &SessionKey| {
            let begun = summing.begin(&aliases, place, View::Whole).is_some();
            summing.end(place, View::Whole);
            begun
        };
        for pause in [60, 120, 240] {
            assert!(begins(&one));
            summing.failed(&one, View::Whole);
            assert!(!begins(&one) && begins(&other));
            tokio::time::advance(Duration::from_secs(pause - 1)).await;
            assert!(!begins(&one));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        summing.succeeded(&one, View::Whole);
        summing.failed(&one, View::Whole);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(begins(&one), "a success ends the growth of the pauses");
    }

    fn messages(count: i64, words: usize) -> Vec<Message> {
        let said = |id: i64| Said::gateway(format!("{id} {}", "word ".repeat(words)));
        (1..=count)
            .map(|id| Message {
                id,
                said: said(id).into(),
                labels: Labels::NONE,
            })
            .collect()
    }

    #[test]
    fn the_newest_quarter_stays_as_it_was_said() {
        let all = messages(40, 100);
        let room = all
            .iter()
            .map(|message| estimate_tokens(&message.said.text))
            .sum::<usize>();
        let older = older_part(&all, room).expect("there is much to sum up");
        assert_eq!((older.len(), older.last().unwrap().id), (30, 30));
        assert_eq!(
            older_part(&all[..8], room),
            None,
            "they all fit into the quarter"
        );
    }

    #[test]
    fn many_short_messages_are_summed_up_too() {
        let all = messages(i64::from(MAX_MESSAGES), 0);
        assert!(
            Fill {
                tokens: 0,
                messages: MANY_MESSAGES,
                room: 64_000
            }
            .is_nearly_full()
        );
        assert_eq!(older_part(&all, 64_000).map(<[_]>::len), Some(150));
    }
}
