//! Turns as an operator sees them: the latest, and one of them from its message to its delivery.

use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::config_file::difference;
use super::house::House;
use super::named::{Moment, Named};
use crate::domain::{AgentUid, Labels};
use crate::records::turn_notes::{self, Notes, Sections, ToolNote};
use crate::records::turn_story::{self, Child, Ended, Sending, Story, Unended};
use crate::turn::ModelCall;

/// The form of [`TurnView`], counted up when a field changes its meaning.
const VERSION: u32 = 1;

/// An ended turn in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TurnLine {
    /// The number of the message that was answered, which `/turns/{id}` takes.
    pub(crate) id: i64,
    pub(crate) place: Named,
    /// Absent for an agent that is gone.
    pub(crate) agent: Option<Named>,
    pub(crate) model: String,
    /// The rule that chose the agent.
    pub(crate) rule: String,
    /// `answered`, `stopped`, or why there was no answer.
    pub(crate) outcome: String,
    /// Absent once the row of the message is forgotten.
    pub(crate) received_at: Option<Moment>,
    pub(crate) started_at: Moment,
    pub(crate) ended_at: Moment,
    /// From the message to the begin of its turn.
    pub(crate) waited_ms: Option<i64>,
    pub(crate) took_ms: i64,
    pub(crate) model_calls: u32,
    pub(crate) tokens: Tokens,
    #[serde(skip)]
    pub(crate) row: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    /// Part of the input.
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

/// A turn from its message to its delivery.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TurnView {
    pub(crate) v: u32,
    /// The number of the message that was answered.
    pub(crate) id: i64,
    pub(crate) place: Option<Named>,
    /// Absent where no turn has begun, and for an agent that is gone.
    pub(crate) agent: Option<Named>,
    pub(crate) state: TurnState,
    /// `answered`, `stopped`, or why there was no answer.
    pub(crate) outcome: Option<String>,
    /// The rule that chose the agent.
    pub(crate) rule: Option<String>,
    /// The model of the last answer.
    pub(crate) model: Option<String>,
    pub(crate) received_at: Moment,
    pub(crate) ended_at: Option<Moment>,
    pub(crate) tokens: Tokens,
    /// In millionths of the currency; null where a model without a price was asked.
    pub(crate) cost_micros: Option<u64>,
    pub(crate) currency: String,
    /// Where the words that the turn has read come from.
    pub(crate) read: Vec<String>,
    pub(crate) timeline: Vec<Event>,
    pub(crate) prompt: PromptView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TurnState {
    /// No turn has begun.
    Waiting,
    /// Under way, or interrupted.
    Running,
    /// Put aside for newer messages.
    Parked,
    Ended,
    /// The message was closed without a turn.
    Closed,
}

/// Something that happened, in the order of time.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Event {
    pub(crate) at: Moment,
    /// Since the message came.
    pub(crate) after_ms: i64,
    pub(crate) took_ms: Option<i64>,
    #[serde(flatten)]
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum What {
    /// The message came, and its row was committed.
    Received,
    /// In the queue of the place: earlier messages came first, or further parts might have come.
    Queued {
        /// Turns of the place that ended meanwhile.
        turns: Vec<i64>,
    },
    /// As many turns ran as may run at once.
    Slot,
    /// Decided while the place was busy.
    Decided { what: String },
    /// No process worked on it: it was killed or stopped, and the next one took the message up.
    Away,
    /// Files, conversation and memories were read, and the prompt made of them.
    Prepared { memories: usize },
    /// A call of a model.
    Called {
        model: String,
        /// From the call to the model's first sign.
        first_ms: Option<u64>,
        tokens: Tokens,
        cost_micros: Option<u64>,
        /// Why there was no answer.
        error: Option<String>,
    },
    /// A call of a tool.
    Tool {
        tool: String,
        round: u32,
        /// Absent for a call without a result.
        result_bytes: Option<u64>,
        /// For callers with the scope admin, as far as they are kept.
        arguments: Option<String>,
    },
    /// A turn that this turn asked for.
    Subagent {
        run: String,
        agent: Option<Named>,
        turn: i64,
        state: String,
        tokens: u64,
    },
    /// The unfinished answer was shown.
    Shown { times: u32 },
    /// The turn is over.
    Ended { outcome: String },
    /// The message was closed without a turn.
    Closed { reason: String },
    /// A message to people.
    Sent {
        /// From 1.
        part: usize,
        parts: usize,
        /// final, command, notice or error.
        sort: String,
        /// waiting, sending, sent or failed.
        state: String,
        /// A preview was changed instead of a new message sent.
        edit: bool,
        file: bool,
        tries: u32,
        /// How long the platform asked to wait, all times together.
        asked_to_wait_ms: i64,
        /// No answer came to a call, so it was made again.
        repeated: bool,
        error: Option<String>,
    },
}

