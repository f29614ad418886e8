//! Ends a turn, answered or not: drafts the reply and has `commit` write the transaction.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use dashmap::DashSet;
use rusqlite::Transaction;
use tokio_util::sync::CancellationToken;

use super::active_turn::{ActiveTurn, Ended, Exchange};
use super::budgets::Budgets;
use super::commit::{Ending, Rows, STOPPED_ON_REQUEST, TurnCommit, Written, write, wrote};
use super::giving_up::{self, GivingUp, Told, broken};
use super::job_turns::{destination, is_nothing, job_of, tells_failures};
use super::provider_news::ProviderNews;
use super::question;
use super::report::report;
use super::texts::{
    RETRY, Reader, STOPPED, apology, cut_before_a_word, cut_off, panicked, said_nothing, sent,
    tools_broke,
};
use crate::access::Role;
use crate::channels::{Choice, Outcome, Text, followed_by};
use crate::clock::now_ms;
use crate::console::TurnEnd;
use crate::delivery::{Delivery, FirstSent, Kind, outbox, preview_messages, reservation};
use crate::domain::{AgentUid, Internal, Labels, SessionKey};
use crate::metrics::Stage;
use crate::models::ModelError;
use crate::records::inbox::{self, Accepted, Closing};
use crate::records::jobs;
use crate::records::journal;
use crate::records::subagents::{End, State};
use crate::records::transcript::{self, Spot};
use crate::routing::aliases::Aliases;
use crate::routing::pins::Pins;
use crate::storage::{Db, Durability, Next, Patience, Remedy, StoreError};
use crate::subagents::{self, Subagents};
use crate::telemetry;
use crate::tools::sent_files;
use crate::turn::{Charge, TurnError};

impl Ending {
    fn of(turn: &ActiveTurn, result: Result<(), TurnError>) -> Self {
        let (said, cut) = (turn.run.said(), turn.run.cut());
        match result {
            Ok(()) if is_nothing(&turn.accepted, said) && turn.effects_are_silent() => {
                Ending::nothing(said)
            }
            Ok(()) if !said.trim().is_empty() => {
                let is_told = !turn.accepted.inbound.origin.key.is_internal();
                let reply = cut.map_or_else(
                    || said.to_owned(),
                    |cut| followed_by(said, &cut_off(cut, is_told)),
                );
                Ending {
                    said: Some(said.to_owned()),
                    reply,
                    outcome: "answered".into(),
                    closing: Closing::Done,
                    cut,
                    can_retry: false,
                }
            }
            // The file is the answer.
            Ok(()) if sent_files(&turn.effects).next().is_some() => {
                let said = sent(&turn.effects);
                Ending {
                    said: Some(said.clone()),
                    reply: said,
                    outcome: "answered".into(),
                    closing: Closing::Done,
                    cut: None,
                    can_retry: false,
                }
            }
            Ok(()) => match cut {
                Some(cut) => Ending::failed(
                    cut_before_a_word(cut),
                    format!("cut off {cut} before it said anything"),
                ),
                None => {
                    let model = turn.run.model().unwrap_or(&turn.agent.models.model);
                    let reply = said_nothing(model, &turn.snapshot.models);
                    Ending::failed(reply, format!("the model {model} gave an empty answer"))
                }
            },
            Err(error) => {
                let (models, reader) = (&turn.snapshot.models, reader(turn));
                let reply = apology(&error, models, reader, turn.accepted.id);
                Ending {
                    can_retry: can_retry(&error) && job_of(&turn.accepted).is_none(),
                    ..Ending::failed(reply, error.to_string())
                }
            }
        }
    }

    /// A job had nothing to say. Nothing is sent.
    fn nothing(said: &str) -> Self {
        Ending {
            said: Some(said.to_owned()),
            reply: String::new(),
            outcome: jobs::NOTHING.into(),
            closing: Closing::Done,
            cut: None,
            can_retry: false,
        }
    }

    fn failed(reply: String, outcome: String) -> Self {
        Ending {
            said: None,
            reply,
            outcome,
            closing: Closing::Failed,
            cut: None,
            can_retry: true,
        }
    }
}

/// In a private chat with an owner nobody else reads along. The end of a subagent is for an agent.
fn reader(turn: &ActiveTurn) -> Reader {
    let place = &turn.accepted.inbound.origin.key;
    let is_owner = turn.accepted.standing.role() == Role::Owner && !place.is_internal();
    match is_owner {
        true if place.is_private() => Reader::OwnerAlone,
        true => Reader::Owner,
        false => Reader::Person,
    }
}

