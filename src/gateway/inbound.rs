//! The way of a message from the inbox row to the one who answers it. Start reading here.
//!
//! received → stored, then acknowledged → known? may speak? command? → routed → its place's lane.
//! Messages are looked at one after the other, so their order holds; the slow work is done in the lanes.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Transaction;

use super::House;
use crate::access::{self, Asking, Standing, Verdict, people};
use crate::channels::{Batch, IntakeReceiver};
use crate::clock::now_ms;
use crate::commands::{self, CommandError, Context, Outcome, Parsed};
use crate::config::Access;
use crate::delivery::{Kind, outbox};
use crate::domain::{Destination, Inbound};
use crate::routing::{self, Pin, Route, pins};
use crate::sessions::LaneFull;
use crate::sessions::inbox::{self, Accepted, Closing};
use crate::storage::StoreError;
use crate::work::WorkGuard;

/// Rows that an earlier process left are taken up in portions of this many.
const REPLAY_PORTION: u32 = 500;
/// The pause before a message is looked at again when the store fails.
const STORE_BACKOFF: Duration = Duration::from_secs(1);

/// Takes up what an earlier process left, then everything that comes, until every channel has stopped.
pub(super) async fn receive(house: Arc<House>, mut received: IntakeReceiver, starting: WorkGuard) {
    if let Err(error) = take_up(&house).await {
        tracing::error!("what an earlier process left could not be taken up: {error}");
    }
    drop(starting);
    while let Some((batch, stored)) = received.recv().await {
        match store(&house, batch).await {
            Ok(accepted) => {
                let guarded: Vec<_> = accepted.into_iter().map(|accepted| (accepted, house.work.begin())).collect();
                // The channel may have stopped listening meanwhile; the rows are ours now either way.
                let _ = stored.send(());
                for (accepted, guard) in guarded {
                    handle_patiently(&house, accepted, guard).await;
                }
            }
            // Dropping `stored` tells the channel that the platform must keep the batch.
            Err(error) => tracing::error!("messages could not be stored: {error}"),
        }
    }
}

async fn store(house: &House, batch: Batch) -> Result<Vec<Accepted>, StoreError> {
    house.desk.db.write(move |tx| inbox::insert(tx, batch.platform, batch.arrivals, now_ms())).await
}

async fn take_up(house: &House) -> Result<(), StoreError> {
    house.delivery.resume().await?;
    let mut after = 0;
    loop {
        let waiting = house.desk.db.read(move |connection| inbox::waiting(connection, after, REPLAY_PORTION)).await?;
        let Some(last) = waiting.last() else { break };
        after = last.id;
        tracing::info!("taking up {} waiting messages", waiting.len());
        for accepted in waiting {
            handle_patiently(house, accepted, house.work.begin()).await;
        }
    }
    house.desk.db.write(|tx| inbox::forget_old(tx, now_ms())).await.map(drop)
}

/// A message is only let go of once something is written about it, or its lane has it.
async fn handle_patiently(house: &House, accepted: Accepted, guard: WorkGuard) {
    let mut guard = Some(guard);
    while let Err(error) = handle(house, &accepted, &mut guard).await {
        tracing::error!(inbox.id = accepted.id, "a message waits for the store: {error}");
        tokio::select! {
            () = tokio::time::sleep(STORE_BACKOFF) => {}
            // The row is still in the inbox, where the next start finds it.
            () = house.stop.cancelled() => return,
        }
    }
}

async fn handle(house: &House, accepted: &Accepted, guard: &mut Option<WorkGuard>) -> Result<(), StoreError> {
    let inbound = &accepted.inbound;
    let parsed = commands::parse(&inbound.text);
    let pin = valid_pin(house, inbound).await?;
    let route = routing::route(&house.desk.table, pin.as_ref(), &inbound.origin);
    let standing = standing(house, inbound).await?;
    let asking = Asking {
        key: &inbound.origin.key,
        standing,
        addressed: inbound.addressed,
        is_command: matches!(parsed, Parsed::Command(_)),
        place_is_bound: route.opens_place,
        require_mention: route.require_mention,
    };
    match access::decide(&house.desk.config.access, &asking) {
        Verdict::Admit => {
            admit(
                house,
                accepted,
                guard,
                parsed,
                &Context { desk: &house.desk, inbound, standing, route: &route, pin: pin.as_ref() },
            )
            .await
        }
        Verdict::Hint => hint(house, accepted).await,
        Verdict::TellUnbound => {
            reply(house, accepted, Kind::Notice, &unbound(inbound), Closing::Refused, "place is not bound").await
        }
        Verdict::Ignore(reason) => {
            tracing::debug!(session = %inbound.origin.key, "ignored: {reason}");
            let id = accepted.id;
            house.desk.db.write(move |tx| inbox::close(tx, id, Closing::Refused, reason, now_ms())).await
        }
    }
}

async fn admit(
    house: &House,
    accepted: &Accepted,
    guard: &mut Option<WorkGuard>,
    parsed: Parsed,
    context: &Context<'_>,
) -> Result<(), StoreError> {
    match parsed {
        Parsed::Talk => submit(house, accepted, guard, context.route).await,
        Parsed::Command(command) => match commands::run(command, context).await {
            Ok(outcome) => carry_out(house, accepted, outcome).await,
            Err(CommandError::User(error)) => {
                reply(house, accepted, Kind::Command, &error.to_string(), Closing::Done, "command refused").await
            }
            Err(CommandError::Store(error)) => Err(error),
        },
        Parsed::Mistaken(error) => {
            reply(house, accepted, Kind::Command, &error.to_string(), Closing::Done, "no such command").await
        }
    }
}