/// The prompt of a turn, by section.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct PromptView {
    /// Whether the words are kept, and shown to this caller.
    pub(crate) words: Words,
    pub(crate) sections: Vec<SectionView>,
    /// The turn that the differences are to.
    pub(crate) compared_with: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Words {
    /// In `text`.
    Shown,
    /// Kept, for callers with the scope admin.
    Hidden,
    NotKept,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct SectionView {
    pub(crate) name: String,
    /// About how many; providers count differently.
    pub(crate) tokens: usize,
    pub(crate) text: Option<String>,
    /// The lines that differ from the turn before, each with its mark: `-` only before, `+` only now. Null where that is
    /// not known.
    pub(crate) difference: Option<Vec<String>>,
}

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Numbers and names.
    Sizes,
    /// Words of people too.
    Everything,
}

/// Ended turns, the latest first.
pub(crate) fn latest(
    connection: &Connection,
    house: &House,
    wanted: &turn_story::Wanted,
    limit: u32,
) -> rusqlite::Result<Vec<TurnLine>> {
    let turns = turn_story::latest(connection, wanted, limit)?;
    Ok(turns.iter().map(|turn| line(house, turn)).collect())
}

fn line(house: &House, turn: &Ended) -> TurnLine {
    TurnLine {
        id: turn.inbox_id,
        place: place(house, &turn.place),
        agent: agent(house, &turn.agent_uid),
        model: turn.model.clone(),
        rule: turn.route.clone(),
        outcome: turn.outcome.clone(),
        received_at: turn.received_at.map(Moment),
        started_at: Moment(turn.started_at),
        ended_at: Moment(turn.ended_at),
        waited_ms: turn.received_at.map(|at| (turn.started_at - at).max(0)),
        took_ms: (turn.ended_at - turn.started_at).max(0),
        model_calls: turn.rounds,
        tokens: tokens(turn),
        row: turn.id,
    }
}

fn tokens(turn: &Ended) -> Tokens {
    Tokens {
        input: turn.input_tokens,
        cached: turn.cached_tokens,
        output: turn.output_tokens,
    }
}

fn place(house: &House, key: &str) -> Named {
    match key.parse() {
        Ok(key) => house.names.place(&key),
        Err(_) => Named::new(key, None),
    }
}

fn agent(house: &House, uid: &str) -> Option<Named> {
    let uid: AgentUid = uid.parse().ok()?;
    house.agent_of(uid).map(|id| house.agent(id))
}

/// A turn by the number of its message; none where nothing is kept of it.
pub(crate) fn one(
    connection: &Connection,
    house: &House,
    id: i64,
    sight: Sight,
) -> rusqlite::Result<Option<TurnView>> {
    let Some(story) = turn_story::of(connection, id)? else {
        return Ok(None);
    };
    let words = match (&story.ended, story.has_prompt, sight) {
        (Some(turn), true, Sight::Everything) => turn_notes::prompt(connection, turn.id)?,
        _ => None,
    };
    let before = match (&story.ended, &words) {
        (Some(turn), Some(_)) => turn_notes::prompt_before(connection, turn.id)?,
        _ => None,
    };
    let prompt = prompt(&story, words.as_ref(), before.as_ref());
    Ok(Some(view(house, &story, sight, prompt)))
}