/// A second try of the same question would end at the same limit.
fn can_retry(error: &TurnError) -> bool {
    match error {
        TurnError::OverBudget(_) => false,
        TurnError::Model(failure) => failure.error != ModelError::ContextTooLong,
        _ => true,
    }
}

fn log_failure(turn: &ActiveTurn, error: &TurnError) {
    let (id, place) = (turn.accepted.id, &turn.accepted.inbound.origin.key);
    let TurnError::Model(failure) = error else {
        tracing::warn!(agent.id = %turn.agent.id, session = %place, inbox.id = id, "the turn failed (ref {id}): {error}");
        return;
    };
    let host = turn.snapshot.models.host(&failure.model);
    let said = failure.detail.as_deref();
    tracing::warn!(agent.id = %turn.agent.id, session = %place, inbox.id = id, model = %failure.model, host, said, "the turn failed (ref {id}): {error}");
}

/// Why a turn ends in the middle.
pub(super) enum Cause {
    Panicked,
    /// The store fails for this turn in a way that does not pass.
    Store(StoreError),
}

impl Cause {
    fn outcome(&self, reference: i64) -> String {
        match self {
            Cause::Panicked => "panicked".into(),
            Cause::Store(error) => giving_up::outcome(reference, error),
        }
    }

    fn told(&self, reference: i64) -> String {
        match self {
            Cause::Panicked => panicked(reference),
            Cause::Store(_) => broken(reference),
        }
    }

    fn log(&self, accepted: &Accepted) {
        let (place, reference) = (&accepted.inbound.origin.key, accepted.id);
        match self {
            Cause::Panicked => {
                tracing::error!(session = %place, inbox.id = reference, "a turn panicked (ref {reference})");
            }
            Cause::Store(error) => {
                tracing::error!(session = %place, inbox.id = reference, "a turn was given up (ref {reference}): {error}");
            }
        }
    }
}

/// The process stops before the end of a turn is written.
pub(super) struct Stopping;

/// Ends turns. Cheap to clone.
#[derive(Clone)]
pub(super) struct Finish {
    pub(super) db: Db,
    pub(super) delivery: Delivery,
    pub(super) giving_up: GivingUp,
    pub(super) aliases: Arc<Aliases>,
    pub(super) pins: Arc<Pins>,
    pub(super) subagents: Subagents,
    pub(super) budgets: Budgets,
    pub(super) provider_news: ProviderNews,
    /// Agents that have finished a turn before.
    pub(super) bootstrapped: Arc<DashSet<AgentUid>>,
    pub(super) stop: CancellationToken,
}

/// What a turn has read is worth a line where it is less trusted than the person who asked.
fn log_reading(turn: &ActiveTurn) {
    let read = turn.run.read();
    let (agent, inbox) = (&turn.agent.id, turn.accepted.id);
    let place = &turn.accepted.inbound.origin.key;
    if read.below(turn.accepted.role).is_empty() {
        tracing::debug!(agent.id = %agent, session = %place, inbox.id = inbox, turn.read = %read, "the turn is over");
    } else {
        tracing::info!(target: telemetry::DETAIL, { agent.id = %agent, session = %place, inbox.id = inbox, turn.read = %read }, "the turn has read less trusted words");
    }
}

