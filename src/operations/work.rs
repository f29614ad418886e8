//! The turns under way and the messages that wait: shown, stopped, dropped.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, Transaction};
use serde::{Deserialize, Serialize};

use super::{Live, Operations, Refusal, texts};
use crate::channels::Text;
use crate::clock::now_ms;
use crate::delivery::Kind;
use crate::delivery::outbox::{self, Source};
use crate::domain::{AgentId, AgentUid, Destination, SessionKey};
use crate::lanes::{Stage, Work};
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::{agent_pauses, approvals, decisions, inbox, journal, sessions};

/// A turn or a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) place: SessionKey,
    /// The agent that answers, or that would answer now.
    pub(crate) agent: Option<AgentId>,
    /// The agent is paused.
    pub(crate) paused: bool,
    /// The name of the person who asked.
    pub(crate) by: String,
    pub(crate) stage: ListedStage,
    /// Unix milliseconds: the beginning of the turn, or the arrival of the message.
    pub(crate) since: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ListedStage {
    Running,
    /// Goes on after newer messages.
    Parked,
    Waiting,
}

/// Turns and messages that were ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) count: usize,
    pub(crate) places: usize,
}

/// Most waiting rows that are read of a home without a gateway.
const MOST_ROWS: u32 = 1000;

/// The queue of a place, or of all places. Without a gateway, the messages that the next start
/// answers.
pub(super) async fn queue(
    operations: &Operations,
    place: Option<&SessionKey>,
) -> Result<Vec<Listed>, Refusal> {
    let mut listed: Vec<Listed> = match &operations.live {
        Some(live) => live
            .sessions
            .work()
            .iter()
            .map(|work| listed(live, work))
            .collect(),
        None => waiting(operations)
            .await?
            .into_iter()
            .map(|(_, row)| row)
            .collect(),
    };
    listed.retain(|row| place.is_none_or(|place| row.place.is_in(place)));
    let mut listed = with_agents(operations, listed).await?;
    listed.sort_by(|one, other| {
        (&one.place, one.stage, one.since).cmp(&(&other.place, other.stage, other.since))
    });
    Ok(listed)
}

/// Gives messages that wait the agent of their place.
async fn with_agents(
    operations: &Operations,
    mut listed: Vec<Listed>,
) -> Result<Vec<Listed>, Refusal> {
    if listed.is_empty() {
        return Ok(listed);
    }
    let house = operations.house().await?;
    let read = move |connection: &Connection| {
        let paused = agent_pauses::all(connection)?;
        let paused: Vec<AgentId> = paused
            .keys()
            .filter_map(|uid| house.agent_of(*uid).cloned())
            .collect();
        for row in &mut listed {
            if row.agent.is_none()
                && let Some(place) = sessions::of(connection, &row.place)?
            {
                row.agent = Some(house.holder(connection, &place)?.agent);
            }
            row.paused = row.agent.as_ref().is_some_and(|id| paused.contains(id));
        }
        Ok(listed)
    };
    Ok(operations.db.read(read).await?)
}

/// The number of turns under way by agent; none where no gateway runs.
pub(super) fn under_way(operations: &Operations) -> HashMap<AgentUid, usize> {
    let live = operations.live.as_ref();
    live.map_or_else(HashMap::new, |live| live.sessions.under_way())
}

fn listed(live: &Live, work: &Work) -> Listed {
    let snapshot = live.snapshots.current();
    let agent = work.agent.and_then(|uid| snapshot.registry.by_uid(uid));
    Listed {
        place: work.place.clone(),
        agent: agent.map(|agent| agent.id.clone()),
        paused: false,
        by: work.item.by.clone(),
        stage: match work.stage {
            Stage::Runs => ListedStage::Running,
            Stage::Parked => ListedStage::Parked,
            Stage::Waits => ListedStage::Waiting,
        },
        since: work.item.since,
    }
}

async fn waiting(operations: &Operations) -> Result<Vec<(i64, Listed)>, Refusal> {
    let read = |connection: &Connection| inbox::waiting(connection, 0, i64::MAX, MOST_ROWS);
    let rows = operations.db.read(read).await?;
    let readable = rows
        .into_iter()
        .filter_map(|row| Some((row.id, row.inbound.ok()?)));
    let listed = readable.map(|(id, inbound)| {
        let listed = Listed {
            place: inbound.origin.key,
            agent: None,
            paused: false,
            by: inbound.person_name,
            stage: ListedStage::Waiting,
            since: inbound.sent_at,
        };
        (id, listed)
    });
    Ok(listed.collect())
}