fn view(house: &House, story: &Story, sight: Sight, prompt: PromptView) -> TurnView {
    let (ended, unended) = (story.ended.as_ref(), story.unended.as_ref());
    let notes = story.notes.clone().unwrap_or_default();
    let uid = unended.map(|turn| turn.agent_uid.as_str());
    let uid = uid.or(ended.map(|turn| turn.agent_uid.as_str()));
    let read = unended.map(|turn| turn.read);
    let read = read.or(ended.map(|turn| turn.read)).flatten();
    TurnView {
        v: VERSION,
        id: story.inbox_id,
        place: story.place.as_deref().map(|key| place(house, key)),
        agent: uid.and_then(|uid| agent(house, uid)),
        state: state(story),
        outcome: ended.map(|turn| turn.outcome.clone()),
        rule: ended.map(|turn| turn.route.clone()),
        model: ended
            .map(|turn| turn.model.clone())
            .or_else(|| notes.calls.last().map(|call| call.model.clone())),
        received_at: Moment(story.received_at),
        ended_at: ended.map(|turn| Moment(turn.ended_at)),
        tokens: ended.map_or_else(|| sum(&notes.calls), tokens),
        cost_micros: cost(&notes.calls),
        currency: house.config.currency.to_string(),
        read: read
            .unwrap_or(Labels::NONE)
            .iter()
            .map(|label| label.in_words().to_owned())
            .collect(),
        timeline: Timeline::of(house, story, &notes, sight).events,
        prompt,
    }
}

fn state(story: &Story) -> TurnState {
    match (&story.unended, &story.ended) {
        (Some(turn), _) if turn.is_parked => TurnState::Parked,
        (Some(_), _) => TurnState::Running,
        (None, Some(_)) => TurnState::Ended,
        (None, None) if story.state == "waiting" => TurnState::Waiting,
        (None, None) => TurnState::Closed,
    }
}

fn sum(calls: &[ModelCall]) -> Tokens {
    Tokens {
        input: calls.iter().map(|call| call.input_tokens).sum(),
        cached: calls.iter().map(|call| call.cached_tokens).sum(),
        output: calls.iter().map(|call| call.output_tokens).sum(),
    }
}

/// None where an answered call had no price, and where no call is known.
fn cost(calls: &[ModelCall]) -> Option<u64> {
    let answered = calls.iter().filter(|call| call.error.is_none());
    let costs: Option<Vec<u64>> = answered.map(|call| call.cost_micros).collect();
    costs
        .filter(|costs| !costs.is_empty())
        .map(|costs| costs.iter().sum())
}

/// Collects events and brings them into the order of time.
struct Timeline {
    received_at: i64,
    events: Vec<Event>,
}

impl Timeline {
    fn of(house: &House, story: &Story, notes: &Notes, sight: Sight) -> Self {
        let mut timeline = Timeline {
            received_at: story.received_at,
            events: Vec::new(),
        };
        timeline.arrival(story, notes);
        let arguments = arguments(story, sight);
        for (number, tool) in notes.tools.iter().enumerate() {
            timeline.tool(
                story,
                tool,
                arguments.and_then(|all| all.get(number).cloned()),
            );
        }
        for call in &notes.calls {
            timeline.call(call);
        }
        for child in &story.children {
            timeline.subagent(house, child);
        }
        timeline.end(story, notes);
        let parts = story.sendings.len();
        for (number, sending) in story.sendings.iter().enumerate() {
            timeline.sent((number + 1, parts), sending);
        }
        // A stable sort: what has the same time stays in the order of the stages.
        timeline.events.sort_by_key(|event| event.at.0);
        timeline.gaps(&taken_up(story, notes));
        timeline
    }