impl Finish {
    /// Writes the end of the turn and sends its rows.
    pub(super) async fn store(
        &self,
        mut turn: Box<ActiveTurn>,
        result: Result<(), TurnError>,
    ) -> Ended {
        if let Err(error) = &result {
            log_failure(&turn, error);
        }
        let reader = reader(&turn);
        let ending = Ending::of(&turn, result);
        log_reading(&turn);
        turn.follow_moves(&self.aliases);
        let drafting = || Rows {
            answer: self.draft(&turn, &ending, true),
            effects: self.draft_effects(&turn),
        };
        // A panic while formatting the answer must not end the lane, and again after every start.
        let Ok(rows) = catch_unwind(AssertUnwindSafe(drafting)) else {
            return Box::pin(self.broken(turn, Cause::Panicked, Told::InPlace)).await;
        };
        let outcome = if ending.said.is_some() {
            Outcome::Answered
        } else {
            Outcome::Failed
        };
        let (by, role) = (turn.agent.clone(), turn.accepted.role);
        let exchange = Exchange {
            by,
            role,
            question: turn.question.clone(),
            answer: ending.reply.clone(),
            read: turn.run.read(),
        };
        let sent = match self.close(&mut turn, ending, rows).await {
            Ok(sent) => sent,
            Err(error) if error.is_permanent() => {
                let broken = self.broken(turn, Cause::Store(error), Told::InPlace);
                return Box::pin(broken).await;
            }
            Err(_) => return Ended::LeftBehind,
        };
        if outcome == Outcome::Answered {
            self.bootstrapped.insert(turn.agent.uid);
            report(&turn, TurnEnd::Answered, sent);
        } else {
            report(&turn, TurnEnd::Failed, sent);
        }
        let place = &turn.accepted.inbound.origin.key;
        let seen_in = (reader == Reader::OwnerAlone).then_some(place);
        self.provider_news
            .tell(&turn.snapshot.models, seen_in)
            .await;
        turn.end_mark(outcome);
        Ended::Over(Some(exchange))
    }

    /// Ends a turn on request. Its preview stays, closed with a mark; without a preview nothing is
    /// sent.
    pub(super) async fn stopped(&self, mut turn: Box<ActiveTurn>) -> Ended {
        turn.follow_moves(&self.aliases);
        let id = turn.accepted.id;
        let shown = self
            .db
            .read(move |connection| preview_messages::of(connection, id))
            .await;
        let is_shown = shown.is_ok_and(|messages| !messages.is_empty());
        let said = Some(turn.run.shown()).filter(|said| !said.is_empty());
        let reply = said
            .as_deref()
            .map_or_else(|| STOPPED.to_owned(), |said| followed_by(said, STOPPED));
        let ending = Ending {
            said,
            reply,
            outcome: STOPPED_ON_REQUEST.into(),
            closing: Closing::Done,
            cut: None,
            can_retry: false,
        };
        let drafting = || self.draft(&turn, &ending, is_shown);
        let answer = catch_unwind(AssertUnwindSafe(drafting)).unwrap_or_default();
        let rows = Rows {
            answer,
            effects: Vec::new(),
        };
        let sent = match self.close(&mut turn, ending, rows).await {
            Ok(sent) => sent,
            // The person has stopped the turn, and waits for no answer.
            Err(error) if error.is_permanent() => {
                return self
                    .broken(turn, Cause::Store(error), Told::InLogOnly)
                    .await;
            }
            Err(_) => return Ended::LeftBehind,
        };
        report(&turn, TurnEnd::Stopped, sent);
        turn.end_mark(Outcome::Stopped);
        Ended::Over(None)
    }

