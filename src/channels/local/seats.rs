//! The terminals in use at the moment: the lines of each, and the answer on each screen while a
//! model writes.

use std::collections::{HashSet, VecDeque};

use tokio::sync::mpsc;

use super::{Audience, Shown, Whole};
use crate::domain::{LocalName, MessageId, SessionKey};

/// Messages kept for an absent terminal. When full, the oldest goes; the transcript has them all.
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

/// The gateway's view of a terminal.
pub(super) struct Seat {
    pub(super) number: u64,
    /// Messages without a question are shown to terminals of their room. None is all rooms.
    room: Option<LocalName>,
    audience: Audience,
    screen: mpsc::Sender<Shown>,
    pub(super) asked: HashSet<MessageId>,
    pub(super) streamed: Option<Streamed>,
}

/// The answer on the screen during a turn. A terminal has a single such answer, because pieces of
/// two answers would be mixed on the screen.
pub(super) struct Streamed {
    pub(super) question: MessageId,
    pub(super) place: SessionKey,
    /// The pieces on the screen so far.
    text: String,
}

impl Seats {
    /// A new seat. Messages kept for its room are the first on its screen.
    pub(super) fn take(
        &mut self,
        room: Option<LocalName>,
        audience: Audience,
        screen: mpsc::Sender<Shown>,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        let seat = Seat {
            number,
            room,
            audience,
            screen,
            asked: HashSet::new(),
            streamed: None,
        };
        let kept = std::mem::take(&mut self.kept).into_iter();
        let (here, elsewhere): (VecDeque<_>, VecDeque<_>) =
            kept.partition(|whole: &Whole| seat.looks_at(&whole.place));
        self.kept = elsewhere;
        for whole in here {
            // A fresh screen has room for all kept messages.
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

    /// The seat with this line among its lines.
    pub(super) fn asker(&self, line: &MessageId) -> Option<u64> {
        let seat = self.all.iter().find(|seat| seat.asked.contains(line))?;
        Some(seat.number)
    }

    /// The seats of a place's room that show more than their own answers.
    pub(super) fn in_room_of(&self, place: &SessionKey) -> Vec<u64> {
        let there = self.all.iter().filter(|seat| seat.looks_at(place));
        there.map(|seat| seat.number).collect()
    }

    /// Gives an earlier line to a person in the place's room, like a line asked there.
    pub(super) fn adopt(&mut self, place: &SessionKey, line: &MessageId) -> Option<u64> {
        let is_person = |seat: &&mut Seat| seat.audience == Audience::Person;
        let mut people = self.all.iter_mut().filter(is_person);
        let seat = people.find(|seat| seat.looks_at(place))?;
        seat.asked.insert(line.clone());
        Some(seat.number)
    }

    /// Keeps a message for which no terminal is open.
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
    /// Whether this terminal also shows messages of the place without a question from here.
    fn looks_at(&self, place: &SessionKey) -> bool {
        self.audience != Audience::Question && self.is_in_room_of(place)
    }

    fn is_in_room_of(&self, place: &SessionKey) -> bool {
        match (&self.room, place) {
            (Some(own), SessionKey::Local { room, .. }) => own == room,
            (Some(_), _) => false,
            (None, _) => true,
        }
    }

    /// Whether the screen is free for the answer to this question: the question came from here, and
    /// no other answer is being shown.
    pub(super) fn may_show(&self, question: &MessageId) -> bool {
        let is_free = self
            .streamed
            .as_ref()
            .is_none_or(|streamed| streamed.question == *question);
        self.asked.contains(question) && is_free
    }

    /// Whether another answer of the place is on the screen. Turns of a place run in sequence, so
    /// the other answer has ended or is parked.
    pub(super) fn streams_another(&self, place: &SessionKey, question: &MessageId) -> bool {
        self.streamed
            .as_ref()
            .is_some_and(|streamed| streamed.place == *place && streamed.question != *question)
    }

    /// Takes the next piece of an answer. False when the terminal gets the answer whole.
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

    /// The pieces of an answer on the screen, if the answer came in pieces. No more of them come.
    pub(super) fn end(&mut self, question: Option<&MessageId>) -> Option<String> {
        let streamed = self
            .streamed
            .take_if(|streamed| question == Some(&streamed.question))?;
        Some(streamed.text)
    }

    /// Ends the pieces of the place's answer, because a newer answer has the screen. The older
    /// answer is shown whole later.
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