    fn add(&mut self, at: i64, took_ms: Option<i64>, what: What) {
        self.events.push(Event {
            at: Moment(at),
            after_ms: at - self.received_at,
            took_ms,
            what,
        });
    }

    /// Everything before the first model call.
    fn arrival(&mut self, story: &Story, notes: &Notes) {
        let signed = |ms: Option<u64>| ms.and_then(|ms| i64::try_from(ms).ok());
        let received = story.received_at;
        self.add(received, signed(notes.stored_ms), What::Received);
        for (at, what) in &story.decisions {
            if what != RESUMED {
                self.add(*at, None, What::Decided { what: what.clone() });
            }
        }
        let waited = signed(notes.queued_ms).filter(|ms| *ms >= WORTH_A_LINE_MS);
        if waited.is_some() || !story.waited_for.is_empty() {
            let turns = story.waited_for.clone();
            self.add(received, waited, What::Queued { turns });
        }
        let begun = story.unended.as_ref().map(|turn: &Unended| turn.started_at);
        let Some(begun) = begun.or(story.ended.as_ref().map(|turn| turn.started_at)) else {
            return;
        };
        if let Some(waited) = signed(notes.slot_ms).filter(|ms| *ms >= WORTH_A_LINE_MS) {
            self.add((begun - waited).max(received), Some(waited), What::Slot);
        }
        let took = signed(notes.prepared_ms);
        let at = (begun - took.unwrap_or(0)).max(received);
        let memories = notes.recalled;
        self.add(at, took, What::Prepared { memories });
    }

    fn call(&mut self, call: &ModelCall) {
        let what = What::Called {
            model: call.model.clone(),
            first_ms: call.first_ms,
            tokens: sum(std::slice::from_ref(call)),
            cost_micros: call.cost_micros,
            error: call.error.clone(),
        };
        self.add(call.at, i64::try_from(call.took_ms).ok(), what);
    }

    fn tool(&mut self, story: &Story, tool: &ToolNote, arguments: Option<String>) {
        let begun = story.unended.as_ref().map(|turn| turn.started_at);
        let begun = begun.or(story.ended.as_ref().map(|turn| turn.started_at));
        let at = tool.at.or(begun).unwrap_or(story.received_at);
        let took = tool.ended_at.map(|end| (end - at).max(0));
        let what = What::Tool {
            tool: tool.tool.clone(),
            round: tool.round + 1,
            result_bytes: tool.result_bytes,
            arguments,
        };
        self.add(at, took, what);
    }

    fn subagent(&mut self, house: &House, child: &Child) {
        let took = child.ended_at.map(|at| (at - child.started_at).max(0));
        let what = What::Subagent {
            run: child.run.clone(),
            agent: agent(house, &child.agent_uid),
            turn: child.inbox_id,
            state: child.state.clone(),
            tokens: child.tokens,
        };
        self.add(child.started_at, took, what);
    }

    fn end(&mut self, story: &Story, notes: &Notes) {
        match (&story.unended, &story.ended) {
            (None, Some(turn)) => {
                if notes.previews > 0 {
                    let times = notes.previews;
                    self.add(turn.ended_at, None, What::Shown { times });
                }
                let outcome = turn.outcome.clone();
                let took = (turn.ended_at - turn.started_at).max(0);
                self.add(turn.ended_at, Some(took), What::Ended { outcome });
            }
            (None, None) => {
                if let (Some(at), Some(reason)) = (story.closed_at, story.reason.clone()) {
                    self.add(at, None, What::Closed { reason });
                }
            }
            (Some(_), _) => {}
        }
    }