    /// Returns a wait for the answer's first part, if there is any. Fails if the process stops before
    /// the write, or the write cannot work.
    async fn close(
        &self,
        turn: &mut ActiveTurn,
        ending: Ending,
        rows: Rows,
    ) -> Result<Option<FirstSent>, StoreError> {
        let began = Instant::now();
        let place = destination(&turn.accepted).place().clone();
        let used_once = turn.used_once;
        let mut reservation = if rows.answer.is_empty() {
            None
        } else {
            self.delivery.reserve(&place)
        };
        let mut is_again = false;
        let all = Arc::new((TurnCommit::of(turn), ending, rows));
        let write = || {
            let all = all.clone();
            if std::mem::replace(&mut is_again, true) {
                // The store may fail for long, and the reservation blocks other senders of the
                // place.
                reservation = None;
            }
            let claim = reservation
                .is_some()
                .then(|| (self.delivery.clone(), place.clone()));
            move |tx: &Transaction<'_>| {
                let written = write(tx, &all.0, &all.1, &all.2, now_ms())?;
                let first = claim
                    .map(|(delivery, place)| reservation::claim(tx, &delivery, &place, now_ms()))
                    .transpose()?;
                Ok((written, first))
            }
        };
        let written = self
            .db
            .write_patiently(&self.stop, Durability::PowerCut, write)
            .await;
        let (
            Written {
                count,
                today,
                report,
            },
            first,
        ) = written
            .inspect_err(|error| tracing::warn!("the end of a turn was not written: {error}"))?;
        turn.stages.spend(Stage::Written, began.elapsed());
        turn.allowance.settle(&today);
        if let Some(known) = turn.subagent() {
            self.subagents
                .over(turn.accepted.id, &known.subagent.run, report);
        }
        if used_once {
            self.pins.changed(&place);
        }
        let sent = (count > 0).then(|| self.delivery.expect_first(turn.accepted.id));
        match reservation.zip(first) {
            Some((reservation, first)) => reservation.submit(count, first),
            None => self.delivery.submit(&place, count),
        }
        self.budgets
            .warn_owners(&turn.snapshot, &turn.agent, today)
            .await;
        Ok(sent)
    }

    fn draft(&self, turn: &ActiveTurn, ending: &Ending, is_wanted: bool) -> Vec<outbox::Draft> {
        let to = destination(&turn.accepted);
        let is_told = ending.said.is_some() || tells_failures(&turn.accepted);
        let is_wanted = is_wanted && is_told && !ending.is_nothing();
        if !is_delivered(is_wanted, to.place()) {
            return Vec::new();
        }
        let label = turn.agent.label();
        let question = question::to_quote(&turn.accepted, turn.others_wrote);
        let text = Text {
            answers: question.as_ref(),
            ..Text::plain(&ending.reply)
        };
        let mut rows = match ending.said {
            Some(_) => self.delivery.draft(
                &to,
                Kind::Final,
                &Text {
                    speaker: Some(&label),
                    ..text
                },
            ),
            None => {
                let choices = ending.can_retry.then(|| retry(turn.accepted.id));
                let choices: Vec<Choice> = choices.into_iter().collect();
                let choices = choices.as_slice();
                self.delivery
                    .draft(&to, Kind::Error, &Text { choices, ..text })
            }
        };
        if !turn.broken_tools.is_empty() {
            let told = tools_broke(&turn.broken_tools, turn.accepted.id);
            rows.extend(self.delivery.draft(&to, Kind::Error, &Text::plain(&told)));
        }
        rows
    }

    fn draft_effects(&self, turn: &ActiveTurn) -> Vec<outbox::Draft> {
        let to = destination(&turn.accepted);
        if to.place().is_internal() {
            return Vec::new();
        }
        sent_files(&turn.effects)
            .flat_map(|file| self.delivery.draft_file(&to, file))
            .collect()
    }

    /// Ends a turn that broke in the middle, in its place or before its first step.
    pub(super) async fn break_off(
        &self,
        accepted: &Accepted,
        turn: Option<&ActiveTurn>,
        cause: &Cause,
        told: Told,
    ) -> Result<(), Stopping> {
        cause.log(accepted);
        if let Cause::Store(error) = cause
            && error.remedy() == Remedy::Mend
        {
            self.let_go(accepted, error, told).await;
            return Ok(());
        }
        let mut patience = Patience::new("the end of a turn");
        while let Err(error) = self.write_break(accepted, turn, cause, told).await {
            match patience.after(&self.stop, &error).await {
                Next::Again => {}
                Next::Hopeless => {
                    self.let_go(accepted, &error, told).await;
                    break;
                }
                Next::Stopping => return Err(Stopping),
            }
        }
        Ok(())
    }

    /// Closes the rows of a turn whose end cannot be written.
    async fn let_go(&self, accepted: &Accepted, error: &StoreError, told: Told) {
        self.giving_up
            .close(accepted, error, told, &self.stop)
            .await;
        if let Some(Internal::Subagent { run }) = &accepted.inbound.extras.internal {
            self.subagents
                .fail(accepted.id, run, broken(accepted.id))
                .await;
        }
    }

    /// Of a broken turn only the question, the outcome and the cost are kept.
    async fn write_break(
        &self,
        accepted: &Accepted,
        turn: Option<&ActiveTurn>,
        cause: &Cause,
        told: Told,
    ) -> Result<(), StoreError> {
        let is_asked = turn.is_some_and(|turn| turn.is_asked);
        let part = turn.map(|turn| turn.agent.uid);
        let commit = turn.map(TurnCommit::of);
        let destination = destination(accepted);
        let (text, outcome) = (cause.told(accepted.id), cause.outcome(accepted.id));
        let is_delivered = is_delivered(
            told == Told::InPlace && tells_failures(accepted),
            destination.place(),
        );
        let rows = if is_delivered {
            self.draft_apology(accepted, turn, &text)
        } else {
            Vec::new()
        };
        let run = match &accepted.inbound.extras.internal {
            Some(Internal::Subagent { run }) => Some(run.clone()),
            _ => None,
        };
        let end = End {
            state: State::Failed,
            result: text,
            used: Charge::default(),
            read: turn.map_or(Labels::NONE, |turn| turn.run.read()),
            artifacts: turn.map_or_else(Vec::new, wrote),
        };
        let (id, ended, accepted) = (accepted.id, run.clone(), accepted.clone());
        let close = move |tx: &Transaction<'_>| {
            let (now, place) = (now_ms(), &accepted.inbound.origin.key);
            transcript::touch(tx, place, now)?;
            let spot = Spot {
                conversation: transcript::conversation(tx, place)?,
                part,
            };
            if !is_asked {
                accepted.all().try_for_each(|said| {
                    transcript::append_person(tx, said, spot, now).map(drop)
                })?;
            }
            close_broken(tx, &accepted, commit.as_ref(), &outcome, now)?;
            let report = run.map_or(Ok(None), |run| {
                subagents::write_end(tx, &run, accepted.role, &end, now)
            })?;
            let count = outbox::insert_answer(tx, &rows, accepted.id, None, now)?;
            Ok((count, report))
        };
        let (count, report) = self.db.write(close).await?;
        if let Some(run) = ended {
            self.subagents.over(id, &run, report);
        }
        self.delivery.submit(destination.place(), count);
        Ok(())
    }

    fn draft_apology(
        &self,
        accepted: &Accepted,
        turn: Option<&ActiveTurn>,
        text: &str,
    ) -> Vec<outbox::Draft> {
        let question = question::to_quote(accepted, turn.is_some_and(|turn| turn.others_wrote));
        let choices = [retry(accepted.id)];
        let choices = match job_of(accepted) {
            Some(_) => &[],
            None => choices.as_slice(),
        };
        let text = Text {
            answers: question.as_ref(),
            choices,
            ..Text::plain(text)
        };
        self.delivery
            .draft(&destination(accepted), Kind::Error, &text)
    }

    /// Ends a turn in the middle.
    pub(super) async fn broken(
        &self,
        mut turn: Box<ActiveTurn>,
        cause: Cause,
        told: Told,
    ) -> Ended {
        let broken_off = self
            .break_off(&turn.accepted, Some(&turn), &cause, told)
            .await;
        if broken_off.is_err() {
            return Ended::LeftBehind;
        }
        report(&turn, TurnEnd::Failed, None);
        turn.end_mark(Outcome::Failed);
        Ended::Over(None)
    }
}