async fn submit(house: &House, accepted: &Accepted, guard: &mut Option<WorkGuard>, route: &Route) -> Result<(), StoreError> {
    tracing::debug!(agent.id = %route.agent, session = %accepted.inbound.origin.key, route.rule = %route.rule, "queued");
    let Some(owned) = guard.take() else { return Ok(()) };
    match house.desk.sessions.submit(accepted.clone(), owned) {
        Ok(()) => Ok(()),
        Err(LaneFull(owned)) => {
            *guard = Some(owned);
            tracing::warn!(session = %accepted.inbound.origin.key, "refused: too many messages wait here");
            reply(house, accepted, Kind::Error, LANE_FULL, Closing::Refused, "too many messages wait here").await
        }
    }
}

/// The command's effect, its reply and the closed row are one transaction.
async fn carry_out(house: &House, accepted: &Accepted, outcome: Outcome) -> Result<(), StoreError> {
    let destination = Destination::of(&accepted.inbound);
    let rows = house.delivery.draft(&destination, Kind::Command, None, &outcome.reply);
    let (id, count, inbound) = (accepted.id, rows.len(), accepted.inbound.clone());
    let changes_pin = outcome.effect.changes_pin();
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        outcome.effect.write(tx, &inbound, now)?;
        inbox::close(tx, id, Closing::Done, "command", now)?;
        outbox::insert(tx, &rows, Some(id), now)
    };
    house.desk.db.write(write).await?;
    if changes_pin {
        house.pins.changed(destination.place());
    }
    house.delivery.submit(destination.place(), count);
    Ok(())
}

async fn reply(
    house: &House,
    accepted: &Accepted,
    kind: Kind,
    text: &str,
    closing: Closing,
    outcome: &'static str,
) -> Result<(), StoreError> {
    let destination = Destination::of(&accepted.inbound);
    let rows = house.delivery.draft(&destination, kind, None, text);
    let (id, count) = (accepted.id, rows.len());
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        inbox::close(tx, id, closing, outcome, now)?;
        outbox::insert(tx, &rows, Some(id), now)
    };
    house.desk.db.write(write).await?;
    house.delivery.submit(destination.place(), count);
    Ok(())
}

/// A stranger is told once per code how to get in, and hears nothing else.
async fn hint(house: &House, accepted: &Accepted) -> Result<(), StoreError> {
    let destination = Destination::of(&accepted.inbound);
    let (id, inbound, delivery, to) = (accepted.id, accepted.inbound.clone(), house.delivery.clone(), destination.clone());
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        let code = people::new_code(tx, &inbound.origin.person, &inbound.person_name, now)?;
        let rows = code.map_or_else(Vec::new, |code| delivery.draft(&to, Kind::Notice, None, &pairing(&code)));
        inbox::close(tx, id, Closing::Refused, "a stranger", now)?;
        outbox::insert(tx, &rows, Some(id), now)?;
        Ok(rows.len())
    };
    let count = house.desk.db.write(write).await?;
    house.delivery.submit(destination.place(), count);
    Ok(())
}

/// The place's pin. One that names an agent who is gone is dropped, and the place is told once.
async fn valid_pin(house: &House, inbound: &Inbound) -> Result<Option<Pin>, StoreError> {
    let place = &inbound.origin.key;
    let Some(pin) = house.pins.get(place).await? else { return Ok(None) };
    if house.desk.registry.get(&pin.agent).is_some() {
        return Ok(Some(pin));
    }
    tracing::warn!(session = %place, "the pin to {} is dropped: no such agent any more", pin.agent);
    let destination = Destination::of(inbound);
    let rows = house.delivery.draft(&destination, Kind::Notice, None, &gone(&pin));
    let (key, count) = (place.clone(), rows.len());
    let write = move |tx: &Transaction<'_>| {
        pins::clear(tx, &key)?;
        outbox::insert(tx, &rows, None, now_ms())
    };
    house.desk.db.write(write).await?;
    house.pins.changed(place);
    house.delivery.submit(place, count);
    Ok(None)
}

/// Being paired only matters where strangers are kept out, so only then is it looked up.
async fn standing(house: &House, inbound: &Inbound) -> Result<Standing, StoreError> {
    let access: &Access = &house.desk.config.access;
    let person = inbound.origin.person.clone();
    let known = Standing::of(access, &person, false);
    if known == Standing::Owner {
        return Ok(known);
    }
    let paired = house.desk.db.read(move |connection| people::is_paired(connection, &person)).await?;
    Ok(Standing::of(access, &inbound.origin.person, paired))
}

const LANE_FULL: &str = "Too many messages are waiting here, so I did not take this one. Please send it again later.";

fn unbound(inbound: &Inbound) -> String {
    format!(
        "I do not answer here yet. `/agent <id>` opens this place, or bind `{}` to an agent in config.toml.",
        inbound.origin.key
    )
}

fn pairing(code: &str) -> String {
    format!("I do not know you yet. If my owner wants us to talk, they can send me `/pair {code}` within the hour.")
}

fn gone(pin: &Pin) -> String {
    format!("{} is no longer here, so this place goes back to its usual agent.", pin.agent)
}