    fn sent(&mut self, (part, parts): (usize, usize), sending: &Sending) {
        let at = sending.sent_at.unwrap_or(sending.written_at);
        let took = sending.sent_at.map(|at| (at - sending.written_at).max(0));
        let what = What::Sent {
            part,
            parts,
            sort: sending.kind.clone(),
            state: sending.state.clone(),
            edit: sending.is_edit,
            file: sending.has_file,
            tries: sending.attempts,
            asked_to_wait_ms: sending.waited_ms,
            repeated: sending.is_repeated,
            error: sending.error.clone(),
        };
        self.add(at, took, what);
    }

    /// Between the last sign of a process and the moment at which the next one took the turn up.
    fn gaps(&mut self, taken_up: &[i64]) {
        for at in taken_up {
            let index = self.events.partition_point(|event| event.at.0 < *at);
            let before = self.events[..index].last();
            let last = before.map_or(self.received_at, |event| {
                event.at.0 + event.took_ms.unwrap_or(0)
            });
            let gap = Event {
                at: Moment(last.min(*at)),
                after_ms: last.min(*at) - self.received_at,
                took_ms: Some((*at - last).max(0)),
                what: What::Away,
            };
            self.events.insert(index, gap);
        }
    }
}

/// A shorter wait is no wait.
const WORTH_A_LINE_MS: i64 = 5;
/// The decision about a turn that goes on after a restart.
const RESUMED: &str = "resumed after a restart";

/// When processes took the message up that another had left.
fn taken_up(story: &Story, notes: &Notes) -> Vec<i64> {
    let resumed = story.decisions.iter().filter(|(_, what)| what == RESUMED);
    let mut all: Vec<i64> = resumed.map(|(at, _)| *at).collect();
    if let Some(at) = notes.taken_up_at
        && all.is_empty()
    {
        all.push(at);
    }
    all
}

/// Arguments of the tools of an unfinished turn. Those of an ended one are in its prompt.
fn arguments(story: &Story, sight: Sight) -> Option<&[String]> {
    let turn = story.unended.as_ref()?;
    (sight == Sight::Everything).then_some(&turn.arguments)
}

fn prompt(
    story: &Story,
    words: Option<&Sections>,
    before: Option<&(i64, Option<Sections>)>,
) -> PromptView {
    let sizes = story.notes.as_ref().map(|notes| notes.sections.as_slice());
    let earlier = before.and_then(|(_, sections)| sections.as_ref());
    let section = |(name, tokens): &(String, usize)| {
        let text = words.and_then(|all| find(all, name));
        SectionView {
            name: name.clone(),
            tokens: *tokens,
            text: text.map(str::to_owned),
            difference: text
                .zip(earlier)
                .map(|(text, earlier)| changed(find(earlier, name).unwrap_or_default(), text)),
        }
    };
    PromptView {
        words: match (words, story.has_prompt) {
            (Some(_), _) => Words::Shown,
            (None, true) => Words::Hidden,
            (None, false) => Words::NotKept,
        },
        sections: sizes.unwrap_or_default().iter().map(section).collect(),
        compared_with: before.filter(|_| earlier.is_some()).map(|(turn, _)| *turn),
    }
}

fn find<'a>(sections: &'a Sections, name: &str) -> Option<&'a str> {
    let found = sections.iter().find(|(known, _)| known == name);
    found.map(|(_, text)| text.as_str())
}

/// The lines that differ.
fn changed(before: &str, now: &str) -> Vec<String> {
    let mut lines = difference(before, now);
    lines.retain(|line| !line.starts_with(' ') && line.len() > 1);
    lines
}

/// `0.0123`: millionths of the currency.
pub(crate) fn money(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let short = text.trim_end_matches('0');
    let shortest = text.find('.').map_or(0, |point| point + 3);
    text[..short.len().max(shortest)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_at_least_two_places() {
        let check = |micros, expected| assert_eq!(money(micros), expected);
        check(0, "0.00");
        check(1, "0.000001");
        check(12_300, "0.0123");
        check(1_500_000, "1.50");
        check(20_000_000, "20.00");
    }
}