/// Closes the rows of a broken turn, and records its cost.
fn close_broken(
    tx: &Transaction<'_>,
    accepted: &Accepted,
    commit: Option<&TurnCommit>,
    outcome: &str,
    now: i64,
) -> rusqlite::Result<()> {
    if accepted.inbound.origin.key.is_internal() || job_of(accepted).is_some() {
        inbox::close_all(tx, accepted, Closing::Failed, outcome, now)?;
    } else {
        inbox::close_for_retry(tx, accepted, outcome, now)?;
    }
    if let Some(commit) = commit {
        return commit.record(tx, outcome, now).map(drop);
    }
    // Preparation broke, so there is no turn to record. The ledger has the rounds of an earlier
    // process already.
    for id in journal::with_members(tx, &[accepted.id])? {
        inbox::close(tx, id, Closing::Failed, outcome, now)?;
    }
    journal::forget(tx, accepted.id, now)
}

/// The button under a failed answer.
fn retry(id: i64) -> Choice {
    Choice {
        label: RETRY.to_owned(),
        command: format!("/retry {id}"),
    }
}

/// No platform has an internal place, such as that of a subagent. Its words reach people only
/// through a turn in a place of theirs.
fn is_delivered(is_wanted: bool, place: &SessionKey) -> bool {
    is_wanted && !place.is_internal()
}

#[cfg(test)]
mod tests {
    use super::is_delivered;

    /// S2.17
    #[test]
    fn an_answer_is_delivered_if_it_is_wanted_and_its_place_is_not_internal() {
        let check = |is_wanted, place: &str, expected| {
            assert_eq!(
                is_delivered(is_wanted, &place.parse().unwrap()),
                expected,
                "{is_wanted} {place}"
            );
        };
        for place in ["telegram:dm:111", "discord:channel:8101", "local:home"] {
            check(true, place, true);
            check(false, place, false);
        }
        for place in ["child:1-0-0", "cron:rose:daily"] {
            check(true, place, false);
            check(false, place, false);
        }
    }
}
