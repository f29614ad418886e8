//! The terminals that talk at the moment: the lines each has asked, and the answer each is shown
//! while a model writes.

use std::collections::{HashSet, VecDeque};

use tokio::sync::mpsc;

use super::{Shown, Whole};
use crate::domain::{LocalName, MessageId, SessionKey};

/// Messages kept for a terminal that is not there. When full, the oldest goes; the transcript has
/// them all.
const MOST_KEPT: usize = 32;

/// All seats. The lock around them is plain: every section is a look at a few entries, and none
/// awaits.
#[derive(Default)]
pub(super) struct Seats {
    all: Vec<Seat>,
    /// The number of the next seat.
    next: u64,
    kept: VecDeque<Whole>,
}

/// A terminal, as the gateway sees it.
pub(super) struct Seat {
    pub(super) number: u64,
    /// Messages that no terminal asked for are shown to terminals of their room. None is all rooms.
    room: Option<LocalName>,
    screen: mpsc::Sender<Shown>,
    pub(super) asked: HashSet<MessageId>,
    pub(super) streamed: Option<Streamed>,
}

/// The answer that is shown as it comes. There is one at most, because pieces of two would be mixed
/// on the screen.
pub(super) struct Streamed {
    pub(super) question: MessageId,
    pub(super) place: SessionKey,
    /// The pieces that are on the screen already.
    text: String,
}

impl Seats {
    /// A new seat. Messages kept for its room are the first on its screen.
    pub(super) fn take(&mut self, room: Option<LocalName>, screen: mpsc::Sender<Shown>) -> u64 {
        let number = self.next;
        self.next += 1;
        let seat = Seat {
            number,
            room,
            screen,
            asked: HashSet::new(),
            streamed: None,
        };
        let kept = std::mem::take(&mut self.kept).into_iter();
        let (here, elsewhere): (VecDeque<_>, VecDeque<_>) =
            kept.partition(|whole: &Whole| seat.is_in_room_of(&whole.place));
        self.kept = elsewhere;
        for whole in here {
            // A fresh screen has room for all that is kept.
            drop(seat.screen.try_send(Shown::Whole(whole)));
        }
        self.all.push(seat);
        number
    }

    pub(super) fn leave(&mut self, number: u64) {
        self.all.retain(|seat| seat.number != number);
    }

    pub(super) fn seat(&mut self, number: u64) -> Option<&mut Seat> {
        self.all.iter_mut().find(|seat| seat.number == number)
    }

    /// The seat that asked a line.
    pub(super) fn asker(&self, line: &MessageId) -> Option<u64> {
        let seat = self.all.iter().find(|seat| seat.asked.contains(line))?;
        Some(seat.number)
    }

    /// The seats of a place's room.
    pub(super) fn in_room_of(&self, place: &SessionKey) -> Vec<u64> {
        let there = self.all.iter().filter(|seat| seat.is_in_room_of(place));
        there.map(|seat| seat.number).collect()
    }

    /// Keeps a message that nobody is there for.
    pub(super) fn keep(&mut self, mut whole: Whole) {
        whole.is_left = whole.question.is_some();
        if self.kept.len() >= MOST_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(whole);
    }

    pub(super) fn screen(&self, number: u64) -> Option<mpsc::Sender<Shown>> {
        let seat = self.all.iter().find(|seat| seat.number == number)?;
        Some(seat.screen.clone())
    }
}

impl Seat {
    fn is_in_room_of(&self, place: &SessionKey) -> bool {
        match (&self.room, place) {
            (Some(own), SessionKey::Local { room, .. }) => own == room,
            (Some(_), _) => false,
            (None, _) => true,
        }
    }

    /// Whether the screen is free for the answer to this question: it was asked here, and no other
    /// answer is being shown.
    pub(super) fn may_show(&self, question: &MessageId) -> bool {
        let is_free = self
            .streamed
            .as_ref()
            .is_none_or(|streamed| streamed.question == *question);
        self.asked.contains(question) && is_free
    }

    /// Whether another answer of the place is on the screen. A place has one turn at a time, so that
    /// answer has ended or is parked.
    pub(super) fn streams_another(&self, place: &SessionKey, question: &MessageId) -> bool {
        self.streamed
            .as_ref()
            .is_some_and(|streamed| streamed.place == *place && streamed.question != *question)
    }

    /// Takes the next piece of an answer. False when the terminal gets that answer whole.
    pub(super) fn stream(&mut self, place: &SessionKey, question: &MessageId, text: &str) -> bool {
        if !self.may_show(question) {
            return false;
        }
        let begin = || Streamed {
            question: question.clone(),
            place: place.clone(),
            text: String::new(),
        };
        self.streamed.get_or_insert_with(begin).text.push_str(text);
        true
    }

    /// The pieces of an answer that are on the screen, if it came in pieces. No more of them come.
    pub(super) fn end(&mut self, question: Option<&MessageId>) -> Option<String> {
        let streamed = self
            .streamed
            .take_if(|streamed| question == Some(&streamed.question))?;
        Some(streamed.text)
    }

    /// An answer of the place that came in pieces so far is shown whole later: a newer answer has the
    /// screen.
    pub(super) fn give_way(&mut self, place: &SessionKey) -> bool {
        let streamed = self.streamed.take_if(|streamed| streamed.place == *place);
        streamed.is_some()
    }

    /// Whether a question was asked before this terminal came. Rows without a question were written
    /// by commands, or by an earlier version.
    pub(super) fn is_left(&self, question: Option<&MessageId>) -> bool {
        question.is_some_and(|question| !self.asked.contains(question))
    }
}