/// Stops the turns of a place, or of all places. Waiting messages are then answered.
pub(super) async fn stop(
    operations: &Operations,
    actor: &Actor,
    place: Option<&SessionKey>,
) -> Result<Ended, Refusal> {
    let Some(live) = &operations.live else {
        return Ok(Ended {
            count: 0,
            places: 0,
        });
    };
    let mut work = live.sessions.work();
    work.retain(|work| work.stage != Stage::Waits && !work.is_stopping && is_meant(work, place));
    if let Some(place) = place {
        work.extend(live.sessions.background(place));
    }
    end(operations, live, actor, work, texts::STOPPED).await
}

/// Drops the waiting messages of a place, or of all places.
pub(super) async fn clear(
    operations: &Operations,
    actor: &Actor,
    place: Option<&SessionKey>,
) -> Result<Ended, Refusal> {
    if let Some(live) = &operations.live {
        let mut work = live.sessions.work();
        work.retain(|work| work.stage == Stage::Waits && is_meant(work, place));
        return end(operations, live, actor, work, texts::DROPPED).await;
    }
    let mut rows = waiting(operations).await?;
    rows.retain(|(_, row)| place.is_none_or(|place| row.place.is_in(place)));
    let mut by_place: BTreeMap<SessionKey, Vec<i64>> = BTreeMap::new();
    for (id, row) in rows {
        by_place.entry(row.place).or_default().push(id);
    }
    let ended = Ended {
        count: by_place.values().map(Vec::len).sum(),
        places: by_place.len(),
    };
    let by = actor.clone();
    let write = move |tx: &Transaction<'_>| {
        by_place.iter().try_for_each(|(place, ids)| {
            call_off(tx, place, ids, now_ms())?;
            audit::note(tx, &by, &Change::new(Action::Stop).at(place), now_ms())
        })
    };
    operations.db.write(write).await?;
    Ok(ended)
}

fn is_meant(work: &Work, place: Option<&SessionKey>) -> bool {
    place.is_none_or(|place| work.place.is_in(place))
}

/// Ends turns and messages, and tells their places once.
pub(super) async fn end(
    operations: &Operations,
    live: &Live,
    actor: &Actor,
    work: Vec<Work>,
    told: &str,
) -> Result<Ended, Refusal> {
    let mut by_place: BTreeMap<SessionKey, Vec<i64>> = BTreeMap::new();
    for one in &work {
        let ids = by_place.entry(one.place.clone()).or_default();
        ids.extend(&one.item.ids);
    }
    let ended = Ended {
        count: work.len(),
        places: by_place.len(),
    };
    for (place, ids) in by_place {
        // No platform has an internal place, such as that of a subagent.
        let rows = match place.is_internal() {
            true => Vec::new(),
            false => {
                let to = Destination::of_work(place.clone());
                live.delivery.draft(&to, Kind::Notice, &Text::plain(told))
            }
        };
        let (key, by, count) = (place.clone(), actor.clone(), rows.len());
        let write = move |tx: &Transaction<'_>| {
            let now = now_ms();
            call_off(tx, &key, &ids, now)?;
            audit::note(tx, &by, &Change::new(Action::Stop).at(&key), now)?;
            outbox::insert(tx, &rows, Source::default(), now)
        };
        operations.db.write(write).await?;
        work.iter()
            .filter(|work| work.place == place)
            .for_each(|work| live.sessions.halt_work(work));
        live.delivery.submit(&place, count);
    }
    Ok(ended)
}

/// Closes the rows of turns and messages that are not wanted any more.
pub(crate) fn call_off(
    tx: &Transaction<'_>,
    place: &SessionKey,
    ids: &[i64],
    now: i64,
) -> rusqlite::Result<()> {
    // `ids` lacks the rows absorbed by a turn of an earlier process; the journal has them.
    inbox::call_off(tx, &journal::with_members(tx, ids)?, now)?;
    ids.iter()
        .try_for_each(|id| approvals::cancel(tx, *id, now))?;
    ids.iter()
        .try_for_each(|id| decisions::note(tx, place, *id, decisions::Decision::Stopped, now))
}
